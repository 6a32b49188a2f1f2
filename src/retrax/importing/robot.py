"""A machine as a file describes it: links, what lies between them, and what acts on it."""

from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np

from retrax.importing.placement import HERE, Placement, Vector
from retrax.importing.solid import Solid
from retrax.mechanics.shape import Shape
from retrax.mechanisms.frames import Limits

FreedomKind = Literal["hinge", "slide", "ball", "planar", "free"]


class Link(NamedTuple):
    """A frame that moves as one.

    **Attributes:** `name`; `solid`: what it weighs, or `None`; `shapes`: how it looks, in its
    frame.
    """

    name: str
    solid: Solid | None = None
    shapes: tuple[Shape, ...] = ()


class Freedom(NamedTuple):
    """One way in which a child can move against its parent.

    **Attributes:** `kind`; `name`; `at`, `axis`: a point and the direction, in the frame of the
    child, later in space axes; `damping`, `stiffness`: of a damper and a spring along it; `rest`:
    where the spring is slack; `armature`: the inertia that its motor adds to this motion alone.
    """

    kind: FreedomKind
    name: str
    at: Vector
    axis: Vector
    damping: float = 0.0
    stiffness: float = 0.0
    rest: float = 0.0
    armature: float = 0.0

    def transform(self, place: Placement) -> "Freedom":
        """Return it in the frame in which the child's frame is at `place`."""
        return self._replace(at=place.point(self.at), axis=place.R @ self.axis)


class Edge(NamedTuple):
    """What lies between two links.

    **Attributes:** `parent`, `child`: names of links; `origin`: where the frame of the child stands
    in that of the parent as drawn; `freedoms`: in order from the parent on; empty for a weld.
    """

    parent: str
    child: str
    origin: Placement
    freedoms: tuple[Freedom, ...]


class Coupling(NamedTuple):
    r"""One joint follows another, $q = \sum_kc_kq_\text{leader}^k$."""

    follower: str
    leader: str
    coefficients: tuple[float, ...]


class Drive(NamedTuple):
    """A motor on a joint, and the torques or forces at the joint between which it stays."""

    name: str
    joint: str
    limit: tuple[float, float] | None = None


class Robot(NamedTuple):
    """Everything that was read.

    **Attributes:** `name`: of the file, for sentences; `links` by their names; `edges`: a tree;
    `loops`: what closes loops, with the frame of the child where it stands in that of the parent
    when the loop is closed; `couplings`; `drives`; `limits` by the names of joints; `unread`: what
    was not understood, and what was done about it; `doubtful`: what acts though it can hardly be
    meant so.
    """

    name: str
    links: dict[str, Link]
    edges: list[Edge]
    loops: list[Edge]
    couplings: list[Coupling]
    drives: list[Drive]
    limits: dict[str, Limits]
    unread: list[str]
    doubtful: Sequence[str] = ()


def freedom(
    kind: FreedomKind,
    name: str,
    axis: Vector | None = None,
    at: Vector | None = None,
    damping: float = 0.0,
) -> Freedom:
    """Return a freedom through the origin of its child."""
    zero = HERE.x
    return Freedom(
        kind, name, zero if at is None else at, np.eye(3)[2] if axis is None else axis, damping
    )
