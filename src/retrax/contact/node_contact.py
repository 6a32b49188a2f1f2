"""What nodes that fly freely within a step may touch: each other, and what stands in space."""

import abc
import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import equinox as eqx
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, Bool, Float, Int, PyTree

from retrax.contact.capsules import Numbers, Points
from retrax.contact.rows import Places
from retrax.contact.shapes import AbstractSurface, Ball, Capsule, Plane, content_of
from retrax.errors import BadInput
from retrax.mechanics.contact import AbstractTouching
from retrax.numerics.checks import ArrayLike, finite64, quote
from retrax.numerics.known import require_each

Whole = Int[Array, ""]
Pairs = Int[Array, " pairs"]


class Met(NamedTuple):
    """Gaps, normals, weights and arms of spots."""

    gap: Numbers
    normal: Points
    weights: Float[Array, "m k"]
    arms: Float[Array, "m k"]


class Closest(NamedTuple):
    """How far apart those are that are near.

    **Attributes:** `gap`: infinite for unused entries of the lists; `first`, `second`: as the
    `sides` of spots.
    """

    gap: Numbers
    first: Int[Array, " m"]
    second: Int[Array, " m"]


class Looking(NamedTuple):
    """How to find who is near whom.

    **Attributes:** `centres`, `size`: things whose centres are farther apart than `size` are not
    near; `near(i, j)`: whether `i` and `j > i` are; `others`, `near_other(i, k)`: the same of so
    many things that stand in space and are listed too.
    """

    centres: Places
    size: Float[Array, ""]
    near: Callable[[Whole, Whole], Bool[Array, ""]]
    others: int = 0
    near_other: Callable[[Whole, Whole], Bool[Array, ""]] | None = None


class AbstractSpots(abc.ABC):
    """All places where nodes may touch, as arrays.

    **Attributes:** `nodes`: those that a spot joins; `lasting`: whether a spot is the same pair of
    surfaces in every step. Then its gap tells whether it meets in a step or touched before; points
    that wander along a chain of nodes are new where they go.
    """

    lasting: bool

    @property
    @abc.abstractmethod
    def nodes(self) -> Int[Array, "m k"]: ...

    @abc.abstractmethod
    def nearest(self, places: Places) -> PyTree:
        """Return where the points of spots lie that are closest with nodes at `places`."""

    @abc.abstractmethod
    def measure_gaps(self, places: Places, near: PyTree) -> Met:
        """Return gaps, normals, weights and arms of spots with their points where `near` says."""

    @abc.abstractmethod
    def start_points(self, here: PyTree, near: PyTree) -> PyTree:
        """Return where impulses act at the start of a step whose end has its points at `near`.

        `here` are the points that are closest at its start.
        """

    @abc.abstractmethod
    def where(self, near: PyTree) -> Float[Array, "m 2"]:
        """Return numbers that tell where points lie."""

    @abc.abstractmethod
    def points(self, where: Float[Array, "m 2"], touch: Bool[Array, " m"]) -> PyTree:
        """Return the points that such numbers tell, of the spots that touch."""

    @property
    @abc.abstractmethod
    def sides(self) -> tuple[Int[Array, " m"], Int[Array, " m"]]:
        """Who touches at each spot: numbers of nodes, or -1, -2, ... for what stands in space."""

    @abc.abstractmethod
    def closest(self, places: Places) -> "Closest":
        """Return how far apart all are that are near."""

    @abc.abstractmethod
    def renew(
        self,
        places: Places,
        near: PyTree,
        push: Numbers,
        deep: Float[Array, ""],
        early: Bool[Array, ""],
    ) -> tuple[Bool[Array, ""], PyTree] | None:
        """Return whether points other than those of `near` overlap by more than `deep`, and others.

        `None` where points have no others.
        """


class AbstractNodeContact(AbstractTouching):
    """Contact of nodes.

    **Attributes:** `friction`, `restitution`: of all contacts; `skin`: who is nearer than this is
    looked at in every step; `against`: what stands in space; `strands`: how many nodes each thing
    has that moves; `kinds`: spots of a listed pair; `extent`: the largest radius; `spread`: spots
    this many nodes apart are one contact.
    """

    friction: eqx.AbstractVar[Float[Array, ""]]
    restitution: eqx.AbstractVar[Float[Array, ""]]
    skin: eqx.AbstractVar[Float[Array, ""]]
    against: eqx.AbstractVar[tuple[AbstractSurface, ...]]
    strands: eqx.AbstractVar[tuple[int, ...]]
    kinds: eqx.AbstractClassVar[int]
    spread: eqx.AbstractClassVar[int]

    @property
    @abc.abstractmethod
    def extent(self) -> Float[Array, ""]: ...

    @property
    @abc.abstractmethod
    def listed(self) -> bool:
        """Whether anybody is listed as near."""

    @abc.abstractmethod
    def room(self, nodes: int) -> int:
        """Return the number of pairs that a system of `nodes` nodes has room for."""

    def length(self, nodes: int) -> int:
        """Return how long lists of pairs are: as there is room for, or longer."""
        return self.room(nodes)

    @abc.abstractmethod
    def slots(self, nodes: int) -> int:
        """Return how many contacts there may be at most."""

    @abc.abstractmethod
    def looking(self, places: Places, skin: Float[Array, ""]) -> Looking:
        """Return how to find all whose surfaces are nearer than a skin."""

    @abc.abstractmethod
    def spots(self, first: Pairs, second: Pairs, used: Bool[Array, " pairs"]) -> AbstractSpots:
        """Return the spots of listed pairs, of which those count that are `used`."""

    @abc.abstractmethod
    def contact_name(self, first: int, second: int) -> str:
        """Return the name of a contact from the numbers of its record."""

    @property
    @abc.abstractmethod
    def things(self) -> tuple[str, ...]:
        """What these are called."""

    @abc.abstractmethod
    def part(self, node: int) -> str:
        """Return what is called that touches at a node."""

    @property
    @abc.abstractmethod
    def listed_things(self) -> tuple[str, str]:
        """What sentences call listed pairs, and who takes a capacity."""


def standing(given: object, who: str) -> tuple[AbstractSurface, ...]:
    """Return planes, balls and posts that stand in space, which `who` may touch."""
    shapes = [given] if isinstance(given, AbstractSurface) else given
    if not isinstance(shapes, Sequence) or isinstance(shapes, str):
        raise BadInput(f"against = {quote(given)} must be a list of shapes such as rx.Plane().")
    found = tuple(_standing(shape, who) for shape in shapes)
    contents = [content_of(shape) for shape in found]
    for k, shape in enumerate(found):
        if contents[k] in contents[:k]:
            raise BadInput(f"against has the {shape.name} twice: once is enough.")
    return found


def _standing(shape: object, who: str) -> AbstractSurface:
    if not isinstance(shape, Plane | Ball | Capsule):
        raise BadInput(
            f"against has {quote(shape)}, but {who} touch planes, balls and capsules: rx.Plane, "
            "rx.Ball, rx.Capsule."
        )
    if shape.body is not None:
        raise BadInput(
            f"against has the {shape.name} on the body {shape.body!r}, but what {who} touch "
            "stands in space: leave body out."
        )
    return shape


def between(name: str, given: ArrayLike, low: float, high: float) -> Float[Array, ""]:
    """Return a number within bounds."""
    value = finite64(name, given, ())

    def check(number: np.ndarray) -> None:
        if not low <= float(number) <= high:
            top = "" if high == math.inf else f" and at most {high:g}"
            raise BadInput(f"{name} = {float(number):g} must be at least {low:g}{top}.")

    if _is_differentiated(value):
        raise BadInput(
            f"{name} of rods and of many balls has no derivatives: the sweeps that solve their "
            "contacts are not differentiated. Use jax.vmap over several values, or rx.Contacts."
        )
    require_each(check, value)
    return value


def _is_differentiated(x: object) -> bool:
    """Tell whether `jax.grad`, `jax.jvp` or the like look at a number."""
    while isinstance(x, Tracer):
        if hasattr(x, "primal"):
            return True
        x = getattr(x, "val", None)
    return False
