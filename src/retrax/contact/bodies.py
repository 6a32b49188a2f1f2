r"""Where the bodies of a group are, and how velocities move them.

A body has a rotation $R$ and a place $x$ in space; its points are $x + Ra$. Its velocity in space
is linear in $\xi$: a body turns with $\omega = R\,\xi_\omega$, and $\dot x = R\,\xi_v$ on SE(3) and
SE(2), or $\dot x = \xi_v$ where places are a factor of their own. A body in the plane turns about
the third axis.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from retrax.groups.base import AbstractLieGroup, Element
from retrax.groups.power import Power
from retrax.groups.product import Product
from retrax.groups.se2 import SE2
from retrax.groups.se3 import SE3
from retrax.groups.so2 import SO2
from retrax.groups.so3 import SO3
from retrax.groups.translation import Translation
from retrax.numerics.small_matrices import cross

Vector = Float[Array, "3"]
Vectors = Float[Array, "k 3 3"]


class Placed(NamedTuple):
    """Rotation and place of a body in space, and the part of a velocity that moves it.

    **Attributes:** `R`, `x`; `start`: where its part of $\\xi$ begins; `turns`, `travels`: how many
    numbers of it turn and move the body; `carried`: whether those that move it are in body axes.
    """

    R: Float[Array, "3 3"]
    x: Vector
    start: int = 0
    turns: int = 0
    travels: int = 0
    carried: bool = False

    @property
    def moves(self) -> bool:
        """Whether any velocity moves it."""
        return self.turns + self.travels > 0

    def point(self, a: Vector) -> Vector:
        """Return where in space a point of the body is."""
        return self.x + self.R @ a

    def velocities(self, points: Float[Array, "k 3"], xi: Float[Array, " dim"]) -> Array:
        """Return the velocities of points in space."""
        split = self.start + self.turns
        turn = jnp.concatenate([jnp.zeros(3 - self.turns), xi[self.start : split]])
        move = jnp.concatenate([xi[split : split + self.travels], jnp.zeros(3 - self.travels)])
        spin, shift = self.R @ turn, self.R @ move if self.carried else move
        if not self.turns:
            return jnp.broadcast_to(shift, points.shape)
        return shift[None] + jax.vmap(lambda arm: cross(spin, arm))(points - self.x[None])

    def rows(self, ways: Vectors, points: Float[Array, "k 3"], dim: int) -> Float[Array, "k 3 dim"]:
        """Return what takes a velocity to the speeds of points along three directions each."""
        arms = points - self.x[None]
        a, d = arms[:, None, :], ways
        spin = jnp.stack(
            [
                a[..., 1] * d[..., 2] - a[..., 2] * d[..., 1],
                a[..., 2] * d[..., 0] - a[..., 0] * d[..., 2],
                a[..., 0] * d[..., 1] - a[..., 1] * d[..., 0],
            ],
            axis=-1,
        )
        turning = (spin @ self.R)[..., 3 - self.turns :]
        moving = (d @ self.R if self.carried else d)[..., : self.travels]
        before = jnp.zeros((*d.shape[:2], self.start))
        after = jnp.zeros((*d.shape[:2], dim - self.start - self.turns - self.travels))
        return jnp.concatenate([before, turning, moving, after], axis=-1)


def place_bodies(group: AbstractLieGroup, g: Element, start: int = 0) -> list[Placed]:
    """Return where the bodies of a group are, in the order of its factors.

    A rotation that is followed by a translation of the same number of dimensions is one body.
    """
    if isinstance(group, Power):
        inner, found = group.group, []
        for k in range(group.n):
            found += place_bodies(inner, _take(g, k), start + k * inner.dim)
        return found
    if isinstance(group, Product):
        return _of_product(group, g, start)
    if isinstance(group, SE3 | SE2):
        turns, travels = (3, 3) if isinstance(group, SE3) else (1, 2)
        return [Placed(_turn(g[0]), _fill(g[1]), start, turns, travels, True)]
    if isinstance(group, SO3 | SO2):
        return [Placed(_turn(g), jnp.zeros(3), start, group.dim, 0)]
    if isinstance(group, Translation) and group.dim <= 3:
        return [Placed(jnp.eye(3), _fill(g), start, 0, group.dim)]
    return []


def moving_parts(group: AbstractLieGroup) -> tuple[tuple[int, int], ...]:
    """Return for each body where its part of a velocity begins, and how long it is."""
    found: list[tuple[int, int]] = []

    def note() -> Array:
        bodies = place_bodies(group, group.identity())
        found.extend((body.start, body.turns + body.travels) for body in bodies)
        return jnp.zeros(0)

    jax.eval_shape(note)
    return tuple(found)


def all_parts(
    bodies: tuple[tuple[int, int], ...], dim: int
) -> tuple[tuple[tuple[int, int], ...], list[int]]:
    """Return the parts of a velocity, those of bodies and what is between them.

    And the number of the part of each body.
    """
    parts: list[tuple[int, int]] = []
    numbers, end = [], 0
    for start, size in bodies:
        parts += [(k, 1) for k in range(end, start)]
        numbers.append(len(parts))
        parts.append((start, size))
        end = start + size
    return (*parts, *((k, 1) for k in range(end, dim))), numbers


def _of_product(group: Product, g: Element, start: int) -> list[Placed]:
    found: list[Placed] = []
    rest = list(zip(group.groups, g, strict=True))
    while rest:
        (factor, at), *rest = rest
        turns = 3 if isinstance(factor, SO3) else 2 if isinstance(factor, SO2) else 0
        if turns and rest and isinstance(rest[0][0], Translation) and rest[0][0].dim == turns:
            x = _fill(rest.pop(0)[1])
            found.append(Placed(_turn(at), x, start, factor.dim, turns))
            start += factor.dim + turns
        else:
            found += place_bodies(factor, at, start)
            start += factor.dim
    return found


def _take(g: Element, k: int) -> Element:
    return tuple(_take(part, k) for part in g) if isinstance(g, tuple) else g[k]


def _turn(R: Float[Array, "d d"]) -> Float[Array, "3 3"]:
    if R.shape[0] == 3:
        return R
    flat = jnp.concatenate([R, jnp.zeros((2, 1))], axis=1)
    return jnp.concatenate([flat, jnp.array([[0.0, 0.0, 1.0]])])


def _fill(x: Float[Array, " d"]) -> Vector:
    return jnp.concatenate([x, jnp.zeros(3 - x.shape[0])])
