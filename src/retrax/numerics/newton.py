"""Newton's method for the small implicit equations of one time step."""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple, TypeVar

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float, Int, PyTree

from retrax.numerics.roundoff import ACCEPT, AIM, SMALLEST
from retrax.numerics.small_matrices import partly_ordered_solve

_MAX_ITERATIONS = 25


class NewtonStatus(NamedTuple):
    """How a solve went. `residual` is relative to the terms that make up the equation."""

    converged: Bool[Array, ""]
    residual: Float[Array, ""]
    iterations: Int[Array, ""]


X = TypeVar("X")
# The size of a residual, and of the terms that cancel in it.
Sizes = tuple[Float[Array, ""], Float[Array, ""]]


class _Iterate(NamedTuple):
    x: PyTree
    size: Float[Array, ""]
    terms: Float[Array, ""]
    stalled: Bool[Array, ""]
    iterations: Int[Array, ""]


def to_stagnation(
    improve: Callable[[X], tuple[X, Sizes]],
    x0: X,
    sizes: Sizes,
    *,
    most: int,
    aim: float = AIM,
    accept: float = ACCEPT,
    gain: float = 0.5,
    iterations: int = 0,
) -> tuple[X, NewtonStatus]:
    """Improve `x0` until its residual is lost in rounding errors or stops falling near there.

    **Arguments:**

    - `improve`: from an iterate to the next one and its sizes.
    - `sizes`: of the residual at `x0` and of its terms; an infinite residual
        asks for at least one iteration.
    - `most`: how many iterations there may be; `iterations`: how many `x0` has taken.
    - `aim`, `accept`: a residual of `aim` times its terms ends the iteration. So does one of at
        most `accept` times its terms that is more than `gain` times the one before.
    """

    # Sizes are sums and comparisons are products: neither waits for a maximum or a quotient.
    def is_unfinished(it: _Iterate) -> Bool[Array, ""]:
        return (it.size > aim * it.terms) & ~it.stalled & (it.iterations < most)

    def again(it: _Iterate) -> _Iterate:
        x, (size, terms) = improve(it.x)
        stalled = (size <= accept * terms) & (size > gain * it.size)
        return _Iterate(x, size, terms, stalled, it.iterations + 1)

    first = _Iterate(x0, *sizes, jnp.asarray(False), jnp.asarray(iterations))
    last = lax.while_loop(is_unfinished, again, first)
    # A zero residual has converged whatever its terms; 0/0 must not report a NaN.
    relative = last.size / jnp.where(last.terms > 0, last.terms, 1.0)
    return last.x, NewtonStatus(relative <= accept, relative, last.iterations)


_Root = tuple[Float[Array, " n"], tuple[Float[Array, ""], Float[Array, ""]]]


def newton(
    residual: Callable[[Float[Array, " n"]], Float[Array, " n"]],
    x0: Float[Array, " n"],
    scale: Float[Array, ""] | float = 0.0,
    unseen: Float[Array, " n"] | Float[Array, ""] | float = 0.0,
    proximal: Float[Array, " n"] | None = None,
    positive: int = 0,
) -> tuple[Float[Array, " n"], NewtonStatus]:
    r"""Solve $F(x) = 0$ from the guess `x0`, to round-off.

    $$ DF(x_k)\,\delta_k = F(x_k), \qquad x_{k+1} = x_k - \delta_k. \tag{1} $$

    The iteration ends when $|F|_1$ is a few rounding errors of
    $\texttt{scale} + \sum_{ij} |DF_{ij}||x_j|$, the size of the terms that cancel in $F$, or when
    it stops decreasing near there. This is a backward-error test: the error it leaves
    in $x$ is $\mathrm{cond}(DF)\,\varepsilon$, which is all that arithmetic allows; a fixed
    relative tolerance on $x$ would never be met by an ill-conditioned inertia. Terms below
    $10^{-291}$ count as that large: where a body comes to rest, its momentum ends among numbers
    that have lost their precision. Where $F$ stops falling for an error in $x$ that is smaller than
    `unseen`, the iteration ends as well: forces that balance each other leave rounding errors
    behind, and those are all that a body at rest under load has for a momentum. A NaN ends the
    iteration at once. There is no exception: look at `NewtonStatus.converged`.

    The derivative of the solution, forward and reverse, is not that of the iteration but the exact
    one of the implicit function theorem: where $F$ depends on $a$ as well,

    $$ DF(x)\,\dot x = -\partial_a F(x)\,\dot a. \tag{2} $$

    **Arguments:**

    - `residual`: the map $F$; may close over traced values.
    - `x0`: the guess.
    - `scale`: size of the terms of $F$, where these cancel and $DF\,x$ does not show it.
    - `unseen`: errors in $x$ that change nothing, one for all of its entries or one for each.
    - `proximal`: what to add to the diagonal of $DF$ in (1), where unknowns may be redundant; it
        slows the iteration down, by as little as it is small, and leaves the solution as it is.
    - `positive`: how many unknowns come first whose block of $DF$ is nearly symmetric and positive,
        as an inertia is; they are eliminated in this order, whatever zeros there are.
    """
    # What `residual` closes over becomes an argument, so that derivatives can reach it.
    equation, closed_over = jax.closure_convert(residual, x0)
    unseen = jnp.broadcast_to(jnp.asarray(unseen, x0.dtype), x0.shape)
    scale = jnp.asarray(scale, x0.dtype)
    regular = proximal is not None
    added = jnp.zeros_like(x0) if proximal is None else proximal
    how = _Elimination(regular, positive)
    x, (achieved, count) = _root(equation, how, x0, scale, unseen, added, *closed_over)
    return x, NewtonStatus(achieved <= ACCEPT, achieved, count.astype(int))


class _Elimination(NamedTuple):
    """Whether something is added to the diagonal, and how many unknowns are taken in order."""

    proximal: bool
    positive: int


@partial(jax.custom_jvp, nondiff_argnums=(0, 1))
def _root(
    equation: Callable[..., Array],
    how: _Elimination,
    x0: Array,
    scale: Array,
    unseen: Array,
    added: Array,
    *closed_over: Any,
) -> _Root:
    """Iterate (1). The count travels as a float, whose derivative is an ordinary zero."""

    def f(x):
        return equation(x, *closed_over)

    scale = scale + SMALLEST

    def improve(at: tuple[Array, Array]) -> tuple[tuple[Array, Array], Sizes]:
        x, r = at
        jacobian = jax.jacfwd(f)(x)
        near = jacobian + jnp.diag(added) if how.proximal else jacobian
        x, before = x - partly_ordered_solve(near, r, how.positive), jnp.sum(jnp.abs(r))  # (1)
        r = f(x)
        weights, size = jnp.sum(jnp.abs(jacobian), axis=0), jnp.sum(jnp.abs(r))
        settled = (size <= weights @ unseen) & (size > before / 2)
        terms = scale + weights @ jnp.abs(x)
        return (x, r), (jnp.where(settled, 0.0, size), terms)

    r = f(x0)
    # An exactly zero residual needs no iteration; anything else gets at least one.
    sizes = jnp.sum(jnp.abs(r)), jnp.zeros((), x0.dtype)
    (x, _), status = to_stagnation(improve, (x0, r), sizes, most=_MAX_ITERATIONS)
    return x, (status.residual, status.iterations.astype(x0.dtype))


@_root.defjvp
def _root_jvp(
    equation: Callable[..., Array], how: _Elimination, primals: tuple, tangents: tuple
) -> tuple:
    """Differentiate by (2), traced only if asked for; linear in the tangents, to transpose.

    The solution depends on what the equation closes over, not on the guess or on sizes.
    """
    x, status = _root(equation, how, *primals)
    added, closed_over, moved = primals[3], primals[4:], tangents[4:]
    _, change = jax.jvp(lambda *a: equation(x, *a), closed_over, moved)
    jacobian = jax.jacfwd(equation)(x, *closed_over)
    near = jacobian + jnp.diag(added) if how.proximal else jacobian
    dx = -partly_ordered_solve(near, change, how.positive)  # (2)
    for _ in range(2 if how.proximal else 0):  # takes out again what was added
        dx = dx - partly_ordered_solve(near, change + jacobian @ dx, how.positive)
    return (x, status), (dx, jax.tree.map(jnp.zeros_like, status))
