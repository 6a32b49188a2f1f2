r"""When a rolling contact ends, and how a run is told.

With $d$ from rod 1 to rod 2, $\hat d = d/|d|$ and $\lambda$ the force on rod 1,
$N = -\lambda\cdot\hat d$ and $\lambda_t = \lambda - (\lambda\cdot\hat d)\hat d$. The rods roll
while

$$ N > 0, \qquad |\lambda_t| \le \mu N, \qquad 3W \le s_i \le L_i - 3W, \qquad H > 0: \tag{1} $$

they press on each other, friction holds them, the bump lies within both rods, and the points of
contact are those closest to each other. The force is the one of continuous time at a state, so that
(1) does not depend on the integrator: every step of every integrator is tested at its end.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from retrax.errors import ContactDegenerate, ContactLeftRod, ContactLost, Separation, Slip
from retrax.mechanics.state import Ending, State, bracket
from retrax.numerics.bspline import SUPPORT
from retrax.numerics.jax_hints import compiled_once
from retrax.systems.rods.limits import FLATTEST, beyond, degenerate, placed

if TYPE_CHECKING:
    from retrax.systems.rods.pair import RodsInContact

_BEHIND = 1e-4  # of a step


def kinds(system: "RodsInContact") -> tuple[type[ContactLost], ...]:
    """What may end the contact, in the order of `margins`."""
    always = (ContactDegenerate, ContactLeftRod, Separation)
    return always if system.friction is None else (*always, Slip)


def margins(system: "RodsInContact", state: State) -> Float[Array, " kinds"]:
    """How far each of (1) is from failing; positive while the contact lasts."""
    g = state.g
    acting = system.contact_force(g, system.multipliers(state))
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


def ending(system: "RodsInContact", step: Callable[[float], State], h: float) -> Ending | None:
    """Which of (1) fails first in a step of size `h`, and where: by bisection with shorter steps.

    The state of the ending is the last one at which the contact lasts, up to round-off.
    """

    def kept(size: float) -> np.ndarray:
        return np.asarray(_seen(system, step(size)).margins) > 0

    if kept(h).all():
        return None
    first, last = bracket(lambda size: bool(kept(size).all()), h)
    # Just behind the event: friction without end gives way a rounding error before pressure does.
    failed = kept(min(last + _BEHIND * h, h)) & kept(last)
    kind, before = kinds(system)[int(np.argmin(failed))], step(first)
    what, why = _sentence(kind, system, _seen(system, step(last)), float(before.t), h)
    return Ending(what, why, kind, before)


class _Seen(NamedTuple):
    """A state at which the contact may end: the margins, the force, the place, the Hessian."""

    margins: Float[Array, " kinds"]
    acting: dict[str, Float[Array, "..."]]
    s: Float[Array, "2"]
    H: Float[Array, "2 2"]


@compiled_once
def _seen(system: Any, state: State) -> _Seen:
    acting = system.contact_force(state.g, system.multipliers(state))
    return _Seen(margins(system, state), acting, state.g[2], system.curvature_of_gap(state.g))


def _sentence(
    kind: type[ContactLost], system: "RodsInContact", end: _Seen, t: float, h: float
) -> tuple[str, str]:
    place = placed(end.s, t, h)
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
            f"{tangential:.3g} N, {float(system.friction):g} times the pressure of "
            f"{float(end.acting['pressure']):.3g} N.",
        )
    if kind is ContactLeftRod:
        reach = SUPPORT * float(system.width)
        return "takes the contact off a rod", beyond(end.s, t, reach, h)
    return "finds no single point of contact", degenerate(end.s, t, end.H, h)


def _steepness(H: Float[Array, "2 2"]) -> Float[Array, ""]:
    """The smaller eigenvalue over the size of the mean of both."""
    mean, half = (H[0, 0] + H[1, 1]) / 2, (H[0, 0] - H[1, 1]) / 2
    return (mean - jnp.sqrt(half * half + H[0, 1] * H[1, 0])) / jnp.abs(mean)
