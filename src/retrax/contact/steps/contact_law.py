r"""Coulomb's law of many contacts between nodes, and how nodes answer impulses.

Impulses $z_i = (p_i, q_i)$ and the speeds $u_i(z)$ at which contacts open and slip satisfy

$$ 0 \le u_{n,i} \perp p_i \ge 0, \qquad
   q_i = \mathrm{proj}_{|q| \le f_i(p_i + p^0_i)}(q_i - \rho u_{t,i}), \tag{1} $$

$p^0_i$ being what an impact has pushed before.

References: [Moreau1988], [AcaryBrogliato2008].
"""

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from retrax.contact.capsules import Numbers, Points, dot
from retrax.contact.rows import Rows

Scalar = Float[Array, ""]


class Seen(NamedTuple):
    """Speeds of contacts; normals along which they open, and weights of the points that do."""

    u: Points
    normal: Points
    weights: Float[Array, "m k"]


class Law(NamedTuple):
    """Coulomb's law of each contact.

    **Attributes:** `friction`: $f$; `pushed`: $p^0$; `slides`: 1 where impulses do not change the
    slip, 0 elsewhere; `held`: 1 where friction stays as it is, within its bound; `most`: what it
    may not grow beyond.
    """

    friction: Float[Array, "*m"]
    pushed: Float[Array, "*m"]
    slides: Float[Array, "*m"]
    held: Float[Array, "*m"]
    most: Float[Array, "*m"]

    def of(self, c: Int[Array, ""]) -> "Law":
        """Return the law of one contact."""
        return Law(*(x[c] for x in self))

    def friction_bound(self, p: Float[Array, "*m"]) -> Float[Array, "*m"]:
        """Return how large friction may be."""
        return jnp.minimum(self.friction * (p + self.pushed), self.most)


class Response(NamedTuple):
    """How nodes answer impulses: inverse masses, and inverse moments in space.

    These are matrices, or one number for each node that is alike in all directions.
    """

    moves: Float[Array, " nodes"]
    turns: Float[Array, "nodes 3 3"] | Float[Array, " nodes"]

    def turn(self, nodes: Int[Array, " k"], by: Points) -> Points:
        """Return how angular impulses turn some nodes."""
        if self.turns.ndim == 1:
            return self.turns[nodes][:, None] * by
        return jnp.einsum("kij,kj->ki", self.turns[nodes], by)


class Block(NamedTuple):
    """How a contact answers its own impulse: along the normal, and across it in two directions."""

    normal: Numbers
    across: Float[Array, "m 3"]  # entries 11, 22, 12
    highest: Numbers


def blocks(rows: Rows, response: Response) -> Block:
    """Return the blocks on the diagonal of the Delassus operator."""
    normal = jnp.zeros(len(rows.nodes))
    across = [normal] * 3
    t1, t2 = rows.frame[:, 1], rows.frame[:, 2]
    for k in range(rows.nodes.shape[1]):
        node = rows.nodes[:, k]
        first, second = response.turn(node, t1), response.turn(node, t2)
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


def residual_speeds(z: Points, u: Points, block: Block, law: Law) -> Numbers:
    """Return by how much (1) fails, as a speed, for each contact."""
    along = jnp.abs(jnp.minimum(u[:, 0], block.normal * z[:, 0]))
    along = jnp.maximum(along, -z[:, 0] * block.normal)
    high = jnp.where(block.highest > 0, block.highest, 1.0)
    y = z[:, 1:] - u[:, 1:] / high[:, None]
    off = z[:, 1:] - in_disk(y, law.friction_bound(z[:, 0]))
    across = jnp.sqrt(jnp.sum(off * off, axis=1)) * block.highest
    return along + (1 - law.held) * across


def in_disk(y: Float[Array, "*m 2"], radius: Float[Array, "*m"]) -> Float[Array, "*m 2"]:
    """Return the points of disks nearest to `y`."""
    size = jnp.sqrt(y[..., 0] ** 2 + y[..., 1] ** 2)
    share = jnp.where(size > radius, radius / jnp.where(size > 0, size, 1.0), 1.0)
    return share[..., None] * y


def answer(
    z: Float[Array, "3"],
    u: Float[Array, "3"],
    normal: Scalar,
    across: Float[Array, "3"],
    highest: Scalar,
    law: Law,
) -> Float[Array, "3"]:
    """Return the impulse of one contact that satisfies (1), the others being as they are."""
    p = jnp.maximum(z[0] - u[0] / jnp.where(normal > 0, normal, jnp.inf), 0.0)
    a, b, c = across[0], across[1], across[2]
    det = a * b - c * c
    safe = jnp.where(det > 0, det, jnp.inf)
    sticks = z[1:] - jnp.stack([b * u[1] - c * u[2], a * u[2] - c * u[1]]) / safe
    high = jnp.where(highest > 0, highest, jnp.inf)
    bound = law.friction_bound(p)
    slips = in_disk(z[1:] - u[1:] / high, bound)
    inside = sticks @ sticks <= bound**2
    free = jnp.where(inside, sticks, slips)
    return jnp.concatenate([p[None], jnp.where(law.held > 0, in_disk(z[1:], bound), free)])
