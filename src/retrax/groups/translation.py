"""Translations of R^n."""

from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Key

from retrax.groups.base import AbstractLieGroup, HostElement
from retrax.numerics.checks import MOST_NODES, require_whole

Vector = Float[Array, " n"]


class Translation(AbstractLieGroup):
    r"""The vector space $\mathbb R^n$ under addition, stored as `(n,)` arrays.

    It is its own algebra, exp and cay are the identity map, Ad is 1 and ad is 0.

    **Arguments:**

    - `n`: the dimension, at least 1.

    References: [MarsdenRatiu1999].
    """

    n: int = eqx.field(static=True)
    has_cayley: ClassVar[bool] = True

    def __init__(self, n: int):
        self.n = require_whole("Translation: n", n, 1, MOST_NODES)

    def __repr__(self) -> str:
        return f"Translation({self.n})"

    @property
    def dim(self) -> int:
        return self.n

    @property
    def name(self) -> str:
        return "R" if self.n == 1 else f"R^{self.n}"

    def identity(self) -> Vector:
        return jnp.zeros(self.n)

    def compose(self, g: Vector, k: Vector) -> Vector:
        return g + k

    def inverse(self, g: Vector) -> Vector:
        return -g

    def hat(self, xi: Vector) -> Vector:
        return xi

    def vee(self, x: Vector) -> Vector:
        return x

    def expm1(self, xi: Vector) -> Vector:
        return xi

    def log(self, g: Vector) -> Vector:
        return g

    def advance(self, g: Vector, delta: Vector) -> Vector:
        return g + delta

    def tangent(self, g: Vector, xi: Vector) -> Vector:
        return xi

    def Ad(self, g: Vector, xi: Vector | None = None) -> Float[Array, "n n"] | Vector:
        return jnp.eye(self.n) if xi is None else xi

    def ad(self, xi: Vector, eta: Vector | None = None) -> Float[Array, "n n"] | Vector:
        return jnp.zeros((self.n, self.n)) if eta is None else jnp.zeros_like(eta)

    def coad(self, xi: Vector, mu: Vector | None = None) -> Float[Array, "n n"] | Vector:
        return self.ad(xi, mu)

    def dexp(self, xi: Vector, eta: Vector) -> Vector:
        return eta

    def dexp_inv(self, xi: Vector, eta: Vector) -> Vector:
        return eta

    def caym1(self, xi: Vector) -> Vector:
        return xi

    def cay_inv(self, g: Vector) -> Vector:
        return g

    def dcay(self, xi: Vector, eta: Vector) -> Vector:
        return eta

    def dcay_inv(self, xi: Vector, eta: Vector) -> Vector:
        return eta

    def defect(self, g: Vector) -> Float[Array, ""]:
        return jnp.zeros(())

    def check_membership(self, name: str, g: HostElement) -> None:
        """Accept `g`: every vector is an element."""

    def project(self, g: Vector) -> Vector:
        return g

    def random(self, key: Key[Array, ""]) -> Vector:
        return jax.random.normal(key, (self.n,))
