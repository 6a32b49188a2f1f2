"""The unit sphere."""

from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Key

from retrax.errors import BadInput
from retrax.groups.base import AbstractLieGroup, Coordinates
from retrax.groups.nearest import require_projected
from retrax.numerics.series import cosc, sinc
from retrax.numerics.small_matrices import cross
from retrax.spaces.base import AbstractHomogeneousSpace, require_size, rotations

Vector = Float[Array, " n"]


class Sphere(AbstractHomogeneousSpace):
    r"""Unit vectors of $\mathbb R^n$, the sphere $S^{n-1}$, turned by $SO(n)$.

    $$
    \begin{aligned}
    y &\mapsto \exp(\hat u)\,y, \qquad \dot y = \hat\xi y                          &&\text{(1)}\\
    \hat\xi &= v y^T - y v^T \quad\text{for a tangent vector } v\perp y            &&\text{(2)}
    \end{aligned}
    $$

    For $n = 3$ generators are vectors of $\mathbb R^3$, $\dot y = \xi\times y$ and
    $\xi = y\times v$ in (2). Every move also takes out the error of length left by earlier ones.

    **Arguments:** `n`: the number of components, at least 2: `Sphere(3)` is the ordinary sphere.

    References: [MuntheKaas1999].
    """

    n: int = eqx.field(static=True)
    side: ClassVar[int] = 1

    def __init__(self, n: int = 3):
        (self.n,) = require_size("Sphere", n=n)
        if self.n < 2:
            raise BadInput("Sphere(n=1) is two points; n must be at least 2.")

    def __repr__(self) -> str:
        return f"Sphere({self.n})"

    @property
    def group(self) -> AbstractLieGroup:
        return rotations(self.n)

    @property
    def name(self) -> str:
        return f"S^{self.n - 1}"

    @property
    def dimension(self) -> int:
        return self.n - 1

    def move(self, y: Vector, u: Coordinates) -> Vector:
        shortened = (y @ y - 1) / 2 * y
        if self.n == 3:
            t2, turned = u @ u, cross(u, y)
            return y + (sinc(t2) * turned + cosc(t2) * cross(u, turned) - shortened)  # (1)
        return y + (self.group.expm1_in_chart(u) @ y - shortened)  # (1)

    def defect(self, y: Vector) -> Float[Array, ""]:
        return jnp.abs(jnp.sqrt(y @ y) - 1)

    def project(self, y: Vector) -> Vector:
        near = y / jnp.sqrt(y @ y)
        require_projected(self.name, near)
        return near

    def random(self, key: Key[Array, ""]) -> Vector:
        return self.project(jax.random.normal(key, (self.n,)))

    def lift(self, y: Vector, v: Vector) -> Coordinates:
        if self.n == 3:
            return cross(y, v)  # (2)
        return self.group.vee(jnp.outer(v, y) - jnp.outer(y, v))  # (2)
