"""A tableau is checked where it is made: its parts, that it is explicit, and its order."""

import numpy as np
import pytest

import retrax as rx
from retrax.numerics.tableaus import TABLEAUS


@pytest.mark.parametrize(
    ("parts", "words"),
    [
        (("a", 1, "1", "1"), "a of the tableau = '1' is not a tuple of rows"),
        (("a", "1", ((),), (1.0,)), "order of the tableau = '1'"),
        ((3, 1, ((),), (1.0,)), "name of the tableau = 3"),
        (("a", 1, None, None), "a of the tableau = None"),
        (("a", 1, ((),), ("1",)), "b of the tableau"),
        (("a", 1, ((),), (np.nan,)), "b of the tableau must be finite"),
        (("a", 1, ((), (1.0,)), (1.0,)), "not explicit"),
        (("a", 1, (), ()), "not of order 1: it needs sum b_i = 1"),
        (("a", 1, ((),), (0.5,)), "not of order 1: it needs sum b_i = 1"),
        (("a", 2, ((),), (1.0,)), "not of order 2: it needs sum b_i c_i = 1/2"),
        (("a", 4, ((), (0.5,)), (0.0, 1.0)), r"not of order 4: it needs sum b_i c_i\^2"),
        (("a", 1, ((),), (1.0,), "x"), "embedded of the tableau"),
    ],
)
def test_nonsense_is_refused(parts, words):
    with pytest.raises(rx.BadInput, match=words):
        rx.Tableau(*parts)


def test_the_ready_ones_are_made_again_from_their_parts():
    for tableau in TABLEAUS.values():
        assert rx.Tableau(*tableau) == tableau


def test_the_three_eighths_rule_is_one_of_order_four():
    rule = rx.Tableau(
        "3/8", 4, ((), (1 / 3,), (-1 / 3, 1.0), (1.0, -1.0, 1.0)), (1 / 8, 3 / 8, 3 / 8, 1 / 8)
    )
    assert rx.RKMK(rule).order == 4
    with pytest.raises(rx.BadInput, match="a_ij c_j = 1/6"):
        rx.Tableau("3/8", 4, ((), (1 / 3,), (0.0, 2 / 3), (1.0, -1.0, 1.0)), rule.b)
