"""The paper's way to solve a step of the string: a fixed point in the turn of the body."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from retrax.mechanics.state import State
from retrax.systems.strings import drift
from retrax.systems.strings.drift import undamped
from retrax.systems.strings.string_pendulum import StringPendulum

_TOLERANCE, _MOST = 1e-14, 3000


def turn_by_fixed_point(
    system: StringPendulum, state: State, h: float
) -> tuple[Float[Array, "3"], int]:
    r"""The turn $x$ of the body in a step, and the number of iterations that it took.

    Given a turn, the string is solved for; given the string, the attitude equation with the whole
    inertia $J$ is solved for a new turn, from that of the present velocity until it moves by less
    than 1e-14. The rate is that of $-\alpha M^2J^{-1}\hat\rho^2$, whatever the step size.
    """
    gamma = _kicked(system, state, jnp.asarray(h))
    x = h * system.velocities(state.g, state.momentum)[1]
    for k in range(1, _MOST):
        new = _improve(system, state.g, gamma, x)
        moved = float(jnp.max(jnp.abs(new - x)))
        x = new
        if moved < _TOLERANCE:
            return x[0], k
    return x[0], _MOST


def contraction(system: StringPendulum) -> float:
    """The rate at which the fixed point is approached."""
    rho, M = np.asarray(system.arm[0]), float(system.mass[0])
    alpha = float(system.mass_matrix.columns[system.nodes[0] - 1, 0])
    share = alpha * M**2 * (rho @ rho * np.eye(3) - np.outer(rho, rho))
    rates = np.linalg.eigvals(np.linalg.solve(np.asarray(system.inertia[0]), share))
    return float(np.max(np.abs(rates)))


@jax.jit
def _kicked(system: StringPendulum, state: State, h: Float[Array, ""]) -> Any:
    mu = state.momentum + h / 2 * system.kick(state.g, state.t)
    p, pi = system.momenta(mu)
    _, R = system.parts(state.g)
    y = undamped(system, p).y
    return h * (pi - drift.levers(system.bodies, R, system.carried(y)))


@jax.jit
def _improve(system: StringPendulum, g: Any, gamma: Any, x: Any) -> Any:
    _, R = system.parts(g)
    alpha = system.carried(system.mass_matrix.columns)
    string = drift.coupled(alpha, drift.swept(system.bodies, R, x), True)
    given = gamma + drift.levers(system.bodies, R, string)
    return drift.turns(system.bodies, R, system.inertia, jnp.zeros((1, 1)), given)[0]
