"""The two integrators that the nonholonomic paper prints for Suslov's problem."""

from typing import ClassVar

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from retrax.errors import BadInput
from retrax.groups.so3 import SO3
from retrax.integrators.base import AbstractIntegrator, StepInfo, step_info
from retrax.mechanics.state import State
from retrax.mechanics.system import AbstractGroupSystem
from retrax.numerics.cross import cross
from retrax.numerics.newton import newton

_SO3 = SO3()


class PrintedSuslov(AbstractIntegrator):
    r"""Equations (18) and (19) of the paper, for $\Omega = (\Omega_1, \Omega_2, 0)$, $x = h\Omega$.

    Free steps with $s = 0$ whose third equation and third momentum are dropped, which is what the
    projection does here:

    $$
    \begin{aligned}
    R_{k+1} &= R_k\exp\hat x, \quad \Bigl(1 - \tfrac{1-\cos|x|}{|x|^2}\hat x
        + \tfrac{|x|-\sin|x|}{|x|^3}\hat x^2\Bigr)\Pi_k = \mathbb I\Omega, \quad
        \Pi_{k+1} = \exp(-\hat x)\,\Pi_k                                           &&\text{(18)}\\
    R_{k+1} &= R_k\,\mathrm{cay}\,\hat x, \quad
        (1 - \tfrac12\hat x)\,\Pi_k = (1 + \tfrac14|x|^2)\,\mathbb I\Omega, \quad
        \Pi_{k+1} = \mathrm{cay}(-\hat x)\,\Pi_k                                   &&\text{(19)}
    \end{aligned}
    $$

    These are the corrected equations. In print the signs of $\hat x$ are reversed, which in the
    plane of the constraint cannot be seen; and (19) has $(1-\hat x)^{-1}(1+\hat x)$ in the place of
    the Cayley map and $2(1+\hat x)\Pi_k = (1+|x|^2)\,\mathbb I\Omega$: everything turns four times
    too fast (`literal`).

    **Arguments:**

    - `cayley`: (19) rather than (18).
    - `literal`: (19) as it is printed.

    References: [BarberoLinanMartinDeDiego2023] (the lifted maps).
    """

    cayley: bool = eqx.field(static=True, default=False)
    literal: bool = eqx.field(static=True, default=False)

    order: ClassVar[int] = 1
    preserves: ClassVar[frozenset[str]] = frozenset({"group", "constraint"})

    def check(self, system: AbstractGroupSystem) -> None:
        if not isinstance(system.group, SO3):
            raise BadInput(f"equations (18) and (19) are for SO(3), not for {system.group.name}.")

    def step(
        self, system: AbstractGroupSystem, state: State, h: Float[Array, ""]
    ) -> tuple[State, StepInfo]:
        momentum = state.momentum

        def flat(v):
            return jnp.concatenate([v, jnp.zeros(1)])

        def mismatch(planar):
            omega = flat(planar)
            x, target = h * omega, system.momentum(state.g, omega)
            if self.literal:
                left = 2 * (momentum + cross(x, momentum)) - (1 + x @ x) * target
            elif self.cayley:
                left = momentum - cross(x, momentum) / 2 - (1 + x @ x / 4) * target  # (19)
            else:
                left = _SO3.dexp(x, momentum) - target  # (18)
            return left[:2]

        guess = system.velocity(state.g, momentum)[:2] * (2 if self.literal else 1)
        planar, status = newton(mismatch, guess, jnp.max(jnp.abs(momentum)))
        x = h * flat(planar) * (2 if self.literal else 1)
        forward = _SO3.caym1(x) if self.cayley else _SO3.expm1(x)
        turned = momentum + (forward @ momentum if self.literal else forward.T @ momentum)
        end = State(_SO3.advance(state.g, forward), flat(turned[:2]), state.t + h)
        return end, step_info(status, x, jnp.asarray(True))
