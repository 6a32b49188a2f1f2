"""How bodies turn once the string is eliminated: the equations (4) to (7) of `strings/drift.py`."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from retrax.groups.so3 import SO3
from retrax.numerics.newton import NewtonStatus, newton
from retrax.numerics.small_matrices import cross, solve

_SO3 = SO3()
Vectors = Float[Array, "b 3"]
Blocks = Float[Array, "b b 3 3"]


class Bodies(NamedTuple):
    """Mass, arm and inertia about the point of attachment of each body."""

    mass: Float[Array, " b"]
    arm: Vectors
    inertia: Float[Array, "b 3 3"]


def eliminated(bodies: Bodies, alpha: Float[Array, "b b"]) -> Float[Array, "b 3 3"]:
    """The inertias (5) that are left when the string is eliminated."""

    def one(mass, arm, inertia, a):
        return inertia - a * mass**2 * (arm @ arm * jnp.eye(3) - jnp.outer(arm, arm))

    return jax.vmap(one)(*bodies, jnp.stack([alpha[b, b] for b in range(len(alpha))]))


def levers(bodies: Bodies, R: Float[Array, "b 3 3"], y: Vectors) -> Vectors:
    r"""$M_b\,\rho_b\times R_b^Ty_b$."""
    return jax.vmap(lambda m, arm, R, y: m * cross(arm, R.T @ y))(bodies.mass, bodies.arm, R, y)


def spun(bodies: Bodies, R: Float[Array, "b 3 3"], omega: Vectors) -> Vectors:
    r"""$M_bR_b(\Omega_b\times\rho_b)$."""
    return jax.vmap(lambda m, arm, R, w: m * (R @ cross(w, arm)))(bodies.mass, bodies.arm, R, omega)


def swept(bodies: Bodies, R: Float[Array, "b 3 3"], x: Vectors) -> Vectors:
    r"""$w_b = M_bR_b(F_b - 1)\rho_b$."""
    return jax.vmap(lambda m, arm, R, x: m * (R @ (_SO3.caym1(x) @ arm)))(
        bodies.mass, bodies.arm, R, x
    )


def coupled(alpha: Float[Array, "b b *block"], w: Vectors, own: bool) -> Vectors:
    r"""$\sum_c\alpha_{bc}w_c$, the body itself included or not."""
    rows = []
    for b in range(len(w)):
        others = [c for c in range(len(w)) if own or c != b]
        parts = [alpha[b, c] * w[c] if alpha.ndim == 2 else alpha[b, c] @ w[c] for c in others]
        rows.append(sum(parts, jnp.zeros(3)))
    return jnp.stack(rows)


def turning(
    bodies: Bodies,
    R: Float[Array, "b 3 3"],
    inertia: Float[Array, "b 3 3"],
    alpha: Float[Array, "b b *block"],
    torque: Vectors,
) -> Vectors:
    """The velocities or small turns that a `torque` gives the bodies: (7) without its squares."""
    own = alpha.ndim == 4
    if len(torque) == 1 and not own:
        return solve(inertia[0], torque[0])[None]

    def resisted(x):
        x = x.reshape(-1, 3)
        direct = jax.vmap(jnp.matmul)(inertia, x)
        return (direct - levers(bodies, R, coupled(alpha, spun(bodies, R, x), own))).reshape(-1)

    matrix = jax.jacfwd(resisted)(jnp.zeros(torque.size))
    return solve(matrix, torque.reshape(-1)).reshape(-1, 3)


def turn(
    bodies: Bodies,
    R: Float[Array, "b 3 3"],
    inertia: Float[Array, "b 3 3"],
    alpha: Float[Array, "b b *block"],
    gamma: Vectors,
) -> tuple[Vectors, NewtonStatus]:
    """The turns $x_b$ of (7); `gamma` is the first part of (6)."""
    own = alpha.ndim == 4

    def residual(x):
        x = x.reshape(-1, 3)
        given = gamma
        if own or len(gamma) > 1:
            given = gamma + levers(bodies, R, coupled(alpha, swept(bodies, R, x), own))  # (6)
        twisted = jax.vmap(lambda x, g: _SO3.dcay_inv(-x, g))(x, given)
        return (twisted - jax.vmap(jnp.matmul)(inertia, x)).reshape(-1)  # (7)

    guess = turning(bodies, R, inertia, alpha, gamma).reshape(-1)
    x, status = newton(residual, guess, jnp.max(jnp.abs(gamma)))
    return x.reshape(-1, 3), status


def precession(
    bodies: Bodies, R: Float[Array, "b 3 3"], x: Vectors, d: Vectors, h: Float[Array, ""]
) -> Vectors:
    """(4): the change of the body momenta."""

    def one(mass, arm, inertia, R, x, d):
        gyration = -4 / (4 + x @ x) * cross(x, inertia @ x)
        return (gyration + mass * cross(arm, _SO3.caym1(x).T @ (R.T @ d))) / h

    return jax.vmap(one)(*bodies, R, x, d)
