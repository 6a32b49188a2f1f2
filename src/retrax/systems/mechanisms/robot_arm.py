"""An arm with six axes."""

from retrax.mechanics.actuated import Actuated
from retrax.mechanisms.joints import Revolute
from retrax.mechanisms.mechanism import Mechanism
from retrax.mechanisms.motors import Motor
from retrax.mechanisms.system import MechanismSystem
from retrax.numerics.checks import require_number
from retrax.numerics.meant import explain_keywords
from retrax.systems.mechanisms.bars import bar

_UP, _ACROSS = (0.0, 0.0, 1.0), (0.0, 1.0, 0.0)
# A name, mass, length and width of each link, and how far above the ground its joint is; the links
# of the arm stand one on top of the other.
_LINKS = (
    ("turret", 3.7, 0.16, 0.12, 0.0),
    ("upper arm", 8.4, 0.425, 0.11, 0.16),
    ("forearm", 2.3, 0.392, 0.09, 0.585),
    ("wrist", 1.2, 0.11, 0.08, 0.977),
    ("hand", 1.2, 0.095, 0.08, 1.087),
    ("flange", 0.2, 0.04, 0.06, 1.182),
)
_AXES = (_UP, _ACROSS, _ACROSS, _UP, _ACROSS, _UP)
_TORQUES = (150.0, 150.0, 150.0, 28.0, 28.0, 28.0)
# The third axis of a link stands up along it: its first axis of `bar` becomes the third.
_UPRIGHT = ((0.0, 0.0, -1.0), (0.0, 1.0, 0.0), (1.0, 0.0, 0.0))


@explain_keywords
def robot_arm(*, gravity: float = 9.81) -> MechanismSystem:
    """Return an arm with six axes, about as large and heavy as one that works beside people.

    It stands upright on the ground, $e_3$ up: a turret, upper arm and forearm of 0.425 and 0.392 m,
    and a wrist with three axes. Joints are called `base`, `shoulder`, `elbow`, `roll`, `pitch` and
    `yaw`; `assemble(joints={"elbow": 1.2, ...})` puts it elsewhere.

    **Arguments:** `gravity`: m/s^2.
    """
    return _arm(gravity).system()


@explain_keywords
def driven_arm(*, gravity: float = 9.81) -> Actuated:
    """Return `robot_arm` with a motor at each joint, from the base on: at most 150 and 28 N m."""
    arm = _arm(gravity)
    for name, limit in zip(_JOINTS, _TORQUES, strict=True):
        arm.add(Motor(name, bounds=(-limit, limit), name=f"{name} motor"))
    return arm.plant()


_JOINTS = ("base", "shoulder", "elbow", "roll", "pitch", "yaw")


def _arm(gravity: float) -> Mechanism:
    arm = Mechanism(gravity=[0.0, 0.0, -require_number("gravity", gravity)])
    below = arm.ground
    for joint, axis, (name, mass, length, width, height) in zip(
        _JOINTS, _AXES, _LINKS, strict=True
    ):
        centre = [0.0, 0.0, height + length / 2]
        link = arm.body(name, mass, bar(mass, length, width), at=centre, turned=_UPRIGHT)
        arm.join(Revolute(below, link, at=[0.0, 0.0, height], axis=axis, name=joint))
        below = link
    return arm
