"""Explicit Runge-Kutta tableaus, exact rational coefficients."""

from fractions import Fraction
from typing import NamedTuple

from retrax.errors import BadInput
from retrax.numerics.checks import host_finite64, require_instance, require_whole, shown


class Tableau(NamedTuple):
    """Coefficients $a_{ij}$ (strictly lower triangular), weights $b_i$ and the order they reach.

    `embedded` holds the weights of a method of one order less, which estimates the error: one more
    than there are stages, the last for a stage at the end of the step. A tableau without such a
    method leaves it empty.
    """

    name: str
    order: int
    a: tuple[tuple[float, ...], ...]
    b: tuple[float, ...]
    embedded: tuple[float, ...] = ()

    @property
    def c(self) -> tuple[float, ...]:
        """The stage times $c_i = \\sum_j a_{ij}$."""
        return tuple(sum(row, 0.0) for row in self.a)


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


def _require_numbers(given: Tableau) -> None:
    """Reject a tableau whose parts are not of their kind."""
    require_instance("name of the tableau", given.name, str, "a text")
    require_whole("order of the tableau", given.order, 1)
    rows = require_instance("a of the tableau", given.a, tuple, "a tuple of rows")
    parts = {"b": given.b, "embedded": given.embedded}
    for name, part in {**parts, **{f"row {i} of a": row for i, row in enumerate(rows)}}.items():
        require_instance(f"{name} of the tableau", part, tuple, "a tuple of numbers")
        host_finite64(f"{name} of the tableau", part, (len(part),))


def tableau(choice: str | Tableau) -> Tableau:
    """Return the tableau of that name, or the given one if its parts fit."""
    if isinstance(choice, str):
        if choice not in TABLEAUS:
            raise BadInput(
                f"tableau = {shown(choice)} is not known: choose one of {', '.join(TABLEAUS)}, "
                "or pass a retrax.Tableau(name, order, a, b)."
            )
        return TABLEAUS[choice]
    require_instance("tableau", choice, Tableau, "a name or a retrax.Tableau")
    _require_numbers(choice)
    if choice.embedded and len(choice.embedded) != len(choice.b) + 1:
        raise BadInput(
            f"tableau {choice.name!r} has {len(choice.embedded)} embedded weights, but there must "
            f"be one for each of its {len(choice.b)} stages and one for the end of the step."
        )
    if len(choice.a) != len(choice.b) or any(len(row) != i for i, row in enumerate(choice.a)):
        raise BadInput(
            f"tableau {choice.name!r} is not explicit: row i of `a` must hold the i coefficients "
            f"before stage i, but the rows have lengths {[len(row) for row in choice.a]}."
        )
    return choice
