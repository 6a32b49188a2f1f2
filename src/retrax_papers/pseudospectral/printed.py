"""What the pseudospectral paper prints, and an iteration that stops too early."""

from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float

from retrax.groups.so3 import SO3
from retrax.integrators.base import AbstractIntegrator, StepInfo, explicit_step
from retrax.integrators.collocation import lie_step
from retrax.integrators.forms import flow_of
from retrax.mechanics.state import State
from retrax.mechanics.system import AbstractGroupSystem
from retrax.numerics.nodes import gauss
from retrax.numerics.small_matrices import cross

_SO3 = SO3()


class PrintedAlgorithm(AbstractIntegrator):
    r"""Algorithm 1 of the paper, with (25): two velocities, one bracket, one exponential.

    $$
    \begin{aligned}
    u &= \tfrac h2(\xi_1 + \xi_2) \mp \tfrac{\sqrt3}{12}h^2[\xi_1, \xi_2], \qquad
        R_{n+1} = R_n\exp\hat u                                                  &&\text{(25)}\\
    \omega_{n+1} &= R_{n+1}\omega_n \quad\text{(as printed)}, \qquad
        \omega_{n+1} = \omega_n + \tfrac h2(\dot\omega_1 + \dot\omega_2)         &&\text{(26)}
    \end{aligned}
    $$

    The paper takes $\xi_i$ from two collocation problems of their own, on $[t_n, t_n + c_ih]$; here
    they are solved to round-off, so that what differs is what is printed. The minus of (25) is for
    $\exp(\hat u)R_n$; with $R_n\exp\hat u$ the sign is plus.

    **Arguments:**

    - `corrected_velocity`: the second of (26) rather than the first.
    - `corrected_sign`: plus in (25).

    References: [IserlesMuntheKaasNorsettZanna2000].
    """

    corrected_velocity: bool = eqx.field(static=True, default=False)
    corrected_sign: bool = eqx.field(static=True, default=False)

    order: ClassVar[int] = 2
    preserves: ClassVar[frozenset[str]] = frozenset({"group"})

    def step(
        self, system: AbstractGroupSystem, state: State, h: Float[Array, ""]
    ) -> tuple[State, StepInfo]:
        flow = flow_of(system, state)

        def stage(c):
            g, mu = lie_step(flow, state.t, c * h, gauss(4)).y
            return system.vector_field(g, mu, state.t + c * h)

        (first, push), (second, pull) = (stage(c) for c in gauss(2).c)
        sign = 1.0 if self.corrected_sign else -1.0
        u = h / 2 * (first + second) + sign * np.sqrt(3) / 12 * h**2 * cross(first, second)
        g1 = _SO3.advance(state.g, _SO3.expm1(u))  # (25)
        if self.corrected_velocity:
            mu1 = state.momentum + h / 2 * (push + pull)  # (26)
        else:
            mu1 = system.momentum(g1, g1 @ system.velocity(state.g, state.momentum))
        return State(g1, mu1, state.t + h), explicit_step(u)


class LoosePlainGauss(AbstractIntegrator):
    """Plain Gauss collocation with two stages whose iteration stops at a tolerance.

    **Arguments:** `tolerance`: of the last increment of the stage rates.

    References: [HairerLubichWanner2006] VIII.6.
    """

    tolerance: float = eqx.field(static=True)

    order: ClassVar[int] = 4
    preserves: ClassVar[frozenset[str]] = frozenset()

    def step(
        self, system: AbstractGroupSystem, state: State, h: Float[Array, ""]
    ) -> tuple[State, StepInfo]:
        A, b = np.array(gauss(2).A), np.array(gauss(2).b)
        start = jnp.concatenate([state.g.reshape(-1), state.momentum])

        def rate(y):
            now = system.vector_field(y[:9].reshape(3, 3), y[9:], state.t)
            return jnp.concatenate(
                [(y[:9].reshape(3, 3) @ _SO3.hat(now.velocity)).reshape(-1), now.momentum_rate]
            )

        def sweep(carried):
            K, _ = carried
            new = jax.vmap(rate)(start[None] + h * (A @ K))
            return new, jnp.max(jnp.abs(new - K))

        guess = jnp.broadcast_to(rate(start), (2, 12))
        K, _ = lax.while_loop(
            lambda it: it[1] > self.tolerance, sweep, (guess, jnp.asarray(jnp.inf))
        )
        end = start + h * (b @ K)
        move = h * system.velocity(state.g, state.momentum)
        return State(end[:9].reshape(3, 3), end[9:], state.t + h), explicit_step(move)
