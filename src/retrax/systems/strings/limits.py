"""What a step of the string may be: its size, the turn of a body in it, the forces it can take."""

import math
import warnings
from typing import TYPE_CHECKING

import jax
import jax.numpy as jnp
import numpy as np

from retrax.errors import BadInput
from retrax.mechanics.state import State
from retrax.numerics.reuse import Jitted
from retrax.systems.strings import stability

if TYPE_CHECKING:
    from retrax.systems.strings.string_pendulum import StringPendulum

# A body that turns further than this in a step (rad) is followed, but coarsely.
_FAR = 0.5


def longest_stable_step(system: "StringPendulum") -> float:
    """The longest step at which the waves on this string stay bounded."""
    mass, arm, inertia = (np.asarray(x) for x in system.bodies)
    return stability.longest_stable_step(
        float(system.length),
        float(system.density),
        float(system.stiffness),
        system.elements,
        system.nodes,
        stability.effective_masses(mass, arm, inertia),
    )


def require_stable(system: "StringPendulum", h: float) -> None:
    """Refuse a step that is too long for the waves, warn of one near it."""
    string = float(system.length), float(system.density), float(system.stiffness)
    safe = stability.safe_step(*string, system.elements)
    if h <= safe / 2:
        return
    limit = longest_stable_step(system)
    if h >= limit:
        raise BadInput(
            f"h = {h:.4g} s is unstable on this string: waves along its {system.elements} elements "
            f"need h < {limit:.4g} s (u/(sqrt(3) c) = {safe:.4g} s is always stable)."
        )
    if h > limit / 2:
        warnings.warn(
            f"h = {h:.4g} s is more than half of the longest stable step, {limit:.4g} s: the "
            "fastest waves on the string are followed inaccurately.",
            stacklevel=6,
        )


def watch_rotation(system: "StringPendulum", state: State, h: float) -> None:
    """Warn where a body turns far in the first step."""
    turn = h * _fastest(system, state)
    if turn > _FAR:
        warnings.warn(
            f"a body turns by h |Omega| = {turn:.2g} rad in a step, more than {_FAR} rad: its "
            "motion is followed inaccurately, and a quarter of a turn cannot be taken.",
            stacklevel=6,
        )


def turned_too_far(system: "StringPendulum", state: State, h: float) -> str:
    """Why a step has no solution: a body would turn too far in it."""
    turn = math.degrees(h * _fastest(system, state))
    return (
        f"A body turns by about {turn:.0f} degrees in the step (h |Omega|); the equations of the "
        "drift have one solution only for turns of less than 90 degrees."
    )


def _fastest(system: "StringPendulum", state: State) -> float:
    omega = np.asarray(_angular_velocities(system, jax.tree.map(jnp.asarray, state)))
    return float(np.max(np.linalg.norm(omega, axis=1)))


@Jitted
def _angular_velocities(system: "StringPendulum", state: State) -> jax.Array:
    return system.velocities(state.g, state.momentum)[1]
