r"""The inertia that a motor adds to the motion of its joint alone, $\tfrac12I\dot q^2$.

It belongs to no body of the joint: it does not resist when both turn together. A rotor that the
ground carries and that turns as the joint does has just this energy, and nothing else.
"""

import numpy as np

from retrax.importing.followed import Follow
from retrax.importing.robot import Freedom
from retrax.mechanisms.joints import Prismatic, Revolute
from retrax.mechanisms.mechanism import Mechanism


def add_rotor(mechanism: Mechanism, freedom: Freedom) -> None:
    """Add a rotor that follows a joint; for a slide a mass that travels at one height."""
    name = f"rotor of {freedom.name}"
    size = freedom.armature
    mechanism.body(name, size, np.full(3, size), np.zeros(3))
    if freedom.kind == "hinge":
        mechanism.join(Revolute("ground", name, np.zeros(3), np.eye(3)[2], name))
    else:
        mechanism.join(Prismatic("ground", name, np.zeros(3), level(mechanism.gravity), name))
    mechanism.join(Follow(name, freedom.name, (0.0, 1.0), f"gear of the {name}"))


def level(gravity: np.ndarray) -> np.ndarray:
    """Return a direction at right angles to gravity."""
    if not np.any(gravity):
        return np.eye(3)[0]
    way = np.cross(gravity, np.eye(3)[int(np.argmin(np.abs(gravity)))])
    return way / np.linalg.norm(way)
