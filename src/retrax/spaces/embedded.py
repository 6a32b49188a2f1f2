"""Spheres and groups side by side, as mechanics sees them: unit vectors among plain coordinates."""

from typing import ClassVar

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Key, PyTree

from retrax.errors import BadInput
from retrax.groups.base import AbstractLieGroup, Coordinates
from retrax.groups.product import Product
from retrax.groups.translation import Translation
from retrax.spaces.base import AbstractHomogeneousSpace, Point, Tangent
from retrax.spaces.group_itself import GroupItself
from retrax.spaces.sphere import Sphere

Factor = Sphere | AbstractLieGroup


class Embedded(AbstractHomogeneousSpace):
    r"""A product of spheres and groups, $x \in S^{n-1}$ taken as a point of $\mathbb R^n$.

    The group is that of the surroundings: it has $\mathbb R^n$ in place of each sphere, and moves a
    unit vector by adding to it. `move` goes back to the sphere the shortest way.

    **Arguments:** `factors`: spheres and groups, at least one of them a sphere. Points are tuples
    with a part for each, or the part itself where there is one.
    """

    factors: tuple[Factor, ...]
    side: ClassVar[int] = -1

    def __init__(self, *factors: Factor):
        if not any(isinstance(factor, Sphere) for factor in factors):
            raise BadInput("Embedded has no sphere: take the group itself, or Product(...).")
        self.factors = factors

    def __repr__(self) -> str:
        return f"Embedded({', '.join(map(repr, self.factors))})"

    @property
    def group(self) -> AbstractLieGroup:
        parts = [Translation(f.n) if isinstance(f, Sphere) else f for f in self.factors]
        return parts[0] if len(parts) == 1 else Product(*parts)

    @property
    def name(self) -> str:
        return " x ".join(factor.name for factor in self.factors)

    @property
    def dimension(self) -> int:
        return sum(f.dimension if isinstance(f, Sphere) else f.dim for f in self.factors)

    def split(self, points: PyTree) -> tuple[PyTree, ...]:
        """Return the parts of a point or of many, one for each factor."""
        return (points,) if len(self.factors) == 1 else points

    def join(self, parts: list[Point]) -> Point:
        """Return the point with these parts."""
        return parts[0] if len(parts) == 1 else tuple(parts)

    def spheres(self, y: Point) -> list[Float[Array, " n"]]:
        """Return the parts of a point that are unit vectors."""
        pairs = zip(self.factors, self.split(y), strict=True)
        return [part for factor, part in pairs if isinstance(factor, Sphere)]

    def columns(self) -> list[slice]:
        """Return the places of each sphere's velocities among the coordinates of the group."""
        found, at = [], 0
        for factor in self.factors:
            size = factor.n if isinstance(factor, Sphere) else factor.dim
            if isinstance(factor, Sphere):
                found.append(slice(at, at + size))
            at += size
        return found

    def move(self, y: Point, u: Coordinates) -> Point:
        return self.project(GroupItself(self.group).move(y, u))

    def defect(self, y: Point) -> Float[Array, ""]:
        parts = zip(self.factors, self.split(y), strict=True)
        return jnp.max(jnp.stack([factor.defect(part) for factor, part in parts]))

    def project(self, y: Point) -> Point:
        parts = zip(self.factors, self.split(y), strict=True)
        return self.join([factor.project(part) for factor, part in parts])

    def random(self, key: Key[Array, ""]) -> Point:
        keys = jax.random.split(key, len(self.factors))
        parts = zip(self.factors, keys, strict=True)
        return self.join([factor.random(own) for factor, own in parts])

    def check(self, name: str, y: PyTree) -> None:
        """Raise `BadInput` unless every part of `y` is a point of its factor."""
        self.group.check(name, y)
        for k, (factor, part) in enumerate(zip(self.factors, self.split(y), strict=True)):
            if isinstance(factor, Sphere):
                factor.check(name if len(self.factors) == 1 else f"{name}[{k}]", part)

    def lift(self, y: Point, v: Tangent) -> Coordinates:
        return GroupItself(self.group).lift(y, v)
