r"""Taylor coefficients of arrays along a motion, and the recurrences of arithmetic.

With $a(\tau) = \sum_k a_k\tau^k$ and likewise for the others,

$$
\begin{aligned}
(ab)_k &= \textstyle\sum_{i=0}^k a_i b_{k-i}                                          &&\text{(1)}\\
(a^2)_k &= 2\textstyle\sum_{i<k/2} a_i a_{k-i} + a_{k/2}^2 \ (k\text{ even})          &&\text{(2)}\\
(a/b)_k &= \bigl(a_k - \textstyle\sum_{i<k}(a/b)_i\,b_{k-i}\bigr)/b_0                 &&\text{(3)}\\
(\sqrt a)_k &= \bigl(a_k - \textstyle\sum_{0<i<k}(\sqrt a)_i(\sqrt a)_{k-i}\bigr)/2\sqrt{a_0}
                                                                                      &&\text{(4)}\\
\dot a_k &= (k+1)\,a_{k+1}                                                            &&\text{(5)}
\end{aligned}
$$
"""

import math
from collections.abc import Callable, Sequence
from itertools import count
from typing import Union

import jax.numpy as jnp
from jax import lax
from jaxtyping import Array

Binary = Callable[[Array, Array], Array]


_NUMBERS = count()


class Curve:
    r"""An array that moves: its Taylor coefficients, each found when it is first asked for.

    **Arguments:**

    - `term`: from k to the coefficient k; asked in order, and once for each.
    - `moves`: whether there is more than the coefficient 0.

    **Attributes:** `scaled`: entries that do not move and a curve whose product this is, if known.
    Products are found without such factors: of $\mu_1(\mu_2/I_2)$ and $\mu_2(\mu_1/I_1)$ all but
    the last factor is one expression, and is computed once. `number`: the number that all entries
    are, if they do not move and it stands in the program.
    """

    def __init__(self, term: Callable[[int], Array], moves: bool = True):
        self._term, self.moves = term, moves
        self.scaled: tuple[Array, Curve] | None = None
        self.number: float | None = None
        self._number = next(_NUMBERS)
        self._terms: list[Array] = []
        self._rows: dict[int, Array] = {}

    def __getitem__(self, k: int) -> Array:
        while len(self._terms) <= k:
            self._terms.append(self._term(len(self._terms)))
        return self._terms[k]

    def __lt__(self, other: "Curve") -> bool:
        """Return whether this was made before `other`."""
        return self._number < other._number

    def row(self, k: int) -> Array:
        """Return the coefficient k with an axis before its own."""
        if k not in self._rows:
            self._rows[k] = lax.expand_dims(self[k], (0,))
        return self._rows[k]

    def __add__(self, other: Union["Curve", float]) -> "Curve":
        other = self._like(other)
        return Curve(lambda k: self[k] + other[k], self.moves or other.moves)

    def __sub__(self, other: Union["Curve", float]) -> "Curve":
        other = self._like(other)
        return Curve(lambda k: self[k] - other[k], self.moves or other.moves)

    def __mul__(self, other: Union["Curve", float]) -> "Curve":
        return product(self, self._like(other))

    def __truediv__(self, other: Union["Curve", float]) -> "Curve":
        return quotient(self, self._like(other))

    def over(self, number: float) -> "Curve":
        """Return `number` divided by this."""
        return quotient(self._like(number), self)

    def _like(self, other: Union["Curve", float]) -> "Curve":
        return other if isinstance(other, Curve) else still(jnp.full_like(self[0], other))


def still(x: Array) -> Curve:
    """Return what does not move."""
    return Curve(lambda k: x if k == 0 else jnp.zeros_like(x), moves=False)


def integral(first: Array, rate: Callable[[], Curve]) -> Curve:
    """Return the curve from `first` with a rate, which may depend on the curve itself."""
    return Curve(lambda k: first if k == 0 else rate()[k - 1] * (1 / k))


def rate(a: Curve) -> Curve:
    """Return the rate (5)."""
    return Curve(lambda k: (k + 1) * a[k + 1], a.moves)


def product(a: Curve, b: Curve, multiply: Binary = lax.mul, total: Binary | None = None) -> Curve:
    """Multiply by (1) and (2), for any bilinear map.

    `total` multiplies two stacks of coefficients and sums over the first axis of both; without it
    the map is that of entries.
    """
    if not (a.moves and b.moves):
        moves = a.moves or b.moves
        return Curve(lambda k: multiply(a[k if a.moves else 0], b[k if b.moves else 0]), moves)
    if total is None and (a.scaled or b.scaled):
        return _unscaled_product(a, b)
    if total is None:
        a, b = sorted((a, b))

    def term(k: int) -> Array:
        if a is b and total is None:
            return _square(a, k)
        # The last coefficients come last: all else can be done before they are known.
        return _sum(a, b, k, [*range(1, k), 0, k][-k - 1 :], multiply, total)

    return Curve(term)


def _unscaled_product(a: Curve, b: Curve) -> Curve:
    """Return (1) without the factors that do not move, and then these."""
    factors = [x.scaled[0] for x in (a, b) if x.scaled is not None]
    left, right = (x if x.scaled is None else x.scaled[1] for x in (a, b))
    inner, factor = product(left, right), math.prod(factors[1:], start=factors[0])
    return Curve(lambda k: inner[k] * factor)


def quotient(a: Curve, b: Curve) -> Curve:
    """Divide by (3)."""
    if not b.moves:
        return Curve(lambda k: a[k] / b[0], a.moves)

    def term(k: int) -> Array:
        if k == 0:
            return a[0] / b[0]
        known = _sum(q, b, k, [*range(1, k), 0][-k:])
        return (a[k] - known if a.moves else -known) * reciprocal[0]

    q, reciprocal = Curve(term), Curve(lambda k: 1 / b[0])
    return q


def square_root(a: Curve) -> Curve:
    """Return the square root (4)."""

    def term(k: int) -> Array:
        if k == 0:
            return jnp.sqrt(a[0])
        known = _square(y, k, first=1) if k > 1 else None
        return (a[k] if known is None else a[k] - known) * half[0]

    y, half = Curve(term), Curve(lambda k: 0.5 / y[0])
    return y


def _square(a: Curve, k: int, first: int = 0) -> Array:
    """Return the sum of a_i a_(k-i), i from `first` to k - `first`, each pair once."""
    pairs = range(first, (k + 1) // 2)
    twice = 2 * _sum(a, a, k, [*pairs[1:], *pairs[:1]]) if pairs else None
    if k % 2:
        return twice if twice is not None else jnp.zeros_like(a[0])
    middle = a[k // 2] * a[k // 2]
    return middle if twice is None else middle + twice


def _sum(
    a: Curve,
    b: Curve,
    k: int,
    places: Sequence[int],
    multiply: Binary = lax.mul,
    total: Binary | None = None,
) -> Array:
    """Return the sum of a_i b_(k-i) over the places i."""
    if len(places) == 1:
        return multiply(a[places[0]], b[k - places[0]])
    left = lax.concatenate([a.row(i) for i in places], 0)
    right = lax.concatenate([b.row(k - i) for i in places], 0)
    return (total or _total)(left, right)


def _total(a: Array, b: Array) -> Array:
    """Multiply rows with rows, entry by entry, and sum over the rows."""
    shape = jnp.broadcast_shapes(a.shape[1:], b.shape[1:])
    entries = tuple(range(1, 1 + len(shape)))
    return lax.dot_general(_rows(a, shape), _rows(b, shape), (((0,), (0,)), (entries, entries)))


def _rows(a: Array, shape: tuple[int, ...]) -> Array:
    """Spread each row over a shape."""
    if a.shape[1:] == shape:
        return a
    missing = (1,) * (len(shape) - a.ndim + 1)
    return jnp.broadcast_to(a.reshape(len(a), *missing, *a.shape[1:]), (len(a), *shape))
