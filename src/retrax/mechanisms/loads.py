"""Coordinates and rates of single joints, and the forces and torques that they transmit."""

from typing import TYPE_CHECKING, NamedTuple

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from retrax.errors import BadInput
from retrax.groups.base import Coordinates, Element
from retrax.mechanisms.body import GROUND
from retrax.mechanisms.joined import Connection, pose_of
from retrax.mechanisms.pose import Vector
from retrax.mechanisms.rolling import Touching
from retrax.numerics.frozen import Frozen
from retrax.numerics.small_matrices import cross

if TYPE_CHECKING:
    from retrax.mechanisms.system import MechanismSystem


class Motion(NamedTuple):
    """The coordinates of a joint, angles between -pi and pi, and their rates."""

    values: Float[Array, " coordinates"]
    rates: Float[Array, " coordinates"]


class Load(NamedTuple):
    """What a joint does to its second body: a force, and a torque about its point, in space axes.

    A gear or rack acts on the second body of its second joint, about the point of that. In the
    plane the torque is one number.
    """

    force: Vector
    torque: Float[Array, "..."]


class Part(Frozen):
    """What a mechanism has by one name: a joint, a wheel with the height it keeps, or a blade.

    **Attributes:** `joint`, `contact`; `first`, `rolls`: where the rows of each begin among all
    rows.
    """

    joint: Connection | None
    contact: Touching | None
    first: int = eqx.field(static=True)
    rolls: int = eqx.field(static=True)

    @property
    def kind(self) -> str:
        """What it is called in sentences."""
        found = self.contact if self.joint is None else self.joint
        assert found is not None
        return found.kind


def part(system: "MechanismSystem", name: str) -> Part:
    """Return the joint or wheel of a name."""
    constraint = system.constraint
    joint, contact, first, rolls = None, None, 0, 0
    row = 0
    for c in constraint.connections if constraint is not None else ():
        if c.name == name:
            joint, first = c, row
        row += c.law.count
    rolling = None if constraint is None else constraint.rolling
    for one in rolling.contacts if rolling is not None else ():
        if one.name == name:
            contact, rolls = one, row
        row += one.contact.count
    if joint is None and contact is None:
        known = ", ".join(map(repr, part_names(system))) or "none"
        raise BadInput(f"there is no joint or wheel {name!r}: this mechanism has {known}.")
    return Part(joint, contact, first, rolls)


def part_names(system: "MechanismSystem") -> tuple[str, ...]:
    """Return the names of all joints and wheels."""
    constraint = system.constraint
    if constraint is None:
        return ()
    contacts = () if constraint.rolling is None else constraint.rolling.contacts
    names = [*(c.name for c in constraint.connections), *(one.name for one in contacts)]
    return tuple(dict.fromkeys(names))


def motion_of(joint: Connection, g: Element, xi: Coordinates) -> Motion:
    """Return the coordinates of a joint and their rates."""
    n = g[1].shape[0]
    each, found = xi.reshape(n, -1), joint.measure(g)
    rates = []
    for q in found:
        pair = zip(joint.bodies[:2], (q.first, q.second), strict=True)
        parts = [row @ each[body] for body, row in pair if body != GROUND]
        rates.append(sum(parts, jnp.zeros(())))
    return Motion(jnp.stack([q.value for q in found]), jnp.stack(rates))


def load_of(found: Part, g: Element, lam: Float[Array, " k"]) -> Load:
    """Return what a joint or wheel does to its second body, from the multipliers of all rows."""
    parts, body, at = [], GROUND, None
    if found.joint is not None:
        joint, count = found.joint, found.joint.law.count
        blocks = joint.law.rows(*joint.poses(g))
        body, at = joint.bodies[-1], joint.at
        own = lam[found.first : found.first + count]
        # A mesh has the bodies of two joints, and may hold its last body twice.
        parts += [
            own @ block for one, block in zip(joint.bodies, blocks, strict=True) if one == body
        ]
    if found.contact is not None:
        contact, body = found.contact.contact, found.contact.body
        rows = contact.rows(found.contact.pose(g))
        parts.append(lam[found.rolls : found.rolls + contact.count] @ rows)
    total, pose = sum(parts[1:], parts[0]), pose_of(g, body)
    d = pose.x.shape[0]
    spin, force = total[:-d], total[-d:]
    # From the centre of mass to the point of the joint.
    arm = jnp.zeros(d) if at is None else pose.R @ at
    if d == 2:
        return Load(force, spin[0] - (arm[0] * force[1] - arm[1] * force[0]))
    return Load(force, pose.R @ spin - cross(arm, force))
