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

Where the last columns of $X$ are momenta, or their rates, a sweep (1) alternates: it takes the
other columns from $\Gamma(X_k)$, and the momenta from $\Gamma$ at the new configurations and old
momenta.

The iteration (1) goes on while it contracts by at least `_SLOW`, which is seen from its own
increments and costs nothing to know; else $h\lambda$ is too large for it and (2) takes over.
Both go on until the next increment, $\delta_k^2/\delta_{k-1}$ by extrapolation, is lost in the
rounding of $X$, or until the increments stop decreasing at the level of rounding errors, or where
they move nothing (`numerics.roundoff`): what a method conserves it conserves at the solution, not
near it.

Newton's direction need not be accurate, only the stages that it leads to. With $D_k$ small
matrices the linear equations

$$ \Bigl(1 - \textstyle\sum_{k\ge0}h^kA^k\otimes D_k\Bigr)\,x = r \tag{4} $$

of all stages fall apart, in the basis of eigenvectors of $A$, into one for each eigenvalue,

$$ \Bigl(1 - \textstyle\sum_{k\ge0}h^k\lambda^kD_k\Bigr)\,\hat x = \hat r, \tag{5} $$

complex and of the size of $D_k$; one of each pair of conjugates is enough. They are solved by
elimination without pivoting.
"""

from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Bool, Float, Int, PyTree

from retrax.numerics.jax_hints import is_matrix_free, keep_axis
from retrax.numerics.krylov import by_products
from retrax.numerics.newton import NewtonStatus
from retrax.numerics.nodes import Nodes
from retrax.numerics.roundoff import ACCEPT, LOST, SMALLEST

Stages = Float[Array, "s n"]
# What a sweep hands to the next one besides the unknowns.
Rest = PyTree
Sweep = Callable[[Stages, Rest], tuple[Stages, Rest]]

# An iteration that contracts by less than this would take more than thirty sweeps.
_SLOW = 0.3
# The first sweeps, from a guess that is the same at all stages, say nothing about the others.
_TRANSIENT = 3
_SWEEPS, _CORRECTIONS = 50, 40


class _Iterate(NamedTuple):
    x: Stages
    rest: Rest
    change: Float[Array, ""]
    remaining: Float[Array, ""]
    size: Float[Array, ""]
    done: Bool[Array, ""]
    slow: Bool[Array, ""]
    iterations: Int[Array, ""]


def alternating(image: Callable[[Stages], Stages], split: int | None) -> Sweep:
    """Make one sweep (1); `split` columns are not momenta, all where it is `None`."""

    def sweep(x: Stages, rest: Rest) -> tuple[Stages, Rest]:
        if split is None:
            return image(x), rest
        configurations = image(x)[:, :split]
        momenta = image(jnp.concatenate([configurations, x[:, split:]], axis=1))[:, split:]
        return jnp.concatenate([configurations, momenta], axis=1), rest

    return sweep


def settle(
    image: Callable[[Stages], Stages],
    sweep: Sweep,
    direction: Callable[[Stages, Stages], Stages],
    x0: Stages,
    rest0: Rest,
    weights: Float[Array, " n"],
    scale: Float[Array, ""],
    motion: Float[Array, " n"],
) -> tuple[Stages, NewtonStatus]:
    r"""Solve $X = \Gamma(X)$ near `x0`.

    Derivatives are those of the implicit function theorem: where $\Gamma$ depends on $a$ as well,

    $$ (1 - \Gamma')\,\dot X = \partial_a\Gamma\,\dot a. \tag{3} $$

    **Arguments:**

    - `image`: the map $\Gamma$; may close over traced values.
    - `sweep`: one sweep (1), of $X$ and what the sweep before it handed on; see `alternating`.
    - `direction`: `direction(X, r)` is $M^{-1}r$ of (2); a rough $M$ costs iterations only.
    - `x0`, `rest0`: the guess, and what the first sweep gets with it.
    - `weights`: what the entries of a row are multiplied with when they are measured together, so
        that velocities and rates of momenta are of one size.
    - `scale`: the size of what the unknowns are added to, measured in the same way.
    - `motion`: other weights, with which an increment that measures less than 1 moves nothing:
        where forces balance, rates of momenta are rounding errors of terms that are not seen here.

    **Returns:** the solution, and how it went; `residual` is the increment that would come next,
    relative to the unknowns and the scale.
    """
    mapped, of_image = jax.closure_convert(image, x0)
    swept, of_sweep = jax.closure_convert(sweep, x0, rest0)
    directed, of_direction = jax.closure_convert(direction, x0, x0)
    how = _How(mapped, swept, directed)
    closed_over = (tuple(of_image), tuple(of_sweep), tuple(of_direction))
    x, (left, count) = _solution(how, (x0, rest0), (weights, scale, motion), closed_over)
    return x, NewtonStatus(left <= ACCEPT, left, count.astype(int))


class _How(NamedTuple):
    """The maps of `settle`, with what they close over as further arguments."""

    image: Callable[..., Stages]
    sweep: Callable[..., tuple[Stages, Rest]]
    direction: Callable[..., Stages]


@partial(jax.custom_jvp, nondiff_argnums=(0,))
def _solution(
    how: _How, guess: tuple[Stages, Rest], sizes: tuple[Array, Array, Array], closed_over: tuple
) -> tuple[Stages, tuple[Array, Array]]:
    (x0, rest0), (weights, scale, motion) = guess, sizes
    of_image, of_sweep, of_direction = closed_over

    def correct(x: Stages) -> Stages:
        r = how.image(x, *of_image) - x
        return x + how.direction(x, r, *of_direction)  # (2)

    def measure(x: Stages) -> Array:
        return jnp.sum(jnp.abs(x) @ weights)

    def judge(it: _Iterate, x: Stages, rest: Rest, most: int) -> _Iterate:
        change, size = measure(x - it.x), measure(x) + SMALLEST
        first = it.iterations == 0
        before = jnp.maximum(it.change, SMALLEST)
        remaining = jnp.where(first, change, change * jnp.minimum(change / before, 1.0))
        settled = it.iterations >= _TRANSIENT
        still = settled & (jnp.sum(jnp.abs(x - it.x) @ motion) <= 1)
        level = (change <= ACCEPT * (scale + size)) | still
        stalled = level & (change >= 0.5 * it.change)
        done = (remaining <= LOST * size) | stalled | (it.iterations + 1 >= most)
        remaining = jnp.where(stalled & still, 0.0, remaining)
        slow = settled & ~level & ~(change <= _SLOW * it.change)
        return _Iterate(x, rest, change, remaining, size, done, slow, it.iterations + 1)

    nothing, no = jnp.zeros((), x0.dtype), jnp.asarray(False)
    x, rest = keep_axis((x0, rest0))
    start = _Iterate(x, rest, nothing, nothing, nothing, no, no, jnp.asarray(0))
    swept = lax.while_loop(
        lambda it: ~it.done & ~it.slow & (it.iterations < _SWEEPS),
        lambda it: judge(it, *how.sweep(it.x, it.rest, *of_sweep), _SWEEPS),  # (1)
        start,
    )
    last = lax.while_loop(
        lambda it: ~it.done & jnp.isfinite(it.change) & (it.iterations < _CORRECTIONS),
        lambda it: judge(it, correct(it.x), (), _CORRECTIONS),
        swept._replace(rest=(), iterations=jnp.asarray(0)),
    )
    left = last.remaining / (scale + last.size)
    count = swept.iterations + jnp.where(swept.done, 0, last.iterations)
    return last.x, (left, count.astype(x0.dtype))


@_solution.defjvp
def _solution_jvp(how: _How, primals: tuple, tangents: tuple) -> tuple:
    """Differentiate by (3), linear in the tangents; only what the map closes over counts."""
    x, status = _solution(how, *primals)
    given, moved = primals[-1][0], tangents[-1][0]
    _, change = jax.jvp(lambda *a: how.image(x, *a), given, moved)
    if is_matrix_free():
        _, slope = jax.linearize(lambda x: how.image(x, *given), keep_axis(x))

        def apply(v: Stages) -> Stages:
            return v - slope(v)

        def solve(apply: Callable[[Stages], Stages], b: Stages) -> Stages:
            return by_products(apply, keep_axis(b))

        dx = lax.custom_linear_solve(apply, change, solve, solve)
    else:
        slope = jax.jacfwd(how.image)(x, *given).reshape(x.size, x.size)
        dx = jnp.linalg.solve(jnp.eye(x.size) - slope, change.reshape(-1)).reshape(x.shape)
    return (x, status), (dx, jax.tree.map(jnp.zeros_like, status))


class _Spectrum(NamedTuple):
    """Eigenvalues of $A$, one of each pair, and the basis that takes stages there and back."""

    values: np.ndarray
    there: np.ndarray
    back: np.ndarray


@lru_cache(maxsize=256)
def _spectrum(nodes: Nodes) -> _Spectrum:
    values, vectors = np.linalg.eig(np.array(nodes.A, dtype=complex))
    upper = np.imag(values) >= -1e-12 * np.max(np.abs(values))
    twice = np.where(np.abs(np.imag(values)) > 1e-12 * np.max(np.abs(values)), 2.0, 1.0)
    there = np.linalg.inv(vectors)
    return _Spectrum(values[upper], there[upper], (vectors * twice)[:, upper])


def stage_direction(
    nodes: Nodes,
    slopes: Sequence[Float[Array, "n n"]],
    h: Float[Array, ""],
    r: Float[Array, "s n"],
) -> Float[Array, "s n"]:
    """Solve (4) for the matrices `slopes`, from $D_0$ on."""
    values, rows, back = _spectrum(nodes)

    def one(a: np.complex128, row: np.ndarray) -> tuple[Array, Array]:
        re, im = jnp.eye(r.shape[1]), jnp.zeros((r.shape[1], r.shape[1]))
        power, scaled = np.complex128(1.0), jnp.ones(())
        for D in slopes:
            re, im = re - (scaled * power.real) * D, im - (scaled * power.imag) * D
            power, scaled = power * a, scaled * h
        there = jnp.asarray(np.stack([np.real(row), np.imag(row)])) @ r
        return _eliminate(re, im, there[0], there[1])  # (5)

    parts = [one(a, row) for a, row in zip(values, rows, strict=True)]
    re, im = (jnp.stack(part) for part in zip(*parts, strict=True))
    return jnp.asarray(np.real(back)) @ re - jnp.asarray(np.imag(back)) @ im


def square_slope(
    f: Callable[[Float[Array, " n"]], Float[Array, " n"]], x: Float[Array, " n"]
) -> Float[Array, "n n"]:
    """Return the Jacobian of `f`, one direction after the other in a loop, with `f` in it once."""

    def along(_, so_far: tuple[Array, Array]) -> tuple[Array, Array]:
        e, columns = so_far
        column = jax.jvp(f, (x,), (e,))[1]
        return jnp.roll(e, 1), jnp.concatenate([columns[1:], column[None]])

    first = jnp.asarray(np.eye(1, x.shape[0])[0])
    columns = jnp.zeros((x.shape[0], x.shape[0]))
    return lax.fori_loop(0, x.shape[0], along, (first, columns))[1].T


def _eliminate(
    re: Float[Array, "n n"], im: Float[Array, "n n"], x: Float[Array, " n"], y: Float[Array, " n"]
) -> tuple[Float[Array, " n"], Float[Array, " n"]]:
    """Solve (re + i im)(u + i v) = x + i y, by Gauss and Jordan without pivoting.

    In each round the first row clears the first column, and both move on: one short loop.
    """

    def clear(_, both: tuple[Array, Array]) -> tuple[Array, Array]:
        re, im = both
        size = re[0, 0] * re[0, 0] + im[0, 0] * im[0, 0]
        c, d = re[0, 0] / size, -im[0, 0] / size  # one over the pivot
        a, b = c * re[0] - d * im[0], c * im[0] + d * re[0]
        p, q = re[1:, :1], im[1:, :1]
        re = jnp.concatenate([re[1:] - (p * a[None] - q * b[None]), a[None]])
        im = jnp.concatenate([im[1:] - (p * b[None] + q * a[None]), b[None]])
        return jnp.roll(re, -1, axis=1), jnp.roll(im, -1, axis=1)

    rows = (jnp.concatenate([re, x[:, None]], axis=1), jnp.concatenate([im, y[:, None]], axis=1))
    re, im = lax.fori_loop(0, x.shape[0], clear, rows)
    return re[:, 0], im[:, 0]
