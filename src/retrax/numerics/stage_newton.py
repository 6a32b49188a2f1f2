r"""Newton's direction for the stages of a collocation step, stage by stage.

With $D_k$ small matrices the linear equations

$$ \Bigl(1 - \textstyle\sum_{k\ge0}h^kA^k\otimes D_k\Bigr)\,x = r \tag{1} $$

of all stages fall apart, in the basis of eigenvectors of $A$, into one for each eigenvalue,

$$ \Bigl(1 - \textstyle\sum_{k\ge0}h^k\lambda^kD_k\Bigr)\,\hat x = \hat r, \tag{2} $$

complex, of the size of $D_k$, and one of each pair of conjugate ones is enough. They are solved by
elimination without pivoting: the direction need not be accurate, only the stages that it leads to.
"""

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float

from retrax.numerics.nodes import Nodes


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
    """The solution of (1) for the matrices `slopes`, from $D_0$ on."""
    values, rows, back = _spectrum(nodes)

    def one(a: np.complex128, row: np.ndarray) -> tuple[Array, Array]:
        re, im = jnp.eye(r.shape[1]), jnp.zeros((r.shape[1], r.shape[1]))
        power, scaled = np.complex128(1.0), jnp.ones(())
        for D in slopes:
            re, im = re - (scaled * power.real) * D, im - (scaled * power.imag) * D
            power, scaled = power * a, scaled * h
        there = jnp.asarray(np.stack([np.real(row), np.imag(row)])) @ r
        return _eliminate(re, im, there[0], there[1])  # (2)

    parts = [one(a, row) for a, row in zip(values, rows, strict=True)]
    re, im = (jnp.stack(part) for part in zip(*parts, strict=True))
    return jnp.asarray(np.real(back)) @ re - jnp.asarray(np.imag(back)) @ im


def square_slope(
    f: Callable[[Float[Array, " n"]], Float[Array, " n"]], x: Float[Array, " n"]
) -> Float[Array, "n n"]:
    """The Jacobian of `f`, one direction after the other in a loop, with `f` in it once."""

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
    """The solution of (re + i im)(u + i v) = x + i y, by Gauss and Jordan without pivoting.

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
