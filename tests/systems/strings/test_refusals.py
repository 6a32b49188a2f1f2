"""What a string refuses, in one sentence each, and what it warns of."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from oracle import ARM, BODY, one_body, random_state, two_bodies

import retrax as rx

GOOD = {
    "length": 1.0, "density": 0.025, "stiffness": 40.0, "elements": 3,
    "mass": 0.1, "arm": ARM, "inertia": BODY, "gravity": 9.81,
}  # fmt: skip
SKEW = np.array([[0, 1e-5, 0], [0, 0, 0], [0, 0, 0]])


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"mass": 0.0}, "mass = 0 kg is not positive: a body has mass"),
        ({"mass": -0.1}, "mass = -0.1 kg is not positive"),
        ({"stiffness": 0.0}, "stiffness = 0 N is not physical: it must be > 0"),
        ({"length": -1.0}, "length = -1 m is not physical: it must be > 0"),
        ({"density": -0.1}, "density = -0.1 kg/m is not physical: it must be >= 0"),
        ({"density": 0.0}, "density = 0 kg/m leaves the 2 inner nodes of 3 elements without mass"),
        ({"elements": 0}, "elements = 0 must be a whole number of at least 1"),
        ({"elements": 2.5}, "elements = 2.5 must be a whole number"),
        ({"gravity": np.inf}, "gravity must be finite"),
        ({"length": np.nan}, "length must be finite"),
        ({"arm": [0.1, 0.2]}, "arm has shape"),
        ({"inertia": [1.0, 2.0, 3.0]}, "inertia has shape"),
        ({"inertia": BODY + SKEW}, "inertia is not symmetric"),
        ({"inertia": -BODY}, "inertia is not positive definite"),
        (
            {"inertia": rx.solids.elliptic_cylinder(0.1, (0.06, 0.04), 0.1)},
            "is not that of a body about the point it hangs from",
        ),
        (
            {"inertia": rx.solids.about(np.diag([1e-4, 1e-4, 3e-4]), 0.1, ARM)},
            "the largest may not exceed the sum of the others",
        ),
        ({"law": "one-sided"}, "is not known: choose one of two-sided, slack"),
        ({"damping": 0.1}, "damping = 0.1 is not a StringDamping"),
        ({"nodes": [0]}, "node 0 is the pivot"),
        ({"nodes": [4]}, "must be different nodes of the string, from 1 to 3"),
        ({"force": lambda g, xi, t: xi[:3]}, "force returns"),
    ],
)
def test_a_string_that_cannot_be_is_refused(change, sentence):
    with pytest.raises(rx.BadInput) as refused:
        rx.systems.StringPendulum(**(GOOD | change))
    assert sentence in str(refused.value)
    assert str(refused.value).count(". ") == 0


def test_damping_that_would_drive_is_refused():
    with pytest.raises(rx.BadInput, match=r"drag = -0\.1 N s/m is negative"):
        rx.systems.StringDamping(drag=[0.1, -0.1])


@pytest.mark.parametrize(
    ("nodes", "attitude", "sentence"),
    [
        (
            [[0.1, 0, 0], [0.1, 0, 0], [0.2, 0, 0]],
            np.eye(3),
            "nodes 1 and 2 of the string coincide",
        ),
        ([[0.1, 0, 0], [0, 0, 0], [0.3, 0, 0], [1, 0, 0]], np.eye(3), "node 0 of the string is at"),
        ([[0.1, 0, 0], [0.2, 0, np.nan], [0.3, 0, 0]], np.eye(3), "must be finite"),
        ([[0.1, 0, 0], [0.2, 0, 0]], np.eye(3), "shape"),
        ([[0.1, 0, 0], [0.2, 0, 0], [0.3, 0, 0]], 1.001 * np.eye(3), "not a rotation"),
        ([[0.1, 0, 0], [0.2, 0, 0], [0.3, 0, 0]], -np.eye(3), "reflection"),
    ],
)
def test_a_state_that_cannot_be_is_refused(nodes, attitude, sentence):
    system = rx.systems.StringPendulum(**GOOD)
    with pytest.raises(rx.BadInput, match=sentence):
        system.state((nodes, attitude), velocity=np.zeros(12))


def test_the_pivot_may_be_given_as_node_zero():
    system = rx.systems.StringPendulum(**GOOD)
    nodes = np.arange(4)[:, None] / 3 * np.eye(3)[:1]
    state = system.state((nodes, np.eye(3)), velocity=np.zeros(12))
    assert np.array_equal(state.g[0], nodes[1:])


def simulated(system, state, h, steps=1):
    return rx.simulate(system, rx.LieVerlet(), state, h=h, steps=steps, backend="xla")


def test_an_unstable_step_is_refused_and_a_long_one_warned_of():
    system = one_body()[0]
    state, limit = random_state(system), system.longest_stable_step()
    with pytest.raises(
        rx.BadInput, match=r"is unstable on this string: waves along its 3 elements"
    ):
        simulated(system, state, 1.01 * limit)
    with pytest.warns(UserWarning, match="more than half of the longest stable step"):
        simulated(system, state, 0.6 * limit)
    with pytest.raises(rx.BadInput, match="is unstable"):  # its longest substep is 0.66 h
        rx.simulate(system, rx.Composition(rx.LieVerlet(), 4), state, h=1.6 * limit, steps=1)


def test_beyond_the_bound_waves_do_grow():
    """At 1.01 of it the energy explodes, at 0.99 it does not: the bound is the right one."""
    system, state, _, _ = rx.systems.StringPendulum.paper(elements=5)
    system = rx.systems.StringPendulum(
        1.0, 0.025, 40.0, 5, 0.1, np.zeros(3), np.eye(3) * 1e-4, 9.81
    )
    limit, ends = system.longest_stable_step(), {}
    state = system.state(state.g, velocity=np.asarray(system.velocity(state.g, state.momentum)))

    @jax.jit
    def followed(size):
        def step(at, _):
            return rx.LieVerlet().step(system, at, size)[0], None

        return system.energy(jax.lax.scan(step, state, length=600)[0])

    for part in (0.99, 1.01):
        ends[part] = abs(float(followed(part * limit)) - float(system.energy(state)))
    assert ends[0.99] < 0.05
    assert not ends[1.01] < 100


def test_a_body_that_turns_too_far_in_a_step_is_watched():
    system = one_body()[0]
    slow = random_state(system)
    fast = system.state(slow.g, velocity=[0.0] * 9 + [350.0, 40.0, 20.0])
    with pytest.warns(UserWarning, match=r"a body turns by h \|Omega\| = 0.7"):
        simulated(system, fast, 2e-3)
    faster = system.state(slow.g, velocity=[0.0] * 9 + [9000.0, 400.0, 200.0])
    with pytest.warns(UserWarning, match="a body turns"), pytest.raises(rx.StepFailed) as failed:
        simulated(system, faster, 2e-3)
    assert "90 degrees" in str(failed.value) or "did not converge" in str(failed.value)


def test_an_ensemble_looks_at_the_stability_of_every_member():
    systems = [rx.systems.StringPendulum(1.0, 0.025, k, 3, 0.1, ARM, BODY) for k in (40.0, 4000.0)]
    states = [system.hanging() for system in systems]
    stacked = jax.tree.map(lambda *xs: jnp.stack(xs), *states)
    with pytest.raises(rx.BadInput, match="is unstable"):
        rx.ensemble(systems, rx.LieVerlet(), stacked, h=2e-3, steps=1)


def test_bodies_need_nodes_of_their_own():
    with pytest.raises(rx.BadInput, match="must be different nodes"):
        two_bodies(nodes=(2, 2))
