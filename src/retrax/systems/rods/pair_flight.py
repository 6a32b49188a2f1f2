"""What steps of two rods are made of: forces, impulses along rows, and the free flight of both."""

import jax.numpy as jnp
from jaxtyping import Array, Float

from retrax.groups.so3 import Vector
from retrax.integrators.base import worse
from retrax.mechanics.system import Coordinates
from retrax.numerics.newton import NewtonStatus
from retrax.systems.rods.contact import Pair
from retrax.systems.rods.elastic import Placement
from retrax.systems.rods.pair import RodsInContact

Scalar = Float[Array, ""]
Rows = tuple[Coordinates, ...]
Placements = tuple[Placement, Placement]


def forces(system: RodsInContact, g: Pair, mu: Coordinates, t: Scalar) -> Coordinates:
    """Return all forces but that of the contact."""
    return system.total_force(g, system.mobile(mu), mu, t)


def along(lam: Vector, rows: Rows) -> Coordinates:
    r"""Return $A^T\lambda$."""
    return lam[0] * rows[0] + lam[1] * rows[1] + lam[2] * rows[2]


def flight(
    system: RodsInContact, g: Pair, mu: Coordinates, h: Scalar
) -> tuple[Placements, Coordinates, Coordinates, NewtonStatus]:
    """Fly both rods freely: return places, change of momentum, velocities, how it was solved."""
    flights = [
        rod.flight(at, p, h)
        for rod, at, p in zip(system.rods, g[:2], system.split(mu), strict=True)
    ]
    one, two = flights

    def flat(rotations: Array, translations: Array) -> Coordinates:
        return jnp.concatenate([rotations, translations], axis=1).reshape(-1)

    change = system.join(*(flat(f.change, jnp.zeros_like(f.v)) for f in flights))
    velocity = system.join(*(flat(f.w, f.v) for f in flights))
    return (one.g, two.g), change, velocity, worse(one.status, two.status)
