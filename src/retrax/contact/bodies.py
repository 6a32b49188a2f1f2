r"""Where the bodies of a group are, and how velocities move them.

A body has a rotation $R$ and a place $x$ in space; its points are $x + Ra$. Its velocity in space
is linear in $\xi$: $\dot x = J_x\xi$ and $\dot R R^T = \widehat{J_\omega\xi}$. A body in the plane
turns about the third axis.
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


class Placed(NamedTuple):
    """Rotation and place of a body in space."""

    R: Float[Array, "3 3"]
    x: Vector


class Moved(NamedTuple):
    """How a velocity moves a body: matrices from $\\xi$ to the velocity of its place and its spin."""

    x: Float[Array, "3 dim"]
    spin: Float[Array, "3 dim"]

    def row(self, d: Vector, arm: Vector) -> Float[Array, " dim"]:
        """Return what takes a velocity to the speed along `d` of the point at `arm` from its place."""
        return d @ self.x + cross(arm, d) @ self.spin


def placed(group: AbstractLieGroup, g: Element) -> list[Placed]:
    """Return where the bodies of a group are, in the order of its factors.

    A rotation that is followed by a translation of the same number of dimensions is one body.
    """
    if isinstance(group, Power):
        inner = jax.vmap(lambda k: placed(group.group, k))(g)
        return [
            Placed(body.R[k], body.x[k]) for k in range(group.n) for body in inner
        ]
    if isinstance(group, Product):
        return _of_product(group, g)
    if isinstance(group, SE3 | SE2):
        return [Placed(_turned(g[0]), _filled(g[1]))]
    if isinstance(group, SO3 | SO2):
        return [Placed(_turned(g), jnp.zeros(3))]
    if isinstance(group, Translation) and group.dim <= 3:
        return [Placed(jnp.eye(3), _filled(g))]
    return []


def _of_product(group: Product, g: Element) -> list[Placed]:
    found: list[Placed] = []
    rest = list(zip(group.groups, g, strict=True))
    while rest:
        (factor, at), *rest = rest
        turns = 3 if isinstance(factor, SO3) else 2 if isinstance(factor, SO2) else 0
        if turns and rest and isinstance(rest[0][0], Translation) and rest[0][0].dim == turns:
            found.append(Placed(_turned(at), _filled(rest.pop(0)[1])))
        else:
            found += placed(factor, at)
    return found


def moved(group: AbstractLieGroup, g: Element) -> list[Moved]:
    """Return how velocities move the bodies of `placed`."""
    there = placed(group, g)

    def along(xi: Float[Array, " dim"]) -> list[tuple[Vector, Vector]]:
        _, rates = jax.jvp(lambda k: placed(group, k), (g,), (group.tangent(g, xi),))
        return [
            (rate.x, SO3().vee(rate.R @ body.R.T)) for rate, body in zip(rates, there, strict=True)
        ]

    columns = jax.vmap(along)(jnp.eye(group.dim))
    return [Moved(x.T, spin.T) for x, spin in columns]


def _turned(R: Float[Array, "d d"]) -> Float[Array, "3 3"]:
    return R if R.shape[0] == 3 else jnp.zeros((3, 3)).at[:2, :2].set(R).at[2, 2].set(1.0)


def _filled(x: Float[Array, " d"]) -> Vector:
    return jnp.concatenate([x, jnp.zeros(3 - x.shape[0])])
