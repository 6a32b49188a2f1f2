"""What there is to draw of a run: bodies on strings, rods, or whatever its group is made of."""

import contextlib
from collections.abc import Iterator
from typing import Any

import jax
import numpy as np
from jaxtyping import Array, Float

from retrax.errors import BadInput, RetraxError
from retrax.mechanics.remembered import Drawing
from retrax.mechanics.shape import triple
from retrax.mechanisms.system import MechanismSystem
from retrax.numerics.bspline import weights
from retrax.numerics.checks import reason, require_instance
from retrax.numerics.evaluate import evaluate
from retrax.show.bodies import Body, bodies, solid_box
from retrax.trajectory.trajectory import Trajectory


def drawing_data(run: Trajectory) -> Drawing:
    """Return what the system of a run provides for its picture."""
    return getattr(run.system, "drawing", None) or {}


def is_drawn(run: Trajectory) -> bool:
    """Return whether the system of a run has shapes: those of a mechanism, or its user's."""
    by_function = callable(getattr(run.system, "draw", None))
    return by_function or bool({"mechanism", "shapes"} & drawing_data(run).keys())


def joint_forces(run: Trajectory) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Return the place of each joint or wheel, and its force on its second body, in space.

    A run that does not know its mechanism any more has none.
    """
    said = drawing_data(run).get("mechanism")
    if said is None or not isinstance(run.system, MechanismSystem) or not run.multipliers.size:
        return {}
    found = bodies(run)
    places = {joint["name"]: _shared_point(found, joint) for joint in said["joints"]}
    places |= {wheel["name"]: _contact(found, wheel) for wheel in said["wheels"]}
    return {name: (at, _in_space(run.joints[name].force)) for name, at in places.items()}


def unwrap_angle(run: Trajectory, joint: str, angle: np.ndarray) -> np.ndarray:
    """Unwrap the angle of a joint beyond half a turn, if saved states are close enough."""
    if not isinstance(run.system, MechanismSystem) or joint not in run.joints:
        return angle
    try:
        whole = run.joints[joint].angle
    except BadInput:
        return angle
    return whole if whole.shape == angle.shape else angle


def _shared_point(found: list[Body], joint: dict[str, Any]) -> Float[np.ndarray, "time 3"]:
    n = next(n for n, body in enumerate(joint["bodies"]) if body >= 0)
    return _carry(found[joint["bodies"][n]], np.array(triple("a joint", joint["points"][n])))


def _contact(found: list[Body], wheel: dict[str, Any]) -> Float[np.ndarray, "time 3"]:
    """Return where a wheel or a ball touches its plane."""
    one = found[wheel["body"]]
    centre = _carry(one, np.array(triple("centre", wheel["centre"])))
    down = np.tile(triple("normal", wheel["normal"]), (len(centre), 1))
    if wheel["axle"] is not None:
        assert one.rotation is not None
        axle = one.rotation @ np.array(wheel["axle"])
        down = down - np.sum(down * axle, axis=1, keepdims=True) * axle
        down = down / np.linalg.norm(down, axis=1, keepdims=True)
    return centre - wheel["radius"] * down


def _carry(one: Body, p: np.ndarray) -> Float[np.ndarray, "time 3"]:
    assert one.rotation is not None and one.position is not None
    return one.position + one.rotation @ p


def _in_space(force: np.ndarray) -> Float[np.ndarray, "time 3"]:
    return np.pad(force, ((0, 0), (0, 3 - force.shape[1])))


def e3_points_up(run: Trajectory) -> bool:
    """Return whether up is along e3 in the picture of a run, or against it."""
    return getattr(run.system, "e3_points_up", True)


def unit_of(run: Trajectory, observable: str) -> str:
    """Return the unit of what the system of a run measures."""
    return "" if run.system is None else run.system.unit_of(observable)


def require_run(run: object) -> Trajectory:
    """Reject what is no run."""
    return require_instance("run", run, Trajectory, "a run, as simulate returns it")


@contextlib.contextmanager
def drawable() -> Iterator[None]:
    """Turn what a picture makes of a forged run into a sentence."""
    try:
        yield
    except (RetraxError, OSError, Warning):
        raise
    except Exception as cause:
        raise BadInput(
            "this run cannot be drawn: its states do not fit its group and its drawing "
            f"({reason(cause)})."
        ) from cause


def drawn_bodies(run: Trajectory) -> list[Body]:
    """Return the bodies and points to draw."""
    said = drawing_data(run)
    if "string" in said:
        return string_bodies(run, said)
    if "wheels" in said:
        turns = np.asarray(jax.tree.leaves(run.g)[0])
        return [Body("craft", turns, None, np.arange(3))]
    return rod_bodies(run, said) if "rods" in said else bodies(run)


def string_bodies(run: Trajectory, told: dict[str, Any]) -> list[Body]:
    """Return the bodies on a string, each a box about its centre of mass, in metres."""
    r, *turns = (np.asarray(leaf) for leaf in run.g[: 1 + len(told["string"])])
    r = r + pivots(run, told)[:, None]
    first = 3 * r.shape[1]
    found = []
    rows = zip(told["string"], turns, told["arms"], strict=True)
    for k, (node, R, arm) in enumerate(rows):
        found.append(
            Body(
                "body" if len(turns) == 1 else f"body {k + 1}",
                R,
                r[:, node - 1] + R @ np.array(arm),
                np.arange(first + 3 * k, first + 3 * k + 3),
                solid_box(told["masses"][k], np.array(told["inertia"][k]))[0],
            )
        )
    return found


def pivots(run: Trajectory, told: dict[str, Any]) -> Float[np.ndarray, "time 3"]:
    """Return where a string hangs from: the origin, or the trolley of a crane."""
    places = np.zeros((len(run.t), 3))
    if "trolley" in told:
        places[:, :2] = np.asarray(run.g[-1])
    return places


def rod_bodies(run: Trajectory, told: dict[str, Any]) -> list[Body]:
    """Return the point to follow: the contact with its force, or the end of a rod."""
    lines = centrelines(run, told)
    if "width" not in told:
        which = "the rod" if len(lines) == 1 else "the last rod"
        return [Body(f"end of {which}", None, lines[-1][:, -1], None)]
    s = np.asarray(run.g[2])
    points = [
        _points(places, s[:, k], rod["spacing"], told["width"])
        for k, (places, rod) in enumerate(zip(lines, told["rods"], strict=True))
    ]
    return [
        Body(
            "contact, and the force on the first rod",
            None,
            (points[0] + points[1]) / 2,
            None,
            arrow=np.asarray(run.multipliers),
        )
    ]


def middle_velocity(run: Trajectory, velocity: np.ndarray) -> Float[np.ndarray, "time 6"]:
    """Return angular velocity in the body and velocity in space, half-way along the first rod."""
    frames = np.asarray(jax.tree.leaves(run.g)[0])
    node = frames.shape[1] // 2
    return velocity[:, 6 * node : 6 * node + 6]


def contact_force(run: Trajectory) -> dict[str, np.ndarray]:
    """Return the components of the contact force in space; empty without a contact."""
    force = np.asarray(run.multipliers)
    return {axis: force[:, k] for k, axis in enumerate("xyz")} if force.shape[1] == 3 else {}


def centrelines(run: Trajectory, told: dict[str, Any]) -> list[Float[np.ndarray, "time n 3"]]:
    if "nodes" in told:  # several rods, one after the other
        return np.split(np.asarray(run.g[1]), np.cumsum(told["nodes"])[:-1], axis=1)
    if len(told["rods"]) == 1:
        return [np.asarray(run.g[1])]
    return [np.asarray(run.g[k][1]) for k in range(2)]


def _points(
    places: Float[np.ndarray, "time n 3"], s: np.ndarray, spacing: float, width: float
) -> Float[np.ndarray, "time 3"]:
    """Return the points of the centreline at s, as the contact weighs the nodes."""
    arc = spacing * np.arange(places.shape[1], dtype=float)
    return np.einsum("tk,tki->ti", evaluate(_weights, arc, s, spacing, width), places)


def _weights(
    arc: Float[Array, " n"], s: Float[Array, " time"], h: Float[Array, ""], width: Float[Array, ""]
) -> Float[Array, "time n"]:
    return jax.vmap(lambda at: weights(arc, at, h, width))(s)
