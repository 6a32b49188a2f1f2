"""Steps that halt a loop where an event happens."""

from collections.abc import Sequence

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from retrax.integrators.base import AbstractIntegrator, Memory, Refusal, StepInfo
from retrax.mechanics.events import Event, Stop
from retrax.mechanics.state import State
from retrax.mechanics.system import AbstractGroupSystem

Values = Float[Array, " event"]


class Watching(AbstractIntegrator):
    """Steps of `integrator` that do not count where an event crosses zero.

    The values of the events at the end of a step are part of its memory. A step in which one
    crosses zero has `in_chart` false, which halts every loop before it. With NaN for the values in
    the memory a step looks at nothing.

    References: [HairerNorsettWanner1993] II.6.
    """

    integrator: AbstractIntegrator
    events: tuple[Event | Stop, ...]
    order: int = eqx.field(static=True)
    preserves: frozenset[str] = eqx.field(static=True)

    def __init__(self, integrator: AbstractIntegrator, events: Sequence[Event | Stop]):
        self.integrator, self.events = integrator, tuple(events)
        self.order, self.preserves = integrator.order, integrator.preserves

    def __repr__(self) -> str:
        return repr(self.integrator)

    @property
    def needs_momentum(self) -> bool:
        return self.integrator.needs_momentum

    @property
    def memory_saves_work(self) -> bool:
        return self.integrator.memory_saves_work

    def values(self, system: AbstractGroupSystem, state: State) -> Values:
        """Return what the events are at a state."""
        xi = system.velocity_at(state)
        return jnp.stack([jnp.asarray(e.function(state.g, xi, state.t)) for e in self.events])

    def check(self, system: AbstractGroupSystem) -> None:
        self.integrator.check(system)

    def check_step(self, system: AbstractGroupSystem, state: State, h: float) -> None:
        self.integrator.check_step(system, state, h)

    def refusal(self, system: AbstractGroupSystem, state: State, h: float, moved: float) -> Refusal:
        return self.integrator.refusal(system, state, h, moved)

    def fault(self, system: AbstractGroupSystem, state: State, h: float) -> str | None:
        return self.integrator.fault(system, state, h)

    def memory(self, system: AbstractGroupSystem, state: State) -> tuple[Memory, Values]:
        return self.integrator.memory(system, state), self.values(system, state)

    def step(
        self, system: AbstractGroupSystem, state: State, h: Float[Array, ""]
    ) -> tuple[State, StepInfo]:
        new, info, _ = self.next_step(system, state, h, self.memory(system, state))
        return new, info

    def next_step(
        self,
        system: AbstractGroupSystem,
        state: State,
        h: Float[Array, ""],
        memory: tuple[Memory, Values],
    ) -> tuple[State, StepInfo, tuple[Memory, Values]]:
        inner, before = memory
        new, info, inner = self.integrator.next_step(system, state, h, inner)
        after = self.values(system, new)
        quiet = info.in_chart
        for k, event in enumerate(self.events):
            a, b = before[k], after[k]
            if event.direction != "falling":
                quiet = quiet & ~((a < 0) & (b >= 0))
            if event.direction != "rising":
                quiet = quiet & ~((a > 0) & (b <= 0))
            quiet = quiet & ~((a == a) & (b != b))
        return new, info._replace(in_chart=quiet), (inner, after)
