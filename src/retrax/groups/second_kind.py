"""Canonical coordinates of the second kind: a product of one-parameter subgroups."""

import math
from collections.abc import Sequence
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float

from retrax.errors import BadInput
from retrax.groups.base import AbstractLieGroup, Coordinates, Element
from retrax.groups.retractions import AbstractRetraction
from retrax.numerics.checks import quote, require_flag, require_whole
from retrax.numerics.small_matrices import solve, solve_and_determinant

# Newton's method for the coordinates of an element; inside the chart it needs at most half of them.
_ITERATIONS = 16
# Each direction costs an exponential and a change of frame, one after the other.
_LARGEST_DIMENSION = 32


class SecondKind(AbstractRetraction):
    r"""$\tau(\xi) = \exp(\xi_1e_1)\exp(\xi_2e_2)\cdots\exp(\xi_ne_n)$, on every group.

    On $SO(3)$ these are the angles of a Cardan joint; on $SE(3)$ and the like each factor is cheap
    and exact. With $E_i = \exp(\xi_ie_i)$ the tangent map is a matrix of columns,

    $$
    \begin{aligned}
    dL_\xi &= \bigl(\mathrm{Ad}_{(E_2\cdots E_n)^{-1}}e_1,\ \dots,\
              \mathrm{Ad}_{E_n^{-1}}e_{n-1},\ e_n\bigr)                              &&\text{(1)}\\
    \tau^*(\xi) &= \tau(-\xi)^{-1} = \exp(\xi_ne_n)\cdots\exp(\xi_1e_1)              &&\text{(2)}
    \end{aligned}
    $$

    (2) is not $\tau$: the map is **not symmetric**. Steps that go half the way with $\tau^*$ and
    half with $\tau$ stay symmetric and of order 2; those that take one $\tau$ a step, such as
    `LieVerlet`, are of order 1 with it, and claim no more.

    The chart ends where (1) is singular, on $SO(3)$ where the middle angle is a right one; `covers`
    asks for less than a right angle in every factor, and for a tangent map that keeps its sides.

    **Arguments:**

    - `axes`: the directions in the order of the factors, a permutation of `0, 1, ..., dim - 1`.
    - `backwards`: take them from the last to the first, which makes $\tau^*$.

    References: [OwrenMarthinsen2001].
    """

    axes: tuple[int, ...] | None = eqx.field(static=True)
    backwards: bool = eqx.field(static=True)

    name: ClassVar[str] = "SecondKind"

    def __init__(self, axes: Sequence[int] | None = None, backwards: bool = False):
        self.backwards = require_flag("backwards", backwards)
        self.axes = None
        if axes is not None:
            if not isinstance(axes, list | tuple) or not axes:
                raise BadInput(f"axes = {quote(axes)} must be a list of directions.")
            self.axes = tuple(require_whole("axes", i, 0, len(axes) - 1) for i in axes)
            if len(set(self.axes)) != len(axes):
                raise BadInput(
                    f"axes = {list(axes)} names a direction twice; each of 0 to "
                    f"{len(axes) - 1} stands once, or the tangent map at 0 is not the identity."
                )

    def __repr__(self) -> str:
        given = [] if self.axes is None else [f"axes={list(self.axes)}"]
        return f"SecondKind({', '.join(given + ['backwards=True'] * self.backwards)})"

    @property
    def adjoint(self) -> "SecondKind":
        return SecondKind(self.axes, not self.backwards)  # (2)

    @property
    def symmetric(self) -> bool:
        return False

    def check(self, group: AbstractLieGroup) -> None:
        if self.axes is not None and len(self.axes) != group.dim:
            raise BadInput(
                f"axes = {list(self.axes)} names {len(self.axes)} directions, but "
                f"{group.name} has {group.dim}."
            )
        if group.dim > _LARGEST_DIMENSION:
            raise BadInput(
                f"SecondKind() multiplies one exponential for each of the {group.dim} directions "
                f"of {group.name}, and takes at most {_LARGEST_DIMENSION}; use Exp() or Cayley()."
            )

    def minus_identity(self, group: AbstractLieGroup, xi: Coordinates) -> Element:
        steps = self._factors(group, xi)
        done = jax.tree.map(lambda x: x[0], steps)
        for k in range(1, group.dim):
            done = _join(group, done, jax.tree.map(lambda x, k=k: x[k], steps))
        return done

    def __call__(self, group: AbstractLieGroup, xi: Coordinates) -> Element:
        return jax.tree.map(jnp.add, group.identity(), self.minus_identity(group, xi))

    def inverse(self, group: AbstractLieGroup, g: Element) -> Coordinates:
        r"""Invert by Newton: $\xi$ gains $dL_\xi^{-1}\log(\tau(\xi)^{-1}g)$ again and again."""

        def improve(_: Array, xi: Coordinates) -> Coordinates:
            missed = group.log(group.compose(group.inverse(self(group, xi)), g))
            return xi + self.dL_inv(group, xi, missed)

        return lax.fori_loop(0, _ITERATIONS, improve, group.log(g))

    def dL(self, group: AbstractLieGroup, xi: Coordinates, eta: Coordinates) -> Coordinates:
        return self._columns(group, xi) @ eta

    def dL_inv(self, group: AbstractLieGroup, xi: Coordinates, eta: Coordinates) -> Coordinates:
        return solve(self._columns(group, xi), eta)

    def dL_dual(self, group: AbstractLieGroup, xi: Coordinates, mu: Coordinates) -> Coordinates:
        return mu @ self._columns(group, xi)

    def dL_inv_dual(self, group: AbstractLieGroup, xi: Coordinates, mu: Coordinates) -> Coordinates:
        return solve(self._columns(group, xi).T, mu)

    def covers(self, group: AbstractLieGroup, xi: Coordinates) -> Bool[Array, ""]:
        turns = jax.vmap(group.angle_squared)(jnp.diag(xi))
        both = jax.vmap(lambda x: self._columns(group, x))(jnp.stack([xi, -xi]))
        rest = jnp.zeros(group.dim)
        sides = jnp.stack([solve_and_determinant(matrix, rest)[1] for matrix in both])
        return jnp.all(turns < (math.pi / 2) ** 2) & jnp.all(sides > 0)

    def _axes(self, group: AbstractLieGroup) -> tuple[int, ...]:
        forwards = tuple(range(group.dim)) if self.axes is None else self.axes
        return forwards[::-1] if self.backwards else forwards

    def _factors(self, group: AbstractLieGroup, xi: Coordinates) -> Element:
        """Return $E_i - 1$ along a first axis, in the order of the product."""
        alone = jnp.diag(xi)[jnp.array(self._axes(group))]
        return jax.vmap(group.expm1)(alone)

    def _columns(self, group: AbstractLieGroup, xi: Coordinates) -> Float[Array, "dim dim"]:
        """Return the matrix (1): all columns so far are seen from behind each new factor."""

        def look(step: Element) -> Float[Array, "dim dim"]:
            return group.Ad(jax.tree.map(jnp.add, group.identity(), step))

        behind = jax.vmap(look)(self._factors(group, -xi))
        unit, columns = jnp.eye(group.dim), jnp.zeros((group.dim, group.dim))
        for k, i in enumerate(self._axes(group)):
            columns = behind[k] @ columns + jnp.outer(unit[i], unit[i])
        return columns


def _join(group: AbstractLieGroup, a: Element, b: Element) -> Element:
    """Return (1 + a)(1 + b) - 1 = a + (1 + a) b without cancellation; `advance` is affine in b."""
    first = jax.tree.map(jnp.add, group.identity(), a)
    moved = jax.jvp(lambda d: group.advance(first, d), (b,), (b,))[1]
    return jax.tree.map(jnp.add, a, moved)
