"""Taylor coefficients of the solution of a differential equation."""

from collections.abc import Callable
from functools import partial
from typing import TypeVar

import jax
from jaxtyping import Array, Float

from retrax.numerics.taylor.curve import Curve
from retrax.numerics.taylor.expansion import Expansion

X = TypeVar("X")


def solution(field: Callable[[X], X], start: X, h: Float[Array, ""], order: int) -> list[X]:
    r"""Return the coefficients $x_0, \dots, x_p$ of $x(t + \theta h) = \sum_k x_k\theta^k$.

    $$ x_{k+1} = \frac h{k+1}\,\bigl(f(x(\cdot))\bigr)_k, \qquad \dot x = f(x), $$

    and the coefficient $k$ of $f$ along the solution follows from $x_0, \dots, x_k$. Where
    some of the numbers of the last coefficients are not used, what leads only to them drops out of
    the compiled step.

    **Raises:** `NoSeries`, with the name of a primitive of `field` that has no recurrence.
    """
    leaves, tree = jax.tree.flatten(start)

    def rates(*leaves: Array) -> list[Array]:
        return jax.tree.leaves(field(jax.tree.unflatten(tree, leaves)))

    found: list[Curve] = []

    def term(k: int, i: int) -> Array:
        return leaves[i] if k == 0 else h * (1 / k) * found[i][k - 1]

    curves = [Curve(partial(term, i=i)) for i in range(len(leaves))]
    expansion = Expansion()
    found += expansion.closed(jax.make_jaxpr(rates)(*leaves), curves)
    for k in range(order):
        expansion.find(k)
    return [jax.tree.unflatten(tree, [x[k] for x in curves]) for k in range(order + 1)]
