"""The torus: several phases."""

from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Key

from retrax.groups.base import Coordinates
from retrax.groups.nearest import require_projected
from retrax.groups.translation import Translation
from retrax.numerics.checks import ArrayLike
from retrax.spaces.base import AbstractHomogeneousSpace, require_size

Phases = Float[Array, "n 2"]


class Torus(AbstractHomogeneousSpace):
    r"""$n$ points $z_k = (\cos\theta_k, \sin\theta_k)$ on circles, $T^n$, turned by $\mathbb R^n$.

    $$
    \begin{aligned}
    z_k &\mapsto e^{iu_k}z_k, \qquad \dot\theta_k = \xi_k                          &&\text{(1)}\\
    \xi_k &= z_k\times v_k \quad\text{for a tangent vector } v                     &&\text{(2)}
    \end{aligned}
    $$

    The group is commutative: a method is its own plain version on the increments of the angles, and
    nothing is ever wrapped around.

    **Arguments:** `n`: the number of phases.

    References: [IserlesMuntheKaasNorsettZanna2000].
    """

    n: int = eqx.field(static=True)
    side: ClassVar[int] = 1

    def __init__(self, n: int):
        (self.n,) = require_size("Torus", n=n)

    def __repr__(self) -> str:
        return f"Torus({self.n})"

    @property
    def group(self) -> Translation:
        return Translation(self.n)

    @property
    def name(self) -> str:
        return f"T^{self.n}"

    @property
    def dimension(self) -> int:
        return self.n

    def at_angles(self, theta: ArrayLike) -> Phases:
        r"""Return the point with the angles $\theta_k$."""
        theta = jnp.asarray(theta)
        return jnp.stack([jnp.cos(theta), jnp.sin(theta)], axis=-1)

    def angles(self, y: ArrayLike) -> Float[Array, "*time n"]:
        r"""Return the angles $\theta_k$ of one or many points, from $-\pi$ to $\pi$."""
        return jnp.arctan2(jnp.asarray(y)[..., 1], jnp.asarray(y)[..., 0])

    def move(self, y: Phases, u: Coordinates) -> Phases:
        half = jnp.sin(u / 2)
        c, s = -2 * half * half, jnp.sin(u)  # cos u - 1 and sin u
        x, z = y[:, 0], y[:, 1]
        longer = (x * x + z * z - 1) / 2
        moved_x, moved_z = (c - longer) * x - s * z, s * x + (c - longer) * z  # (1)
        return jnp.stack([x + moved_x, z + moved_z], axis=1)

    def defect(self, y: Phases) -> Float[Array, ""]:
        return jnp.max(jnp.abs(jnp.sqrt(jnp.sum(y * y, axis=1)) - 1))

    def project(self, y: Phases) -> Phases:
        near = y / jnp.sqrt(jnp.sum(y * y, axis=1, keepdims=True))
        require_projected(self.name, near)
        return near

    def random(self, key: Key[Array, ""]) -> Phases:
        return self.at_angles(jax.random.uniform(key, (self.n,), maxval=2 * jnp.pi))

    def lift(self, y: Phases, v: Phases) -> Coordinates:
        return y[:, 0] * v[:, 1] - y[:, 1] * v[:, 0]  # (2)
