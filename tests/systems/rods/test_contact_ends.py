"""Contacts that end off a rod or between parallel rods, and rods that meet elsewhere."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import retrax as rx
from retrax.systems.rods.events import _segments, first_overlap
from retrax.systems.rods.section import section

S = rx.systems
RADIUS, LENGTH = 0.05, 2.0
UP = np.array([0.0, 0.0, 1.0])


def laid(angle, meet, pull, turning):
    """Straight free rods across each other, rod 1 below, pulled together by opposite weights.

    Each turns about the contact with its own angular velocity in space.
    """
    made = section(1.0, 0.5, 1.0, RADIUS)
    rods = [S.Rod(20, LENGTH, **made, gravity=side * pull * UP) for side in (1.0, -1.0)]
    pair = S.RodsInContact(*rods, radius=RADIUS, width=0.1)
    g, velocities = [], []
    rows = zip(rods, (0.0, angle), meet, (-1.0, 1.0), turning, strict=True)
    for rod, degrees, s, side, spin in rows:
        t = np.array([np.cos(np.radians(degrees)), np.sin(np.radians(degrees)), 0.0])
        frames, places = rod.straight(t, normal=UP, start=side * RADIUS * UP - s * t)
        omega = np.einsum("kji,j->ki", frames, spin)
        g.append((frames, places))
        velocities.append(rod.velocity_of(omega, np.cross(spin, places)))
    return pair, pair.state((*g, np.array(meet)), velocity=pair.join(*velocities))


def test_a_rod_that_rolls_off_the_other_ends_the_run():
    """Rod 2 rolls on rod 1 like a log: s1 grows by a w / sin(angle) a second, from 1.65 to 1.7."""
    angle, rate = 70.0, 2.0
    axis = rate * np.array([np.cos(np.radians(angle)), np.sin(np.radians(angle)), 0.0])
    pair, start = laid(angle, (1.65, 1.0), 1e-3, (np.zeros(3), axis))
    with pytest.raises(rx.ContactLeftRod, match=r"closer than 0\.3 m to an end of a rod") as event:
        rx.simulate(pair, rx.RollingVerlet(), start, h=0.01, steps=100, backend="xla")
    expected = 0.05 / (RADIUS * rate / np.sin(np.radians(angle)))
    kept = event.value.trajectory
    assert kept.t[-1] == pytest.approx(expected, rel=2e-3)
    assert kept.completed == int(expected / 0.01)
    assert 1.699 < kept.g[2][-1, 0] < 1.7


def test_rods_that_turn_parallel_end_the_run():
    """They pivot about the contact until 1 - cos(angle) is 1e-5."""
    angle, rate = 2.0, 0.5
    pair, start = laid(angle, (1.0, 1.0), 1e-5, (rate * UP, -rate * UP))
    with pytest.raises(rx.ContactDegenerate, match="too parallel or too strongly") as event:
        rx.simulate(pair, rx.RollingVerlet(), start, h=0.001, steps=100, backend="xla")
    expected = (np.radians(angle) - np.arccos(1 - 1e-5)) / (2 * rate)
    assert event.value.trajectory.t[-1] == pytest.approx(expected, rel=2e-3)
    assert "has the eigenvalues" in str(event.value)
    assert event.value.trajectory.completed == int(expected / 0.001)


def test_parallel_rods_are_no_start():
    for angle in (0.05, 0.0):
        with pytest.raises(rx.ContactDegenerate, match=r"too parallel.* at t = 0 s.*eigenvalues"):
            S.crossed_rods(angle=angle, pressed=0.0)
    pair, start = S.crossed_rods(angle=1.0, pressed=0.0)
    assert float(pair.gap(start.g)) == pytest.approx(2 * RADIUS, abs=1e-16)


def test_a_contact_beside_a_rod_is_no_start():
    with pytest.raises(rx.ContactLeftRod, match=r"closer than 0\.3 m .* s = \(0\.29, 1\.15\)"):
        S.crossed_rods(meet=(0.29, 1.15), pressed=0.0)


def pair_of(elements=20):
    rods = [S.Rod(elements, 2.0, **section(1.0, 0.5, 1.0, 0.05)) for _ in range(2)]
    return S.RodsInContact(*rods, radius=0.05, width=0.1)


def states_of(g, t=0.25):
    """One saved state, as a trajectory has it; only places and times matter."""
    saved = jax.tree.map(lambda x: jnp.asarray(x)[None], g)
    return rx.State(g=saved, momentum=jnp.zeros((1, 0)), t=jnp.array([t]))


def test_distances_of_segments_are_those_of_a_search():
    a, b = np.random.default_rng(1).normal(size=(2, 50, 2, 3))
    found = _segments(a[:, 0], a[:, 1], b[:, 0], b[:, 1])
    x = np.linspace(0, 1, 201)
    one = a[:, None, 0] + x[None, :, None] * a[:, None, 1]
    two = b[:, None, 0] + x[None, :, None] * b[:, None, 1]
    best = np.linalg.norm(one[:, :, None] - two[:, None], axis=3).min(axis=(1, 2))
    np.testing.assert_allclose(found, best, rtol=0, atol=0.02)
    assert np.all(found <= best + 1e-12)


def test_rods_that_only_cross_overlap_nowhere():
    pair = pair_of()
    assert first_overlap(pair, states_of(pair.crossed(70.0))) is None


def test_a_second_meeting_is_found_where_it_is():
    """Rod 2 comes down on rod 1 again, 0.6 m from the contact, to 0.04 m."""
    pair = pair_of()
    one, (frames, places), s = pair.crossed(70.0)
    bent = np.asarray(places).copy()
    bent[16] = [0.6, 0.0, -0.05 + 0.04]
    found = first_overlap(pair, states_of((one, (frames, bent), s)))
    assert found is not None and found.which == "The two rods meet" and found.t == 0.25
    assert found.distance == pytest.approx(0.04, abs=1e-3)
    assert found.arcs == (pytest.approx(1.6, abs=0.11), pytest.approx(1.6, abs=0.11))


def test_a_rod_that_meets_itself_is_found():
    pair = pair_of()
    (frames, places), two, s = pair.crossed(70.0)
    bent = np.asarray(places).copy()
    bent[0] = bent[8] + np.array([0.0, 0.03, 0.0])
    found = first_overlap(pair, states_of(((frames, bent), two, s)))
    assert found is not None and found.which == "The first rod meets itself"


def test_a_run_warns_of_it(monkeypatch):
    pair = pair_of()
    (frames, places), two, s = pair.crossed(20.0)
    bent = np.asarray(places).copy()
    bent[17] = np.asarray(two[1])[17] + np.array([0.0, 0.0, -0.02])
    sentence = pair.find_overlooked(states_of(((frames, bent), two, s), 1.5))
    assert sentence is not None and "The two rods meet at t = 1.5 s" in sentence
    assert "less than two radii, 0.1 m" in sentence and "by 0.08 m" in sentence
    monkeypatch.setattr(
        rx.systems.StringsInContact, "find_overlooked", lambda self, states: sentence
    )
    strings, begin, h, _ = rx.systems.StringsInContact.paper()
    with pytest.warns(UserWarning, match="The model has one contact"):
        rx.simulate(strings, rx.ContactDKD(), begin, h=h, steps=2, backend="xla")
