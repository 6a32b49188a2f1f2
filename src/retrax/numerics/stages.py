r"""The equations of all stages of a step at once: fixed point or Newton, to stagnation.

The unknowns $X$ are an array, a row for each stage, with $X = \Gamma(X)$. A step of a collocation
method contracts, $|\Gamma(X) - \Gamma(X')| \le q\,|X - X'|$ with $q \approx h\rho(A)\lambda$ for
$\lambda$ the size of the Jacobian of the field, or with its square where a sweep alternates.

$$
\begin{aligned}
X_{k+1} &= \Gamma(X_k), \qquad \delta_k = |X_{k+1} - X_k|                        &&\text{(1)}\\
X_{k+1} &= X_k + M^{-1}(\Gamma(X_k) - X_k), \qquad M \approx 1 - \Gamma'          &&\text{(2)}
\end{aligned}
$$

Where the last columns of $X$ are momenta, or their rates, a sweep (1) alternates: it takes them
from $\Gamma(X_k)$, and the other columns from $\Gamma$ at the new momenta and old configurations.

The iteration (1) goes on while it contracts by at least `_SLOW`, which is seen from its own
increments and costs nothing to know; else $h\lambda$ is too large for it and (2) takes over.
Both go on until the next increment, $\delta_k^2/\delta_{k-1}$ by extrapolation, is lost in the
rounding of $X$, or until the increments stop decreasing at the level of rounding errors: what a
method conserves it conserves at the solution, not near it.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float, Int

from retrax.numerics.kept_axis import keep_axis
from retrax.numerics.newton import SMALLEST, NewtonStatus

Stages = Float[Array, "s n"]

_EPS = float(jnp.finfo(jnp.float64).eps)
# The next increment may be this small, relative to the unknowns; where increments stall,
# `_ACCEPT`, relative to unknowns and scale, is the level of rounding errors.
_AIM, _ACCEPT = _EPS / 8, 64 * _EPS
# An iteration that contracts by less than this would take more than thirty sweeps.
_SLOW = 0.3
# The first sweeps, from a guess that is the same at all stages, say nothing about the others.
_TRANSIENT = 3
_SWEEPS, _CORRECTIONS = 50, 40


class _Iterate(NamedTuple):
    x: Stages
    change: Float[Array, ""]
    remaining: Float[Array, ""]
    size: Float[Array, ""]
    done: Bool[Array, ""]
    slow: Bool[Array, ""]
    iterations: Int[Array, ""]


def settle(
    image: Callable[[Stages], Stages],
    direction: Callable[[Stages, Stages], Stages],
    x0: Stages,
    split: int | None,
    weights: Float[Array, " n"],
    scale: Float[Array, ""],
) -> tuple[Stages, NewtonStatus]:
    r"""The solution of $X = \Gamma(X)$ near `x0`.

    Derivatives are those of the implicit function theorem: where $\Gamma$ depends on $a$ as well,

    $$ (1 - \Gamma')\,\dot X = \partial_a\Gamma\,\dot a. \tag{3} $$

    **Arguments:**

    - `image`: the map $\Gamma$; may close over traced values.
    - `direction`: `direction(X, r)` is $M^{-1}r$ of (2); a rough $M$ costs iterations only.
    - `x0`: the guess.
    - `split`: how many columns are not momenta; `None` where none are, and nothing alternates.
    - `weights`: what the entries of a row are multiplied with when they are measured together, so
        that velocities and rates of momenta are of one size.
    - `scale`: the size of what the unknowns are added to, measured in the same way.

    **Returns:** the solution, and how it went; `residual` is the increment that would come next,
    relative to the unknowns and the scale.
    """
    mapped, of_image = jax.closure_convert(image, x0)
    directed, of_direction = jax.closure_convert(direction, x0, x0)
    how = (mapped, directed, split, len(of_image))
    x, (left, count) = _solution(*how, x0, weights, scale, *of_image, *of_direction)
    return x, NewtonStatus(left <= _ACCEPT, left, count.astype(int))


@partial(jax.custom_jvp, nondiff_argnums=(0, 1, 2, 3))
def _solution(
    image: Callable,
    direction: Callable,
    split: int | None,
    n: int,
    x0: Stages,
    weights: Array,
    scale: Array,
    *closed_over: Any,
) -> tuple[Stages, tuple[Array, Array]]:
    def gamma(x: Stages) -> Stages:
        return image(x, *closed_over[:n])

    def sweep(x: Stages) -> Stages:
        if split is None:
            return gamma(x)  # (1)
        momenta = gamma(x)[:, split:]
        configurations = gamma(jnp.concatenate([x[:, :split], momenta], axis=1))[:, :split]
        return jnp.concatenate([configurations, momenta], axis=1)

    def correct(x: Stages) -> Stages:
        return x + direction(x, gamma(x) - x, *closed_over[n:])  # (2)

    def measured(x: Stages) -> Array:
        return jnp.sum(jnp.abs(x) @ weights)

    def judged(it: _Iterate, x: Stages, most: int) -> _Iterate:
        change, size = measured(x - it.x), measured(x) + SMALLEST
        first = it.iterations == 0
        before = jnp.maximum(it.change, SMALLEST)
        remaining = jnp.where(first, change, change * jnp.minimum(change / before, 1.0))
        level = change <= _ACCEPT * (scale + size)
        stalled = level & (change >= 0.5 * it.change)
        done = (remaining <= _AIM * size) | stalled | (it.iterations + 1 >= most)
        settled = it.iterations >= _TRANSIENT
        slow = settled & ~level & ~(change <= _SLOW * it.change)
        return _Iterate(x, change, remaining, size, done, slow, it.iterations + 1)

    nothing, no = jnp.zeros((), x0.dtype), jnp.asarray(False)
    start = _Iterate(keep_axis(x0), nothing, nothing, nothing, no, no, jnp.asarray(0))
    swept = lax.while_loop(
        lambda it: ~it.done & ~it.slow & (it.iterations < _SWEEPS),
        lambda it: judged(it, sweep(it.x), _SWEEPS),
        start,
    )
    last = lax.while_loop(
        lambda it: ~it.done & jnp.isfinite(it.change) & (it.iterations < _CORRECTIONS),
        lambda it: judged(it, correct(it.x), _CORRECTIONS),
        swept._replace(iterations=jnp.asarray(0)),
    )
    left = last.remaining / (scale + last.size)
    count = swept.iterations + jnp.where(swept.done, 0, last.iterations)
    return last.x, (left, count.astype(x0.dtype))


@_solution.defjvp
def _solution_jvp(
    image: Callable,
    direction: Callable,
    split: int | None,
    n: int,
    primals: tuple,
    tangents: tuple,
) -> tuple:
    """(3), linear in the tangents; the solution depends only on what the map closes over."""
    x, status = _solution(image, direction, split, n, *primals)
    given, moved = primals[3 : 3 + n], tangents[3 : 3 + n]
    _, change = jax.jvp(lambda *a: image(x, *a), given, moved)
    slope = jax.jacfwd(image)(x, *given).reshape(x.size, x.size)
    dx = jnp.linalg.solve(jnp.eye(x.size) - slope, change.reshape(-1)).reshape(x.shape)
    return (x, status), (dx, jax.tree.map(jnp.zeros_like, status))
