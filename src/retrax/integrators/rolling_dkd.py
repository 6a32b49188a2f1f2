"""Drift, kick, drift for two rods that roll on each other: explicit."""

from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from retrax.errors import BadInput
from retrax.groups.so3 import SO3
from retrax.integrators.base import StepInfo
from retrax.integrators.rolling import AbstractRolling, along, force
from retrax.mechanics.state import State
from retrax.numerics.checks import is_traced
from retrax.numerics.small_matrices import solve
from retrax.systems.rods.pair import RodsInContact


class RollingDKD(AbstractRolling):
    r"""Half a free flight, one kick with one multiplier, half a free flight.

    With $\varphi$ the exact free flight of all nodes (symmetric tops), and everything in the kick
    taken at $q_{1/2}$,

    $$
    \begin{aligned}
    (q_{1/2}, p) &= \varphi_{h/2}(q_k, p_k)                                         &&\text{(1)}\\
    p' &= p + h(F + A^T\lambda), \qquad A M^{-1}\tfrac12(p + p') = 0                 &&\text{(2)}\\
    (q_{k+1}, p_{k+1}) &= \varphi_{h/2}(q_{1/2}, p').                                &&\text{(3)}
    \end{aligned}
    $$

    The multiplier of (2) solves a linear system of three equations; it does no work in the step,
    and conserves both momenta where the ends are free. Cheaper than `RollingVerlet`, but the gap
    and the constraint hold up to $O(h^2)$ only.

    References: [GayBalmazPutkaradze2012].
    """

    order: ClassVar[int] = 2
    preserves: ClassVar[frozenset[str]] = frozenset({"group", "momentum", "symmetric"})

    def check(self, system: Any) -> None:
        super().check(system)
        for rod in system.rods:
            moments = rod.parts(rod.inertia)[0]
            if not is_traced(moments) and not np.allclose(moments[:, 0], moments[:, 1], rtol=1e-12):
                raise BadInput(
                    f"inertia of the {rod.name} has two different moments across it, but "
                    "RollingDKD knows the free flight of round sections only; use RollingVerlet."
                )

    def step_and_force(
        self, system: RodsInContact, state: State, h: Float[Array, ""]
    ) -> tuple[State, StepInfo, Float[Array, "3"]]:
        """A step, and the contact force of its kick."""
        g, mu, moved = _flight(system, state.g, state.momentum, h / 2)  # (1)
        s, status = system.touching(g[0], g[1], state.g[2])
        g = (*g, s)
        rows = system.reactions(g)
        pushed = mu + h / 2 * force(system, g, mu, state.t + h / 2)
        lam = -2 / h * solve(system.yielding(rows), system.slip(g, system.mobile(pushed)))
        mu = mu + 2 * (pushed - mu) + h * along(lam, rows)  # (2)
        end, mu, _ = _flight(system, g, mu, h / 2)  # (3)
        s, closed = system.touching(end[0], end[1], 2 * s - state.g[2])
        info = StepInfo(
            status.converged & closed.converged,
            jnp.maximum(status.residual, closed.residual),
            status.iterations + closed.iterations,
            moved,
            jnp.asarray(True),
        )
        return State((*end, s), mu, state.t + h), info, lam


def _flight(system: RodsInContact, g: Any, mu: Any, h: Any) -> tuple[Any, Any, Any]:
    """The exact free flight of both rods, and the longest turn in it."""
    ends, momenta, turns = [], [], []
    for rod, (frames, places), p in zip(system.rods, g[:2], system.split(mu), strict=True):
        spun, pushed = rod.parts(p)
        moments, _ = rod.parts(rod.inertia)
        turned, kept, turn = jax.vmap(lambda R, P, J: _top(R, P, J, h))(frames, spun, moments)
        moved = places + h * (rod.parts(rod.mobility)[1] * pushed)
        ends.append((turned, moved))
        momenta.append(jnp.concatenate([kept, pushed], axis=1).reshape(-1))
        turns.append(jnp.max(turn))
    return tuple(ends), system.joined(*momenta), jnp.maximum(*turns)


def _top(R: Array, P: Array, J: Array, h: Array) -> tuple[Array, Array, Array]:
    r"""A free symmetric top after a time h, $R\exp(hP/J_1)\exp(\theta e_3)$.

    $\theta = h(1/J_3 - 1/J_1)P_3$, and the momentum in the body turns by $-\theta$.
    """
    group = SO3()
    first = h / J[0] * P
    angle = h * (1 / J[2] - 1 / J[0]) * P[2]
    second = jnp.stack([jnp.zeros_like(angle), jnp.zeros_like(angle), angle])
    turned = group.advance(group.advance(R, group.expm1(first)), group.expm1(second))
    return turned, P + group.expm1(-second) @ P, jnp.max(jnp.abs(first))
