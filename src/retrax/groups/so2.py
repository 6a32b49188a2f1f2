"""Rotations of the plane."""

from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key

from retrax.errors import BadInput
from retrax.groups.base import ALLOWED_DEFECT, AbstractLieGroup
from retrax.groups.nearest import nearest_rotation

Rotation = Float[Array, "2 2"]
Rate = Float[Array, "1"]


class SO2(AbstractLieGroup):
    r"""Rotations of the plane by an angle, stored as `(2, 2)` arrays; `xi` has shape `(1,)`.

    The group is abelian: Ad and dexp are 1. The Cayley map turns by $2\arctan(\xi/2)$, so
    $\mathrm{dcay}_\xi = 4/(4+\xi^2)$, and covers angles below $\pi$.

    References: [MarsdenRatiu1999], [KobilarovMarsden2011].
    """

    dim: ClassVar[int] = 1
    name: ClassVar[str] = "SO(2)"
    has_cayley: ClassVar[bool] = True

    def identity(self) -> Rotation:
        return jnp.eye(2)

    def compose(self, g: Rotation, k: Rotation) -> Rotation:
        return g @ k

    def inverse(self, g: Rotation) -> Rotation:
        return g.T

    def hat(self, xi: Rate) -> Rotation:
        return _matrix(jnp.zeros_like(xi[0]), xi[0])

    def vee(self, x: Rotation) -> Rate:
        return x[1:, 0]

    def expm1(self, xi: Rate) -> Rotation:
        half = jnp.sin(xi[0] / 2)
        return _matrix(-2 * half * half, jnp.sin(xi[0]))

    def angle_squared(self, xi: Rate) -> Float[Array, ""]:
        return xi @ xi

    def log(self, g: Rotation) -> Rate:
        return jnp.arctan2(g[1:, 0] - g[0, 1:], g[1:, 1] + g[0, :1])

    def advance(self, g: Rotation, delta: Rotation) -> Rotation:
        half = (g.T @ g - jnp.eye(2)) / 2
        return g + g @ (delta - half - half @ delta)  # g (1 - half)(1 + delta)

    def tangent(self, g: Rotation, xi: Rate) -> Rotation:
        return g @ self.hat(xi)

    def Ad(self, g: Rotation, xi: Rate | None = None) -> Float[Array, "1 1"] | Rate:
        return jnp.eye(1) if xi is None else xi

    def ad(self, xi: Rate, eta: Rate | None = None) -> Float[Array, "1 1"] | Rate:
        return jnp.zeros((1, 1)) if eta is None else jnp.zeros_like(eta)

    def coad(self, xi: Rate, mu: Rate | None = None) -> Float[Array, "1 1"] | Rate:
        return self.ad(xi, mu)

    def dexp(self, xi: Rate, eta: Rate) -> Rate:
        return eta

    def dexp_inv(self, xi: Rate, eta: Rate) -> Rate:
        return eta

    def caym1(self, xi: Rate) -> Rotation:
        scale = 4 / (4 + xi[0] * xi[0])
        return _matrix(-scale * xi[0] * xi[0] / 2, scale * xi[0])

    def cay_inv(self, g: Rotation) -> Rate:
        return 2 * (g[1:, 0] - g[0, 1:]) / (2 + g[1:, 1] + g[0, :1])

    def dcay(self, xi: Rate, eta: Rate) -> Rate:
        return 4 / (4 + xi * xi) * eta

    def dcay_inv(self, xi: Rate, eta: Rate) -> Rate:
        return (1 + xi * xi / 4) * eta

    def defect(self, g: Rotation) -> Float[Array, ""]:
        skew = jnp.max(jnp.abs(g.T @ g - jnp.eye(2)))
        return jnp.maximum(skew, jnp.abs(_determinant(g) - 1))

    def project(self, g: Rotation) -> Rotation:
        """Return the nearest rotation. Reject a matrix with several equally near."""
        return nearest_rotation(g, 2)

    def fill_in(self, g: Rotation) -> Rotation:
        return _matrix(g[1, 1], g[1, 0])

    def angles(self) -> np.ndarray:
        return np.ones(self.dim, bool)

    def random(self, key: Key[Array, ""]) -> Rotation:
        return self.exp(jax.random.uniform(key, (1,), minval=-jnp.pi, maxval=jnp.pi))

    def check_membership(self, name: str, g: Float[np.ndarray, "2 2"]) -> None:
        skew = float(np.abs(g.T @ g - np.eye(2)).max())
        if not skew <= ALLOWED_DEFECT:
            raise BadInput(
                f"{name} is not a rotation: max |R^T R - 1| = {skew:.2g}, allowed "
                f"{ALLOWED_DEFECT:.0e}; make it one with SO2().project({name})."
            )
        if np.linalg.det(g) < 0:
            raise BadInput(f"{name} is a reflection (det = -1), not a rotation.")


def _matrix(c: Float[Array, ""], s: Float[Array, ""]) -> Rotation:
    """Return c + s J, with J the quarter turn."""
    return jnp.stack([c, -s, s, c]).reshape(2, 2)


def _determinant(g: Rotation) -> Float[Array, ""]:
    return g[0, 0] * g[1, 1] - g[0, 1] * g[1, 0]
