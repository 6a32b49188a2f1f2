"""How contacts meet, slip on and settle: speeds and guesses beside the equations of a step."""

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from retrax.groups.base import AbstractLieGroup, Coordinates, Element
from retrax.groups.retractions import AbstractRetraction
from retrax.mechanics.contact import Gaps
from retrax.mechanics.reactions import answers
from retrax.mechanics.system import AbstractGroupSystem
from retrax.numerics.complementarity import Impulses
from retrax.numerics.small_matrices import partly_ordered_solve

Scalar = Float[Array, ""]
# What slips this many times faster than the friction of a stage can stop it goes on slipping.
_FAST = 8.0
# Joints may be redundant: this part of their diagonal is added to it.
_PROXIMAL = 1e-13


def goes_on(
    slip: Float[Array, "m 2"], push: Gaps, friction: Gaps, answer: Gaps
) -> Bool[Array, " m"]:
    """Return which contacts slip too fast for friction to stop them in this step.

    **Arguments:** `slip`: at its start; `push`: how hard they push in it, nearly; `answer`: the
    speed that a unit of friction changes.
    """
    stops = _FAST * friction * push * answer
    return (push > 0) & (jnp.sum(slip**2, axis=1) > stops**2)


def calmed(before: Impulses, found: Impulses, repair: Scalar) -> Impulses:
    """Return what to begin the next iteration with.

    Impulses that repair rounding errors of gaps are no guess for the next step, where they would
    make such errors anew. In the mean with the guesses before they die out.
    """
    near = jnp.sum(jnp.abs(found - before)) <= repair
    return jnp.where(near, (3 * before + found) / 4, found)


def turned(
    group: AbstractLieGroup, tau: AbstractRetraction, move: Coordinates, mu: Coordinates
) -> Coordinates:
    r"""Return $\mathrm{Ad}^*_{\tau(x)}\mu$."""
    return mu + group.coAdm1(tau.minus_identity(group, move), mu)


def joined(
    system: AbstractGroupSystem,
    xi: Coordinates,
    ties: Float[Array, "k n"],
    g: Element,
    mu: Coordinates,
    t: Scalar,
) -> Coordinates:
    """Return velocities after the impulses of joints that they need to stay together."""
    pulls = answers(system, ties, g, mu)
    S = ties @ pulls.T
    S = S + _PROXIMAL * jnp.diag(jnp.diag(S))
    assert system.constraint is not None
    return xi - partly_ordered_solve(S, system.constraint.violation(g, xi, t), len(S)) @ pulls


def approach(gap: Gaps, start: Gaps, end: Gaps, h: Scalar) -> Gaps:
    """Return the speeds at which contacts meet: between those at both ends of a step.

    `end` is the speed that there would be at its end without contact. The part of the step until
    they meet is that of their gap in the way on which they close.
    """
    way = -h * (start + end) / 2
    part = jnp.where(way > gap, gap / jnp.where(way > gap, way, 1.0), 1.0)
    return start + part * (end - start)
