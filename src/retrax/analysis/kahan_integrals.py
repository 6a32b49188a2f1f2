r"""How many integrals Kahan's map of a field has, found without rounding.

Over a finite field the map can be iterated exactly. Where $k$ functions of a point satisfy linear
relations along an orbit, with coefficients that depend on the orbit alone, the quotients of these
coefficients are integrals of the map. The prime is so large that a relation which holds by accident
has a probability of about $10^{-17}$.
"""

import itertools
import math
import random
from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from retrax.errors import BadInput
from retrax.mechanics.quadratic_field import AbstractQuadraticField
from retrax.numerics.checks import quote, require_whole

PRIME = 2**61 - 1
# A coefficient is taken for the simplest fraction this close to it, relative to the largest one.
_ROUNDING, _LARGEST_DENOMINATOR = 1e-14, 10**5
# Points beyond as many as there are functions: a rank that is not full stays so.
_MORE = 8
# The rank of more functions than this takes minutes.
_MOST = 200

Residues = list[int]


class Relations(NamedTuple):
    """Linear relations between functions along a generic orbit of Kahan's map.

    **Attributes:**

    - `count`: how many independent ones there are.
    - `functions`: the monomials, as tuples of exponents.
    - `points`: the length of the orbit.
    """

    count: int
    functions: tuple[tuple[int, ...], ...]
    points: int


def kahan_integrals(
    field: AbstractQuadraticField | Sequence[Any],
    degree: int = 2,
    functions: Iterable[Sequence[int]] | None = None,
    *,
    seed: int = 0,
) -> Relations:
    r"""Count the polynomial relations along an orbit of Kahan's map, in exact arithmetic.

    From a random point and with a random step, both in the field with $2^{61} - 1$ elements, the
    map is iterated, and the rank of the matrix of function values along the orbit is found. A count
    of 0 says that no integral is a quotient of such functions.

    **Arguments:**

    - `field`: a quadratic field, whose coefficients are read as the fractions they were meant to
        be; or $(Q, B, c)$ in `fractions.Fraction`s or integers.
    - `degree`: all monomials up to this degree are taken,
    - `functions`: or these, as tuples of exponents: `(2, 0, 1)` is $x_1^2x_3$.
    - `seed`: of the random point and step; the count does not depend on it.

    References: [PetreraPfadlerSuris2011].
    """
    Q, B, c = (_modular(part) for part in _exact(field))
    n, seed = len(c), require_whole("seed", seed, 0)
    degree = require_whole("degree", degree, 1)
    if functions is None:
        count = math.comb(n + degree, n)
        if count > _MOST:
            raise BadInput(
                f"degree = {degree} makes {count} monomials of {n} coordinates, but exact "
                f"arithmetic ranks at most {_MOST}; choose some with functions=..."
            )
    chosen = _monomials(n, degree) if functions is None else _exponents(functions, n)
    rng = random.Random(seed)
    half = rng.randrange(2, PRIME)
    x = [rng.randrange(2, PRIME) for _ in range(n)]
    points = len(chosen) + _MORE
    rows = []
    for _ in range(points):
        rows.append([_value(f, x) for f in chosen])
        x = _step(Q, B, c, x, half)
    return Relations(len(chosen) - _rank(rows), tuple(chosen), points)


def _exponents(functions: Iterable[Sequence[int]], n: int) -> list[tuple[int, ...]]:
    """Return monomials as tuples of exponents; reject anything else."""
    try:
        chosen = [tuple(f) for f in functions]
    except TypeError as cause:
        raise BadInput(
            f"functions = {quote(functions)} must be a list of tuples of {n} exponents."
        ) from cause
    whole = all(type(e) is int for f in chosen for e in f)
    if not whole or not 1 <= len(chosen) <= _MOST or any(len(f) != n or min(f) < 0 for f in chosen):
        raise BadInput(
            f"functions = {quote(functions)} must be from 1 to {_MOST} tuples of {n} exponents "
            "that are not negative."
        )
    return chosen


def _exact(field: AbstractQuadraticField | Sequence[Any]) -> tuple[np.ndarray, ...]:
    """Return the coefficients as arrays of fractions, Q symmetric."""
    if isinstance(field, AbstractQuadraticField):
        given = field.coefficients()
        size = max(float(np.max(np.abs(part))) for part in given)
        parts = [np.vectorize(lambda v: _fraction(v, size), otypes=[object])(p) for p in given]
    else:
        parts = _fractions(field)
    Q, B, c = parts
    n = len(c) if c.ndim else 0
    if not n or (Q.shape, B.shape, c.shape) != ((n, n, n), (n, n), (n,)):
        raise BadInput(
            f"field has parts of shapes {Q.shape}, {B.shape}, {c.shape}, but (Q, B, c) have the "
            "shapes (n, n, n), (n, n), (n,)."
        )
    return (Q + np.swapaxes(Q, 1, 2)) / 2, B, c


def _fractions(field: Sequence[Any]) -> list[np.ndarray]:
    """Return (Q, B, c), given as numbers without rounding."""
    exact = np.vectorize(Fraction, otypes=[object])
    try:
        Q, B, c = (exact(np.array(part, dtype=object)) for part in field)
    except Exception as cause:
        raise BadInput(
            f"field = {quote(field)} must be a quadratic field, or (Q, B, c) in integers or "
            "fractions."
        ) from cause
    return [Q, B, c]


def _fraction(value: float, size: float) -> Fraction:
    """Return the simplest fraction within rounding of a number, or else the number itself."""
    simple = Fraction(float(value)).limit_denominator(_LARGEST_DENOMINATOR)
    return simple if abs(float(simple) - value) <= _ROUNDING * size else Fraction(float(value))


def _modular(part: np.ndarray) -> Any:
    """Return fractions as residues, in nested lists."""
    residues = np.vectorize(
        lambda v: v.numerator * pow(v.denominator, -1, PRIME) % PRIME, otypes=[object]
    )
    return residues(part).tolist()


def _monomials(n: int, degree: int) -> list[tuple[int, ...]]:
    every = itertools.product(range(degree + 1), repeat=n)
    return sorted(f for f in every if sum(f) <= degree)


def _value(exponents: Sequence[int], x: Residues) -> int:
    value = 1
    for base, power in zip(x, exponents, strict=True):
        value = value * pow(base, power, PRIME) % PRIME
    return value


def _step(Q: Any, B: Any, c: Residues, x: Residues, half: int) -> Residues:
    """Take one step of Kahan's method of size 2 `half`, modulo the prime."""
    n = len(x)
    system = []
    for i in range(n):
        along = [sum(Q[i][j][k] * x[k] for k in range(n)) % PRIME for j in range(n)]
        slope = [(2 * along[j] + B[i][j]) % PRIME for j in range(n)]
        value = (sum((along[j] + B[i][j]) * x[j] for j in range(n)) + c[i]) % PRIME
        row = [((i == j) - half * slope[j]) % PRIME for j in range(n)]
        system.append([*row, 2 * half * value % PRIME])
    move = _echelon_form(system)
    return [(x[i] + move[i][n]) % PRIME for i in range(n)]


def _echelon_form(rows: list[Residues]) -> list[Residues]:
    """Return the reduced echelon form modulo the prime, zero rows left out."""
    done: list[Residues] = []
    left = [list(row) for row in rows]
    for column in range(len(rows[0])):
        pivot = next((row for row in left if row[column]), None)
        if pivot is None:
            continue
        left.remove(pivot)
        inverse = pow(pivot[column], -1, PRIME)
        pivot = [v * inverse % PRIME for v in pivot]
        done, left = ([_without(row, pivot, column) for row in part] for part in (done, left))
        done.append(pivot)
    return done


def _without(row: Residues, pivot: Residues, column: int) -> Residues:
    factor = row[column]
    return [(a - factor * b) % PRIME for a, b in zip(row, pivot, strict=True)] if factor else row


def _rank(rows: list[Residues]) -> int:
    return len(_echelon_form(rows))
