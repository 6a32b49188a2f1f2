"""What a mechanism tells about its picture: plain data, which a file keeps as well."""

from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float

from retrax.mechanics.contact import Seen
from retrax.mechanics.remembered import Drawing
from retrax.mechanics.shape import Shape
from retrax.mechanisms.body import GROUND
from retrax.mechanisms.elements import Line, LineDamper, LineSpring, Outside
from retrax.mechanisms.joined import Connection
from retrax.mechanisms.laws import Apart
from retrax.mechanisms.measures import Turn
from retrax.mechanisms.rolling import BallContact, Touching, WheelContact
from retrax.numerics.checks import is_traced

if TYPE_CHECKING:
    from retrax.mechanisms.system import MechanismSystem


# Of these there is nothing to mark where two bodies meet: they couple joints, or roll.
_UNMARKED = ("Gear", "Rack", "Distance", "RollingWheel", "RollingBall", "KnifeEdge")


def drawing(system: "MechanismSystem") -> Drawing | None:
    """Describe the bodies, joints, wheels, springs and dampers of a mechanism.

    Points and directions are in the axes of the body they belong to, those of the ground in space.
    `None` where the numbers are traced, or those of many mechanisms.
    """
    if is_traced(system) or np.ndim(system.mass) != 1:
        return None
    joints = system.constraint
    connections = () if joints is None else joints.connections
    rolling = () if joints is None or joints.rolling is None else joints.rolling.contacts
    dampers = system.force.dampers if isinstance(system.force, Outside) else ()
    places = [np.asarray(part) for part in system.reference]
    marked = [c for c in connections if c.kind not in _UNMARKED]
    seen = Seen() if system.contact is None else system.contact.drawn
    lines = [_line(c.law, c.bodies, "distance") for c in connections]
    lines += [_line(one.element, one.bodies, "spring") for one in system.springs]
    lines += [_line(one.element, one.bodies, "damper") for one in dampers]
    return {
        "mechanism": {
            "names": list(system.names),
            "shapes": tuple(own or _on(seen, system, k) for k, own in enumerate(system.shapes)),
            "still": _on(seen, system, GROUND),
            "planes": [plane for plane in seen.planes if plane[2] == "ground"],
            "mass": np.asarray(system.mass).tolist(),
            "inertia": np.asarray(system.inertia).tolist(),
            "gravity": np.asarray(system.gravity).tolist(),
            "joints": [_joint(c, places) for c in marked],
            "wheels": [found for one in rolling if (found := _wheel(one)) is not None],
            "lines": [found for found in lines if found is not None],
        }
    }


def _on(seen: Seen, system: "MechanismSystem", k: int) -> tuple[Shape, ...]:
    """Return the shapes that touch on a body, given by its number or its name."""
    name = "ground" if k == GROUND else system.names[k]
    return tuple(shape for shape in seen.shapes if shape.body in (k, name))


def _line(what: object, bodies: tuple[int, ...], kind: str) -> dict[str, Any] | None:
    """Return the ends of something that acts along a line between points of two bodies."""
    line = what.line if isinstance(what, LineSpring | LineDamper) else what
    if not isinstance(line, Line | Apart):
        return None
    points = [np.asarray(line.a).tolist(), np.asarray(line.b).tolist()]
    return {"kind": kind, "bodies": list(bodies), "points": points}


def _joint(connection: Connection, places: list[np.ndarray]) -> dict[str, Any]:
    """Return where a joint is on each of its bodies, and its axis there if it has one."""
    first, second = connection.bodies[:2]
    R, x = _place(places, second)
    at = x + R @ np.asarray(connection.at)
    turns = [c.measure for c in connection.coordinates if isinstance(c.measure, Turn)]
    axes = None
    if turns and len(at) == 3:
        backwards = next(c.backwards for c in connection.coordinates if c.measure is turns[0])
        R, _ = _place(places, second if backwards else first)
        axis = R @ np.cross(np.asarray(turns[0].e), np.asarray(turns[0].n))
        axes = [(_place(places, body)[0].T @ axis).tolist() for body in (first, second)]
    return {
        "name": connection.name,
        "kind": connection.kind,
        "bodies": [first, second],
        "points": [_local(places, body, at).tolist() for body in (first, second)],
        "axes": axes,
    }


def _wheel(one: Touching) -> dict[str, Any] | None:
    """Return the centre, axle and radius of something round, or nothing for a blade."""
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
