r"""How long a step may be: short enough for the waves on the string and the turns of bodies.

For the waves on the string, kicks and drifts are the Stoermer-Verlet method, stable while
$h < 2/\omega_{\max}$. For a chain with consistent masses

$$ \omega_{\max}^2 \le 12\,\kappa/m = 12\,(c/u)^2, \qquad c = \sqrt{EA/\mu},
   \qquad\text{so}\quad h < u/(\sqrt3\,c) \quad\text{is always stable,} \tag{1} $$

whatever bodies it carries (they add mass), however it is stretched (it is softer across than along
itself) and however it is damped (damping enters at both ends of a step). The exact bound of a chain
is a little longer, and the only one for a string without mass:

$$ \tfrac4{h^2}T - K \quad\text{is positive definite,} \tag{2} $$

with $K$ the stiffness along the string, and in $T$ for each body the least mass that its point of
attachment can show, $1/M_{\rm eff} = 1/M + \max_n\,(\rho\times n)\cdot J_c^{-1}(\rho\times n)$.
"""

import math
from typing import TYPE_CHECKING

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from retrax.errors import BadInput, warn
from retrax.mechanics.solids import about_centre
from retrax.mechanics.state import State
from retrax.numerics.reuse import Jitted
from retrax.systems.strings.chain import masses

if TYPE_CHECKING:
    from retrax.systems.strings.string_pendulum import StringPendulum

_HALVINGS = 40
# Steps in which a body turns further than this (rad) are inaccurate.
_FAR = 0.5


def safe_step(system: "StringPendulum") -> float:
    r"""Return $u/(\sqrt3c)$ of (1); zero for a string without mass."""
    length, density, stiffness = _on_host(system)
    return length / system.elements * math.sqrt(density / (3 * stiffness))


def longest_stable_step(system: "StringPendulum") -> float:
    """Return the bound (2), by bisection."""
    length, density, stiffness = _on_host(system)
    n, u = system.elements, length / system.elements
    effective = jnp.asarray(effective_masses(system))
    diagonal, below, _ = masses(n, jnp.asarray(density * u), system.nodes, effective)
    kappa = stiffness / u
    stiff = kappa * np.where(np.arange(1, n + 1) == n, 1.0, 2.0)
    diagonal, below = np.asarray(diagonal), np.asarray(below)[1:]

    def stable(h: float) -> bool:
        a, b = 4 / h**2 * diagonal - stiff, 4 / h**2 * below + kappa
        pivot = a[0]
        for k in range(1, n):
            if pivot <= 0:
                return False
            pivot = a[k] - b[k - 1] ** 2 / pivot
        return bool(pivot > 0)

    low = safe_step(system)
    high = 2 * math.sqrt(float(np.sum(diagonal)) / kappa) * n + low  # slower than any mode
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if stable(middle) else (low, middle)
    return low


def effective_masses(system: "StringPendulum") -> Float[np.ndarray, " b"]:
    r"""Return $M_{\rm eff}$ of (2) for every body."""
    least = []
    for m, rho, J in zip(*(np.asarray(x) for x in system.bodies), strict=True):
        cross = np.cross(rho, np.eye(3))  # the rows rho x e_i
        central = about_centre(J, m, rho)
        yielding = cross @ np.linalg.pinv(central) @ cross.T
        least.append(1 / (1 / m + float(np.linalg.eigvalsh(yielding)[-1])))
    return np.array(least)


def _on_host(system: "StringPendulum") -> tuple[float, float, float]:
    """Return length, density and stiffness of the string."""
    return float(system.length), float(system.density), float(system.stiffness)


def require_stable(system: "StringPendulum", h: float) -> None:
    """Reject a step that is too long for the waves; warn of one above half of the limit."""
    safe = safe_step(system)
    if h <= safe / 2:
        return
    limit = longest_stable_step(system)
    if h >= limit:
        raise BadInput(
            f"h = {h:.4g} s is unstable on this string: waves along its {system.elements} elements "
            f"need h < {limit:.4g} s (u/(sqrt(3) c) = {safe:.4g} s is always stable)."
        )
    if h > limit / 2:
        warn(
            f"h = {h:.4g} s is more than half of the longest stable step, {limit:.4g} s: it "
            "resolves the fastest waves on the string poorly."
        )


def watch_rotation(system: "StringPendulum", state: State, h: float) -> None:
    """Warn if a body turns far in the first step."""
    turn = h * _fastest(system, state)
    if turn > _FAR:
        warn(
            f"a body turns by h |Omega| = {turn:.2g} rad in a step, more than {_FAR} rad: such "
            "steps are inaccurate, and from a quarter of a turn on they fail."
        )


def fastest_turning(system: "StringPendulum", states: State) -> int:
    """Return which of many states has the body that turns fastest."""
    return int(np.argmax(_fastest_of_each(system, states)))


@Jitted
def _fastest_of_each(system: "StringPendulum", states: State) -> Float[Array, " member"]:
    def speed(state: State) -> Float[Array, ""]:
        omega = system.velocities(state.g, state.momentum)[1]
        return jnp.max(jnp.sum(omega * omega, axis=1))

    return jax.vmap(speed)(states)


def turn_warning(system: "StringPendulum", state: State, h: float) -> str:
    """Return the sentence about a step that fails because a body turns too far in it."""
    turn = math.degrees(h * _fastest(system, state))
    return (
        f"A body turns by about {turn:.0f} degrees in the step (h |Omega|); the equations of the "
        "drift have one solution only for turns of less than 90 degrees."
    )


def _fastest(system: "StringPendulum", state: State) -> float:
    """Return the largest angular velocity of a body, in rad/s."""
    omega = np.asarray(_angular_velocities(system, jax.tree.map(jnp.asarray, state)))
    return float(np.max(np.linalg.norm(omega, axis=1)))


@Jitted
def _angular_velocities(system: "StringPendulum", state: State) -> Float[Array, "b 3"]:
    return system.velocities(state.g, state.momentum)[1]
