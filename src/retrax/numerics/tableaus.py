"""Explicit Runge-Kutta tableaus, exact rational coefficients."""

from fractions import Fraction
from typing import NamedTuple

import numpy as np

from retrax.errors import BadInput
from retrax.numerics.checks import host_finite64, quote, require_instance, require_whole

# Weights with 14 digits satisfy the conditions of their order to this.
_ROUNDING = 1e-12


class _Coefficients(NamedTuple):
    name: str
    order: int
    a: tuple[tuple[float, ...], ...]
    b: tuple[float, ...]
    embedded: tuple[float, ...] = ()


class Tableau(_Coefficients):
    """Coefficients $a_{ij}$ (strictly lower triangular), weights $b_i$ and the order they reach.

    `embedded` holds the weights of a method of one order less, which estimates the error: one more
    than there are stages, the last for a stage at the end of the step. A tableau without such a
    method leaves it empty.

    **Raises:** `BadInput` for parts that do not fit, and weights that do not reach the order; of
    orders above 4 the conditions of order 4 are looked at.
    """

    __slots__ = ()

    def __new__(
        cls,
        name: str,
        order: int,
        a: tuple[tuple[float, ...], ...],
        b: tuple[float, ...],
        embedded: tuple[float, ...] = (),
    ) -> "Tableau":
        made = super().__new__(cls, name, order, a, b, embedded)
        _require_numbers(made)
        _require_explicit(made)
        _require_order(made)
        return made

    @property
    def c(self) -> tuple[float, ...]:
        """The stage times $c_i = \\sum_j a_{ij}$."""
        return tuple(sum(row, 0.0) for row in self.a)


def _require_numbers(given: Tableau) -> None:
    """Reject a tableau whose parts are not of their kind."""
    require_instance("name of the tableau", given.name, str, "a text")
    require_whole("order of the tableau", given.order, 1)
    rows = require_instance("a of the tableau", given.a, tuple, "a tuple of rows")
    parts = {"b": given.b, "embedded": given.embedded}
    for name, part in {**parts, **{f"row {i} of a": row for i, row in enumerate(rows)}}.items():
        require_instance(f"{name} of the tableau", part, tuple, "a tuple of numbers")
        host_finite64(f"{name} of the tableau", part, (len(part),))


def _require_explicit(given: Tableau) -> None:
    """Reject a tableau whose parts do not fit each other."""
    if given.embedded and len(given.embedded) != len(given.b) + 1:
        raise BadInput(
            f"tableau {given.name!r} has {len(given.embedded)} embedded weights, but there must "
            f"be one for each of its {len(given.b)} stages and one for the end of the step."
        )
    if len(given.a) != len(given.b) or any(len(row) != i for i, row in enumerate(given.a)):
        raise BadInput(
            f"tableau {given.name!r} is not explicit: row i of `a` must hold the i coefficients "
            f"before stage i, but the rows have lengths {[len(row) for row in given.a]}."
        )


def _require_order(given: Tableau) -> None:
    """Reject weights that miss a condition of their order, as far as order 4."""
    b, c = np.array(given.b), np.array(given.c)
    a = np.array([[*row, *[0.0] * (len(b) - len(row))] for row in given.a]).reshape(len(b), len(b))
    conditions = [
        (1, "sum b_i = 1", b.sum(), 1.0),
        (2, "sum b_i c_i = 1/2", b @ c, 1 / 2),
        (3, "sum b_i c_i^2 = 1/3", b @ c**2, 1 / 3),
        (3, "sum b_i a_ij c_j = 1/6", b @ a @ c, 1 / 6),
        (4, "sum b_i c_i^3 = 1/4", b @ c**3, 1 / 4),
        (4, "sum b_i c_i a_ij c_j = 1/8", (b * c) @ a @ c, 1 / 8),
        (4, "sum b_i a_ij c_j^2 = 1/12", b @ a @ c**2, 1 / 12),
        (4, "sum b_i a_ij a_jk c_k = 1/24", b @ a @ a @ c, 1 / 24),
    ]
    if given.embedded:
        total = float(np.sum(given.embedded))
        conditions.append((1, "embedded weights that add up to 1", total, 1.0))
    for order, condition, found, wanted in conditions:
        if order <= given.order and not abs(found - wanted) <= _ROUNDING * np.abs(b).sum():
            raise BadInput(
                f"tableau {given.name!r} is not of order {given.order}: it needs {condition}, "
                f"but this is {found:.6g}."
            )


def _tableau(name: str, order: int, rows: list[str], weights: str, embedded: str = "") -> Tableau:
    def numbers(text: str) -> tuple[float, ...]:
        return tuple(float(Fraction(x)) for x in text.split())

    rational = tuple(numbers(row) for row in rows)
    return Tableau(name, order, rational, numbers(weights), numbers(embedded))


# Row i holds a_{i1} ... a_{i,i-1}. Source: [HairerNorsettWanner1993], tables II.1.1, 1.2, 5.2.
_ALL = [
    _tableau("euler", 1, [""], "1"),
    _tableau("midpoint", 2, ["", "1/2"], "0 1"),
    _tableau("heun3", 3, ["", "1/3", "0 2/3"], "1/4 0 3/4"),
    _tableau("rk4", 4, ["", "1/2", "0 1/2", "0 0 1"], "1/6 1/3 1/3 1/6"),
    _tableau(
        "dopri5",
        5,
        [
            "",
            "1/5",
            "3/40 9/40",
            "44/45 -56/15 32/9",
            "19372/6561 -25360/2187 64448/6561 -212/729",
            "9017/3168 -355/33 46732/5247 49/176 -5103/18656",
        ],
        "35/384 0 500/1113 125/192 -2187/6784 11/84",
        "5179/57600 0 7571/16695 393/640 -92097/339200 187/2100 1/40",
    ),
]
TABLEAUS: dict[str, Tableau] = {tableau.name: tableau for tableau in _ALL}


def tableau(choice: str | Tableau) -> Tableau:
    """Return the tableau of that name, or the given one if its parts fit."""
    if isinstance(choice, str):
        if choice not in TABLEAUS:
            raise BadInput(
                f"tableau = {quote(choice)} is not known: choose one of {', '.join(TABLEAUS)}, "
                "or pass a retrax.Tableau(name, order, a, b)."
            )
        return TABLEAUS[choice]
    require_instance("tableau", choice, Tableau, "a name or a retrax.Tableau")
    return choice
