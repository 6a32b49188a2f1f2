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
from retrax.numerics.newton import newton
from retrax.numerics.small_matrices import cross

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

    This is how they follow from (16). In the copy at hand their glyphs are damaged, and can be read
    (`as_read`) as

    $$
    \begin{aligned}
    \Bigl(1 + \tfrac{1-\cos|x|}{|x|^2}\hat x + \tfrac{|x|-\sin|x|}{|x|^3}\hat x^2\Bigr)\Pi_k
        &= h\,\mathbb I\Omega, \quad \Pi_{k+1} = \exp(\hat x)\,\Pi_k        &&\text{(18), as read}\\
    2(1+\hat x)\,\Pi_k &= (1+|x|^2)\,\mathbb I\Omega, \quad
        R_{k+1} = R_k\,(1-\hat x)^{-1}(1+\hat x).                           &&\text{(19), as read}
    \end{aligned}
    $$

    In the plane of the constraint the signs cannot be seen. Of the factors $h$ and 2 nothing can be
    said about the paper: a transpose, an inverse or a fraction may be lost in the copy.

    **Arguments:**

    - `cayley`: (19) rather than (18).
    - `as_read`: the equations as the damaged copy reads.

    References: [BarberoLinanMartinDeDiego2023] (the lifted maps).
    """

    cayley: bool = eqx.field(static=True, default=False)
    as_read: bool = eqx.field(static=True, default=False)

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
            if self.cayley and self.as_read:
                left = 2 * (momentum + cross(x, momentum)) - (1 + x @ x) * target
            elif self.cayley:
                left = momentum - cross(x, momentum) / 2 - (1 + x @ x / 4) * target  # (19)
            elif self.as_read:
                left = _SO3.dexp(-x, momentum) - h * target
            else:
                left = _SO3.dexp(x, momentum) - target  # (18)
            return left[:2]

        # As read, (18) turns by I^-1 Pi in a step, and (19) twice as fast as it should.
        faster = (2 if self.cayley else 1 / h) if self.as_read else 1
        guess = system.velocity(state.g, momentum)[:2] * faster
        planar, status = newton(mismatch, guess, jnp.max(jnp.abs(momentum)))
        x = h * flat(planar) * (2 if self.cayley and self.as_read else 1)
        forward = _SO3.caym1(x) if self.cayley else _SO3.expm1(x)
        turned = momentum + (forward @ momentum if self.as_read else forward.T @ momentum)
        end = State(_SO3.advance(state.g, forward), flat(turned[:2]), state.t + h)
        return end, step_info(status, x, jnp.asarray(True))
