r"""Many contacts between nodes with diagonal inertia: projected Gauss-Seidel, contact by contact.

Impulses $z_i = (p_i, q_i)$ and the speeds $u_i(z)$ at which contacts open and slip satisfy

$$ 0 \le u_{n,i} \perp p_i \ge 0, \qquad
   q_i = \mathrm{proj}_{|q| \le fp_i}(q_i - \rho u_{t,i}). \tag{1} $$

An impulse changes the velocities of four nodes at most, so that in a sweep every contact finds the
speeds that those before it have left, and answers with the impulse that satisfies (1) alone. Speeds
are linear in the impulses but for the motion within a step: sweeps with the rows at the start of
the step until they change little, then the true speeds again, until they are right to round-off.
Contacts in a row, such as those of a rod around a post, hand on their impulses from one to the
next: late sweeps go farther than (1) asks, so that fewer are needed.

References: [Moreau1988], [AcaryBrogliato2008].
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float, Int, PyTree

from retrax.contact.capsules import dot
from retrax.contact.spots import Places, Points, Rows, listed
from retrax.numerics.newton import NewtonStatus

Scalar = Float[Array, ""]
Numbers = Float[Array, " m"]


class Seen(NamedTuple):
    """Speeds of contacts, and the normals along which they open."""

    u: Points
    normal: Points


# From impulses and their rows to the speeds of contacts, and what else was found on the way.
Look = Callable[[Points, Rows], tuple[Seen, PyTree]]
# From what was found, impulses and rows to whether other points overlap, and their rows; the first
# few times all others are forgotten.
Renew = Callable[[PyTree, Points, Rows, Bool[Array, ""]], tuple[Bool[Array, ""], Rows]]

_SWEEPS = 200  # at most, between two looks at the true speeds
_SLOW, _OVER = 10, 1.8  # sweeps after which the others go so many times as far: contacts in a row
_ENOUGH = 1e-3  # a sweep that changes speeds by less, of what was left, is the last one
_MOST = 600  # looks
_EARLY = 3  # rounds in which contacts go where points are closest


class Response(NamedTuple):
    """How nodes answer impulses: inverse masses, and inverse moments in space."""

    moves: Float[Array, " nodes"]
    turns: Float[Array, "nodes 3 3"]


class Block(NamedTuple):
    """How a contact answers its own impulse: along the normal, and across it in two directions."""

    normal: Numbers
    across: Float[Array, "m 3"]  # entries 11, 22, 12
    highest: Numbers


class Solved(NamedTuple):
    """Impulses, what was found with them, and how much is left of (1), as speeds."""

    z: Points
    rows: Rows
    found: PyTree
    left: Numbers
    status: NewtonStatus


class _Iterate(NamedTuple):
    z: Points
    rows: Rows
    block: Block
    found: PyTree
    left: Numbers
    best: Scalar
    waited: Int[Array, ""]
    looks: Int[Array, ""]
    rounds: Int[Array, ""]
    done: Bool[Array, ""]


class _Sweep(NamedTuple):
    """Impulses, what they change, the largest speed that a sweep asked for, and how many it was."""

    z: Points
    dv: Places
    dw: Places
    most: Scalar
    sweeps: Int[Array, ""]


def blocks(rows: Rows, response: Response) -> Block:
    """Return the blocks on the diagonal of the Delassus operator."""
    normal = jnp.zeros(len(rows.nodes))
    across = [normal] * 3
    t1, t2 = rows.frame[:, 1], rows.frame[:, 2]
    for k in range(4):
        node = rows.nodes[:, k]
        A = response.turns[node]
        first = jnp.einsum("mij,mj->mi", A, t1)
        second = jnp.einsum("mij,mj->mi", A, t2)
        size = rows.arms[:, k] ** 2
        normal = normal + rows.weights[:, k] ** 2 * response.moves[node]
        # (turn x n) . t1 = turn . t2, and (turn x n) . t2 = -turn . t1
        across = [
            across[0] + size * dot(t2, second),
            across[1] + size * dot(t1, first),
            across[2] - size * dot(t1, second),
        ]
    a, b, c = across[0] + normal, across[1] + normal, across[2]
    highest = (a + b) / 2 + jnp.sqrt((a - b) ** 2 / 4 + c * c)
    return Block(normal, jnp.stack([a, b, c], axis=1), highest)


def solve(
    look: Look,
    guess: Points,
    rows: Rows,
    response: Response,
    friction: Scalar,
    aim: Scalar,
    accept: Scalar,
    renew: Renew | None = None,
) -> Solved:
    """Solve (1) from a guess until what is left is below `aim`, or stalls below `accept`.

    With `renew` the contacts that have been solved for are looked at again: where other points
    overlap, these come to touch instead.
    """

    def again(it: _Iterate) -> _Iterate:
        seen, found = look(it.z, it.rows)
        left = left_over(it.z, seen.u, it.block, friction)
        size = jnp.max(left)
        waited = jnp.where(size < 0.5 * it.best, 0, it.waited + 1)
        settled = (size <= aim) | ((size <= accept) & (waited > 1))
        it = it._replace(
            found=found,
            left=left,
            best=jnp.minimum(size, it.best),
            waited=waited,
            looks=it.looks + 1,
        )
        return lax.cond(settled, checked, swept, it, seen)

    def checked(it: _Iterate, seen: Seen) -> _Iterate:
        """Return an iterate that is done, or one with other points if they overlap."""
        if renew is None:
            return it._replace(done=jnp.asarray(True))
        deep, rows = renew(it.found, it.z, it.rows, it.rounds < _EARLY)

        def other(it: _Iterate) -> _Iterate:
            return it._replace(
                rows=rows,
                block=blocks(rows, response),
                best=jnp.full((), jnp.inf),
                waited=jnp.asarray(0),
                rounds=it.rounds + 1,
            )

        return lax.cond(deep, other, lambda it: it._replace(done=jnp.asarray(True)), it)

    def swept(it: _Iterate, seen: Seen) -> _Iterate:
        enough = jnp.maximum(_ENOUGH * jnp.max(it.left), aim / 4)
        return it._replace(z=_swept(it.z, seen, it.rows, it.block, response, friction, enough))

    shape = jax.eval_shape(look, guess, rows)[1]
    nothing = jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), shape)
    none, left = jnp.asarray(0), jnp.zeros(len(guess))
    start = _Iterate(
        guess,
        rows,
        blocks(rows, response),
        nothing,
        left,
        jnp.full((), jnp.inf),
        none,
        none,
        none,
        jnp.asarray(False),
    )
    it = lax.while_loop(lambda it: ~it.done & (it.looks < _MOST), again, start)
    status = NewtonStatus(it.done, jnp.max(it.left), it.looks)
    return Solved(it.z, it.rows, it.found, it.left, status)


def left_over(z: Points, u: Points, block: Block, friction: Scalar) -> Numbers:
    """Return by how much (1) fails, as a speed, for each contact."""
    along = jnp.abs(jnp.minimum(u[:, 0], block.normal * z[:, 0]))
    along = jnp.maximum(along, -z[:, 0] * block.normal)
    high = jnp.where(block.highest > 0, block.highest, 1.0)
    y = z[:, 1:] - u[:, 1:] / high[:, None]
    off = z[:, 1:] - _in_disk(y, friction * z[:, 0])
    across = jnp.sqrt(jnp.sum(off * off, axis=1)) * block.highest
    return along + across


def _in_disk(y: Float[Array, "*m 2"], radius: Float[Array, "*m"]) -> Float[Array, "*m 2"]:
    """Return the points of disks nearest to `y`."""
    size = jnp.sqrt(y[..., 0] ** 2 + y[..., 1] ** 2)
    share = jnp.where(size > radius, radius / jnp.where(size > 0, size, 1.0), 1.0)
    return share[..., None] * y


def _swept(
    z: Points,
    seen: Seen,
    rows: Rows,
    block: Block,
    response: Response,
    friction: Scalar,
    enough: Scalar,
) -> Points:
    """Return the impulses after sweeps over the contacts that touch.

    The last sweep is one in which no contact asks for a change of its speeds above `enough`.
    """
    u = seen.u
    touching = (z[:, 0] > 0) | (u[:, 0] < 0)
    active, count = listed(touching)

    def one(k: Int[Array, ""], at: _Sweep) -> _Sweep:
        z, dv, dw, most, sweeps = at
        c = active[k]
        nodes, w, arm, F = rows.nodes[c], rows.weights[c], rows.arms[c], rows.frame[c]
        old, n = z[c], F[0]
        moved = w @ dv[nodes]
        slip = F @ (moved + jnp.cross(arm @ dw[nodes], n))
        opening = seen.normal[c] @ moved
        now = u[c] + jnp.concatenate([opening[None], slip[1:]])
        over = jnp.where(sweeps > _SLOW, _OVER, 1.0)
        new = _answer(old, over * now, block.normal[c], block.across[c], block.highest[c], friction)
        P = (new - old) @ F
        turn = jnp.cross(n, P)
        dv = dv.at[nodes].add((w * response.moves[nodes])[:, None] * P[None])
        dw = dw.at[nodes].add(arm[:, None] * (response.turns[nodes] @ turn))
        asked = jnp.abs(new - old) * jnp.stack(
            [block.normal[c], block.highest[c], block.highest[c]]
        )
        return _Sweep(z.at[c].set(new), dv, dw, jnp.maximum(most, jnp.max(asked)), sweeps)

    def sweep(at: _Sweep) -> _Sweep:
        begun = at._replace(most=jnp.zeros(()), sweeps=at.sweeps + 1)
        return lax.fori_loop(0, count, one, begun)

    rest = jnp.zeros((len(response.moves), 3))
    start = _Sweep(z, rest, rest, jnp.full((), jnp.inf), jnp.asarray(0))
    return lax.while_loop(lambda at: (at.most > enough) & (at.sweeps < _SWEEPS), sweep, start).z


def _answer(
    z: Float[Array, "3"],
    u: Float[Array, "3"],
    normal: Scalar,
    across: Float[Array, "3"],
    highest: Scalar,
    friction: Scalar,
) -> Float[Array, "3"]:
    """Return the impulse of one contact that satisfies (1), the others being as they are."""
    p = jnp.maximum(z[0] - u[0] / jnp.where(normal > 0, normal, jnp.inf), 0.0)
    a, b, c = across[0], across[1], across[2]
    det = a * b - c * c
    safe = jnp.where(det > 0, det, jnp.inf)
    sticks = z[1:] - jnp.stack([b * u[1] - c * u[2], a * u[2] - c * u[1]]) / safe
    high = jnp.where(highest > 0, highest, jnp.inf)
    slips = _in_disk(z[1:] - u[1:] / high, friction * p)
    inside = sticks @ sticks <= (friction * p) ** 2
    return jnp.concatenate([p[None], jnp.where(inside, sticks, slips)])
