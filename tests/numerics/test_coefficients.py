"""Runge-Kutta tableaus and compositions satisfy their order conditions."""

import numpy as np
import pytest

from retrax.errors import BadInput
from retrax.numerics.compositions import fractions
from retrax.numerics.tableaus import TABLEAUS, Tableau, tableau


def trees(order):
    """(value of the elementary weight, 1/density) for every rooted tree up to order 4."""
    conditions = [
        (1, lambda a, b, c: b.sum(), 1),
        (2, lambda a, b, c: b @ c, 1 / 2),
        (3, lambda a, b, c: b @ c**2, 1 / 3),
        (3, lambda a, b, c: b @ a @ c, 1 / 6),
        (4, lambda a, b, c: b @ c**3, 1 / 4),
        (4, lambda a, b, c: (b * c) @ a @ c, 1 / 8),
        (4, lambda a, b, c: b @ a @ c**2, 1 / 12),
        (4, lambda a, b, c: b @ a @ a @ c, 1 / 24),
        (5, lambda a, b, c: b @ c**4, 1 / 5),
        (5, lambda a, b, c: b @ a @ a @ a @ c, 1 / 120),
    ]
    return [(value, target) for p, value, target in conditions if p <= order]


@pytest.mark.parametrize("name", TABLEAUS)
def test_order_conditions(name):
    t = TABLEAUS[name]
    s = len(t.b)
    a = np.array([list(row) + [0.0] * (s - len(row)) for row in t.a])
    b, c = np.array(t.b), np.array(t.c)
    for value, target in trees(t.order):
        assert abs(value(a, b, c) - target) < 9e-16  # measured 4.4e-16: rounding of the sum


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
    with pytest.raises(BadInput, match="orders 4, 6, 8"):
        fractions(3)
