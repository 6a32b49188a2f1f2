r"""When a rolling contact ends, and how a run is told.

With $d$ from rod 1 to rod 2, $\hat d = d/|d|$ and $\lambda$ the force on rod 1,
$N = -\lambda\cdot\hat d$ and $\lambda_t = \lambda - (\lambda\cdot\hat d)\hat d$. The rods roll
while

$$ N > 0, \qquad |\lambda_t| \le \mu N, \qquad 3W \le s_i \le L_i - 3W, \qquad H > 0: \tag{1} $$

they press on each other, friction holds them, the bump lies within both rods, and the points of
contact are those closest to each other.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from retrax.errors import ContactDegenerate, ContactLeftRod, ContactLost, Separation, Slip
from retrax.integrators.base import Refusal
from retrax.mechanics.state import State
from retrax.systems.rods.bump import SUPPORT
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
    curvature = _smallest_eigenvalue(system.curvature_of_gap(g))
    out = [curvature, jnp.minimum(one, two), acting["pressure"]]
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

    @jax.jit
    def after(size):
        new, _, lam = integrator.step_and_force(system, state, size)
        exact = margins(system, new.g, system.multipliers(new))
        return new, margins(system, new.g, lam), exact

    _, coarse, _ = after(jnp.asarray(h))
    which = int(np.argmax(~(np.asarray(coarse) > 0)))
    kind = kinds(system)[which]
    # The force is that of the middle of a step, so the event may lie in the step before.
    first, last = -h, 2.0 * h
    for _ in range(_HALVINGS):
        middle = (first + last) / 2
        lasts = float(after(jnp.asarray(middle))[2][which]) > 0
        first, last = (middle, last) if lasts else (first, middle)
        if last - first < 1e-12 * h:
            break
    at = float(state.t) + last
    new = after(jnp.asarray(last))[0]
    what, why = _sentence(kind, system, new, at)
    return Refusal(what, why, h / 2, kind)


def _sentence(
    kind: type[ContactLost], system: RodsInContact, state: State, t: float
) -> tuple[str, str]:
    acting = system.contact_force(state.g, system.multipliers(state))
    s = [float(x) for x in state.g[2]]
    place = f"at t = {t:.10g} s, where s = ({s[0]:.6g}, {s[1]:.6g})"
    if kind is Separation:
        return (
            "separates the rods",
            f"The pressure between them falls to zero {place}; from there on the constraint would "
            "have to pull.",
        )
    if kind is Slip:
        tangential = float(jnp.linalg.norm(acting["tangential"]))
        return (
            "needs more friction than there is",
            f"The force leaves the friction cone {place}: its tangential part reaches "
            f"{tangential:.6g} N, {float(system.friction):g} times the pressure of "  # type: ignore[arg-type]
            f"{float(acting['pressure']):.6g} N.",
        )
    if kind is ContactLeftRod:
        reach = SUPPORT * float(system.width)
        return (
            "takes the contact off a rod",
            f"It comes closer than {reach:g} m to an end {place}: the nodes that carry it would "
            "lie beyond.",
        )
    values = np.linalg.eigvalsh(np.asarray(system.curvature_of_gap(state.g)))
    return (
        "finds no single point of contact",
        f"The rods are too parallel or too strongly curved {place}: the Hessian of their distance "
        f"has the eigenvalues {values[0]:.3g} and {values[1]:.3g}, which must be positive.",
    )


def _smallest_eigenvalue(H: Float[Array, "2 2"]) -> Float[Array, ""]:
    mean, half = (H[0, 0] + H[1, 1]) / 2, (H[0, 0] - H[1, 1]) / 2
    return mean - jnp.sqrt(half * half + H[0, 1] * H[1, 0])
