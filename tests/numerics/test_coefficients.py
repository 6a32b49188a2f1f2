"""Runge-Kutta tableaus and compositions satisfy their order conditions."""

from fractions import Fraction

import numpy as np
import pytest

from retrax.errors import BadInput
from retrax.numerics.compositions import fractions
from retrax.numerics.tableaus import TABLEAUS, Tableau, tableau


def trees(order):
    """(elementary weight, 1/density) of every rooted tree up to order 4, and of all of order 5."""
    conditions = [
        (1, lambda a, b, c: b.sum(), 1),
        (2, lambda a, b, c: b @ c, 2),
        (3, lambda a, b, c: b @ c**2, 3),
        (3, lambda a, b, c: b @ a @ c, 6),
        (4, lambda a, b, c: b @ c**3, 4),
        (4, lambda a, b, c: (b * c) @ a @ c, 8),
        (4, lambda a, b, c: b @ a @ c**2, 12),
        (4, lambda a, b, c: b @ a @ a @ c, 24),
        (5, lambda a, b, c: b @ c**4, 5),
        (5, lambda a, b, c: (b * c**2) @ a @ c, 10),
        (5, lambda a, b, c: b @ (a @ c) ** 2, 20),
        (5, lambda a, b, c: (b * c) @ a @ c**2, 15),
        (5, lambda a, b, c: b @ a @ c**3, 20),
        (5, lambda a, b, c: (b * c) @ a @ a @ c, 30),
        (5, lambda a, b, c: b @ a @ (c * (a @ c)), 40),
        (5, lambda a, b, c: b @ a @ a @ c**2, 60),
        (5, lambda a, b, c: b @ a @ a @ a @ c, 120),
    ]
    return [(value, Fraction(1, density)) for p, value, density in conditions if p <= order]


def exactly(numbers):
    """The fractions that floats stand for; every denominator is below 400,000."""
    rational = [Fraction(x).limit_denominator(400_000) for x in numbers]
    assert [float(x) for x in rational] == list(numbers)
    return rational


@pytest.mark.parametrize("name", TABLEAUS)
def test_order_conditions_hold_exactly(name):
    """In rational arithmetic: no tolerance, and no rounding error to allow for."""
    t = TABLEAUS[name]
    s = len(t.b)
    a = np.array([exactly(row) + [Fraction(0)] * (s - len(row)) for row in t.a])
    b, c = np.array(exactly(t.b)), a.sum(axis=1)
    for value, target in trees(t.order):
        assert value(a, b, c) == target
    # Sums of floats, of which some rows have large ones that cancel.
    rounding = 2.3e-16 * np.maximum(1.0, np.abs(a).sum(axis=1).astype(float))
    assert np.all(np.abs(np.array(t.c) - c.astype(float)) <= rounding)
    if t.embedded:  # its last stage is the end of the step
        a = np.block([[a, np.zeros((s, 1), int)], [b[None], np.zeros((1, 1), int)]])
        b, c = np.array(exactly(t.embedded)), a.sum(axis=1)
        for value, target in trees(t.order - 1):
            assert value(a, b, c) == target
        assert any(value(a, b, c) != target for value, target in trees(t.order))


@pytest.mark.parametrize("order, stages", [(4, 5), (6, 9), (8, 17)])
def test_compositions_are_symmetric_and_kill_the_odd_power_sums(order, stages):
    gamma = np.array(fractions(order))
    assert len(gamma) == stages
    assert np.all(gamma == gamma[::-1])
    assert abs(gamma.sum() - 1) < 4e-16
    # Necessary for order p: sum gamma^k = 0 for odd k < p. The full order is measured on a top.
    for k in range(3, order, 2):
        assert abs((gamma**k).sum()) < 4e-16


def test_unknown_names_and_implicit_tableaus_are_refused():
    with pytest.raises(BadInput, match="'rk5' is not known"):
        tableau("rk5")
    with pytest.raises(BadInput, match="not explicit"):
        tableau(Tableau("implicit midpoint", 2, ((0.5,),), (1.0,)))
    with pytest.raises(BadInput, match="has 1 embedded weights"):
        tableau(Tableau("short", 1, ((),), (1.0,), (1.0,)))
    assert tableau(Tableau("euler twice", 1, ((),), (1.0,), (0.5, 0.5))).order == 1
    with pytest.raises(BadInput, match="4, 6 or 8"):
        fractions(3)
