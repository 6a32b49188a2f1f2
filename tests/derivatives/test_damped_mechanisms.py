"""Derivatives of steps of mechanisms whose dampers couple bodies beside the matrix of a step."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import retrax as rx


def damped_chain(bodies, damping):
    m, before = rx.Mechanism(), "ground"
    for k in range(bodies):
        m.body(f"bar {k}", 1 + 0.1 * k, [0.1, 0.2, 0.25], at=[k + 0.5, 0.02 * k, 0])
        axis = [0.2, 1, 0.1 * k - 1]
        m.join(rx.Revolute(before, f"bar {k}", at=[k, 0.02 * k, 0], axis=axis, name=f"hinge {k}"))
        m.add(rx.TorsionDamper(f"hinge {k}", damping=damping))
        before = f"bar {k}"
    return m.system()


# Strong damping: the step converges slowly, and improvements of its derivative as slowly.
@pytest.mark.parametrize(
    ("bodies", "damping"), [(2, 20.0), pytest.param(20, 2.0, marks=pytest.mark.campaign)]
)
def test_a_step_with_strong_dampers_has_the_derivative_of_its_differences(bodies, damping):
    """Measured: 1.6e-10 and 2.6e-12; 3.1e-6 if improved eight times only, 8.2e-6 if twice."""
    system = damped_chain(bodies, damping)
    start = system.state(system.reference, velocity=np.zeros(6 * bodies))

    def end(h):
        state, info = rx.LieVerlet().step(system, start, h)
        return jnp.where(info.converged, state.momentum, jnp.nan)

    h, e = 0.02, 2e-4
    mine = jax.jit(lambda h: jax.jvp(end, (h,), (1.0,))[1])(h)
    at = jax.jit(end)
    near, far = at(h + e) - at(h - e), at(h + 2 * e) - at(h - 2 * e)
    differences = (8 * near - far) / (12 * e)
    error = float(jnp.max(jnp.abs(mine - differences)) / jnp.max(jnp.abs(differences)))
    assert error < 1e-9, error
