r"""Joints that go no further than their limits: unilateral constraints without friction.

$$ \theta - \theta_\mathrm{low} \ge 0, \qquad \theta_\mathrm{high} - \theta \ge 0. $$
"""

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from retrax.errors import BadInput
from retrax.groups.base import Element
from retrax.mechanics.contact import AbstractContacts, Frames, Gaps, Touch
from retrax.mechanics.system import AbstractGroupSystem
from retrax.mechanisms.frames import Limits
from retrax.mechanisms.joined import Connection, add_blocks, pose_of, spread
from retrax.mechanisms.measures import Coordinate
from retrax.numerics.checks import ArrayLike, finite64, host_float64, quote, require_number
from retrax.numerics.frozen import Frozen
from retrax.numerics.known import require_each

Scalar = Float[Array, ""]
# An angle does not tell turns: limits of a hinge are less than a turn apart by at least this.
_LESS = 1e-3


class Stops(NamedTuple):
    """Where a joint stops, as it was written, and how it bounces there."""

    lower: float | None
    upper: float | None
    restitution: Scalar

    @property
    def limits(self) -> Limits:
        """The same as a file tells them."""
        return Limits(self.lower, self.upper)


def stops(
    limits: Sequence[float | None] | np.ndarray | None, restitution: ArrayLike
) -> Stops | None:
    """Return the limits of a joint as users write them."""
    bounce = finite64("restitution", restitution)

    def check(number: np.ndarray) -> None:
        if not 0 <= number <= 1:
            raise BadInput(f"restitution = {float(number):g} must be from 0 to 1.")

    require_each(check, bounce)
    if limits is None:
        return None
    if not isinstance(limits, list | tuple | np.ndarray) or len(limits) != 2:
        raise BadInput(
            f"limits = {quote(limits)} must be two numbers, (low, high); None where there is no "
            "limit."
        )
    low, high = (None if x is None else require_number("limits", x) for x in limits)
    if low is not None and high is not None and not low < high:
        raise BadInput(f"limits = ({low:g}, {high:g}): the first must be below the second.")
    return None if low is None and high is None else Stops(low, high, bounce)


class JointStop(Frozen):
    """One limit of a joint.

    **Attributes:** `coordinate`: what is limited; `bound`: its least or largest value; `middle`:
    that between both limits of an angle; `restitution`; `sign`: 1 where the coordinate stays above,
    -1 below; `bodies`; `joint`: its name.
    """

    coordinate: Coordinate
    bound: Scalar
    middle: Scalar
    restitution: Scalar
    sign: int = eqx.field(static=True)
    bodies: tuple[int, int] = eqx.field(static=True)
    joint: str = eqx.field(static=True)

    @property
    def side(self) -> str:
        """What sentences call it."""
        return "lower" if self.sign > 0 else "upper"

    def gap_and_row(self, g: Element, n: int) -> tuple[Scalar, Float[Array, " dim"]]:
        """Return how far the coordinate is from its bound, and the derivative."""
        found = self.coordinate.of(*(pose_of(g, body) for body in self.bodies))
        value = found.value
        if self.coordinate.is_angle:
            # Angles are told between -pi and pi; those here between a half turn from the middle.
            off = value - self.middle
            off = jnp.where(off > math.pi, off - 2 * math.pi, off)
            value = self.middle + jnp.where(off < -math.pi, off + 2 * math.pi, off)
        blocks = add_blocks(self.bodies, (found.first[None], found.second[None]))
        return self.sign * (value - self.bound), self.sign * spread(blocks, n)[0]


def read_limits(limits: Mapping[str, Limits]) -> dict[str, Stops]:
    """Return the limits that a file describes, at which nothing bounces."""
    return {k: Stops(x.lower, x.upper, jnp.zeros(())) for k, x in limits.items() if x.bounded}


def stops_of(joint: Connection, coordinate: Coordinate, limits: Stops) -> list[JointStop]:
    """Return the stops at both ends of a joint."""
    first, second = joint.bodies[:2]
    low, high = limits.lower, limits.upper
    middle = 0.0
    if coordinate.is_angle:
        if low is None or high is None or not high - low <= 2 * math.pi - _LESS:
            raise BadInput(
                f"the limits of the joint {joint.name!r}, {quote((low, high))} rad, cannot act: a "
                "state holds no turns, so that an angle needs two limits less than a turn apart."
            )
        middle = math.remainder((low + high) / 2, 2 * math.pi)
        shift = (low + high) / 2 - middle
        low, high = low - shift, high - shift
    return [
        JointStop(
            coordinate,
            finite64("limits", bound),
            finite64("limits", middle),
            limits.restitution,
            sign,
            (first, second),
            joint.name,
        )
        for bound, sign in ((low, 1), (high, -1))
        if bound is not None
    ]


class JointLimits(AbstractContacts):
    """The limits of joints, where they stop. `Mechanism.system` makes them.

    **Attributes:** `stops`: the limits; `n`: how many bodies the mechanism has.
    """

    stops: tuple[JointStop, ...]
    friction: Gaps
    restitution: Gaps
    names: tuple[str, ...] = eqx.field(static=True)
    n: int = eqx.field(static=True)

    def __init__(self, stops: Sequence[JointStop], n: int):
        self.stops, self.n = tuple(stops), n
        self.friction = jnp.zeros(len(self.stops))
        self.restitution = jnp.stack([stop.restitution for stop in self.stops])
        self.names = tuple(f"{stop.side} limit of {stop.joint}" for stop in self.stops)

    def on(self, system: AbstractGroupSystem) -> "JointLimits":
        return self

    def gaps(self, g: Element) -> Gaps:
        return jnp.stack([stop.gap_and_row(g, self.n)[0] for stop in self.stops])

    def look(self, g: Element, along: Frames | None = None, held: bool = False) -> Touch:
        gaps, rows = zip(*(stop.gap_and_row(g, self.n) for stop in self.stops), strict=True)
        normal = jnp.stack(rows)[:, None]
        # Nothing slips at a limit: there are no tangents in space, and their rows are zero.
        across = jnp.zeros((len(rows), 2, normal.shape[2]))
        frames = jnp.broadcast_to(jnp.eye(3), (len(rows), 3, 3))
        return Touch(jnp.stack(gaps), frames, jnp.concatenate([normal, across], axis=1))

    def overlap(self, candidate: int, depth: float) -> str:
        stop = self.stops[candidate]
        unit = "rad" if stop.coordinate.is_angle else "m"
        return (
            f"the joint {stop.joint!r} is {depth:.3g} {unit} beyond its {stop.side} limit of "
            f"{float(host_float64('limits', stop.bound)):.6g} {unit} in this state: start within "
            "its limits."
        )
