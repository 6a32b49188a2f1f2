r"""A digital controller: it looks at the body from time to time, and holds its inputs between."""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float, PyTree

from retrax.errors import BadInput
from retrax.mechanics.actuated import Inputs, Law
from retrax.mechanics.controls import (
    AbstractControl,
    held,
    inputs_of,
    law_name,
    require_inputs,
)
from retrax.mechanics.functions import Function, arguments, as_pytree
from retrax.mechanics.state import State
from retrax.mechanics.system import AbstractGroupSystem
from retrax.numerics.checks import (
    float64,
    outputs,
    require_finite,
    require_function,
    require_number,
)
from retrax.numerics.known import require_each

# The state of a controller: arrays of float64, however nested.
Own = PyTree[Float[Array | np.ndarray, "..."]]
Step = Float[Array, ""]
# A time counts as a whole number of steps or periods if it misses one by less.
_WHOLE = 1e-6
# A number of steps that is so near to a whole one is meant to be that.
_NEARLY = 1e-2
# So many outputs may wait to act: every state of a run holds them.
_MOST_WAITING = 100_000


class SampledState(NamedTuple):
    """What a digital controller keeps: `State.control`.

    **Attributes:** `steps`: how many steps lie behind the last sample; `outputs`: what the last
    samples gave, the newest last; `own`: the state of the law; `None` without one.
    """

    steps: Float[Array | np.ndarray, ""]
    outputs: Float[Array | np.ndarray, "sample m"]
    own: Own | None


class Sampled(AbstractControl):
    r"""A digital controller, which samples the state every `period` and holds its output.

    The first sample is taken where the run starts. A run that starts from `run.final` of a run
    with a controller of the same form goes on with the state of that controller; to begin anew,
    start from `rx.State(s.g, s.momentum, s.t)`. Samples are taken where steps end: behind a `Stop`,
    which lies within a step, the next one comes up to a step late, and the clock runs on from it.

    **Arguments:**

    - `law`: `law(g, xi, t) -> u`, or `law(g, xi, t, state) -> (u, state)` for one that has a
        `state`: an integrator, a filter, an observer.
    - `period`: the time between two samples in seconds, a whole number of steps.
    - `state`: where the state of the law begins: arrays, however nested.
    - `delay`: the time that computing takes, a whole number of steps: what is sampled at $t$ acts
        from $t + $ `delay` on, and before the first output acts, inputs are zero, or the nearest
        to it that the bounds allow.
    """

    law: Function
    state: Own | None
    period: float = eqx.field(static=True)
    delay: float = eqx.field(static=True)

    def __init__(
        self,
        law: Callable[..., Inputs | tuple[Inputs, Own]],
        period: float,
        state: PyTree | None = None,
        delay: float = 0.0,
    ):
        self.law = as_pytree(require_function("law", law))
        self.period = require_number("period", period, "> 0", "s")
        self.delay = require_number("delay", delay, ">= 0", "s")
        self.state = jax.tree.map(lambda x: float64("state", x), state, is_leaf=_is_vector)
        if state is not None and not jax.tree.leaves(self.state):
            raise BadInput(f"state = {state!r} holds no numbers; leave it out.")
        for leaf in jax.tree.leaves(self.state):
            require_each(lambda x: require_finite("state", x), leaf)
        waiting = self.delay / self.period
        if waiting > _MOST_WAITING:
            raise BadInput(
                f"delay = {self.delay:g} s is {waiting:.3g} periods of {self.period:g} s, but each "
                f"state holds the outputs that wait to act, {_MOST_WAITING:,} at the most."
            )

    def __repr__(self) -> str:
        late = f", delay={self.delay:g}" if self.delay else ""
        return f"Sampled({law_name(self.law)}, period={self.period:g}{late})"

    @property
    def _periods(self) -> tuple[int, float]:
        """The delay as whole periods and the rest of it, in seconds."""
        whole = math.floor(self.delay / self.period + _WHOLE)
        rest = self.delay - whole * self.period
        return whole, rest if rest > _WHOLE * self.period else 0.0

    def check(self, system: AbstractGroupSystem, count: int) -> None:
        given = arguments(system.group)
        found = outputs("law", lambda *x: _as_arrays(self.law(*x)), (*given, *self._given()))
        if self.state is None:
            require_inputs(self, found, count)
            return
        if not isinstance(found, tuple) or len(found) != 2:
            raise BadInput(
                f"the law of {self!r} has a state, so it returns the pair (u, state), but it "
                f"returns something else."
            )
        require_inputs(self, found[0], count)
        before, after = (_form(x) for x in (self.state, found[1]))
        if before != after:
            raise BadInput(
                f"the law of {self!r} changes the form of its state: it is given {before[1]} and "
                f"returns {after[1]}; it must return the same arrays, in float64."
            )

    def _given(self) -> tuple[Own, ...]:
        return () if self.state is None else (self.state,)

    def check_run(self, t: float, h: float, steps: int) -> None:
        if h < 0:
            raise BadInput(
                f"h = {h:g} s: {self!r} cannot run back in time, for what it will sample is not "
                "known yet; use Feedback or a Signal."
            )
        _require_whole("period", self.period, h, least=1)
        _require_whole("delay", self.delay, h, least=0)

    def blank(self, count: int) -> SampledState:
        whole, rest = self._periods
        own: Own = jax.tree.map(lambda x: np.zeros(x.shape), self.state)
        nothing: Any = np.zeros(())
        outputs: Any = np.zeros((whole + (rest > 0) + 1, count))
        return SampledState(nothing, outputs, own)

    def first(self, system: AbstractGroupSystem, state: State, count: int) -> SampledState:
        u, own = self._sample(system, state, self.state)
        before = jnp.asarray(self.blank(count).outputs[1:])
        return SampledState(jnp.zeros(()), jnp.concatenate([before, u[None]]), own)

    def _sample(
        self, system: AbstractGroupSystem, state: State, own: Own | None
    ) -> tuple[Inputs, Own | None]:
        """Ask the law."""
        seen = state.g, system.velocity_at(state), state.t
        if own is None:
            return inputs_of(self.law(*seen)), None
        u, own = self.law(*seen, own)
        return inputs_of(u), jax.tree.map(jnp.asarray, own)

    def during(self, state: State, h: Float[Array, ""]) -> Law:
        kept: Any = state.control  # a `SampledState`
        whole, rest = self._periods
        u = kept.outputs[len(kept.outputs) - 1 - whole]
        if rest:  # the output before acts until the rest of the delay is over
            late = kept.steps < jnp.round(rest / h)
            u = jnp.where(late, kept.outputs[0], u)
        return held(u)

    def next(
        self, system: AbstractGroupSystem, new: State, kept: SampledState, h: Float[Array, ""]
    ) -> SampledState:
        steps = kept.steps + 1

        def sample(kept: SampledState) -> SampledState:
            u, own = self._sample(system, new, kept.own)
            outputs = jnp.concatenate([kept.outputs[1:], u[None]])
            return SampledState(jnp.zeros(()), outputs, own)

        def wait(kept: SampledState) -> SampledState:
            return kept._replace(steps=steps)

        return lax.cond(steps >= jnp.round(self.period / h), sample, wait, kept)


def _is_vector(x: object) -> bool:
    """Whether this is a list of numbers, which stands for an array."""
    return isinstance(x, list) and all(isinstance(y, int | float) for y in x)


def _as_arrays(found: object) -> object:
    """A vector of inputs, or one with a state beside it."""
    return jax.tree.map(jnp.asarray, found) if isinstance(found, tuple) else jnp.asarray(found)


def _form(own: PyTree) -> tuple[object, str]:
    """The form of a state, and how it is told."""
    leaves, tree = jax.tree.flatten(own)
    arrays = [_Plain(f"{np.dtype(x.dtype)}{list(np.shape(x))}") for x in leaves]
    return (tree, tuple(arrays)), repr(jax.tree.unflatten(tree, arrays))


class _Plain(str):
    """Words that are told without quotes."""

    def __repr__(self) -> str:
        return str(self)


def _require_whole(name: str, value: float, h: float, least: int) -> None:
    """Reject a time that is no whole number of steps, and say which are near."""
    count = value / h
    near = max(round(count), least)
    if abs(count - near) <= _WHOLE * max(count, 1.0):
        return
    nearly = near > 0 and abs(count - near) < _NEARLY
    other, digits = (near, 12) if nearly else (max(math.ceil(count), 1), 6)
    raise BadInput(
        f"{name} = {value:.{digits}g} s is {count:.{digits}g} steps of h = {h:.{digits}g} s, but a "
        f"digital controller acts where steps end: use {name} = {near * h:.{digits}g} s, or "
        f"h = {value / other:.{digits}g} s."
    )
