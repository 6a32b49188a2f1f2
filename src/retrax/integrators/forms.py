"""A system as a flow on a space: in which variables a collocation method sees it."""

from collections.abc import Callable
from typing import ClassVar, NamedTuple, Protocol, runtime_checkable

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from retrax.errors import BadInput
from retrax.groups.base import AbstractLieGroup
from retrax.groups.product import Product
from retrax.groups.se3 import SE3
from retrax.groups.so3 import SO3, Rotation, Vector
from retrax.groups.translation import Translation
from retrax.mechanics.flow import AbstractSpaceFlow, GroupFlow
from retrax.mechanics.state import State
from retrax.mechanics.system import AbstractGroupSystem, Coordinates, Element
from retrax.numerics.small_matrices import cross
from retrax.spaces.base import AbstractSpace, Point
from retrax.spaces.group_itself import GroupItself

FORMS = ("body", "spatial", "se3")
Scalar = Float[Array, ""]


@runtime_checkable
class _HasWeight(Protocol):
    r"""A body with the potential energy $w\cdot R^Te_3$; `weight_arm` is $w$."""

    def weight_arm(self) -> Vector: ...


class Flow(NamedTuple):
    r"""A flow $\dot y = \xi(t, y)\cdot y$ on a space, made from a system and a state.

    **Attributes:**

    - `space`: where the points are and what moves them.
    - `generator`: $\xi(t, y)$.
    - `start`: the point of the state.
    - `end`: from a point to configuration and momentum.
    - `split`: how many coordinates of $\xi$ move the configuration; the others, the rates of
        momenta, come first in a sweep. `None` where there are no momenta.
    """

    space: AbstractSpace
    generator: Callable[[Scalar, Point], Coordinates]
    start: Point
    end: Callable[[Point], tuple[Element, Coordinates]]
    split: int | None


def flow_of(system: AbstractGroupSystem, state: State, form: str = "body") -> Flow:
    r"""Return the system as a flow on a space, in one of the forms; $\nu = dL + f$ is all force.

    | form | point | acts | generator |
    |---|---|---|---|
    | `body` | $(g, \mu)$ | $G\times\mathfrak g^*$, right | $(\xi,\ \mathrm{ad}^*_\xi\mu + \nu)$ |
    | `spatial` | $(g, \pi)$ | $G\times\mathfrak g^*$, left |
        $(\mathrm{Ad}_g\xi,\ \mathrm{Ad}^*_{g^{-1}}\nu)$ |
    | `se3` | $(R, \mu)$ | $SE(3)$, right | $(\xi,\ b)$ with $b\times R^Te_3 = \nu$ |

    Here $\pi = \mathrm{Ad}^*_{g^{-1}}\mu$. Flows of first order are their own group or space.
    """
    g, mu = state.g, state.momentum
    if isinstance(system, AbstractSpaceFlow):
        return Flow(system.space, system.generator, g, lambda y: (y, mu), None)
    if is_first_order(system):
        space = GroupItself(system.group)
        return Flow(space, lambda t, y: system.velocity(y, mu), g, lambda y: (y, mu), None)
    return {"body": _body, "spatial": _spatial, "se3": _se3}[form](system, g, mu)


def is_first_order(system: AbstractGroupSystem) -> bool:
    """Return whether a system has no momenta that move."""
    return isinstance(system, GroupFlow) or not system.has_momentum


def check_form(who: str, form: str, system: AbstractGroupSystem) -> None:
    """Reject a system that cannot be written in this form."""
    if form == "body":
        return
    if is_first_order(system):
        raise BadInput(
            f'{who}: form = "{form}" collocates momenta, which the {system.name} does not '
            'have; use form = "body".'
        )
    if form == "se3":
        _require_vertical(who, system)


def _require_vertical(who: str, system: AbstractGroupSystem) -> None:
    if not isinstance(system.group, SO3):
        raise BadInput(
            f'{who}: form = "se3" is for bodies that turn about a point, on SO(3), but the '
            f'{system.name} moves on {system.group.name}; use form = "spatial".'
        )
    vertical = jnp.array([0.0, 0.0, 1.0])
    space = jnp.asarray(system.symmetries().space)
    if system.force is not None or float(jnp.sum((space @ vertical) ** 2)) < 1 - 1e-9:
        raise BadInput(
            f'{who}: form = "se3" keeps the momentum about the vertical e3, but turning the '
            f'{system.name} about it changes its energy or its force; use form = "spatial".'
        )


def _body(system: AbstractGroupSystem, g: Element, mu: Coordinates) -> Flow:
    n = system.group.dim
    space = GroupItself(Product(system.group, Translation(n)))

    def generator(t: Scalar, y: Point) -> Coordinates:
        g, mu = y
        return jnp.concatenate(system.vector_field(g, mu, t))

    return Flow(space, generator, (g, mu), lambda y: y, n)


def _spatial(system: AbstractGroupSystem, g: Element, mu: Coordinates) -> Flow:
    group = system.group

    def body_momentum(y: Point) -> Coordinates:
        return group.coAd(y[0], y[1])

    def generator(t: Scalar, y: Point) -> Coordinates:
        m = body_momentum(y)
        xi, rate = system.vector_field(y[0], m, t)
        force = group.coAd(group.inverse(y[0]), rate - group.coad(xi, m))
        return jnp.concatenate([group.Ad(y[0], xi), force])

    start = (g, group.coAd(group.inverse(g), mu))
    return Flow(
        SpatialPhase(group), generator, start, lambda y: (y[0], body_momentum(y)), group.dim
    )


def _se3(system: AbstractGroupSystem, g: Element, mu: Coordinates) -> Flow:
    def generator(t: Scalar, y: Point) -> Coordinates:
        R, m = y
        now = system.at_time(t)
        xi = now.velocity(R, m)
        if isinstance(system, _HasWeight):
            b = -system.weight_arm()
        else:
            b = cross(R[2], now.differential(R, xi, m))
        return jnp.concatenate([xi, b])

    return Flow(HeavyPhase(), generator, (g, mu), lambda y: y, None)


_SO3 = SO3()


class SpatialPhase(AbstractSpace):
    r"""Phase space seen from space: $(g, \pi) \mapsto (\exp(u)\,g,\ \pi + v)$.

    What a symmetry of space conserves is linear in $\pi = \mathrm{Ad}^*_{g^{-1}}\mu$, and linear
    functions are conserved by every collocation method.
    """

    base: AbstractLieGroup
    side: ClassVar[int] = 1

    def __init__(self, base: AbstractLieGroup):
        self.base = base

    @property
    def group(self) -> Product:
        return Product(self.base, Translation(self.base.dim))

    @property
    def name(self) -> str:
        return f"T*{self.base.name}"

    def move(
        self, y: tuple[Element, Coordinates], u: Float[Array, " twice_dim"]
    ) -> tuple[Element, Coordinates]:
        (g, pi), n = y, self.base.dim
        seen_from_body = self.base.Ad(self.base.inverse(g), u[:n])
        return self.base.advance(g, self.base.expm1(seen_from_body)), pi + u[n:]

    def defect(self, y: tuple[Element, Coordinates]) -> Float[Array, ""]:
        return self.base.defect(y[0])


class HeavyPhase(AbstractSpace):
    r"""$(R, \mu)$, on which rigid motions act: $(Q, b)$ takes it to $(RQ,\ Q^T(\mu + b\times
    R^Te_3))$.

    These are the coadjoint orbits of $SE(3)$ with the attitude beside them: $e_3\cdot R\mu$ is the
    same before and after, whatever $Q$ and $b$.
    """

    group: ClassVar[SE3] = SE3()
    side: ClassVar[int] = -1
    name: ClassVar[str] = "T*SO(3)"

    def move(self, y: tuple[Rotation, Vector], u: Coordinates) -> tuple[Rotation, Vector]:
        R, mu = y
        turn, b = self.group.expm1(u)
        push = cross(b, R[2])
        return _SO3.advance(R, turn), mu + (push + turn.T @ (mu + push))

    def defect(self, y: tuple[Rotation, Vector]) -> Float[Array, ""]:
        return _SO3.defect(y[0])


class Embedded(AbstractSpace):
    """Matrices and momenta as mere numbers, to which the increments are added."""

    dim: int = eqx.field(static=True)
    side: ClassVar[int] = -1

    def __init__(self, dim: int):
        self.dim = dim

    @property
    def group(self) -> Translation:
        return Translation(self.dim)

    @property
    def name(self) -> str:
        return self.group.name

    def move(self, y: Point, u: Coordinates) -> Point:
        leaves, tree = jax.tree.flatten(y)
        moved, place = [], 0
        for leaf in leaves:
            moved.append(leaf + u[place : place + leaf.size].reshape(leaf.shape))
            place += leaf.size
        return jax.tree.unflatten(tree, moved)

    def defect(self, y: Point) -> Float[Array, ""]:
        return jnp.zeros(())
