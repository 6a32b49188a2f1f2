"""The benchmark bicycle: two wheels, a frame with a rider, and a fork."""

import math

import numpy as np

from retrax.draw.solids import rod, sphere
from retrax.errors import BadInput
from retrax.mechanics.shape import Shape
from retrax.mechanisms.joints import Revolute
from retrax.mechanisms.mechanism import Mechanism
from retrax.mechanisms.system import MechanismSystem
from retrax.mechanisms.wheels import RollingWheel
from retrax.numerics.checks import require_number
from retrax.numerics.meant import explain_keywords

_REAR_RADIUS, _FRONT_RADIUS = 0.3, 0.35
# Centres of mass of the frame with its rider, and of the fork with the handlebar.
_FRAME, _FORK = np.array([0.3, 0.0, -0.9]), np.array([0.9, 0.0, -0.7])


@explain_keywords
def bicycle(
    *,
    wheelbase: float = 1.02,
    trail: float = 0.08,
    tilt: float = math.pi / 10,
    gravity: float = 9.81,
) -> MechanismSystem:
    r"""Return the bicycle of Meijaard, Papadopoulos, Ruina and Schwab, with a rigid rider.

    Its axes are those of the paper: $e_1$ ahead, $e_2$ to the right, $e_3$ down, the ground at
    $x_3 = 0$ and the rear wheel above the origin. Bodies: `rear wheel`, `frame`, `fork`, `front
    wheel`; joints: `rear axle`, `steer`, `front axle`; both wheels roll. Ahead at the speed $v$ the
    rear wheel turns at $-v/0.3$ rad/s in the frame,

        system.assemble(joint_rates={"rear axle": -v / 0.3})

    A positive `steer` angle points to the right. It rolls straight ahead and upright by itself at
    speeds between 4.29 and 6.02 m/s.

    **Arguments:** `wheelbase`, `trail`: m; `tilt`: of the steer axis from the vertical, rad;
    `gravity`: m/s^2. Masses, moments and radii are those of the paper, and bodies keep their
    places when the steer axis is moved.

    References: [MeijaardPapadopoulosRuinaSchwab2007].
    """
    wheelbase = require_number("wheelbase", wheelbase, "> 0", "m")
    trail, tilt = require_number("trail", trail), require_number("tilt", tilt)
    if not abs(tilt) < math.pi / 2:
        raise BadInput(
            f"tilt = {tilt:g} rad must be less than a right angle (1.57 rad): the steer axis "
            "meets the ground."
        )
    bike = Mechanism(gravity=[0.0, 0.0, require_number("gravity", gravity, "> 0", "m/s^2")])
    hub, nose = [0.0, 0.0, -_REAR_RADIUS], [wheelbase, 0.0, -_FRONT_RADIUS]
    shapes = _looks(np.array(hub), np.array(nose))
    rear = bike.body("rear wheel", 2.0, [0.0603, 0.12, 0.0603], at=hub)
    frame = bike.body(
        "frame",
        85.0,
        [[9.2, 0.0, 2.4], [0.0, 11.0, 0.0], [2.4, 0.0, 2.8]],
        at=_FRAME,
        shape=shapes["frame"],
    )
    fork = bike.body(
        "fork",
        4.0,
        [[0.05892, 0.0, -0.00756], [0.0, 0.06, 0.0], [-0.00756, 0.0, 0.00708]],
        at=_FORK,
        shape=shapes["fork"],
    )
    front = bike.body("front wheel", 3.0, [0.1405, 0.28, 0.1405], at=nose)
    across, steer = np.array([0.0, 1.0, 0.0]), [math.sin(tilt), 0.0, math.cos(tilt)]
    # The steer axis meets the ground ahead of where the front wheel touches it.
    bike.join(
        Revolute(frame, rear, at=hub, axis=across, name="rear axle"),
        Revolute(frame, fork, at=[wheelbase + trail, 0.0, 0.0], axis=steer, name="steer"),
        Revolute(fork, front, at=nose, axis=across, name="front axle"),
    )
    bike.roll(
        RollingWheel(rear, _REAR_RADIUS, axis=across, name="rear contact"),
        RollingWheel(front, _FRONT_RADIUS, axis=across, name="front contact"),
    )
    return bike.system()


def _looks(hub: np.ndarray, nose: np.ndarray) -> dict[str, list[Shape]]:
    """Return the shapes of the frame and the fork, from their centres of mass."""
    seat, pedals = np.array([0.2, 0.0, -0.85]), np.array([0.42, 0.0, -0.28])
    head, grips = np.array([0.84, 0.0, -0.78]), np.array([0.82, 0.0, -0.98])
    tubes = [(hub, pedals), (hub, seat), (pedals, seat), (seat, head), (pedals, head)]
    aside = np.array([0.0, 0.28, 0.0])
    bars = [(nose, head), (head, grips), (grips - aside, grips + aside)]
    hips, shoulders = seat - np.array([0.0, 0.0, 0.1]), np.array([0.5, 0.0, -1.35])
    rider = [
        rod(hips - _FRAME, shoulders - _FRAME, 0.09, "sky"),
        sphere(0.11, "sky").at(shoulders + np.array([0.06, 0.0, -0.22]) - _FRAME),
    ]
    return {
        "frame": [rod(a - _FRAME, b - _FRAME, 0.018, "orange") for a, b in tubes] + rider,
        "fork": [rod(a - _FORK, b - _FORK, 0.016, "green") for a, b in bars],
    }
