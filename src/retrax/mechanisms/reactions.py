r"""Reactions of many joints, along their band: `retrax.mechanics.reactions` without large matrices.

$$ W M^{-1}W^T\lambda = -(\dot W\xi + W M^{-1}\dot\mu_{\text{free}}), \qquad
   W M^{-1}(\mu + W^T\lambda) = 0. \tag{1} $$
"""

from functools import partial
from typing import TYPE_CHECKING

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from retrax.groups.base import Coordinates, Element
from retrax.mechanics.reactions import drift_of_constraint
from retrax.mechanics.system import Derivative
from retrax.mechanisms.along import Along, Impulses, Momenta, Rows, Softness
from retrax.mechanisms.band import Band
from retrax.mechanisms.pose import Pose
from retrax.numerics import banded
from retrax.numerics.newton import SMALLEST, Sizes, to_stagnation

if TYPE_CHECKING:
    from retrax.mechanisms.system import MechanismSystem

# What regularity adds to the matrix is taken out again, to this part of velocities.
_AIM, _ACCEPT, _ROUNDS = 2e-16, 1e-13, 6


class Reactions:
    """How the joints of a mechanism react in a configuration."""

    def __init__(self, along: Along, places: Pose) -> None:
        self.along, self.rows, self.soft = along, along.rows(places), along.softness()
        self.by_body = along.by_body(self.rows)

    def stopping(self, mu: Momenta, more: Impulses) -> tuple[Momenta, Impulses]:
        r"""Return $\mu + W^T\lambda$ whose velocities joints see as -`more`, and $\lambda$."""
        along = self.along
        lam = _impulses(along.band, along.system, self.soft, self.rows, self.by_body, mu, more)
        return mu + along.pushes(self.by_body, lam), lam


@partial(jax.custom_jvp, nondiff_argnums=(0,))
def _impulses(
    joints: Band,
    system: "MechanismSystem",
    soft: Softness,
    rows: tuple[Rows, ...],
    by_body: tuple[Rows, ...],
    mu: Momenta,
    more: Impulses,
) -> Impulses:
    """Solve (1) to round-off, from nothing."""
    along = Along(system, joints)
    factors = along.factored(rows, rows, soft, symmetric=True)

    def improve(at: tuple[Impulses, Float[Array, ""]]) -> tuple[tuple, Sizes]:
        lam, before = at
        v = along.freed(soft, mu + along.pushes(by_body, lam))
        wrong = along.across(rows, v) + more
        size = jnp.sum(jnp.abs(wrong))
        # Each round leaves as much of the error as the one before it has.
        left = size * jnp.minimum(size / before, 1.0)
        terms = jnp.sum(jnp.abs(v)) + jnp.sum(jnp.abs(more))
        return (lam - banded.solve(factors, wrong), size), (left, terms)

    first, unknown = (jnp.zeros_like(more), jnp.asarray(SMALLEST)), jnp.asarray(jnp.inf)
    sizes = (unknown, jnp.zeros(()))
    (lam, _), _ = to_stagnation(improve, first, sizes, aim=_AIM, accept=_ACCEPT, most=_ROUNDS)
    return lam


@_impulses.defjvp
def _impulses_jvp(joints: Band, primals: tuple, tangents: tuple) -> tuple[Impulses, Impulses]:
    lam = _impulses(joints, *primals)

    def wrong(
        lam: Impulses,
        system: "MechanismSystem",
        soft: Softness,
        rows: tuple[Rows, ...],
        by_body: tuple[Rows, ...],
        mu: Momenta,
        more: Impulses,
    ) -> Impulses:
        along = Along(system, joints)
        return along.across(rows, along.freed(soft, mu + along.pushes(by_body, lam))) + more

    system, soft, rows, *_ = primals
    factors = Along(system, joints).factored(rows, rows, soft, symmetric=True)
    _, turned = jax.jvp(lambda *given: wrong(lam, *given), primals, tangents)
    change = -banded.solve(factors, turned)
    for _ in range(2):  # takes out again what makes the matrix regular
        _, moved = jax.jvp(lambda lam: wrong(lam, *primals), (lam,), (change,))
        change = change - banded.solve(factors, turned + moved)
    return lam, change


def admissible(system: "MechanismSystem", joints: Band, g: Element, mu: Coordinates) -> Coordinates:
    """Return the nearest momentum that all joints allow."""
    along = Along(system, joints)
    nothing = jnp.zeros((len(joints.order), joints.rows))
    met = Reactions(along, along.places(g)).stopping(along.bodies(mu), nothing)
    return along.flat(met[0])


def reacting(
    system: "MechanismSystem", joints: Band, g: Element, mu: Coordinates, t: Float[Array, ""]
) -> tuple[Derivative, Float[Array, " k"]]:
    """Return the motion with the reactions of the joints, and their multipliers as written."""
    along, xi, constraint = Along(system, joints), system.velocity(g, mu), system.constraint
    assert constraint is not None
    free = system.group.coad(xi, mu) + system.total_force(g, xi, mu, t)
    drift = along.ordered(drift_of_constraint(system, constraint, g, xi, t))
    rate, lam = Reactions(along, along.places(g)).stopping(along.bodies(free), drift)
    return Derivative(xi, along.flat(rate)), along.listed(lam)


def pushed(
    system: "MechanismSystem", joints: Band, g: Element, lam: Float[Array, " k"]
) -> Coordinates:
    r"""Return $W^T\lambda$ for multipliers as joints were written."""
    along = Along(system, joints)
    by_body = along.by_body(along.rows(along.places(g)))
    return along.flat(along.pushes(by_body, along.ordered(lam)))
