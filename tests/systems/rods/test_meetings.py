"""Rods that touch a second time, or themselves, are not passed over in silence."""

from types import SimpleNamespace

import jax
import numpy as np
import pytest

import retrax as rx
from retrax.systems.rods.events import _segments, first_overlap
from retrax.systems.rods.rod import section

S = rx.systems


def pair_of(elements=20):
    rods = [S.Rod(elements, 2.0, **section(1.0, 0.5, 1.0, 0.05)) for _ in range(2)]
    return S.RodsInContact(*rods, radius=0.05, width=0.1)


def states_of(g, t=0.25):
    """One saved state, as a trajectory has it: places and time are all that is looked at."""
    return SimpleNamespace(g=jax.tree.map(lambda x: np.asarray(x)[None], g), t=np.array([t]))


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
    sentence = pair.overlooked(states_of(((frames, bent), two, s), 1.5))
    assert sentence is not None and "The two rods meet at t = 1.5 s" in sentence
    assert "less than two radii, 0.1 m" in sentence and "by 0.08 m" in sentence
    monkeypatch.setattr(rx.systems.StringsInContact, "overlooked", lambda self, states: sentence)
    strings, begin, h, _ = rx.systems.StringsInContact.paper()
    with pytest.warns(UserWarning, match="The model knows one contact"):
        rx.simulate(strings, rx.ContactDKD(), begin, h=h, steps=2, backend="xla")
