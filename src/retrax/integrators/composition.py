"""Higher order from symmetric steps."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float

from retrax.errors import BadInput
from retrax.integrators.base import (
    AbstractIntegrator,
    Memory,
    Refusal,
    StepInfo,
    as_integrator,
    explicit_step,
    worse,
)
from retrax.mechanics.state import State
from retrax.mechanics.system import AbstractGroupSystem
from retrax.numerics.compositions import fractions


class Composition(AbstractIntegrator):
    r"""A symmetric second-order step, composed to order 4, 6 or 8.

    $$ \Psi_h = \Phi_{\gamma_m h} \circ \dots \circ \Phi_{\gamma_1 h}, \qquad
       \gamma_i = \gamma_{m+1-i}, \quad \textstyle\sum_i\gamma_i = 1. \tag{1} $$

    Everything that each $\Phi$ preserves, $\Psi$ preserves: on $T^*G$ these are symplectic methods
    of high order. Some of the steps go backwards, so dissipative forces are integrated with the
    right order but not unconditionally stably. A base that keeps the energy to round-off is the
    exception: where the motion settles, the steps back undo what the steps forth have settled,
    rounding errors all have one sign, and up to half a unit in the last place is lost in every
    substep. So $\Psi$ does not claim the energy. Nor does it step contacts that rub, which lose
    energy that no step back can return.

    **Arguments:**

    - `base`: a symmetric integrator of order 2, or its name, such as `"lie-verlet"`.
    - `order`: 4 (five steps), 6 (nine) or 8 (seventeen).

    References: [Suzuki1990] (order 4); [KahanLi1997] (6 and 8); [HairerLubichWanner2006] V.3.
    """

    base: AbstractIntegrator
    order: int = eqx.field(static=True)
    preserves: frozenset[str] = eqx.field(static=True)

    def __init__(self, base: AbstractIntegrator | str, order: int):
        base = as_integrator(base, "base")
        if "symmetric" not in base.preserves or base.order != 2:
            raise BadInput(
                f"base = {base!r} cannot be composed: the coefficients raise the order of "
                f"symmetric steps of order 2, but it has order {base.order} and preserves "
                f"{sorted(base.preserves)}."
            )
        fractions(order)
        self.base = base
        self.order = int(order)
        self.preserves = base.preserves - {"energy", "contact"}

    def __repr__(self) -> str:
        return f"Composition({self.base!r}, order={self.order})"

    @property
    def needs_momentum(self) -> bool:
        return self.base.needs_momentum

    @property
    def memory_saves_work(self) -> bool:
        return self.base.memory_saves_work

    def check(self, system: AbstractGroupSystem) -> None:
        self.base.check(system)

    def check_step(self, system: AbstractGroupSystem, state: State, h: float) -> None:
        self.base.check_step(system, state, max(map(abs, fractions(self.order))) * h)

    def refusal(self, system: AbstractGroupSystem, state: State, h: float, moved: float) -> Refusal:
        """Explain the first substep that failed, its step size scaled to the whole step."""
        now = jax.tree.map(jnp.asarray, state)
        step = jax.jit(lambda *start: self.base.step(*start))
        for gamma in fractions(self.order):
            end, info = step(system, now, jnp.asarray(gamma * h))
            if not bool(info.in_chart):
                own = self.base.refusal(system, now, gamma * h, float(info.increment))
                what = f"{own.what} in a substep of h = {gamma * h:.3g}"
                return own._replace(what=what, h=own.h / gamma)
            now = end
        return self.base.refusal(system, state, h, moved)

    def memory(self, system: AbstractGroupSystem, state: State) -> Memory:
        return self.base.memory(system, state)

    def step(
        self, system: AbstractGroupSystem, state: State, h: Float[Array, ""]
    ) -> tuple[State, StepInfo]:
        new, info, _ = self.next_step(system, state, h, self.memory(system, state))
        return new, info

    def next_step(
        self, system: AbstractGroupSystem, state: State, h: Float[Array, ""], memory: Memory
    ) -> tuple[State, StepInfo, Memory]:
        def substep(
            carry: tuple[State, StepInfo, Memory], gamma: Float[Array, ""]
        ) -> tuple[tuple[State, StepInfo, Memory], None]:
            now, so_far, memory = carry
            end, info, memory = self.base.next_step(system, now, gamma * h, memory)
            return (end, worse(so_far, info), memory), None

        start = state, explicit_step(jnp.zeros(1)), memory
        end, _ = lax.scan(substep, start, jnp.array(fractions(self.order)))  # (1)
        return end
