"""Plants that random numbers drive, with keys as the state of their controllers."""

import jax
import jax.numpy as jnp
from driven_plants import plant, start

import retrax as rx

PLANT, START = plant(), start()
KEYS = {"key": jax.random.key, "PRNGKey": jax.random.PRNGKey}
PERIOD, H = 0.02, 0.01


def noisy(R, xi, t, key):
    key, draw = jax.random.split(key)
    return -0.5 * xi[:2] + 0.3 * jax.random.normal(draw, (2,)), key


def control(seed=3, kind="key", law=noisy):
    return rx.Sampled(law, PERIOD, state=KEYS[kind](seed))


def run(by, steps=40, state=START, **options):
    return rx.simulate(
        PLANT, rx.LieVerlet(), state, h=H, steps=steps, control=by, progress=False, **options
    )


def drawn(key, count):
    """The noise that JAX makes itself."""
    out = []
    for _ in range(count):
        key, draw = jax.random.split(key)
        out.append(0.3 * jax.random.normal(draw, (2,)))
    return jnp.stack(out)
