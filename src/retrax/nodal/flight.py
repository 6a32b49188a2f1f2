r"""Free flight of the nodes of a rod.

In flight a node with the angular momentum $\Pi$ and principal moments $J$ turns by a Cayley step
$\Lambda_1 = \Lambda_0\,\mathrm{cay}(hw)$, whose velocity $w$ solves

$$ Jw + \tfrac h2\,w\times Jw + \tfrac{h^2}4(w\cdot Jw)\,w = \Pi. \tag{1} $$

The momentum becomes $\mathrm{cay}(hw)^T\Pi$, so that $\Lambda\Pi$ stays constant. The iteration for
all nodes at once starts from $w^0 = J^{-1}(\Pi - \tfrac h2 u\times Ju)$, $u = J^{-1}\Pi$, with an
error of $O(h^2)$. It always takes two steps with $J$ for the derivative, each of which gains a
factor $O(h)$, and then steps of Newton's method while some node needs them.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from retrax.numerics.newton import NewtonStatus, Sizes, to_stagnation
from retrax.numerics.roundoff import SMALLEST
from retrax.numerics.small_matrices import cross, solve

Rows = Float[Array, "nodes 3"]
Vector = Float[Array, "3"]

_MOST = 25  # iterations


@jax.custom_jvp
def spin(moments: Rows, momenta: Rows, h: Float[Array, ""]) -> tuple[Rows, NewtonStatus]:
    """Solve (1) for the velocities $w$ of all nodes.

    Its derivative is that of the implicit function theorem, forward and in reverse.
    """
    scale = 2 * (jnp.max(jnp.abs(momenta)) + SMALLEST)  # both sides of (1)

    def first(J: Vector, P: Vector) -> Vector:
        inverse = 1 / J
        w = (P - h / 2 * cross(P * inverse, P)) * inverse
        w = w - inverse * _mismatch(J, P, h, w)
        return w - inverse * _mismatch(J, P, h, w)

    def residual(w: Rows) -> Float[Array, ""]:
        return jnp.max(
            jnp.abs(jax.vmap(lambda J, P, w: _mismatch(J, P, h, w))(moments, momenta, w))
        )

    def improve(w: Rows) -> tuple[Rows, Sizes]:
        w = jax.vmap(lambda J, P, w: _improve(J, P, h, w))(moments, momenta, w)
        return w, (residual(w), scale)

    w = jax.vmap(first)(moments, momenta)
    return to_stagnation(improve, w, (residual(w), scale), most=_MOST, iterations=2)


@spin.defjvp
def _spin_jvp(primals: tuple, tangents: tuple) -> tuple:
    w, status = spin(*primals)
    (moments, momenta, h), (*rows, dh) = primals, tangents

    def move(J: Vector, P: Vector, w: Vector, dJ: Vector, dP: Vector) -> Vector:
        _, change = jax.jvp(lambda J, P, h: _mismatch(J, P, h, w), (J, P, h), (dJ, dP, dh))
        return -solve(_slope(J, h, w), change)

    dw = jax.vmap(move)(moments, momenta, w, *rows)
    none: Any = np.zeros((), jax.dtypes.float0)
    return (w, status), (dw, NewtonStatus(none, jnp.zeros_like(status.residual), none))


def turn_back(x: Vector, P: Vector) -> Vector:
    r"""Return $\mathrm{cay}(x)^TP - P$, without cancellation."""
    across = cross(x, P)
    return 4 / (4 + x @ x) * (cross(x, across) / 2 - across)


def _mismatch(J: Vector, P: Vector, h: Array, w: Vector) -> Vector:
    """Return the left side of (1) less the right one."""
    spun = J * w
    return spun + h / 2 * cross(w, spun) + (h * h / 4 * (w @ spun)) * w - P  # (1)


def _improve(J: Vector, P: Vector, h: Array, w: Vector) -> Vector:
    """Take one step of Newton's method."""
    return w - solve(_slope(J, h, w), _mismatch(J, P, h, w))


def _slope(J: Vector, h: Array, w: Vector) -> Float[Array, "3 3"]:
    """Return the derivative of (1) by w, written out."""
    spun, half = J * w, h / 2
    a, b, c = half * w[0], half * w[1], half * w[2]
    p, q, r = half * spun[0], half * spun[1], half * spun[2]
    energy = half * (w[0] * p + w[1] * q + w[2] * r)
    # J + h/2 (hat(w) J - hat(J w)) + h^2/4 ((w.Jw) 1 + 2 w (Jw)^T)
    return jnp.stack(
        [
            J[0] + energy + 2 * a * p, r - c * J[1] + 2 * a * q, b * J[2] - q + 2 * a * r,
            c * J[0] - r + 2 * b * p, J[1] + energy + 2 * b * q, p - a * J[2] + 2 * b * r,
            q - b * J[0] + 2 * c * p, a * J[1] - p + 2 * c * q, J[2] + energy + 2 * c * r,
        ]
    ).reshape(3, 3)  # fmt: skip
