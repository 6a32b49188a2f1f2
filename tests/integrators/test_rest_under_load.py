"""A body that is held still has forces in balance, and no momentum to measure them by."""

import jax.numpy as jnp
import numpy as np
import pytest

import retrax as rx


def held_in_place(R, w, t):
    """A law whose parts cancel where the body comes to rest."""
    error = jnp.array([R[2, 1] - R[1, 2], R[0, 2] - R[2, 0], R[1, 0] - R[0, 1]])
    return -4 * error - 2 * w + jnp.array([0.2, 0.3, -0.1])


BODIES = {
    "in space": rx.systems.FreeRigidBody([1.0, 2.0, 2.5]),
    "in gravity": rx.systems.Pendulum3D([1.0, 2.0, 2.5], 1.0, [0.0, 0.0, 0.3]),
}
INTEGRATORS = {
    "lie-verlet": rx.LieVerlet(),
    "cotangent-lift": rx.CotangentLift(),
    "tangent-lift": rx.TangentLift(),
    "lagrange-d-alembert": rx.LagrangeDAlembert(),
    "hamel-midpoint": rx.HamelMidpoint(),
}


PAIRS = [(where, name) for where in BODIES for name in INTEGRATORS]
PAIRS.remove(("in gravity", "hamel-midpoint"))  # it takes no potential


@pytest.mark.parametrize(("where", "name"), PAIRS)
def test_a_body_comes_to_rest_under_load(where, name):
    plant = rx.Actuated(BODIES[where], inputs=np.eye(3))
    start = plant.state(rx.SO3().exp(jnp.array([0.3, 0.2, 0.9])), velocity=[0.3, 0.4, 1.0])
    control = rx.Feedback(held_in_place)
    run = rx.simulate(
        plant, INTEGRATORS[name], start, h=0.02, steps=8000, save_every=2000, control=control
    )
    assert np.max(np.abs(run.momentum[-1])) < 1e-15
    assert np.max(run.info.iterations[-1]) < 2000 * 6  # no step runs into the limit of 25
