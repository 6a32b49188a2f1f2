"""Steps that halt a loop where an event happens, or may happen."""

from collections.abc import Sequence
from typing import NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from retrax.integrators.base import AbstractIntegrator, Memory, Refusal, StepInfo
from retrax.mechanics.events import Event, Stop
from retrax.mechanics.state import State
from retrax.mechanics.system import AbstractGroupSystem

Values = Float[Array, " event"]
# A parabola is believed to so much of its second difference.
_DOUBT = 0.25


class Seen(NamedTuple):
    """The values of the events, at the last two ends of steps.

    `before` is NaN at the start, and `now` in a step that looks at nothing; then `before` holds
    what `now` would.
    """

    before: Values | np.ndarray
    now: Values | np.ndarray


class Watching(AbstractIntegrator):
    """Steps of `integrator` that do not count where an event may cross zero.

    The values of the events are part of the memory of a step. A step has `in_chart` false, which
    halts every loop before it, where an event changes its sign; where the parabola through its last
    three values comes near zero within the step, so that it may cross twice; where it leaves a zero
    on which it has rested; and in the first step, before which there is no value.

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
        found = [jnp.asarray(e.function(state.g, xi, state.t)) for e in self.events]
        return jnp.stack([x.astype(jnp.float64) for x in found])

    def check(self, system: AbstractGroupSystem) -> None:
        self.integrator.check(system)

    def check_step(self, system: AbstractGroupSystem, state: State, h: float) -> None:
        self.integrator.check_step(system, state, h)

    def refusal(self, system: AbstractGroupSystem, state: State, h: float, moved: float) -> Refusal:
        return self.integrator.refusal(system, state, h, moved)

    def fault(self, system: AbstractGroupSystem, state: State, h: float) -> str | None:
        return self.integrator.fault(system, state, h)

    def memory(self, system: AbstractGroupSystem, state: State) -> tuple[Memory, Seen]:
        now = self.values(system, state)
        return self.integrator.memory(system, state), Seen(jnp.full_like(now, jnp.nan), now)

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
        memory: tuple[Memory, Seen],
    ) -> tuple[State, StepInfo, tuple[Memory, Seen]]:
        inner, (before, now) = memory
        new, info, inner = self.integrator.next_step(system, state, h, inner)
        after = self.values(system, new)
        quiet = info.in_chart
        for k, event in enumerate(self.events):
            quiet = quiet & ~_happens(event, before[k], now[k], after[k])
        seen = Seen(jnp.where(now == now, now, before), after)
        return new, info._replace(in_chart=quiet), (inner, seen)


def _happens(
    event: Event | Stop, p: Float[Array, ""], a: Float[Array, ""], b: Float[Array, ""]
) -> Bool[Array, ""]:
    """Return whether an event may happen in a step from `a` to `b`, before which it was `p`."""
    watched = (a == a) | (p != p)  # not asleep, though it may be no number at the start
    found = (p != p) | (b != b)  # the first step; not a number
    if event.direction != "falling":
        found = found | ((a < 0) & (b >= 0))
    if event.direction != "rising":
        found = found | ((a > 0) & (b <= 0))
    found = found | ((p == 0) & (a == 0) & (b != 0))
    return watched & (found | _may_turn(p, a, b))


def _may_turn(p: Float[Array, ""], a: Float[Array, ""], b: Float[Array, ""]) -> Bool[Array, ""]:
    r"""Return whether three values of one sign let a function cross zero twice at the end.

    With the second difference $c$, the parabola $a + ms + cs^2/2$ turns at $s = -m/c$.
    """
    side = jnp.where(a > 0, 1.0, -1.0)
    c, m = side * (b - 2 * a + p), side * (b - p) / 2
    bends = (a * b > 0) & (c > 0) & (m < c / 2) & (m > -1.5 * c)
    s = jnp.clip(-m / jnp.where(bends, c, 1.0), 0.0, 1.0)
    return bends & (side * a + s * (m + s * c / 2) <= _DOUBT * c)
