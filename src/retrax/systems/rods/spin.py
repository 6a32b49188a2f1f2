r"""The drift of many free rotations at once, one small equation a node.

With the angular momentum $\Pi$ of a node and $J$ its principal moments, the Cayley step
$\Lambda_1 = \Lambda_0\,\mathrm{cay}(hw)$ has the velocity $w$ that solves

$$ Jw + \tfrac h2\,w\times Jw + \tfrac{h^2}4(w\cdot Jw)\,w = \Pi, \tag{1} $$

and leaves the momentum $\mathrm{cay}(hw)^T\Pi$, so that $\Lambda\Pi$ stays as it is. From
$w^0 = J^{-1}(\Pi - \tfrac h2 u\times Ju)$, $u = J^{-1}\Pi$, which is off by $O(h^2)$, two steps
with $J$ for the derivative are always taken, each of which gains a factor $O(h)$, and then steps of
Newton's method where some node still needs them.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float

from retrax.numerics.newton import SMALLEST, NewtonStatus
from retrax.numerics.small_matrices import cross, solve

Rows = Float[Array, "nodes 3"]
Vector = Float[Array, "3"]

_EPS = float(jnp.finfo(jnp.float64).eps)
_AIM, _ACCEPT = 4 * _EPS, 128 * _EPS
_MOST = 25


class _Iterate(NamedTuple):
    w: Rows
    residual: Float[Array, ""]
    before: Float[Array, ""]
    iterations: Array


def spin(moments: Rows, momenta: Rows, h: Float[Array, ""]) -> tuple[Rows, NewtonStatus]:
    """The velocities $w$ of (1) for all nodes, and how their solution went."""
    scale = jnp.max(jnp.abs(momenta)) + SMALLEST

    def first(J, P):
        inverse = 1 / J
        w = (P - h / 2 * cross(P * inverse, P)) * inverse
        w = w - inverse * _mismatch(J, P, h, w)
        return w - inverse * _mismatch(J, P, h, w)

    def residual(w):
        return jnp.max(
            jnp.abs(jax.vmap(lambda J, P, w: _mismatch(J, P, h, w))(moments, momenta, w))
        )

    def unfinished(it: _Iterate):
        gaining = (it.residual < 0.5 * it.before) | (it.residual > _ACCEPT * scale)
        return (it.residual > _AIM * scale) & gaining & (it.iterations < _MOST)

    def again(it: _Iterate):
        w = jax.vmap(lambda J, P, w: _improved(J, P, h, w))(moments, momenta, it.w)
        return _Iterate(w, residual(w), it.residual, it.iterations + 1)

    w = jax.vmap(first)(moments, momenta)
    start = _Iterate(w, residual(w), jnp.asarray(jnp.inf), jnp.asarray(2))
    last = lax.while_loop(unfinished, again, start)
    relative = last.residual / scale
    return last.w, NewtonStatus(relative <= _ACCEPT, relative, last.iterations)


def turned_back(x: Vector, P: Vector) -> Vector:
    r"""$\mathrm{cay}(x)^TP - P$, without cancellation."""
    across = cross(x, P)
    return 4 / (4 + x @ x) * (cross(x, across) / 2 - across)


def _mismatch(J: Vector, P: Vector, h: Array, w: Vector) -> Vector:
    spun = J * w
    return spun + h / 2 * cross(w, spun) + (h * h / 4 * (w @ spun)) * w - P  # (1)


def _improved(J: Vector, P: Vector, h: Array, w: Vector) -> Vector:
    """One step of Newton's method, with the derivative of (1) written out."""
    spun, half = J * w, h / 2
    a, b, c = half * w[0], half * w[1], half * w[2]
    p, q, r = half * spun[0], half * spun[1], half * spun[2]
    energy = half * (w[0] * p + w[1] * q + w[2] * r)
    # J + h/2 (hat(w) J - hat(J w)) + h^2/4 ((w.Jw) 1 + 2 w (Jw)^T)
    jacobian = jnp.stack(
        [
            J[0] + energy + 2 * a * p, r - c * J[1] + 2 * a * q, b * J[2] - q + 2 * a * r,
            c * J[0] - r + 2 * b * p, J[1] + energy + 2 * b * q, p - a * J[2] + 2 * b * r,
            q - b * J[0] + 2 * c * p, a * J[1] - p + 2 * c * q, J[2] + energy + 2 * c * r,
        ]
    ).reshape(3, 3)  # fmt: skip
    return w - solve(jacobian, _mismatch(J, P, h, w))
