r"""Nodes in, collocation method out.

Any nodes $0 \le c_1 < \dots < c_s \le 1$ make a method: with $L_j$ their Lagrange polynomials,

$$
\begin{aligned}
a_{ij} &= \int_0^{c_i}L_j, \qquad b_j = \int_0^1L_j                              &&\text{(1)}\\
\textstyle\sum_ib_iP_k(2c_i - 1) &= \int_0^1P_k(2t - 1)\,dt, \quad k < p          &&\text{(2)}
\end{aligned}
$$

and the largest $p$ of (2) is its order: Legendre polynomials of lower degree, and so all
polynomials, are integrated exactly. Roots and integrals are computed in extended precision and
rounded once.
"""

import itertools
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.polynomial import legendre

from retrax.errors import BadInput
from retrax.numerics.checks import (
    host_finite64,
    host_float64,
    quote,
    require_flag,
    require_instance,
    require_whole,
)

_Extended = np.longdouble
# An integral of (2) may be missed by this much, relative to the weights.
_ROUNDING = 1e-13
# So far coefficients made by hand may differ from the integrals (1).
_CLOSE = 1e-9
# Beyond this the weights of unlucky nodes are rounding errors.
_MOST = 32


class Nodes(NamedTuple):
    """Nodes and the method they make.

    **Attributes:**

    - `name`: how it is written, such as `gauss(3)`.
    - `c`: the nodes, increasing, from 0 to 1.
    - `A`, `b`: the coefficients of (1).
    - `order`: the order of the quadrature, found from (2).
    - `symmetric`: whether reflection in 1/2 gives the same nodes.
    """

    name: str
    c: tuple[float, ...]
    A: tuple[tuple[float, ...], ...]
    b: tuple[float, ...]
    order: int
    symmetric: bool

    def __repr__(self) -> str:
        return self.name

    @property
    def stages(self) -> int:
        """The number of nodes."""
        return len(self.c)

    @property
    def is_gauss(self) -> bool:
        """Whether these are the nodes of Gauss, the only ones of order twice their number."""
        return self.order == 2 * self.stages


# To continue a polynomial by its own length magnifies rounding errors by about six a degree.
_HIGHEST_CONTINUED = 9


@lru_cache(maxsize=256)
def extrapolation(nodes: Nodes) -> np.ndarray:
    """Extrapolate values at the nodes of a step by their polynomial to the next: the matrix.

    Of many nodes the polynomial is that of least squares, of degree `_HIGHEST_CONTINUED`.
    """
    x, degree = 2 * np.array(nodes.c) - 1, min(nodes.stages - 1, _HIGHEST_CONTINUED)
    return legendre.legvander(x + 2, degree) @ np.linalg.pinv(legendre.legvander(x, degree))


def gauss(s: int) -> Nodes:
    """Return the roots of the Legendre polynomial $P_s$: order $2s$, symmetric."""
    return _family("gauss", s, 1)


def radau(s: int) -> Nodes:
    """Return the nodes of Radau IIA, the last of them at the end: order $2s - 1$."""
    return _family("radau", s, 1)


def radau_left(s: int) -> Nodes:
    """Return the nodes of Radau I, the first of them at the start: order $2s - 1$."""
    return _family("radau_left", s, 1)


def lobatto(s: int) -> Nodes:
    """Return the nodes of Lobatto IIIA, both ends among them: order $2s - 2$, symmetric."""
    return _family("lobatto", s, 2)


def chebyshev(s: int) -> Nodes:
    """Return the roots of the Chebyshev polynomial $T_s$: order $s$, or $s + 1$ for odd $s$;
    symmetric.
    """
    return _family("chebyshev", s, 1)


def chebyshev_lobatto(s: int) -> Nodes:
    """Return the extrema of $T_{s-1}$, both ends among them: order $s$, or $s + 1$ for odd $s$."""
    return _family("chebyshev_lobatto", s, 2)


def nodes(c: Sequence[float] | np.ndarray | Nodes) -> Nodes:
    """Return the given nodes: distinct, from 0 to 1, in increasing order."""
    if isinstance(c, Nodes):
        return _consistent(c)
    if isinstance(c, int | float):
        text = quote(c)
        raise BadInput(
            f"nodes = {text} is a number, but nodes say at which parts of a step to look: write "
            f"gauss({text}), radau({text}) or lobatto({text}), or give a list of times between 0 "
            "and 1."
        )
    values = _increasing(c)
    made = _method(f"nodes({values.tolist()})", values.astype(_Extended))
    if not np.all(np.isfinite([*made.b, *itertools.chain(*made.A)])):
        raise BadInput(
            f"nodes = {values.tolist()} lie so close together that their weights overflow."
        )
    return made


def _increasing(c: object) -> np.ndarray:
    """Return nodes as an array if they increase from 0 to 1."""
    values = host_float64("nodes", c)
    if values.ndim != 1 or not 1 <= values.size <= _MOST or not np.all(np.isfinite(values)):
        raise BadInput(f"nodes = {quote(c)} must be a list of 1 to {_MOST} numbers from 0 to 1.")
    if values[0] < 0 or values[-1] > 1 or np.any(np.diff(values) <= 0):
        raise BadInput(
            f"nodes = {values.tolist()} must increase from node to node and lie between 0, the "
            "start of the step, and 1, its end."
        )
    return values


def _consistent(given: Nodes) -> Nodes:
    """Return nodes that somebody put together by hand if their parts fit."""
    s = len(_increasing(given.c))
    for name, value, shape in (("A", given.A, (s, s)), ("b", given.b, (s,))):
        host_finite64(f"{name} of the nodes", value, shape)
    require_instance("name of the nodes", given.name, str, "a text")
    require_whole("order of the nodes", given.order, 0, 2 * s)
    require_flag("symmetric of the nodes", given.symmetric)
    made = _method(given.name, np.array(given.c, dtype=_Extended))
    same = np.allclose(given.A, made.A, atol=_CLOSE) and np.allclose(given.b, made.b, atol=_CLOSE)
    if not same or (given.order, given.symmetric) != (made.order, made.symmetric):
        raise BadInput(
            f"A, b, order and symmetric of {quote(given.name)} are not those of its nodes "
            f"{quote(given.c)}: leave them to rx.nodes(c)."
        )
    return given


def _family(name: str, s: object, fewest: int) -> Nodes:
    return _make(name, require_whole(f"{name}: s", s, fewest, _MOST))


@lru_cache(maxsize=256)
def _make(name: str, s: int) -> Nodes:
    x = _ROOTS[name](s)
    return _method(f"{name}({s})", (1 + (x - x[::-1]) / 2 if _mirror(x) else 1 + x) / 2)


def _mirror(x: np.ndarray) -> bool:
    return bool(np.max(np.abs(x + x[::-1])) < _ROUNDING)


def _legendre(*coefficients: float) -> np.ndarray:
    """Return the roots of a Legendre series in [-1, 1], polished by Newton's method."""
    series = np.array(coefficients, dtype=_Extended)
    x = np.sort(np.real(legendre.legroots(np.array(coefficients)))).astype(_Extended)
    slope = legendre.legder(series)
    for _ in range(3):
        x = x - legendre.legval(x, series) / legendre.legval(x, slope)
    return np.clip(x, -1, 1)


def _unit(s: int) -> list[float]:
    """Return the coefficients of $P_s$."""
    return [0.0] * s + [1.0]


def _gauss(s: int) -> np.ndarray:
    return _legendre(*_unit(s))


def _radau(s: int) -> np.ndarray:
    return np.append(_legendre(*_unit(s)[:-2], -1.0, 1.0)[:-1], _Extended(1))


def _lobatto(s: int) -> np.ndarray:
    inner = _legendre(*legendre.legder(_unit(s - 1))) if s > 2 else np.zeros(0, _Extended)
    return np.concatenate([[_Extended(-1)], inner, [_Extended(1)]])


def _chebyshev(s: int) -> np.ndarray:
    k = np.arange(s, dtype=_Extended)
    return -np.cos(_PI * (2 * k + 1) / (2 * s))


def _chebyshev_lobatto(s: int) -> np.ndarray:
    return -np.cos(_PI * np.arange(s, dtype=_Extended) / (s - 1))


_PI = 4 * np.arctan(_Extended(1))
_ROOTS = {
    "gauss": _gauss,
    "radau": _radau,
    "radau_left": lambda s: -_radau(s)[::-1],
    "lobatto": _lobatto,
    "chebyshev": _chebyshev,
    "chebyshev_lobatto": _chebyshev_lobatto,
}


def _method(name: str, c: np.ndarray) -> Nodes:
    """Return the method that the nodes `c` make, by (1) and (2)."""
    b = _integrals(c, _Extended(1))
    A = np.stack([_integrals(c, end) for end in c])  # (1)
    order = 0
    while order < 2 * len(c):
        terms = b * legendre.legval(2 * c - 1, np.array(_unit(order), dtype=_Extended))
        if abs(np.sum(terms) - (order == 0)) > _ROUNDING * np.sum(np.abs(b)):
            break
        order += 1  # (2)
    rows = tuple(tuple(float(a) for a in row) for row in A)
    symmetric = _mirror(2 * c - 1)
    return Nodes(name, _floats(c), rows, _floats(b), order, symmetric)


def _integrals(c: np.ndarray, end: np.floating) -> np.ndarray:
    """Return the integrals of all Lagrange polynomials from 0 to `end`, by Gauss' rule, exactly."""
    x = _gauss(len(c))
    slope = legendre.legval(x, legendre.legder(np.array(_unit(len(c)), dtype=_Extended)))
    weights = 2 / ((1 - x * x) * slope**2)
    at = end * (1 + x) / 2
    out = np.empty(len(c), _Extended)
    for j, own in enumerate(c):
        others = np.delete(c, j)
        lagrange = np.prod((at[:, None] - others) / (own - others), axis=1)
        out[j] = end / 2 * np.sum(weights * lagrange)
    return out


def _floats(x: np.ndarray) -> tuple[float, ...]:
    return tuple(float(value) for value in x)
