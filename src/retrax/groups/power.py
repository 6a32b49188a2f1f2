"""Many copies of one group."""

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key, PyTree

from retrax.groups.base import (
    ALLOWED_DEFECT,
    AbstractLieGroup,
    Coordinates,
    Element,
    HostElement,
    Matrix,
    defect_of,
    require_group,
)
from retrax.numerics.checks import MOST_NODES, require_whole

# From so many nodes on, compiling a check of all at once pays.
_MANY = 2000


class Power(AbstractLieGroup):
    r"""The power $G^n$: $n$ bodies, links or nodes that each move on the same group.

    Every leaf of an element is stacked along a leading axis of length $n$; coordinates are
    concatenated node by node.

    **Arguments:**

    - `group`: the group of one node.
    - `n`: the number of nodes, at least 1.

    References: [MarsdenRatiu1999].
    """

    group: AbstractLieGroup
    n: int = eqx.field(static=True)

    def __init__(self, group: AbstractLieGroup, n: int):
        self.group = require_group(group)
        self.n = require_whole("Power: n", n, 1, MOST_NODES)

    def __repr__(self) -> str:
        return f"Power({self.group!r}, {self.n})"

    @property
    def dim(self) -> int:
        return self.n * self.group.dim

    @property
    def name(self) -> str:
        base = self.group.name
        return f"({base})^{self.n}" if " x " in base or "^" in base else f"{base}^{self.n}"

    @property
    def has_cayley(self) -> bool:
        return self.group.has_cayley

    def split(self, xi: Coordinates) -> Float[Array, "n node"]:
        """Return the coordinates that belong to each node, one row a node."""
        return xi.reshape(self.n, self.group.dim)

    def identity(self) -> Element:
        return jax.tree.map(lambda e: jnp.stack([e] * self.n), self.group.identity())

    def compose(self, g: Element, k: Element) -> Element:
        return jax.vmap(self.group.compose)(g, k)

    def inverse(self, g: Element) -> Element:
        return jax.vmap(self.group.inverse)(g)

    def hat(self, xi: Coordinates) -> PyTree:
        return jax.vmap(self.group.hat)(self.split(xi))

    def vee(self, x: PyTree) -> Coordinates:
        return jax.vmap(self.group.vee)(x).reshape(-1)

    def expm1(self, xi: Coordinates) -> Element:
        return jax.vmap(self.group.expm1)(self.split(xi))

    def angle_squared(self, xi: Coordinates) -> Float[Array, ""]:
        return jnp.max(jax.vmap(self.group.angle_squared)(self.split(xi)))

    def log(self, g: Element) -> Coordinates:
        return jax.vmap(self.group.log)(g).reshape(-1)

    def advance(self, g: Element, delta: Element) -> Element:
        return jax.vmap(self.group.advance)(g, delta)

    def tangent(self, g: Element, xi: Coordinates) -> Element:
        return jax.vmap(self.group.tangent)(g, self.split(xi))

    def cotangent(self, g: Element, a: Element) -> Coordinates:
        return jax.vmap(self.group.cotangent)(g, a).reshape(-1)

    def Ad(self, g: Element, xi: Coordinates | None = None) -> Matrix | Coordinates:
        if xi is None:
            return self._block_diagonal(jax.vmap(self.group.Ad)(g))
        return jax.vmap(self.group.Ad)(g, self.split(xi)).reshape(-1)

    def coAd(self, g: Element, mu: Coordinates | None = None) -> Matrix | Coordinates:
        if mu is None:
            return self.Ad(g).T
        return jax.vmap(self.group.coAd)(g, self.split(mu)).reshape(-1)

    def coAdm1(self, delta: Element, mu: Coordinates) -> Coordinates:
        return jax.vmap(self.group.coAdm1)(delta, self.split(mu)).reshape(-1)

    def ad(self, xi: Coordinates, eta: Coordinates | None = None) -> Matrix | Coordinates:
        if eta is None:
            return self._block_diagonal(jax.vmap(self.group.ad)(self.split(xi)))
        return self._pairs(self.group.ad, xi, eta)

    def coad(self, xi: Coordinates, mu: Coordinates | None = None) -> Matrix | Coordinates:
        if mu is None:
            return self.ad(xi).T
        return self._pairs(self.group.coad, xi, mu)

    def _block_diagonal(self, blocks: Float[Array, "n node node"]) -> Matrix:
        return jax.scipy.linalg.block_diag(*[blocks[i] for i in range(self.n)])

    def _pairs(
        self, method: Callable[..., Coordinates], xi: Coordinates, eta: Coordinates
    ) -> Coordinates:
        return jax.vmap(method)(self.split(xi), self.split(eta)).reshape(-1)

    def dexp(self, xi: Coordinates, eta: Coordinates) -> Coordinates:
        return self._pairs(self.group.dexp, xi, eta)

    def dexp_inv(self, xi: Coordinates, eta: Coordinates) -> Coordinates:
        return self._pairs(self.group.dexp_inv, xi, eta)

    def dexp_dual(self, xi: Coordinates, mu: Coordinates) -> Coordinates:
        return self._pairs(self.group.dexp_dual, xi, mu)

    def dexp_inv_dual(self, xi: Coordinates, mu: Coordinates) -> Coordinates:
        return self._pairs(self.group.dexp_inv_dual, xi, mu)

    def caym1(self, xi: Coordinates) -> Element:
        return jax.vmap(self.group.caym1)(self.split(xi))

    def cay_inv(self, g: Element) -> Coordinates:
        return jax.vmap(self.group.cay_inv)(g).reshape(-1)

    def dcay(self, xi: Coordinates, eta: Coordinates) -> Coordinates:
        return self._pairs(self.group.dcay, xi, eta)

    def dcay_inv(self, xi: Coordinates, eta: Coordinates) -> Coordinates:
        return self._pairs(self.group.dcay_inv, xi, eta)

    def dcay_dual(self, xi: Coordinates, mu: Coordinates) -> Coordinates:
        return self._pairs(self.group.dcay_dual, xi, mu)

    def dcay_inv_dual(self, xi: Coordinates, mu: Coordinates) -> Coordinates:
        return self._pairs(self.group.dcay_inv_dual, xi, mu)

    def defect(self, g: Element) -> Float[Array, ""]:
        return jnp.max(jax.vmap(self.group.defect)(g))

    def project(self, g: Element) -> Element:
        return jax.vmap(self.group.project)(g)

    def fill_in(self, g: Element) -> Element:
        return jax.vmap(self.group.fill_in)(g)

    def angles(self) -> np.ndarray:
        return np.tile(self.group.angles(), self.n)

    def random(self, key: Key[Array, ""]) -> Element:
        return jax.vmap(self.group.random)(jax.random.split(key, self.n))

    def check_membership(self, name: str, g: HostElement) -> None:
        # Very many nodes are looked at one by one only where one of them is known to be off.
        if self.n >= _MANY and float(defect_of(self, g)) <= ALLOWED_DEFECT:
            return
        for i in range(self.n):
            node = jax.tree.map(lambda leaf, i=i: leaf[i], g)
            self.group.check_membership(f"node {i} of {name}", node)
