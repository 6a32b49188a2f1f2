"""Plants and controllers of the tests: nothing about them is symmetric, and nothing commutes."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

import retrax as rx

MATRIX = np.array([[1.0, 0.2], [0.0, 1.0], [0.3, -0.5]])
TIMES = np.arange(0.0, 2.01, 0.1)
TABLE = np.random.default_rng(7).normal(size=(len(TIMES), 2))


def tilted(R):
    return 3.0 * R[2, 2] + 0.4 * R[0, 1]


def plant(**options):
    return rx.Actuated(rx.MechanicalSystem(rx.SO3(), [1.0, 2.8, 2.0], tilted), MATRIX, **options)


def start(of=None):
    turned = rx.SO3().exp(jnp.array([0.3, -0.2, 0.5]))
    return (plant() if of is None else of).state(turned, velocity=[0.3, 1.0, -0.7])


class Gains(eqx.Module):
    """A law with gains, which are parameters."""

    k: jax.Array

    def __call__(self, R, xi, t):
        first = -self.k[0] * R[0, 2] - 0.5 * xi[0] + jnp.sin(t)
        return jnp.array([first, R[1, 0] - self.k[1] * xi[1] * xi[2]])


class Integrating(eqx.Module):
    """A law with a state."""

    k: jax.Array

    def __call__(self, R, xi, t, state):
        error = R[:2, 1] + self.k[0] * xi[:2]
        return -error - self.k[1] * state["sum"], {"sum": state["sum"] + 0.02 * error}


GAINS = jnp.array([0.7, 0.4])


def controls(gains=GAINS, table=TABLE):
    """One of each kind, by name."""
    return {
        "feedback": rx.Feedback(Gains(gains)),
        "signal": rx.Signal(TIMES, jnp.asarray(table)),
        "linear": rx.Signal(TIMES, jnp.asarray(table), hold="linear"),
        "sampled": rx.Sampled(Gains(gains), period=0.05),
        "with a state": rx.Sampled(
            Integrating(gains), period=0.04, state={"sum": jnp.zeros(2)}, delay=0.1
        ),
    }
