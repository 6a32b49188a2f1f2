r"""Reactions of many joints, along their band: `retrax.mechanics.reactions` without large matrices.

$$ W M^{-1}W^T\lambda = -(\dot W\xi + W M^{-1}\dot\mu_{\text{free}}), \qquad
   W M^{-1}(\mu + W^T\lambda) = 0. \tag{1} $$
"""

from typing import TYPE_CHECKING

import jax.numpy as jnp
from jaxtyping import Array, Float

from retrax.groups.base import Coordinates, Element
from retrax.mechanics.reactions import drift_of_constraint
from retrax.mechanics.system import Derivative
from retrax.mechanisms.along import Along, Impulses, Momenta
from retrax.mechanisms.band import Band
from retrax.mechanisms.pose import Pose
from retrax.numerics import banded

if TYPE_CHECKING:
    from retrax.mechanisms.system import MechanismSystem

# What regularity adds to the matrix is taken out again in so many rounds.
_ROUNDS = 3


class Reactions:
    """How the joints of a mechanism react in a configuration."""

    def __init__(self, along: Along, places: Pose) -> None:
        self.along, self.rows = along, along.rows(places)
        self.by_body, self.soft = self.along.by_body(self.rows), self.along.softness()
        self.factors = self.along.factored(self.rows, self.rows, self.soft, symmetric=True)

    def stopping(self, mu: Momenta, more: Impulses) -> tuple[Momenta, Impulses]:
        r"""Return the momentum $\mu + W^T\lambda$ with $WM^{-1}\mu$ = -`more`, and $\lambda$."""
        lam = jnp.zeros_like(more)
        for _ in range(_ROUNDS):
            v = jnp.concatenate(self.along.freed(self.soft, mu), axis=1)
            step = banded.solve(self.factors, -(self.along.across(self.rows, v) + more))
            mu, lam = mu + self.along.pushes(self.by_body, step), lam + step
        return mu, lam


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
