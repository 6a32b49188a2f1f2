"""Several rods in one system: alone among others, welded to one rod, joined to the ground."""

from itertools import pairwise

import jax.numpy as jnp
import numpy as np
import pytest

import retrax as rx

S = rx.systems
MADE = {
    "stretching": [4.0, 3.0, 9.0],
    "bending": [0.2, 0.3, 0.4],
    "mass": 1.1,
    "inertia": [0.01, 0.02, 0.025],
}
WEIGHT = {"gravity": [0.1, 0.2, -1.0]}


def moving(rod, direction, start=(0.0, 0.0, 0.0)):
    """A rod that bends, twists and turns, with no symmetry at all."""
    s = np.linspace(0.0, 1.0, rod.nodes)[:, None]
    omega = np.hstack([np.sin(3 * s), 0.5 * np.cos(2 * s), s**2])
    v = np.hstack([0.3 * s, 0.2 * (1 - s**2), 0.1 * np.sin(5 * s)])
    return rod.state(rod.straight(direction, start=start), velocity=rod.velocity_of(omega, v))


def run(system, start, steps=100, h=0.004):
    return rx.simulate(system, rx.LieVerlet(), start, h=h, steps=steps, save_every=steps // 4)


def together(rods, states, **joined):
    system = S.Rods(rods, **joined)
    g, mu = ([getattr(state, part) for state in states] for part in ("g", "momentum"))
    return system, system.state(system.together(g), momentum=system.together(mu))


def test_rods_that_are_not_joined_move_as_if_alone():
    """With options of all kinds, each of them on one rod only; two start half a turn apart."""
    rods = [
        S.Rod(
            20,
            1.3,
            **MADE,
            **WEIGHT,
            ends=("clamped", "free"),
            end_force=[0.1, 0.2, 0.3],
            end_torque=[0.01, 0.02, 0.03],
            rest_curvature=lambda s, t: [jnp.sin(3 * s - 2 * t), 0.5, 0.3 * s],
        ),
        S.Rod(
            31,
            0.9,
            **(MADE | {"mass": np.linspace(2.0, 1.0, 31)}),
            damping=0.01,
            drag=[0.3, 0.5, 0.1],
            rest_stretch=[0.0, 0.05, 1.1],
            line_force=[0.0, 0.1, 0.0],
        ),
        S.Rod(
            5,
            1.0,
            **MADE,
            ends=("pinned", "free"),
            base=lambda t: jnp.stack([jnp.sin(t), 3.0 * t, t * t]),
            muscle=lambda s, t: [0.05 * jnp.sin(6 * s - 2 * t), 0.0, 0.02 * t],
            follower_line_force=lambda s, t: [0.1 * s, t, 0.0],
            spin_drag=0.01,
        ),
    ]
    ways = [1.0, 0.3, -0.2], [-1.0, -0.3, 0.2], [0.0, 0.0, -1.0]
    states = [moving(rod, way) for rod, way in zip(rods, ways, strict=True)]
    system, start = together(rods, states)
    assert system.name == "rods of 20, 31 and 5 elements"
    found = run(system, start)
    assert found.provenance["backend"] == "native"
    parts = zip(system.split(found.final.g), system.split(found.final.momentum), strict=True)
    for rod, state, (g, mu) in zip(rods, states, parts, strict=True):
        alone = run(rod, state).final
        for one, other in zip((*alone.g, alone.momentum), (*g, mu), strict=True):
            np.testing.assert_allclose(one, other, rtol=0, atol=2e-14)
    energies = sum(float(rod.energy(state)) for rod, state in zip(rods, states, strict=True))
    assert float(system.energy(start)) == pytest.approx(energies, rel=1e-14)


@pytest.mark.parametrize("option", [{}, {"damping": 0.01, "drag": 0.2}], ids=["free", "damped"])
def test_two_rods_welded_are_one_rod(option):
    """Two half nodes that are welded make the node in the middle of the whole rod."""
    whole = S.Rod(17, 1.7, **MADE, **WEIGHT, **option)
    start = moving(whole, [1.0, 0.3, -0.2])
    rods = [S.Rod(8, 0.8, **MADE, **WEIGHT, **option), S.Rod(9, 0.9, **MADE, **WEIGHT, **option)]
    nodes = np.r_[:9, 8:18]
    g = tuple(np.asarray(x)[nodes] for x in start.g)
    weld = rx.Fixed("rod 0 last", "rod 1 first", at=g[1][8], name="weld")
    system = S.Rods(rods, joints=[weld], drawn=g)
    xi = np.asarray(whole.velocity(start.g, start.momentum)).reshape(-1, 6)[nodes].ravel()
    found = run(system, system.state(g, velocity=xi), 200)
    exact = run(whole, start, 200)
    assert found.provenance["backend"] == "native"
    for one, other in zip(found.final.g, exact.final.g, strict=True):
        np.testing.assert_allclose(one, np.asarray(other)[nodes], rtol=0, atol=1e-12)
    violation = max(float(x) for x in found.along(system.constraint_violation))
    assert violation < 1e-14


@pytest.mark.parametrize(("end", "joint"), [("pinned", rx.Spherical), ("clamped", rx.Fixed)])
def test_an_end_joined_to_the_ground_is_held(end, joint):
    held = S.Rod(17, 1.0, **MADE, **WEIGHT, ends=(end, "free"), damping=0.01)
    free = S.Rod(17, 1.0, **MADE, **WEIGHT, damping=0.01)
    start = moving(held, [1.0, 0.3, -0.2])
    one = joint("ground", "rod 0 first", at=[0.0, 0.0, 0.0])
    system = S.Rods([free], joints=[one], drawn=start.g)
    found = run(system, system.state(start.g, momentum=start.momentum))
    exact = run(held, start)
    for x, y in zip(found.final.g, exact.final.g, strict=True):
        np.testing.assert_allclose(x, y, rtol=0, atol=1e-13)
    assert not found.invariants()


def star(**option):
    """Three rods whose ends meet: a ball joint, a hinge; the first rod is free."""
    rods = [S.Rod(n, 0.1 * n, **MADE, **option) for n in (6, 7, 5)]
    ways = [1.0, 0.0, 0.0], [0.0, 1.0, 0.3], [0.2, 0.0, -1.0]
    laid = [rods[0].straight(ways[0])]
    at = np.asarray(laid[0][1][-1])
    laid += [rod.straight(way, start=at) for rod, way in zip(rods[1:], ways[1:], strict=True)]
    joints = [
        rx.Spherical("rod 0 last", "rod 1 first", at=at),
        rx.Revolute("rod 2 first", "rod 0 last", at=at, axis=[0.0, 1.0, 0.2]),
    ]
    g = S.Rods(rods).together(laid)
    system = S.Rods(rods, joints=joints, drawn=g)
    s = np.linspace(0.0, 1.0, system.nodes)[:, None]
    omega = np.hstack([np.sin(3 * s), 0.5 * np.cos(2 * s), s**2])
    v = np.hstack([0.3 * s, 0.2 * (1 - s**2), 0.1 * np.sin(5 * s)])
    velocity = system.velocity_of(omega, v)
    return system, system.state(g, velocity=velocity, project=True)


def test_joints_keep_momenta_energy_and_places():
    system, start = star()
    spread, ends = [], []
    for steps in (200, 400, 800):
        found = run(system, start, steps, 1.6 / steps)
        kept = found.invariants()
        spread.append(np.ptp(kept.pop("energy")))
        assert len(kept) == 6 and max(np.ptp(x) for x in kept.values()) < 2e-14
        assert max(float(x) for x in found.along(system.constraint_violation)) < 5e-15
        ends.append(np.asarray(found.final.g[1]))
    assert spread[0] / spread[1] == pytest.approx(4, rel=0.1)
    apart = [np.abs(a - b).max() for a, b in pairwise(ends)]
    assert np.log2(apart[0] / apart[1]) == pytest.approx(2, abs=0.15)


def test_joined_rods_turn_back():
    system, start = star()
    there = run(system, start, 100).final
    turned = system.state(there.g, momentum=-np.asarray(there.momentum))
    back = run(system, turned, 100).final
    np.testing.assert_allclose(back.g[1], start.g[1], rtol=0, atol=1e-12)


def test_joints_that_cannot_hold_are_refused():
    rods = [S.Rod(4, 1.0, **MADE, ends=("pinned", "free")), S.Rod(4, 1.0, **MADE)]
    g = S.Rods(rods).together([rods[0].straight(), rods[1].straight(start=[0.0, 0.0, 1.0])])
    ball = rx.Spherical("rod 0 last", "rod 1 first", at=[0.0, 0.0, 1.0])
    with pytest.raises(rx.BadInput, match=r"drawn=\(frames, places\)"):
        S.Rods(rods, joints=[ball])
    with pytest.raises(rx.BadInput, match="leave it out"):
        S.Rods(rods, drawn=g)
    with pytest.raises(rx.BadInput, match="joins 'rod 2 last', but ends of rods are called"):
        S.Rods(rods, joints=[rx.Spherical("rod 2 last", "ground", at=[0, 0, 1.0])], drawn=g)
    for again in (ball, rx.Spherical("ground", "rod 0 first", at=[0.0, 0.0, 0.0])):
        with pytest.raises(rx.BadInput, match="hold what is held already"):
            S.Rods(rods, joints=[ball, again], drawn=g)
    with pytest.raises(rx.BadInput, match="same"):
        S.Rods([rods[0], S.Rod(4, 1.0, **MADE, strain="cay")])
    apart = S.Rods(rods, joints=[ball], drawn=g)
    moved = (g[0], np.asarray(g[1]) + np.outer(np.arange(10) > 4, np.ones(3)))
    with pytest.raises(rx.BadInput, match="joint Spherical 0"):
        apart.state(moved, velocity=np.zeros(apart.group.dim))
    with pytest.raises(rx.BadInput, match=r"rods\[0\]"):
        S.Rods([3.0])
