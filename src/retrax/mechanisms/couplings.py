"""Gears and racks as users write them: what couples two joints."""

import abc
import math
from typing import Any

import jax.numpy as jnp

from retrax.errors import BadInput
from retrax.mechanisms.joints import AbstractJoint
from retrax.mechanisms.laws import AbstractLaw, Geared, Threaded
from retrax.mechanisms.measures import Coordinate, Travel, Turn
from retrax.mechanisms.written import require_name
from retrax.numerics.checks import as_float, quote, require_number
from retrax.numerics.meant import explain_keywords

# Angles of wheels with more teeth do not tell, to many digits, which of them mesh.
_MOST_TEETH = 100_000
# A joint itself, or its name.
JointOrName = AbstractJoint | str


class AbstractCoupling(abc.ABC):
    """What couples the coordinates of two joints of one mechanism.

    **Attributes:** `joints`: which two; `name`.
    """

    joints: tuple[JointOrName, JointOrName]
    name: str | None

    @property
    def kind(self) -> str:
        """What it is called in sentences."""
        return type(self).__name__

    @abc.abstractmethod
    def law(self, first: "Free", second: "Free") -> AbstractLaw:
        """Return what it asks of what its two joints leave free."""


class Free:
    """What a joint leaves free, by its name."""

    def __init__(self, name: str, kind: str, coordinates: tuple[Coordinate, ...]):
        self.name, self.kind, self.coordinates = name, kind, coordinates

    def turn(self, who: str) -> Turn:
        """Return its angle."""
        found = [c.measure for c in self.coordinates if isinstance(c.measure, Turn)]
        if len(found) != 1:
            raise BadInput(
                f"{who} needs a joint with one angle, but {self.name!r} is a {self.kind} joint, "
                f"which has {len(found) or 'none'}."
            )
        return found[0]

    def travel(self, who: str) -> Travel:
        """Return its travel."""
        found = [c.measure for c in self.coordinates if isinstance(c.measure, Travel)]
        if len(found) != 1:
            raise BadInput(
                f"{who} needs a joint with one position, but {self.name!r} is a {self.kind} "
                f"joint, which has {len(found) or 'none'}."
            )
        return found[0]


class Gear(AbstractCoupling):
    r"""Two wheels in mesh: $n_1\theta_1 + n_2\theta_2 = 0$ for the angles of two joints.

    **Arguments:**

    - `first`, `second`: the joints whose angles are coupled, or their names; usually two Revolute
        ones on the same body, with axes along the same direction.
    - `teeth`: $(n_1, n_2)$, whole numbers; below zero for a ring with its teeth inside. A ratio
        that no teeth make is not absolute, for it cannot tell the turns apart.
    - `name`.
    """

    @explain_keywords
    def __init__(
        self,
        first: JointOrName,
        second: JointOrName,
        teeth: tuple[int, int] | list[int],
        name: str | None = None,
    ):
        self.joints = require_joint("first", first), require_joint("second", second)
        self.name = require_name(name)
        self.teeth = _teeth(teeth)

    def law(self, first: Free, second: Free) -> AbstractLaw:
        # Wheels of 20 and 40 teeth couple like those of 1 and 2: all others are the same places.
        n = math.gcd(*self.teeth)
        ratio = jnp.array([self.teeth[0] / n, self.teeth[1] / n])
        return Geared(first.turn("a Gear"), second.turn("a Gear"), ratio)


class Rack(AbstractCoupling):
    r"""A pinion on a rack: $x = r\,\theta$ for the angle of one joint and the travel of another.

    **Arguments:** `pinion`: a joint with an angle, or its name; `rack`: a joint with a position;
    `radius`: $r$ of the pinion in metres, below zero where the rack moves against the angle;
    `name`.
    """

    @explain_keywords
    def __init__(
        self, pinion: JointOrName, rack: JointOrName, radius: float, name: str | None = None
    ):
        self.joints = require_joint("pinion", pinion), require_joint("rack", rack)
        self.name = require_name(name)
        self.radius = require_number("radius", radius, unit="m")
        if self.radius == 0:
            raise BadInput("radius = 0 m: such a pinion would not move its rack.")

    def law(self, first: Free, second: Free) -> AbstractLaw:
        return Threaded(first.turn("a Rack"), second.travel("a Rack"), jnp.asarray(self.radius))


def require_joint(argument: str, value: Any) -> JointOrName:
    """Return a joint or its name."""
    if isinstance(value, AbstractJoint) or (isinstance(value, str) and value.strip()):
        return value
    raise BadInput(
        f"{argument} = {quote(value)} is not a joint: give one, such as a Revolute, or its name."
    )


def _teeth(teeth: object) -> tuple[int, int]:
    """Return two whole numbers, neither of them zero."""
    given = tuple(teeth) if isinstance(teeth, tuple | list) else ()
    whole = [int(n) for n in given if as_float(n).is_integer() and n != 0]
    if len(given) != 2 or len(whole) != 2:
        raise BadInput(
            f"teeth = {quote(teeth)} must be two whole numbers other than zero, (n1, n2): a ratio "
            "that is not one of whole numbers would not know, after some turns, which teeth mesh. "
            "Write 1.5 as (3, 2)."
        )
    if max(map(abs, whole)) > _MOST_TEETH:
        raise BadInput(
            f"teeth = {quote(teeth)} is more than {_MOST_TEETH:,} on a wheel: rounding of its "
            "angle would take it from tooth to tooth. Write a large ratio as several gears."
        )
    return whole[0], whole[1]
