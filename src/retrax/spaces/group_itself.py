"""A group as a space on which it acts."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float, Key, PyTree

from retrax.errors import BadInput
from retrax.groups.base import AbstractLieGroup, Coordinates, Element, require_group
from retrax.numerics.checks import quote
from retrax.numerics.small_matrices import solve
from retrax.spaces.base import AbstractHomogeneousSpace, Tangent


class GroupItself(AbstractHomogeneousSpace):
    r"""The group $G$, multiplied by its elements from the right or from the left.

    $$
    \begin{aligned}
    \sigma = -1:&& g &\mapsto g\exp(u), & \dot g &= g\,\hat\xi                    &&\text{(1)}\\
    \sigma = +1:&& g &\mapsto \exp(u)\,g = g\exp(\mathrm{Ad}_{g^{-1}}u), &
        \dot g &= \hat\xi g                                                       &&\text{(2)}
    \end{aligned}
    $$

    **Arguments:**

    - `group`: the group.
    - `side`: `-1` for (1), generators in body coordinates; `+1` for (2), in space coordinates.

    References: [MuntheKaas1999].
    """

    group: AbstractLieGroup
    side: int = eqx.field(static=True)

    def __init__(self, group: AbstractLieGroup, side: int = -1):
        self.group = require_group(group)
        if type(side) is not int or side not in (-1, 1):
            raise BadInput(f"side = {quote(side)} must be -1 (g exp u) or +1 (exp u g).")
        self.side = side

    def __repr__(self) -> str:
        return f"GroupItself({self.group!r}, side={self.side})"

    @property
    def name(self) -> str:
        return self.group.name

    @property
    def dimension(self) -> int:
        return self.group.dim

    def move(self, y: Element, u: Coordinates) -> Element:
        body = u if self.side == -1 else self.group.Ad(self.group.inverse(y), u)  # (2)
        return self.group.advance(y, self.group.expm1_in_chart(body))  # (1)

    def near(self, y: Element, u: Coordinates) -> Element:
        group = self.group
        exp = jax.tree.map(jnp.add, group.identity(), group.expm1_in_chart(u))
        return group.compose(y, exp) if self.side == -1 else group.compose(exp, y)

    def tangent(self, y: Element, xi: Coordinates) -> Tangent:
        body = xi if self.side == -1 else self.group.Ad(self.group.inverse(y), xi)
        return self.group.tangent(y, body)

    def defect(self, y: Element) -> Float[Array, ""]:
        return self.group.defect(y)

    def project(self, y: Element) -> Element:
        return self.group.project(y)

    def random(self, key: Key[Array, ""]) -> Element:
        return self.group.random(key)

    def lift(self, y: Element, v: Tangent) -> Coordinates:
        """Lift by least squares over the entries of the velocity `g hat(xi)`."""
        rows = jax.vmap(lambda e: ravel_pytree(self.group.tangent(y, e))[0])(
            jnp.eye(self.group.dim)
        )
        body = solve(rows @ rows.T, rows @ ravel_pytree(v)[0])
        return body if self.side == -1 else self.group.Ad(y, body)

    def layout(self) -> PyTree[jax.ShapeDtypeStruct]:
        return self.group.layout()

    def check(self, name: str, y: PyTree) -> None:
        self.group.check(name, y)
