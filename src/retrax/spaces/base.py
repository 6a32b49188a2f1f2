"""What a homogeneous space is: points that a group moves."""

import abc

import equinox as eqx
from jaxtyping import Array, Float, PyTree

from retrax.groups.base import AbstractLieGroup, Coordinates
from retrax.numerics.frozen import Frozen

Point = PyTree[Float[Array, "..."]]


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

    @abc.abstractmethod
    def move(self, y: Point, u: Coordinates) -> Point:
        r"""$\exp(u)\cdot y$, computed as $y$ plus a change, without cancellation at small `u`."""

    @abc.abstractmethod
    def defect(self, y: Point) -> Float[Array, ""]:
        """The distance of `y` from the space: zero, up to round-off, on it."""

    def dexp_inv(self, u: Coordinates, xi: Coordinates) -> Coordinates:
        r"""$\mathrm{dexp}^{-1}_{-\sigma u}\,\xi$ of (1): the rate of the chart variable."""
        return self.group.dexp_inv(-self.side * u, xi)
