"""How contacts answer a change of velocities: the linear parts of an iteration.

Equations are those of `complementarity`.
"""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float

from retrax.contact.solver.coupled_blocks import (
    Couples,
    impulse_of,
    solve_with_contacts,
    speeds_along,
)
from retrax.numerics.small_matrices import partly_ordered_solve

Scalar = Float[Array, ""]
Velocity = Float[Array, " n"]
Impulses = Float[Array, "m 3"]


class At(NamedTuple):
    """Contacts in an iteration.

    **Attributes:** `z`: their impulses; `y`: those before they are brought into the law; `u`: their
    speeds; `rho`, `friction`, `pushed`, `touching`: as in `Law`.
    """

    z: Impulses
    y: Impulses
    u: Impulses
    rho: Impulses
    friction: Float[Array, " m"]
    pushed: Float[Array, " m"]
    touching: Bool[Array, " m"]


def answer(
    K: Float[Array, "n n"],
    right: Velocity,
    rows: Float[Array, "m 3 k"],
    V: Float[Array, "m 3 k"],
    at: At,
    kappa: Scalar,
    couples: Couples | None,
) -> tuple[Velocity, Impulses]:
    """Solve (4); return the change of the velocities, and what the contacts give up by it."""
    if couples is not None:
        return _in_loops(K, right, rows, V, at, kappa, couples)
    answers = []
    for i in range(len(at.z)):
        one = partial(_answer, at.z[i], at.y[i], at.u[i], at.rho[i], at.friction[i], at.pushed[i])
        closed = at.touching[i] & ((at.y[i, 0] > 0) | (at.pushed[i] > 0))
        K, right, answer = lax.cond(
            closed,
            partial(_add, K, right, rows[i], V[i], partial(one, kappa)),
            partial(_let_go, K, right, rows[i], at.z[i]),
        )
        answers.append(answer)
    move = partly_ordered_solve(K, right, len(K))
    return move, jnp.stack([a + E @ (V[i] @ move) for i, (a, E) in enumerate(answers)])


def _in_loops(
    D: Float[Array, "n n"],
    right: Velocity,
    rows: Float[Array, "m 3 k"],
    V: Float[Array, "m 3 k"],
    at: At,
    kappa: Scalar,
    couples: Couples,
) -> tuple[Velocity, Impulses]:
    closed = at.touching & ((at.y[:, 0] > 0) | (at.pushed > 0))
    each = jax.vmap(partial(_answer, kappa=kappa))
    one = each(at.z, at.y, at.u, at.rho, at.friction, at.pushed)
    a = jnp.where(closed[:, None], one.a, at.z)
    right = right - impulse_of(rows, a, couples)
    move = solve_with_contacts(D, right, rows, one.E, V, closed, couples)
    across = speeds_along(V, move, couples)
    gives = jnp.sum(one.E * across[:, None, :], axis=2)
    return move, a + jnp.where(closed[:, None], gives, 0.0)


class _Answer(NamedTuple):
    """How a contact answers a change of velocities: $a$ and $E$ of (4)."""

    a: Float[Array, "3"]
    E: Float[Array, "3 3"]


_System = tuple[Float[Array, "n n"], Velocity, _Answer]


def _add(
    K: Float[Array, "n n"],
    right: Velocity,
    W: Float[Array, "3 n"],
    V: Float[Array, "3 n"],
    answer: Callable[[], _Answer],
) -> _System:
    """Add a closed contact to (4)."""
    one = answer()
    across = one.E @ V
    for row, answered in zip(W, across, strict=True):
        K = K + row[:, None] * answered[None]
    return K, right - one.a @ W, one


def _let_go(
    K: Float[Array, "n n"], right: Velocity, W: Float[Array, "3 n"], z: Float[Array, "3"]
) -> _System:
    """Add an open contact to (4): its impulse goes."""
    return K, right - z @ W, _Answer(z, jnp.zeros((3, 3)))


def _answer(
    z: Float[Array, "3"],
    y: Float[Array, "3"],
    u: Float[Array, "3"],
    rho: Float[Array, "3"],
    f: Scalar,
    pushed: Scalar,
    kappa: Scalar,
) -> _Answer:
    """Return the answer of a closed contact."""
    pushes, stiff = y[0] > 0, kappa * rho
    size = jnp.sqrt(y[1] * y[1] + y[2] * y[2])
    limit = f * (jnp.maximum(y[0], 0.0) + pushed)
    slips, safe = size > limit, jnp.where(size > 0, size, 1.0)
    d, share = y[1:] / safe, jnp.minimum(limit / safe, 1.0)
    loose = 1 / jnp.maximum(1 - share, 1 / kappa)
    # Along the normal: it must not open, or its push goes.
    a_n, E_n = jnp.where(pushes, stiff[0] * u[0], z[0]), jnp.where(pushes, stiff[0], 0.0)
    # Along the slip q = f (p + p0), so that it answers as p does; across it the direction turns.
    rest = f * (z[0] + pushed) * d - z[1:]
    along, off = d @ rest, jnp.eye(2) - d[:, None] * d[None]
    slip_a = f * a_n * d - along * d - loose * (rest - along * d)
    a_t = jnp.where(slips, slip_a, stiff[1] * u[1:])
    E_t = jnp.where(slips, share * loose * rho[1] * off, stiff[1] * jnp.eye(2))
    couples = jnp.where(slips, f * E_n * d, 0.0)
    top = jnp.stack([E_n, jnp.zeros(()), jnp.zeros(())])
    below = jnp.concatenate([couples[:, None], E_t], axis=1)
    return _Answer(jnp.concatenate([a_n[None], a_t]), jnp.concatenate([top[None], below]))
