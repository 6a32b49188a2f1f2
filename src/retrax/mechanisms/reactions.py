r"""Reactions of many joints, along their band: `retrax.mechanics.reactions` without large matrices.

$$ W M^{-1}W^T\lambda = -(\dot W\xi + W M^{-1}\dot\mu_{\text{free}}), \qquad
   W M^{-1}(\mu + W^T\lambda) = 0. \tag{1} $$
"""

from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

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
from retrax.numerics.newton import Sizes, to_stagnation
from retrax.numerics.roundoff import SMALLEST

if TYPE_CHECKING:
    from retrax.mechanisms.system import MechanismSystem

# What regularity adds to the matrix is taken out again, in at most so many rounds.
_ROUNDS = 12


class Stopped(NamedTuple):
    """A momentum that joints allow, their impulses, and how fast they still open, relatively."""

    mu: Momenta
    impulses: Impulses
    left: Float[Array, ""]


class Reactions:
    """How the joints of a mechanism react in a configuration."""

    def __init__(self, along: Along, places: Pose) -> None:
        self.along, self.rows, self.soft = along, along.rows(places), along.softness()
        self.by_body = along.by_body(self.rows)

    def stopping(self, mu: Momenta, more: Impulses, terms: Momenta) -> Stopped:
        r"""Return $\mu + W^T\lambda$ whose velocities joints see as -`more`, and $\lambda$.

        `terms` are the sizes of what $\mu$ is made of: it is no more accurate than they are.
        """
        along = self.along
        given = self.soft, self.rows, self.by_body, mu, more, terms
        lam, left = _impulses(along.band, along.system, *given)
        return Stopped(mu + along.pushes(self.by_body, lam), lam, left)


def _opening(
    along: Along,
    lam: Impulses,
    soft: Softness,
    rows: tuple[Rows, ...],
    by_body: tuple[Rows, ...],
    mu: Momenta,
    more: Impulses,
) -> Impulses:
    """Return what is left of (1)."""
    return (
        along.across(rows, along.apply_inverse_inertia(soft, mu + along.pushes(by_body, lam)))
        + more
    )


class _Iterate(NamedTuple):
    """Impulses, what is left of (1) with them, and the size of their terms in it."""

    lam: Impulses
    speeds: Impulses
    cancels: Float[Array, ""]


@partial(jax.custom_jvp, nondiff_argnums=(0,))
def _impulses(
    joints: Band,
    system: "MechanismSystem",
    soft: Softness,
    rows: tuple[Rows, ...],
    by_body: tuple[Rows, ...],
    mu: Momenta,
    more: Impulses,
    terms: Momenta,
) -> tuple[Impulses, Float[Array, ""]]:
    """Solve (1) to round-off, from nothing; also return what is left, relative to its terms."""
    along = Along(system, joints)
    factors = along.factor(rows, rows, soft, symmetric=True)
    each, through = (tuple(map(jnp.abs, some)) for some in (by_body, rows))
    felt = along.apply_inverse_inertia(jnp.abs(soft), along.pushes(each, jnp.ones_like(more)))
    total = SMALLEST + jnp.sum(felt * terms) + jnp.sum(jnp.abs(more))
    reach = along.across(through, felt)

    def improve(at: _Iterate) -> tuple[_Iterate, Sizes]:
        lam = at.lam - banded.solve(factors, at.speeds)
        speeds = _opening(along, lam, soft, rows, by_body, mu, more)
        cancels = jnp.sum(reach * jnp.abs(lam))
        return _Iterate(lam, speeds, cancels), (jnp.sum(jnp.abs(speeds)), total)

    speeds = along.across(rows, along.apply_inverse_inertia(soft, mu)) + more
    begin = _Iterate(jnp.zeros_like(more), speeds, jnp.zeros(()))
    unknown = jnp.asarray(jnp.inf), total
    last, status = to_stagnation(improve, begin, unknown, most=_ROUNDS)
    # What impulses leave that cancel cannot be solved for, but ends no iteration that goes on.
    return last.lam, status.residual * total / (total + last.cancels)


@_impulses.defjvp
def _impulses_jvp(joints: Band, primals: tuple, tangents: tuple) -> tuple:
    """Differentiate (1); terms only say how accurate it is."""
    lam, left = _impulses(joints, *primals)

    def opening(lam: Impulses, system: "MechanismSystem", *given: Any) -> Impulses:
        return _opening(Along(system, joints), lam, *given)

    system, soft, rows, *_ = given = primals[:-1]
    factors = Along(system, joints).factor(rows, rows, soft, symmetric=True)
    _, turned = jax.jvp(lambda *given: opening(lam, *given), given, tangents[:-1])
    change = -banded.solve(factors, turned)
    for _ in range(2):  # takes out again what makes the matrix regular
        _, moved = jax.jvp(lambda lam: opening(lam, *given), (lam,), (change,))
        change = change - banded.solve(factors, turned + moved)
    return (lam, left), (change, jnp.zeros_like(left))


def admissible(system: "MechanismSystem", joints: Band, g: Element, mu: Coordinates) -> Coordinates:
    """Return the nearest momentum that all joints allow."""
    along = Along(system, joints)
    nothing = jnp.zeros((len(joints.order), joints.rows))
    each = along.bodies(mu)
    met = Reactions(along, along.places(g)).stopping(each, nothing, jnp.abs(each))
    return along.flat(met.mu)


def reacting(
    system: "MechanismSystem", joints: Band, g: Element, mu: Coordinates, t: Float[Array, ""]
) -> tuple[Derivative, Float[Array, " k"]]:
    """Return the motion with the reactions of the joints, and their multipliers as written."""
    along, xi, constraint = Along(system, joints), system.velocity(g, mu), system.constraint
    assert constraint is not None
    free = system.group.coad(xi, mu) + system.total_force(g, xi, mu, t)
    drift = along.to_band_order(drift_of_constraint(system, constraint, g, xi, t))
    each = along.bodies(free)
    met = Reactions(along, along.places(g)).stopping(each, drift, jnp.abs(each))
    return Derivative(xi, along.flat(met.mu)), along.to_user_order(met.impulses)


def apply_transpose(
    system: "MechanismSystem", joints: Band, g: Element, lam: Float[Array, " k"]
) -> Coordinates:
    r"""Return $W^T\lambda$ for multipliers as joints were written."""
    along = Along(system, joints)
    by_body = along.by_body(along.rows(along.places(g)))
    return along.flat(along.pushes(by_body, along.to_band_order(lam)))
