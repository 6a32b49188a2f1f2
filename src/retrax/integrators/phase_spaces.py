"""Phase spaces and the groups that move them: from the left, by rigid motions, by addition."""

from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from retrax.groups.base import AbstractLieGroup, Coordinates, Element
from retrax.groups.product import Product
from retrax.groups.se3 import SE3
from retrax.groups.so3 import SO3, Rotation, Vector
from retrax.groups.translation import Translation
from retrax.numerics.small_matrices import cross
from retrax.spaces.base import AbstractSpace, Point

_SO3 = SO3()


class SpatialPhase(AbstractSpace):
    r"""Phase space seen from space: $(g, \pi) \mapsto (\exp(u)\,g,\ \pi + v)$.

    What a symmetry of space conserves is linear in $\pi = \mathrm{Ad}^*_{g^{-1}}\mu$, and linear
    functions are conserved by every collocation method.
    """

    base: AbstractLieGroup
    side: ClassVar[int] = 1

    def __init__(self, base: AbstractLieGroup):
        self.base = base

    @property
    def group(self) -> Product:
        return Product(self.base, Translation(self.base.dim))

    @property
    def name(self) -> str:
        return f"T*{self.base.name}"

    def move(
        self, y: tuple[Element, Coordinates], u: Float[Array, " twice_dim"]
    ) -> tuple[Element, Coordinates]:
        (g, pi), n = y, self.base.dim
        seen_from_body = self.base.Ad(self.base.inverse(g), u[:n])
        return self.base.advance(g, self.base.expm1(seen_from_body)), pi + u[n:]

    def defect(self, y: tuple[Element, Coordinates]) -> Float[Array, ""]:
        return self.base.defect(y[0])


class HeavyPhase(AbstractSpace):
    r"""$(R, \mu)$, on which rigid motions act: $(Q, b)$ takes it to $(RQ,\ Q^T(\mu + b\times
    R^Te_3))$.

    These are the coadjoint orbits of $SE(3)$ with the attitude beside them: $e_3\cdot R\mu$ is the
    same before and after, whatever $Q$ and $b$.
    """

    group: ClassVar[SE3] = SE3()
    side: ClassVar[int] = -1
    name: ClassVar[str] = "T*SO(3)"

    def move(self, y: tuple[Rotation, Vector], u: Coordinates) -> tuple[Rotation, Vector]:
        R, mu = y
        turn, b = self.group.expm1(u)
        push = cross(b, R[2])
        return _SO3.advance(R, turn), mu + (push + turn.T @ (mu + push))

    def defect(self, y: tuple[Rotation, Vector]) -> Float[Array, ""]:
        return _SO3.defect(y[0])


class Embedded(AbstractSpace):
    """Matrices and momenta as mere numbers, to which the increments are added."""

    dim: int = eqx.field(static=True)
    side: ClassVar[int] = -1

    def __init__(self, dim: int):
        self.dim = dim

    @property
    def group(self) -> Translation:
        return Translation(self.dim)

    @property
    def name(self) -> str:
        return self.group.name

    def move(self, y: Point, u: Coordinates) -> Point:
        leaves, tree = jax.tree.flatten(y)
        moved, place = [], 0
        for leaf in leaves:
            moved.append(leaf + u[place : place + leaf.size].reshape(leaf.shape))
            place += leaf.size
        return jax.tree.unflatten(tree, moved)

    def defect(self, y: Point) -> Float[Array, ""]:
        return jnp.zeros(())
