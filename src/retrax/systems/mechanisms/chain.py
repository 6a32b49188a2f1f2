"""Bars that hang from each other."""

from retrax.mechanisms.joints import Revolute, Spherical
from retrax.mechanisms.mechanism import Mechanism
from retrax.mechanisms.system import MechanismSystem
from retrax.numerics.checks import (
    ArrayLike,
    host_finite64,
    require_flag,
    require_number,
    require_whole,
)
from retrax.numerics.meant import explain_keywords
from retrax.systems.mechanisms.bars import bar

# More would take minutes to write down.
MOST_BARS = 5000


@explain_keywords
def chain(
    n: int,
    *,
    length: float = 1.0,
    mass: float = 1.0,
    width: float = 0.02,
    anchored: bool = True,
    gravity: float = 9.81,
) -> MechanismSystem:
    """Return `n` equal bars in space, joined by balls in sockets, one below another.

    They hang straight down from the origin, $e_3$ up; the first axis of each bar points down along
    it. Joints are called `joint 1`, `joint 2`, ... from the top; bars `bar 1`, `bar 2`, ...

    **Arguments:** `n`: how many; `length`, `mass`, `width`: of each bar, m and kg; `anchored`:
    whether the first one hangs from the ground, or all are free; `gravity`: m/s^2, downwards.
    """
    n = require_whole("n", n, 1, MOST_BARS)
    length = require_number("length", length, "> 0")
    mass = require_number("mass", mass, "> 0")
    width = require_number("width", width, "> 0")
    hanging = Mechanism(gravity=[0.0, 0.0, -require_number("gravity", gravity)])
    # The first axis points down, the second stays.
    down = [[0.0, 0.0, 1.0], [0.0, 1.0, 0.0], [-1.0, 0.0, 0.0]]
    above = hanging.ground if require_flag("anchored", anchored) else None
    for i in range(n):
        centre = [0.0, 0.0, -(i + 0.5) * length]
        link = hanging.body(f"bar {i + 1}", mass, bar(mass, length, width), centre, down)
        if above is not None:
            top = [0.0, 0.0, -i * length]
            hanging.join(Spherical(above, link, at=top, name=f"joint {i + 1 - (not anchored)}"))
        above = link
    return hanging.system()


@explain_keywords
def double_pendulum(
    lengths: ArrayLike = (1.0, 1.0), masses: ArrayLike = (1.0, 1.0), *, gravity: float = 9.81
) -> MechanismSystem:
    """Return two uniform bars in the plane, one below the other, on a pin at the origin.

    The pins are called `shoulder` and `elbow`, the bars `upper` and `lower`. The second axis of the
    plane points up.

    **Arguments:** `lengths`, `masses`: of the upper and the lower bar, m and kg; `gravity`.
    """
    lengths = host_finite64("lengths", lengths, (2,))
    masses = host_finite64("masses", masses, (2,))
    pendulum = Mechanism(gravity=[0.0, -require_number("gravity", gravity)])
    down = [[0.0, 1.0], [-1.0, 0.0]]
    above, top = pendulum.ground, 0.0
    for name, pin, length, mass in zip(
        ("upper", "lower"), ("shoulder", "elbow"), lengths, masses, strict=True
    ):
        length = require_number(f"length of the {name} bar", length, "> 0")
        link = pendulum.body(name, mass, mass * length**2 / 12, [0.0, top - length / 2], down)
        pendulum.join(Revolute(above, link, at=[0.0, top], name=pin))
        above, top = link, top - length
    return pendulum.system()
