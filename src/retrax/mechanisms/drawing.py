"""What a mechanism tells about its picture: plain data, which a file keeps as well."""

from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float

from retrax.mechanics.remembered import Drawing
from retrax.mechanisms.body import GROUND
from retrax.mechanisms.joined import Connection
from retrax.mechanisms.measures import Turn
from retrax.mechanisms.rolling import BallContact, Touching, WheelContact
from retrax.numerics.checks import is_traced

if TYPE_CHECKING:
    from retrax.mechanisms.system import MechanismSystem


def drawing(system: "MechanismSystem") -> Drawing | None:
    """Describe the bodies, joints and wheels of a mechanism.

    Points and directions are in the axes of the body they belong to, those of the ground in space.
    `None` where the numbers are traced, or those of many mechanisms.
    """
    if is_traced(system) or np.ndim(system.mass) != 1:
        return None
    joints = system.constraint
    connections = () if joints is None else joints.connections
    rolling = () if joints is None or joints.rolling is None else joints.rolling.contacts
    places = [np.asarray(part) for part in system.reference]
    return {
        "mechanism": {
            "names": list(system.names),
            "shapes": system.shapes,
            "mass": np.asarray(system.mass).tolist(),
            "inertia": np.asarray(system.inertia).tolist(),
            "gravity": np.asarray(system.gravity).tolist(),
            "joints": [_joint(c, places) for c in connections if len(set(c.bodies)) > 1],
            "wheels": [found for one in rolling if (found := _wheel(one)) is not None],
        }
    }


def _joint(connection: Connection, places: list[np.ndarray]) -> dict[str, Any]:
    """Where a joint is on each of its bodies, and its axis on the first if it has one."""
    bodies = list(dict.fromkeys(connection.bodies))
    R, x = _place(places, connection.bodies[1])
    at = x + R @ np.asarray(connection.at)
    turns = [c.measure for c in connection.coordinates if isinstance(c.measure, Turn)]
    axis = None
    if turns and len(at) == 3:
        axis = np.cross(np.asarray(turns[0].e), np.asarray(turns[0].n)).tolist()
    return {
        "name": connection.name,
        "kind": connection.kind,
        "bodies": bodies,
        "points": [(_local(places, body, at)).tolist() for body in bodies],
        "axis": axis,
    }


def _wheel(one: Touching) -> dict[str, Any] | None:
    """The centre, axle and radius of something round, or nothing for a blade."""
    contact = one.contact
    if not isinstance(contact, WheelContact | BallContact):
        return None
    axle = np.asarray(contact.axle).tolist() if isinstance(contact, WheelContact) else None
    return {
        "body": one.body,
        "name": one.name,
        "centre": np.asarray(contact.centre).tolist(),
        "axle": axle,
        "radius": float(contact.radius),
        "normal": np.asarray(contact.normal).tolist(),
    }


def _place(places: list[np.ndarray], body: int) -> tuple[np.ndarray, np.ndarray]:
    R, x = places
    d = x.shape[1]
    return (np.eye(d), np.zeros(d)) if body == GROUND else (R[body], x[body])


def _local(
    places: list[np.ndarray], body: int, p: Float[np.ndarray, " d"]
) -> Float[np.ndarray, " d"]:
    R, x = _place(places, body)
    return R.T @ (p - x)
