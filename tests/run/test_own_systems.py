"""Members of an ensemble that have each their own system."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import retrax as rx
from tops import INERTIA, ready_top, start

RUN = {"h": 0.02, "steps": 60, "save_every": 20}


def free(*inertias):
    bodies = [rx.systems.FreeRigidBody(inertia) for inertia in inertias]
    states = [start(body) for body in bodies]
    return bodies, jax.tree.map(lambda *xs: jnp.stack(xs), *states)


def test_one_member_may_have_its_own_system():
    bodies, states = free(INERTIA)
    one = rx.ensemble(bodies, rx.LieVerlet(), states, **RUN)
    alone = rx.simulate(bodies[0], rx.LieVerlet(), start(bodies[0]), **RUN)
    np.testing.assert_allclose(one["g"][:, 0], alone.g, rtol=0, atol=1e-14)


def test_a_list_of_systems_is_never_taken_for_one():
    """Three rows of moments that together are a positive symmetric matrix."""
    bodies, states = free([3.0, 2.0, 2.0], [2.0, 3.0, 2.0], [2.0, 2.0, 3.0])
    runs = rx.ensemble(bodies, rx.LieVerlet(), states, **RUN)
    for k, body in enumerate(bodies):
        alone = rx.simulate(body, rx.LieVerlet(), start(body), **RUN)
        np.testing.assert_allclose(runs["g"][:, k], alone.g, rtol=0, atol=1e-14)


def test_lists_that_do_not_fit_are_refused():
    bodies, states = free(INERTIA, [1.5, 2.0, 2.5])
    with pytest.raises(rx.BadInput, match="a list of 2 systems, but there are 3 states"):
        three = jax.tree.map(lambda x: jnp.stack([x[0]] * 3), states)
        rx.ensemble(bodies, rx.LieVerlet(), three, **RUN)
    matrix = rx.systems.FreeRigidBody(jnp.diag(jnp.array(INERTIA)))
    with pytest.raises(rx.BadInput, match=r"must be of one kind, .* but they are of 2 kinds"):
        rx.ensemble([bodies[0], matrix], rx.LieVerlet(), states, **RUN)


def test_states_that_do_not_fit_are_refused():
    bodies, states = free(INERTIA, [1.5, 2.0, 2.5])
    odd = rx.State(states.g, states.momentum, jnp.zeros((2, 1)))
    with pytest.raises(rx.BadInput, match=r"states.t has shape"):
        rx.ensemble(bodies, rx.LieVerlet(), odd, **RUN)
    with pytest.raises(rx.BadInput, match="is more than 2"):
        rx.ensemble(bodies, rx.LieVerlet(), states, h=0.01, steps=10**30)


def test_energies_of_members_with_their_own_systems():
    tops = [ready_top(mass, 5.0) for mass in (0.5, 1.0, 1.5)]
    systems, states = jax.tree.map(lambda *xs: jnp.stack(xs), *tops)
    runs = rx.ensemble(systems, rx.LieVerlet(), states, **RUN)
    energy = rx.analysis.observe_members(systems, runs)["energy"]
    for k, (top, state) in enumerate(tops):
        alone = rx.simulate(top, rx.LieVerlet(), state, **RUN).invariants()["energy"]
        np.testing.assert_allclose(energy[:, k], alone, rtol=0, atol=1e-13)
    assert abs(float(energy[0, 0] - energy[0, 2])) > 1.0
