"""Products of different groups."""

from collections.abc import Callable, Iterable
from itertools import accumulate
from typing import TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key, PyTree

from retrax.errors import BadInput
from retrax.groups.base import AbstractLieGroup, Coordinates, Element, HostElement, Matrix
from retrax.numerics.checks import require_instance

T = TypeVar("T")


class Product(AbstractLieGroup):
    r"""The product $G_1 \times \dots \times G_m$, every operation factor by factor.

    Elements are tuples of elements of the factors, coordinates are concatenated.

    **Arguments:**

    - `groups`: the factors, one or more.

    References: [MarsdenRatiu1999].
    """

    groups: tuple[AbstractLieGroup, ...]

    def __init__(self, *groups: AbstractLieGroup):
        self.groups = groups

    def __check_init__(self):
        if not self.groups:
            raise BadInput("Product() has no factors: give it at least one group.")
        for i, group in enumerate(self.groups):
            require_instance(f"factor {i}", group, AbstractLieGroup, "a Lie group")

    def __repr__(self) -> str:
        return f"Product({', '.join(map(repr, self.groups))})"

    @property
    def dim(self) -> int:
        return sum(group.dim for group in self.groups)

    @property
    def name(self) -> str:
        return " x ".join(group.name for group in self.groups)

    @property
    def has_cayley(self) -> bool:
        return all(group.has_cayley for group in self.groups)

    def split(self, xi: Coordinates) -> list[Float[Array, " factor_dim"]]:
        """Return the coordinates that belong to each factor."""
        ends = list(accumulate(group.dim for group in self.groups))
        return [xi[end - group.dim : end] for end, group in zip(ends, self.groups, strict=True)]

    def _each(self, method: Callable[..., T], *arguments: Iterable[PyTree]) -> tuple[T, ...]:
        """Call `method(factor, ...)` for every factor; each argument has a part for each."""
        return tuple(method(*parts) for parts in zip(self.groups, *arguments, strict=True))

    def _flat(
        self, method: Callable[..., Coordinates], *arguments: Iterable[PyTree]
    ) -> Coordinates:
        return jnp.concatenate(self._each(method, *arguments))

    def identity(self) -> Element:
        return self._each(lambda G: G.identity())

    def compose(self, g: Element, k: Element) -> Element:
        return self._each(lambda G, g, k: G.compose(g, k), g, k)

    def inverse(self, g: Element) -> Element:
        return self._each(lambda G, g: G.inverse(g), g)

    def hat(self, xi: Coordinates) -> PyTree:
        return self._each(lambda G, xi: G.hat(xi), self.split(xi))

    def vee(self, x: PyTree) -> Coordinates:
        return self._flat(lambda G, x: G.vee(x), x)

    def expm1(self, xi: Coordinates) -> Element:
        return self._each(lambda G, xi: G.expm1(xi), self.split(xi))

    def angle_squared(self, xi: Coordinates) -> Float[Array, ""]:
        return jnp.max(jnp.stack(self._each(lambda G, xi: G.angle_squared(xi), self.split(xi))))

    def log(self, g: Element) -> Coordinates:
        return self._flat(lambda G, g: G.log(g), g)

    def advance(self, g: Element, delta: Element) -> Element:
        return self._each(lambda G, g, d: G.advance(g, d), g, delta)

    def tangent(self, g: Element, xi: Coordinates) -> Element:
        return self._each(lambda G, g, xi: G.tangent(g, xi), g, self.split(xi))

    def cotangent(self, g: Element, a: Element) -> Coordinates:
        return self._flat(lambda G, g, a: G.cotangent(g, a), g, a)

    def Ad(self, g: Element, xi: Coordinates | None = None) -> Matrix | Coordinates:
        if xi is None:
            return jax.scipy.linalg.block_diag(*self._each(lambda G, g: G.Ad(g), g))
        return self._flat(lambda G, g, xi: G.Ad(g, xi), g, self.split(xi))

    def coAd(self, g: Element, mu: Coordinates | None = None) -> Matrix | Coordinates:
        if mu is None:
            return self.Ad(g).T
        return self._flat(lambda G, g, mu: G.coAd(g, mu), g, self.split(mu))

    def coAdm1(self, delta: Element, mu: Coordinates) -> Coordinates:
        return self._flat(lambda G, d, mu: G.coAdm1(d, mu), delta, self.split(mu))

    def ad(self, xi: Coordinates, eta: Coordinates | None = None) -> Matrix | Coordinates:
        if eta is None:
            return jax.scipy.linalg.block_diag(*self._each(lambda G, xi: G.ad(xi), self.split(xi)))
        return self._pairs(lambda G, xi, eta: G.ad(xi, eta), xi, eta)

    def coad(self, xi: Coordinates, mu: Coordinates | None = None) -> Matrix | Coordinates:
        if mu is None:
            return self.ad(xi).T
        return self._pairs(lambda G, xi, mu: G.coad(xi, mu), xi, mu)

    def _pairs(
        self, method: Callable[..., Coordinates], xi: Coordinates, eta: Coordinates
    ) -> Coordinates:
        return self._flat(method, self.split(xi), self.split(eta))

    def dexp(self, xi: Coordinates, eta: Coordinates) -> Coordinates:
        return self._pairs(lambda G, xi, eta: G.dexp(xi, eta), xi, eta)

    def dexp_inv(self, xi: Coordinates, eta: Coordinates) -> Coordinates:
        return self._pairs(lambda G, xi, eta: G.dexp_inv(xi, eta), xi, eta)

    def dexp_dual(self, xi: Coordinates, mu: Coordinates) -> Coordinates:
        return self._pairs(lambda G, xi, mu: G.dexp_dual(xi, mu), xi, mu)

    def dexp_inv_dual(self, xi: Coordinates, mu: Coordinates) -> Coordinates:
        return self._pairs(lambda G, xi, mu: G.dexp_inv_dual(xi, mu), xi, mu)

    def caym1(self, xi: Coordinates) -> Element:
        return self._each(lambda G, xi: G.caym1(xi), self.split(xi))

    def cay_inv(self, g: Element) -> Coordinates:
        return self._flat(lambda G, g: G.cay_inv(g), g)

    def dcay(self, xi: Coordinates, eta: Coordinates) -> Coordinates:
        return self._pairs(lambda G, xi, eta: G.dcay(xi, eta), xi, eta)

    def dcay_inv(self, xi: Coordinates, eta: Coordinates) -> Coordinates:
        return self._pairs(lambda G, xi, eta: G.dcay_inv(xi, eta), xi, eta)

    def dcay_dual(self, xi: Coordinates, mu: Coordinates) -> Coordinates:
        return self._pairs(lambda G, xi, mu: G.dcay_dual(xi, mu), xi, mu)

    def dcay_inv_dual(self, xi: Coordinates, mu: Coordinates) -> Coordinates:
        return self._pairs(lambda G, xi, mu: G.dcay_inv_dual(xi, mu), xi, mu)

    def defect(self, g: Element) -> Float[Array, ""]:
        return jnp.max(jnp.stack(self._each(lambda G, g: G.defect(g), g)))

    def project(self, g: Element) -> Element:
        return self._each(lambda G, g: G.project(g), g)

    def fill_in(self, g: Element) -> Element:
        return self._each(lambda G, g: G.fill_in(g), g)

    def angles(self) -> np.ndarray:
        return np.concatenate([group.angles() for group in self.groups])

    def random(self, key: Key[Array, ""]) -> Element:
        return self._each(lambda G, k: G.random(k), jax.random.split(key, len(self.groups)))

    def check_membership(self, name: str, g: HostElement) -> None:
        for i, (group, part) in enumerate(zip(self.groups, g, strict=True)):
            group.check_membership(f"{name}[{i}]", part)
