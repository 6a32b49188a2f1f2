"""The capstan, the twisted ring and the overhand knot, in small."""

import math

import numpy as np
import pytest
from scipy.optimize import minimize

from retrax_papers.report import markdown, together
from retrax_papers.touching import capstan, knot, paper, ring


@pytest.mark.campaign
@pytest.mark.parametrize("friction", [0.3, 0.4])
def test_tension_grows_by_the_law_of_the_capstan(friction):
    found, _ = capstan.slide(24, math.pi, friction, 1e-6)
    every = math.exp(23 * found.kink_law)
    assert found.ratio == pytest.approx(found.law, rel=0.01)  # 0.4 % with f = 0.4
    assert found.ratio == pytest.approx(every, rel=0.005)  # 0.06 %
    assert found.least > -5e-13  # -6e-14


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
def test_friction_adds_to_the_pull_of_a_knot_what_its_strands_press():
    (smooth, _), (rough, _) = knot.pulled(110, (0.0, 0.1), 14.0, 4.8e-4)
    assert min(smooth.gap, rough.gap) > -5e-14  # -6e-15
    added = np.mean(rough.traction[rough.late]) - np.mean(smooth.traction[smooth.late])
    press = (smooth.push + rough.push) / 2
    assert added == pytest.approx(0.1 * press, rel=0.1)  # 1.3 %
    assert 0.7 < smooth.scaled < 0.9 < rough.scaled
    ends = smooth.integral[[2, 3, 4, -5, -4, -3]] / smooth.traction[-1]
    assert np.abs(ends - 1).max() < 0.15  # 0.10


def test_the_loose_knot_of_the_formula():
    times = np.ones(8)
    one = knot.Knot(0.1, 25.0 * times, 0.8e-3 * times, 5e-3, np.full(9, 0.8e-3), -1e-15)
    assert one.scaled == pytest.approx(0.5) and one.theory == pytest.approx(0.5 + 0.246)
    nodes, length = knot.curve(10.0, 90)
    steps = np.linalg.norm(np.diff(nodes, axis=0), axis=1)
    assert np.all(steps <= length / 90 * (1 + 1e-12)) and steps.min() > 0.9 * length / 90


def test_the_constant_of_loose_knots_is_the_force_in_a_braid():
    """Two strands at the distance w >= 1 that bend least; w ends with the curvatures -y and y.

    w turns by three half turns. The force between strands a distance 2a apart is half of EI times
    the fourth derivative; with lengths in sqrt(2aR) it is I / 2 sqrt(2) EI / R^2 sqrt(R/a).
    """
    n, half = 41, 4.0
    x = np.linspace(-half, half, n)
    d = x[1] - x[0]
    D = (np.eye(n)[:-2] - 2 * np.eye(n)[1:-1] + np.eye(n)[2:]) / d**2
    H = np.kron(np.eye(2), D.T @ D * d)
    b = np.zeros(2 * n)
    b[[n, n + 1, -2, -1]] = np.array([-1, 1, -1, 1]) / d
    turn = 3 * np.pi * np.clip(x / 3.2, -0.5, 0.5) - np.pi
    far = 1 + np.maximum(np.abs(x) - 1.6, 0) ** 2 / 2
    apart = {
        "type": "ineq",
        "fun": lambda w: (w[:n] ** 2 + w[n:] ** 2 - 1) / 2,
        "jac": lambda w: np.concatenate([np.diag(w[:n]), np.diag(w[n:])], axis=1),
    }
    found = minimize(
        lambda w: w @ H @ w / 2 - b @ w,
        np.concatenate([far * np.cos(turn), far * np.sin(turn)]),
        jac=lambda w: H @ w - b,
        constraints=[apart],
        method="SLSQP",
        options={"maxiter": 500, "ftol": 1e-14},
    )
    w = found.x
    pull = H @ w - b
    push = (pull[:n] * w[:n] + pull[n:] * w[n:]) / (w[:n] ** 2 + w[n:] ** 2)
    assert np.sum(push) / (2 * math.sqrt(2)) == pytest.approx(knot.SIGMA, rel=0.01)


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
