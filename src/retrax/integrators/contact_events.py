r"""When a rolling contact ends, and how a run is told.

With $d$ from rod 1 to rod 2, $\hat d = d/|d|$ and $\lambda$ the force on rod 1,
$N = -\lambda\cdot\hat d$ and $\lambda_t = \lambda - (\lambda\cdot\hat d)\hat d$. The rods roll
while

$$ N > 0, \qquad |\lambda_t| \le \mu N, \qquad 3W \le s_i \le L_i - 3W, \qquad H > 0: \tag{1} $$

they press on each other, friction holds them, the bump lies within both rods, and the points of
contact are those closest to each other.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from retrax.errors import ContactDegenerate, ContactLeftRod, ContactLost, Separation, Slip
from retrax.integrators.base import Refusal
from retrax.mechanics.state import State
from retrax.numerics.once import compiled_once
from retrax.systems.rods.bump import SUPPORT
from retrax.systems.rods.limits import FLATTEST, beyond, degenerate, placed
from retrax.systems.rods.pair import RodsInContact

_HALVINGS = 60


def kinds(system: RodsInContact) -> tuple[type[ContactLost], ...]:
    """What may end the contact, in the order of `margins`."""
    always = (ContactDegenerate, ContactLeftRod, Separation)
    return always if system.friction is None else (*always, Slip)


def margins(system: RodsInContact, g: Any, lam: Float[Array, "3"]) -> Float[Array, " kinds"]:
    """How far each of (1) is from failing; positive while the contact lasts."""
    acting = system.contact_force(g, lam)
    s, reach = g[2], SUPPORT * system.width
    one, two = (
        jnp.minimum(s[k] - reach, rod.length - reach - s[k]) for k, rod in enumerate(system.rods)
    )
    out = [
        _steepness(system.curvature_of_gap(g)) - FLATTEST,
        jnp.minimum(one, two),
        acting["pressure"],
    ]
    if system.friction is not None:
        held = acting["tangential"]
        out.append(system.friction * acting["pressure"] - jnp.sqrt(held @ held))
    return jnp.stack(out)


def intact(system: RodsInContact, g: Any, lam: Float[Array, "3"]) -> Bool[Array, ""]:
    """Whether the contact lasts, (1)."""
    return jnp.min(margins(system, g, lam)) > 0


def refused(integrator: Any, system: RodsInContact, state: State, h: float) -> Refusal:
    """Which of (1) fails in the step from `state`, when, and the sentence about it."""
    state = jax.tree.map(jnp.asarray, state)

    def after(size: float) -> _After:
        return _after(integrator, system, state, jnp.asarray(size))

    which = int(np.argmax(~(np.asarray(after(h).coarse) > 0)))
    kind = kinds(system)[which]
    # The force is that of the middle of a step, so the event may lie in the step before.
    first, last = -h, 2.0 * h
    for _ in range(_HALVINGS):
        middle = (first + last) / 2
        lasts = float(after(middle).exact[which]) > 0
        first, last = (middle, last) if lasts else (first, middle)
        if last - first < 1e-12 * h:
            break
    at = float(state.t) + last
    what, why = _sentence(kind, system, after(last), at)
    return Refusal(what, why, h / 2, kind)


class _After(NamedTuple):
    """A step: margins of its own force, and at its end those of the force in continuous time."""

    coarse: Float[Array, " kinds"]
    exact: Float[Array, " kinds"]
    acting: dict[str, Float[Array, "..."]]
    s: Float[Array, "2"]
    H: Float[Array, "2 2"]


@compiled_once
def _after(integrator: Any, system: RodsInContact, state: State, h: Float[Array, ""]) -> _After:
    new, _, lam = integrator.step_and_force(system, state, h)
    exact = system.multipliers(new)
    return _After(
        margins(system, new.g, lam),
        margins(system, new.g, exact),
        system.contact_force(new.g, exact),
        new.g[2],
        system.curvature_of_gap(new.g),
    )


def _sentence(
    kind: type[ContactLost], system: RodsInContact, end: _After, t: float
) -> tuple[str, str]:
    place = placed(end.s, t)
    if kind is Separation:
        return (
            "separates the rods",
            f"The pressure between them falls to zero {place}; from there on the constraint would "
            "have to pull.",
        )
    if kind is Slip and system.friction is not None:
        tangential = float(np.linalg.norm(end.acting["tangential"]))
        return (
            "needs more friction than there is",
            f"The force leaves the friction cone {place}: its tangential part reaches "
            f"{tangential:.6g} N, {float(system.friction):g} times the pressure of "
            f"{float(end.acting['pressure']):.6g} N.",
        )
    if kind is ContactLeftRod:
        reach = SUPPORT * float(system.width)
        return "takes the contact off a rod", beyond(end.s, t, reach)
    return "finds no single point of contact", degenerate(end.s, t, end.H)


def _steepness(H: Float[Array, "2 2"]) -> Float[Array, ""]:
    """The smaller eigenvalue over the size of the mean of both."""
    mean, half = (H[0, 0] + H[1, 1]) / 2, (H[0, 0] - H[1, 1]) / 2
    return (mean - jnp.sqrt(half * half + H[0, 1] * H[1, 0])) / jnp.abs(mean)
