"""The capstan, the twisted ring and the overhand knot, in small."""

import math

import numpy as np
import pytest

from retrax.reproduce.report import markdown, together
from retrax.reproduce.touching import capstan, knot, paper, ring


@pytest.mark.campaign
@pytest.mark.parametrize("friction", [0.2, 0.4])
def test_tension_grows_by_the_law_of_the_capstan(friction):
    found, _ = capstan.slide(16, math.pi, friction, 1e-6)
    every = math.exp(15 * found.kink_law)
    other = math.exp(7.5 * math.asinh(friction * math.sin(2 * found.kink)))
    assert found.law > every > other
    # Between the two polygons, up to what has not settled: 1.5 % with f = 0.4.
    assert 0.97 * other < found.ratio < 1.01 * every
    assert found.least > -1e-12


@pytest.mark.campaign
def test_a_ring_buckles_at_the_twist_of_michell():
    coarse, fine = (ring.threshold(n) / ring.CRITICAL - 1 for n in (20, 40))
    assert abs(fine) < 0.001  # -0.0001
    assert -0.02 < coarse < -0.005  # -0.0109


@pytest.mark.campaign
def test_a_twisted_ring_leaves_its_plane_without_overlap():
    found, _ = ring.twisted(120, 0.2, 1.5, 60.0)
    assert found.height.max() > 0.5
    assert -1e-12 < found.gap.min() < 1e-12  # it touches itself; measured -6e-14


@pytest.mark.campaign
def test_a_knot_is_pulled_without_overlap_and_keeps_its_integral():
    found, _ = knot.pulled(90, 0.0, 40.0, 12_000)
    assert found.gap > -1e-12
    assert 0.5 < found.scaled < 0.9
    ends = found.integral[[2, 3, 4, -5, -4, -3]] / np.mean(found.traction)
    assert np.abs(ends - 1).max() < 0.05


def test_the_loose_knot_of_the_formula():
    one = knot.Knot(0.1, 25.0, 160.0, (0.8e-3, 0.8e-3), np.full(9, 0.8e-3), -1e-15)
    assert one.scaled == pytest.approx(0.5) and one.theory == pytest.approx(0.5 + 0.246)
    nodes, length = knot.curve(10.0, 90)
    steps = np.linalg.norm(np.diff(nodes, axis=0), axis=1)
    assert np.all(steps <= length / 90 * (1 + 1e-12)) and steps.min() > 0.9 * length / 90


def test_the_law_of_one_kink_balances_its_node():
    """(3) of the capstan solves (2): forces on a node between two segments that touch alike."""
    f, theta = 0.3, 0.4
    q = math.exp(math.asinh(f * math.sin(theta)))
    c, s = math.cos(theta / 2), math.sin(theta / 2)
    t0, t1, n0, n1 = (np.array(x) for x in ((c, s), (c, -s), (-s, c), (s, c)))
    push = (n0 - f * t0) + q * (n1 - f * t1)
    pull = q * t1 - t0
    assert abs(pull[0] * push[1] - pull[1] * push[0]) < 1e-15


@pytest.mark.campaign
def test_all_of_it_in_quick_mode(tmp_path):
    done = together([part.make(tmp_path, True) for part in paper.PAPER.parts])
    assert [one.name for one in done.pictures] == ["capstan", "threshold", "writhe", "knot"]
    assert all((tmp_path / extra.file).stat().st_size > 10_000 for extra in done.extras)
    assert "2 pi sqrt(3) EI/GJ" in markdown("Rods that touch", done)
