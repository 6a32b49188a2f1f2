"""Contact of rods with themselves, with each other, and with what stands in space."""

import math
from collections.abc import Sequence

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from retrax.contact.shapes import AbstractSurface, Ball, Plane
from retrax.errors import BadInput
from retrax.numerics.checks import ArrayLike, finite64, positive64, require_instance, require_whole, shown
from retrax.numerics.frozen import Frozen

# Pairs of segments that may be near each other, for each node, unless the user says how many.
_NEIGHBOURS = 6


class SelfContact(Frozen):
    r"""What a rod, or several, may touch: itself, the others, and what stands in space.

    A rod is a chain of capsules of radius $a$: segments with round ends. Points of one rod that are
    nearer than $\pi a$ along it, half the circle of its tightest bend, are left out, and so are
    segments that have a node in common.

    **Arguments:**

    - `radius`: $a$ in m, of the surface that touches.
    - `friction`: Coulomb's coefficient.
    - `restitution`: which part of the approach comes back at an impact, from 0 to 1.
    - `against`: planes and balls that stand in space: `rx.Plane` and `rx.Ball` without a body.
    - `itself`: whether rods touch themselves and each other, or only what stands in space.
    - `skin`: in m. Pairs of segments whose surfaces are nearer than this are looked at in every
        step, and found anew when a node has moved by half of it. It is the radius by default.
    - `capacity`: the number of such pairs that there is room for; six for each node by default.
    """

    radius: Float[Array, ""]
    friction: Float[Array, ""]
    restitution: Float[Array, ""]
    skin: Float[Array, ""]
    against: tuple[AbstractSurface, ...]
    itself: bool = eqx.field(static=True)
    capacity: int | None = eqx.field(static=True)

    def __init__(
        self,
        radius: ArrayLike,
        friction: ArrayLike = 0.0,
        restitution: ArrayLike = 0.0,
        *,
        against: Sequence[AbstractSurface] = (),
        itself: bool = True,
        skin: ArrayLike | None = None,
        capacity: int | None = None,
    ):
        self.radius = positive64("radius", radius)
        self.friction = _between("friction", friction, 0.0, math.inf)
        self.restitution = _between("restitution", restitution, 0.0, 1.0)
        self.skin = self.radius if skin is None else positive64("skin", skin)
        self.against = tuple(_standing(shape) for shape in against)
        self.itself = bool(itself)
        self.capacity = (
            None if capacity is None else require_whole("capacity", capacity, 1, 10**7)
        )

    def room(self, nodes: int) -> int:
        """Return how many pairs of segments there is room for in a system of so many nodes."""
        if not self.itself:
            return 0
        most = nodes * (nodes - 1) // 2
        return min(most, _NEIGHBOURS * nodes if self.capacity is None else self.capacity)

    def slots(self, nodes: int) -> int:
        """Return how many contacts there may be at most."""
        return 3 * self.room(nodes) + nodes * len(self.against)


def touching(contact: object) -> SelfContact | None:
    """Return the contact that a rod was given, if it is one."""
    if contact is None:
        return None
    return require_instance("contact", contact, SelfContact, "what rods may touch: rx.SelfContact")


def _standing(shape: AbstractSurface) -> AbstractSurface:
    if not isinstance(shape, Plane | Ball):
        raise BadInput(
            f"against has {shown(shape)}, but rods touch planes and balls: rx.Plane, rx.Ball."
        )
    if shape.body is not None:
        raise BadInput(
            f"against has the {shape.name} on the body {shape.body!r}, but what a rod touches "
            "stands in space: leave body out."
        )
    return shape


def _between(name: str, given: ArrayLike, low: float, high: float) -> Float[Array, ""]:
    value = finite64(name, given)
    if not np.all((np.asarray(value) >= low) & (np.asarray(value) <= high)):
        top = "" if high == math.inf else f" and at most {high:g}"
        raise BadInput(f"{name} = {shown(given)} must be at least {low:g}{top}.")
    return jnp.asarray(value)
