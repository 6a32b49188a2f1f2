"""What a homogeneous space is: points that a group moves."""

import abc
from collections.abc import Hashable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Key, PyTree

from retrax.errors import BadInput
from retrax.groups.arguments import in_words, look_at_arguments, trust_arguments
from retrax.groups.base import ALLOWED_DEFECT, AbstractLieGroup, Coordinates
from retrax.groups.retractions import Exp
from retrax.groups.so3 import SO3
from retrax.groups.so_n import SO
from retrax.numerics.checks import (
    MOST_ROWS,
    require_finite,
    require_float64,
    require_whole,
)
from retrax.numerics.evaluate import Evaluated
from retrax.numerics.fingerprint import Fingerprint
from retrax.numerics.frozen import Frozen
from retrax.numerics.known import require_each
from retrax.numerics.reuse import Reused, signature_of

Point = PyTree[Float[Array, "..."]]
Tangent = PyTree[Float[Array, "..."]]


class AbstractSpace(Frozen):
    r"""A manifold of points $y$ on which a Lie group $G$ acts, from the left or from the right.

    A flow on it is written with a generator $\xi(t, y) \in \mathfrak g$, and a short piece of it
    in the chart $u$ around a point $y_0$:

    $$
    \begin{aligned}
    \dot y &= \xi\cdot y, & y &= \exp(u)\cdot y_0, & \dot u &= \mathrm{dexp}^{-1}_{-\sigma u}\,\xi,
        &&\text{(1)}
    \end{aligned}
    $$

    where $\sigma = +1$ for an action from the left ($\dot Y = \xi Y$), $\sigma = -1$ for one from
    the right ($\dot Y = Y\xi$), and $\mathrm{dexp}$ is the left-trivialised tangent map of
    `AbstractLieGroup`. The sign is the whole difference between the two sides.

    **Attributes:**

    - `group`: the group that acts.
    - `side`: $\sigma$ of (1), `+1` or `-1`.
    - `name`: the short mathematical name of the space.
    """

    group: eqx.AbstractVar[AbstractLieGroup]
    side: eqx.AbstractVar[int]
    name: eqx.AbstractVar[str]

    def __init_subclass__(cls, **options: Any):
        super().__init_subclass__(**options)
        if cls.__module__.startswith("retrax."):
            look_at_arguments(cls)

    @abc.abstractmethod
    def move(self, y: Point, u: Coordinates) -> Point:
        r"""Return $\exp(u)\cdot y$ as $y$ plus a change, without cancellation at small `u`."""

    def near(self, y: Point, u: Coordinates) -> Point:
        """Return `move` without the round-off correction, for points that are only evaluated."""
        return self.move(y, u)

    @abc.abstractmethod
    def defect(self, y: Point) -> Float[Array, ""]:
        """Return the distance of `y` from the space: zero, up to round-off, on it."""

    def dexp_inv(self, u: Coordinates, xi: Coordinates) -> Coordinates:
        r"""Return $\mathrm{dexp}^{-1}_{-\sigma u}\,\xi$ of (1): the rate of the chart variable."""
        return self.group.dexp_inv(-self.side * u, xi)

    def tangent(self, y: Point, xi: Coordinates) -> Tangent:
        r"""Return the velocity $\xi\cdot y$, stored as `y` is."""
        return jax.jvp(lambda u: self.move(y, u), (jnp.zeros_like(xi),), (xi,))[1]

    def covers(self, u: Coordinates) -> Bool[Array, ""]:
        """Tell whether `u` lies in the chart around every point, where `dexp_inv` exists."""
        return Exp().covers(self.group, u)


look_at_arguments(AbstractSpace)


class AbstractHomogeneousSpace(AbstractSpace):
    """A space whose points can be told from others, made at random, and led along any tangent.

    **Attributes:** `dimension`: of the space; that of the group is `group.dim`.
    """

    dimension: eqx.AbstractVar[int]

    @abc.abstractmethod
    def project(self, y: Point) -> Point:
        """Return a point of the space next to `y`."""

    @abc.abstractmethod
    def random(self, key: Key[Array, ""]) -> Point:
        """Return a random point, spread over the space."""

    @abc.abstractmethod
    def lift(self, y: Point, v: Tangent) -> Coordinates:
        r"""Return a generator $\xi$ with $\xi\cdot y = v$, for `v` tangent at `y`.

        The part of $\xi$ that leaves `y` where it is is free, and chosen to be small.
        """

    def orbit_invariants(self, y: Point) -> dict[str, Float[Array, ""]]:
        """Return, by name, what no flow changes where the group does not reach every point."""
        return {}

    def layout(self) -> PyTree[jax.ShapeDtypeStruct]:
        """Return a point without its numbers."""
        return _layout_of(*signature_of(self))

    def check(self, name: str, y: PyTree) -> None:
        """Raise `BadInput` unless `y`, called `name` in the sentence, is a point.

        Structure and shapes are always checked; values where JAX does not hide them.
        """
        like = self.layout()
        leaves, structure = jax.tree.flatten(y)
        wanted, expected = jax.tree.flatten(like)
        if structure != expected or any(
            np.shape(a) != b.shape for a, b in zip(leaves, wanted, strict=True)
        ):
            raise BadInput(
                f"{name} is not a point of {self.name}: expected {in_words(like)}, "
                f"got {in_words(y)}."
            )
        require_float64(name, leaves)
        require_finite(name, leaves)

        def check(defect: np.ndarray) -> None:
            if not defect <= ALLOWED_DEFECT:
                raise BadInput(
                    f"{name} is not a point of {self.name}: its defect is {float(defect):.2g}, "
                    f"allowed {ALLOWED_DEFECT:.0e}; make it one with {self!r}.project({name})."
                )

        require_each(check, _defect(self, y), fine=lambda defect: defect <= ALLOWED_DEFECT)


@Reused
def _layout_of(
    tree: Hashable, arrays: tuple, identity: Fingerprint
) -> PyTree[jax.ShapeDtypeStruct]:
    """Return the layout of the points of a space, from its structure and its arrays' shapes."""
    (space,) = jax.tree.unflatten(tree, [jax.ShapeDtypeStruct(*array) for array in arrays])
    with trust_arguments():  # a look at what `project` is handed would ask for the layout again
        return jax.eval_shape(lambda space: space.random(jax.random.key(0)), space)


@Evaluated
def _defect(space: AbstractHomogeneousSpace, y: Point) -> Float[Array, ""]:
    return space.defect(y)


def require_size(space: str, **sizes: object) -> tuple[int, ...]:
    """Return the sizes of a space if they are whole numbers of at least 1."""
    return tuple(require_whole(f"{space}: {k}", n, 1, MOST_ROWS) for k, n in sizes.items())


def rotations(n: int) -> AbstractLieGroup:
    """Return the rotations of n-dimensional space, in closed form where there is one."""
    return SO3() if n == 3 else SO(n)
