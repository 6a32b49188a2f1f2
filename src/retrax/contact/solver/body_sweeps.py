"""Sweeps of Gauss-Seidel over contacts and joints, each with the others as they are."""

from typing import NamedTuple

import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float, Int

from retrax.contact.solver.coupled_blocks import (
    Couples,
    Index,
    count_through,
    in_parts,
    take,
    velocity_of,
)

# Along the normal of each contact, and its tangents where there is friction.
Impulses = Float[Array, "m _"]
# A change of velocities, impulses of contacts, and impulses of joints.
Moved = tuple[Float[Array, " n"], Impulses, Float[Array, " k"]]


class Laws(NamedTuple):
    """Contacts: masses, speeds and how these change with velocities, and what the law needs."""

    rho: Impulses
    u: Impulses
    V: Float[Array, "m _ _"]
    friction: Float[Array, " m"]
    pushed: Float[Array, " m"]
    touching: Bool[Array, " m"]


class Joints(NamedTuple):
    """Joints: masses, how far they are open, how that changes with velocities, and what they do."""

    sigma: Float[Array, " k"]
    c: Float[Array, " k"]
    G: Float[Array, "k n"]
    pulls: Float[Array, "k n"]


def project(y: Impulses, friction: Float[Array, " m"], pushed: Float[Array, " m"]) -> Impulses:
    """Return (3)."""
    push = jnp.maximum(y[:, 0], 0.0)
    across = jnp.sqrt(jnp.sum(y[:, 1:] ** 2, axis=1))
    limit = friction * (push + pushed)
    share = jnp.where(across > limit, limit / jnp.where(across > 0, across, 1.0), 1.0)
    return jnp.concatenate([push[:, None], share[:, None] * y[:, 1:]], axis=1)


def sweep_over(
    begun: Moved,
    contacts: Laws,
    pushes: Float[Array, "m _ _"],
    joints: Joints,
    count: Int[Array, ""],
    couples: Couples | None,
) -> Moved:
    """Sweep `count` times, from a change of velocities and impulses; return them after it.

    **Arguments:** `pushes`: how impulses change velocities.
    """

    def sweep(carried: tuple[Int[Array, ""], Moved]) -> tuple[Int[Array, ""], Moved]:
        done, (move, z, lam) = carried
        if couples is None:
            move, z = _one_by_one(move, z, contacts, pushes)
        else:
            move, z = _in_a_loop(move, z, contacts, pushes, couples)
        tensions = []
        for j in range(len(lam)):
            tensions.append(lam[j] - joints.sigma[j] * (joints.c[j] + joints.G[j] @ move))
            move = move + (tensions[j] - lam[j]) * joints.pulls[j]
        return done + 1, (move, z, jnp.stack(tensions) if tensions else lam)

    _, found = lax.while_loop(lambda at: at[0] < count, sweep, (jnp.asarray(0), begun))
    return found


def _one_by_one(
    move: Float[Array, " n"], z: Impulses, at: Laws, pushes: Float[Array, "m _ n"]
) -> tuple[Float[Array, " n"], Impulses]:
    impulses = []
    for i in range(len(z)):
        y = z[i] - at.rho[i] * (at.u[i] + at.V[i] @ move)
        one = project(y[None], at.friction[i : i + 1], at.pushed[i : i + 1])[0]
        impulses.append(jnp.where(at.touching[i], one, 0.0))
        move = move + (impulses[i] - z[i]) @ pushes[i]
    return move, jnp.stack(impulses)


def _in_a_loop(
    move: Float[Array, " n"],
    z: Impulses,
    contacts: Laws,
    pushes: Float[Array, "m _ _"],
    couples: Couples,
) -> tuple[Float[Array, " n"], Impulses]:
    b, sides = couples.size, range(couples.width)
    parts = [couples.side(k) for k in sides]

    def one(i: Index, carried: tuple[Array, Array]) -> tuple[Array, Array]:
        move, z = carried
        at, old = Laws(*(take(x, i) for x in contacts)), take(z, i)
        where = [take(part, i) for part in parts]
        reached = jnp.concatenate([take(move, place) for place in where])
        y = old - at.rho * (at.u + at.V @ reached)
        new = project(y[None], at.friction[None], at.pushed[None])[0]
        new = jnp.where(at.touching, new, 0.0)
        change = (new - old) @ take(pushes, i)
        for k, place in enumerate(where):
            moved = change[k * b : (k + 1) * b]
            move = move.at[place].add(moved, mode="promise_in_bounds")
        return move, z.at[i].set(new, mode="promise_in_bounds")

    moved, z = count_through(0, len(z), one, (in_parts(move, couples), z))
    return velocity_of(moved, couples), z
