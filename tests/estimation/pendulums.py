"""A pendulum whose attitudes were measured, for the tests of fits."""

import jax.numpy as jnp
import numpy as np

import retrax as rx
from retrax.estimation.attitudes import from_vectors

TRUE = {"J2": 1.8, "J3": 2.3, "mgl": 9.81}
GUESS = {"J2": 2.0, "J3": 2.0, "mgl": 9.0}


def pendulum(p):
    """A 3D pendulum, its first moment of inertia 1."""
    J = jnp.stack([jnp.ones(()), jnp.asarray(p["J2"]), jnp.asarray(p["J3"])])
    return rx.MechanicalSystem(rx.SO3(), J, potential=lambda R: -p["mgl"] * R[2, 2])


def whole_pendulum(p):
    """The same with all three moments unknown: attitudes know them only up to a factor."""
    return rx.MechanicalSystem(rx.SO3(), p["J"], potential=lambda R: -p["mgl"] * R[2, 2])


def motion(t):
    """States of the pendulum at equally spaced times from 0, far more exact than any noise."""
    body = pendulum(TRUE)
    turned = rx.SO3().exp(jnp.array([1.0, 0.2, 0.1]))
    start = body.state(turned, velocity=[0.5, 1.0, 2.0])
    every = 10
    h = (t[-1] - t[0]) / (len(t) - 1) / every
    return rx.simulate(
        body, "collocation-4", start, h=h, steps=every * (len(t) - 1), save_every=every
    )


def attitudes(run, noise, seed=0):
    """Rotations with noise in the body axes."""
    errors = noise * np.random.default_rng(seed).normal(size=(len(run.t), 3))
    return np.asarray(run.g) @ from_vectors(errors)
