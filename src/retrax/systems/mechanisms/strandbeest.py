"""A leg of Theo Jansen's beach animals: a crank turns, and a foot walks."""

from itertools import pairwise

import numpy as np
from jaxtyping import Float

from retrax.draw.lines import trail as draw_trail
from retrax.draw.solids import rod
from retrax.mechanisms.body import Body
from retrax.mechanisms.joints import Revolute
from retrax.mechanisms.mechanism import Mechanism
from retrax.mechanisms.system import MechanismSystem
from retrax.numerics.checks import require_number

Point = Float[np.ndarray, "2"]
# How bars are drawn.
_THICK = 0.008
_COLOURS = {
    "crank": "orange",
    "upper rod": "sky",
    "lower rod": "sky",
    "hip": "green",
    "thigh": "blue",
    "shin": "blue",
    "foot": "green",
}
# Jansen's thirteen numbers, in cm.
_a, _b, _c, _d, _e, _f, _g = 38.0, 41.5, 39.3, 40.1, 55.8, 39.4, 36.7
_h, _i, _j, _k, _l, _m = 65.7, 49.0, 50.0, 61.9, 7.8, 15.0


def strandbeest_leg(*, density: float = 1.0, gravity: float = 9.81) -> MechanismSystem:
    """Return a leg of a beach animal, in the plane: eleven bars moved by a crank.

    The crank turns about the origin on the pin `crank`; the other pin that holds the leg lies 38 cm
    beside it and 7.8 cm below. Bodies: `crank`, `upper rod`, `lower rod`, `hip` and `foot`, which
    are triangles, and `thigh` and `shin`. `assemble(joint_rates={"crank": 2.0})` sets it going.

    **Arguments:** `density`: kg per metre of bar; `gravity`: m/s^2, along $-e_2$.

    References: [Jansen2007].
    """
    density = require_number("density", density, "> 0", "kg/m")
    leg = Mechanism(gravity=[0.0, -require_number("gravity", gravity)])
    centre, pivot = np.zeros(2), np.array([-_a, -_l]) / 100
    tip = np.array([_m, 0.0]) / 100
    top = _meeting(tip, _j, pivot, _b, left=False)
    knee = _meeting(tip, _k, pivot, _c, left=True)
    back = _meeting(pivot, _d, top, _e, left=True)
    ankle = _meeting(back, _f, knee, _g, left=False)
    toe = _meeting(ankle, _h, knee, _i, left=False)
    crank = _of_bars(leg, "crank", density, centre, tip)
    upper = _of_bars(leg, "upper rod", density, tip, top)
    lower = _of_bars(leg, "lower rod", density, tip, knee)
    hip = _of_bars(leg, "hip", density, pivot, top, back, pivot)
    thigh = _of_bars(leg, "thigh", density, pivot, knee)
    shin = _of_bars(leg, "shin", density, back, ankle)
    foot = _of_bars(leg, "foot", density, knee, ankle, toe, knee, trail=toe)
    leg.join(
        Revolute(leg.ground, crank, at=centre, name="crank"),
        Revolute(crank, upper, at=tip, name="upper tip"),
        Revolute(crank, lower, at=tip, name="lower tip"),
        Revolute(leg.ground, hip, at=pivot, name="hip"),
        Revolute(leg.ground, thigh, at=pivot, name="thigh"),
        Revolute(upper, hip, at=top, name="top"),
        Revolute(hip, shin, at=back, name="back"),
        Revolute(lower, thigh, at=knee, name="knee"),
        Revolute(thigh, foot, at=knee, name="foot"),
        Revolute(shin, foot, at=ankle, name="ankle"),
    )
    return leg.system()


def _meeting(a: Point, from_a: float, b: Point, from_b: float, left: bool) -> Point:
    """Return the point at given distances (cm) from two others, left or right of the way to `b`."""
    first, second = from_a / 100, from_b / 100
    apart = float(np.linalg.norm(b - a))
    along = (b - a) / apart
    ahead = (first**2 - second**2 + apart**2) / (2 * apart)
    aside = np.sqrt(first**2 - ahead**2) * (1 if left else -1)
    return a + ahead * along + aside * np.array([-along[1], along[0]])


def _of_bars(
    leg: Mechanism, name: str, density: float, *corners: Point, trail: Point | None = None
) -> Body:
    """Add a body made of thin bars from corner to corner; a point of it may leave a trail."""
    ends = list(pairwise(corners))
    lengths = np.array([np.linalg.norm(b - a) for a, b in ends])
    middles = np.array([(a + b) / 2 for a, b in ends])
    centre = lengths @ middles / lengths.sum()
    away = np.sum((middles - centre) ** 2, axis=1)
    moment = density * float(lengths @ (lengths**2 / 12 + away))
    shape = [rod(a - centre, b - centre, _THICK, _COLOURS[name]) for a, b in ends]
    shape += [] if trail is None else [draw_trail(trail - centre)]
    return leg.body(name, density * float(lengths.sum()), moment, at=centre, shape=shape)
