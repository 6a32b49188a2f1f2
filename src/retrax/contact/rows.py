r"""What takes the velocities of nodes to the speeds at which spots open and slip.

A spot joins the points $\sum_a w_ax_a$ of some nodes, those of the one that is touched with
negative weights. An impulse $P$ there gives node $a$ the momentum $w_aP$ and the angular momentum
$l_a\,n\times P$: it acts at one point on both, which lies $l$ from the nodes, so that friction
turns them and the angular momentum of all is conserved.
"""

from typing import NamedTuple

import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float, Int, PyTree

from retrax.contact.capsules import Points, cross_rows, dot
from retrax.numerics.small_matrices import cross

Places = Float[Array, "nodes 3"]

# The gap of what cannot touch.
FAR = 1e30


class Rows(NamedTuple):
    """What takes velocities of nodes to the speeds of spots, and impulses back.

    **Attributes:** `nodes`: as many for each spot; `weights`: $w$; `arms`: $l$; `frame`: normal and
    two tangents as rows; `near`: what else tells where the points of a spot lie.
    """

    nodes: Int[Array, "m k"]
    weights: Float[Array, "m k"]
    arms: Float[Array, "m k"]
    frame: Float[Array, "m 3 3"]
    near: PyTree


def frames(n: Points, before: Float[Array, "m 3 3"] | None = None) -> Float[Array, "m 3 3"]:
    """Return normals and two tangents each: any, or the nearest to those of `before`."""
    if before is None:
        # Duff et al. (2017): no direction is close to where this is singular.
        sign = jnp.where(n[:, 2] >= 0, 1.0, -1.0)
        a = -1 / (sign + n[:, 2])
        b = n[:, 0] * n[:, 1] * a
        first = jnp.stack([1 + sign * n[:, 0] * n[:, 0] * a, sign * b, -sign * n[:, 0]], axis=1)
    else:
        first = before[:, 1] - dot(before[:, 1], n)[:, None] * n
        size = jnp.sqrt(dot(first, first))
        first = first / jnp.where(size > 0, size, 1.0)[:, None]
    return jnp.stack([n, first, cross_rows(n, first)], axis=1)


def speeds(rows: Rows, v: Places, spin: Places) -> Points:
    """Return the speeds of spots along their frames, from velocities and spins in space."""
    moved = jnp.zeros((len(rows.nodes), 3))
    turned = moved
    for k in range(rows.nodes.shape[1]):
        node = rows.nodes[:, k]
        moved = moved + rows.weights[:, k, None] * v[node]
        turned = turned + rows.arms[:, k, None] * spin[node]
    apart = moved + cross_rows(turned, rows.frame[:, 0])
    return jnp.stack([dot(rows.frame[:, k], apart) for k in range(3)], axis=1)


def list_places(chosen: Bool[Array, " m"]) -> tuple[Int[Array, " m"], Int[Array, ""]]:
    """Return the places of those that are chosen, and how many they are."""

    def one(c: Int[Array, ""], at: tuple[Array, Array]) -> tuple[Array, Array]:
        def add(at: tuple[Array, Array]) -> tuple[Array, Array]:
            places, count = at
            return places.at[count].set(c, mode="promise_in_bounds"), count + 1

        return lax.cond(chosen[c], add, lambda at: at, at)

    none = jnp.zeros(len(chosen), jnp.int32), jnp.asarray(0, jnp.int32)
    return lax.fori_loop(jnp.asarray(0, jnp.int32), len(chosen), one, none)


def impulses(rows: Rows, z: Points, nodes: int) -> tuple[Places, Places]:
    """Return what impulses of spots give to the nodes: momenta and angular momenta, in space."""
    pushing, count = list_places((z[:, 0] > 0) | (z[:, 1] != 0) | (z[:, 2] != 0))

    def one(k: Int[Array, ""], at: tuple[Places, Places]) -> tuple[Places, Places]:
        moved, turned = at
        c = pushing[k]
        there, P = rows.nodes[c], z[c] @ rows.frame[c]
        turn = cross(rows.frame[c, 0], P)
        moved = moved.at[there].add(rows.weights[c][:, None] * P[None])
        return moved, turned.at[there].add(rows.arms[c][:, None] * turn[None])

    none = jnp.zeros((nodes, 3))
    return lax.fori_loop(jnp.asarray(0, jnp.int32), count, one, (none, none))
