"""A system as a flow on a space: in which variables a collocation method sees it."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float

from retrax.errors import BadInput
from retrax.groups.product import Product
from retrax.groups.so3 import SO3
from retrax.groups.translation import Translation
from retrax.integrators.phase_spaces import HeavyPhase, SpatialPhase
from retrax.mechanics.flow import GroupFlow
from retrax.mechanics.state import State
from retrax.mechanics.system import AbstractGroupSystem, Coordinates, Element
from retrax.numerics.cross import cross
from retrax.spaces.base import AbstractSpace, Point
from retrax.spaces.group_itself import GroupItself
from retrax.systems.rigid_body import AbstractHeavyBody

FORMS = ("body", "spatial", "se3")


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
    generator: Callable[[Float[Array, ""], Point], Coordinates]
    start: Point
    end: Callable[[Point], tuple[Element, Coordinates]]
    split: int | None


def flow_of(system: Any, state: State, form: str = "body") -> Flow:
    r"""The system as a flow on a space, in one of these forms; $\nu = dL + f$ is the total force.

    | form | point | acts | generator |
    |---|---|---|---|
    | `body` | $(g, \mu)$ | $G\times\mathfrak g^*$, right | $(\xi,\ \mathrm{ad}^*_\xi\mu + \nu)$ |
    | `spatial` | $(g, \pi)$ | $G\times\mathfrak g^*$, left |
        $(\mathrm{Ad}_g\xi,\ \mathrm{Ad}^*_{g^{-1}}\nu)$ |
    | `se3` | $(R, \mu)$ | $SE(3)$, right | $(\xi,\ b)$ with $b\times R^Te_3 = \nu$ |

    Here $\pi = \mathrm{Ad}^*_{g^{-1}}\mu$. Flows of first order are their own group or space.
    """
    g, mu = state.g, state.momentum
    if hasattr(system, "space"):
        return Flow(system.space, system.generator, g, lambda y: (y, mu), None)
    if is_first_order(system):
        space = GroupItself(system.group)
        return Flow(space, lambda t, y: system.velocity(y, mu), g, lambda y: (y, mu), None)
    return {"body": _body, "spatial": _spatial, "se3": _se3}[form](system, g, mu)


def is_first_order(system: Any) -> bool:
    """Whether a system has no momenta that move."""
    return isinstance(system, GroupFlow) or not system.has_momentum


def check_form(who: str, form: str, system: AbstractGroupSystem) -> None:
    """Refuse a system that has no such form."""
    if form == "body":
        return
    if is_first_order(system):
        raise BadInput(
            f'{who}: form = "{form}" collocates momenta, but the {system.name} has none; '
            'use form = "body".'
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

    def generator(t, y):
        g, mu = y
        return jnp.concatenate(system.vector_field(g, mu, t))

    return Flow(space, generator, (g, mu), lambda y: y, n)


def _spatial(system: AbstractGroupSystem, g: Element, mu: Coordinates) -> Flow:
    group = system.group

    def body_momentum(y):
        return group.coAd(y[0], y[1])

    def generator(t, y):
        m = body_momentum(y)
        xi, rate = system.vector_field(y[0], m, t)
        force = group.coAd(group.inverse(y[0]), rate - group.coad(xi, m))
        return jnp.concatenate([group.Ad(y[0], xi), force])

    start = (g, group.coAd(group.inverse(g), mu))
    return Flow(
        SpatialPhase(group), generator, start, lambda y: (y[0], body_momentum(y)), group.dim
    )


def _se3(system: AbstractGroupSystem, g: Element, mu: Coordinates) -> Flow:
    def generator(t, y):
        R, m = y
        xi = system.velocity(R, m)
        if isinstance(system, AbstractHeavyBody):
            b = -system.weight_arm()
        else:
            b = cross(R[2], system.differential(R, xi, m))
        return jnp.concatenate([xi, b])

    return Flow(HeavyPhase(), generator, (g, mu), lambda y: y, None)
