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
    hold,
    inputs_of,
    law_name,
    require_inputs,
)
from retrax.mechanics.functions import Function, arguments, as_pytree
from retrax.mechanics.state import State
from retrax.mechanics.system import AbstractGroupSystem
from retrax.numerics.carried import LeafType, as_floats, is_real_number, leaf_type, of_type
from retrax.numerics.checks import (
    outputs,
    require_finite,
    require_function,
    require_number,
)
from retrax.numerics.known import require_each

# The state of a controller as it is kept: arrays of float64, however nested.
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
    samples gave, the newest last; `own`: the state of the law in float64, keys as their words;
    `None` without one.
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
    - `state`: where the state of the law begins: arrays, however nested. Keys of random numbers,
        `jax.random.key(0)` or `jax.random.PRNGKey(0)`, and truths are what they are for the law;
        all other numbers come as float64.
    - `delay`: the time that computing takes, a whole number of steps: what is sampled at $t$ acts
        from $t + $ `delay` on, and before the first output acts, inputs are zero, or the nearest
        to it that the bounds allow.
    """

    law: Function
    state: Own | None
    types: tuple[LeafType, ...] = eqx.field(static=True)
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
        leaves, tree = jax.tree.flatten(state, is_leaf=_is_vector)
        if state is not None and not leaves:
            raise BadInput(f"state = {state!r} holds no numbers; leave it out.")
        self.types = tuple(leaf_type(x) for x in leaves)
        self.state = jax.tree.unflatten(tree, [as_floats("state", x) for x in leaves])
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
        own: Any = () if self.state is None else (jax.eval_shape(self._convert, self.state),)
        found = outputs("law", lambda *x: _as_arrays(self.law(*x)), (*given, *own))
        if self.state is None:
            require_inputs(self, found, count)
            return
        if not isinstance(found, tuple) or len(found) != 2:
            raise BadInput(
                f"the law of {self!r} has a state, so it returns the pair (u, state), but it "
                f"returns something else."
            )
        require_inputs(self, found[0], count)
        if not _is_kept(own[0], found[1]):
            before, after = _describe(own[0]), _describe(found[1])
            raise BadInput(
                f"the law of {self!r} changes the form of its state: it is given {before} and "
                f"returns {after}; it must return the same arrays."
            )

    def _convert(self, own: Own) -> PyTree:
        """Return the state as the law sees it."""
        leaves, tree = jax.tree.flatten(own)
        typed = [of_type(x, kind) for x, kind in zip(leaves, self.types, strict=True)]
        return jax.tree.unflatten(tree, typed)

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
        u, own = self.law(*seen, self._convert(own))
        return inputs_of(u), jax.tree.map(lambda x: as_floats("state", x), own)

    def during(self, state: State, h: Float[Array, ""]) -> Law:
        kept: Any = state.control  # a `SampledState`
        whole, rest = self._periods
        u = kept.outputs[len(kept.outputs) - 1 - whole]
        if rest:  # the output before acts until the rest of the delay is over
            late = kept.steps < jnp.round(rest / h)
            u = jnp.where(late, kept.outputs[0], u)
        return hold(u)

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
    """Return whether this is a list of numbers, which stands for an array."""
    return isinstance(x, list) and all(isinstance(y, int | float) for y in x)


def _as_arrays(found: object) -> object:
    """Return a vector of inputs, or one with a state beside it."""
    return jax.tree.map(jnp.asarray, found) if isinstance(found, tuple) else jnp.asarray(found)


def _is_kept(given: PyTree, returned: PyTree) -> bool:
    """Tell whether a law returns the arrays that it was given; a float may come as any number."""
    if jax.tree.structure(given) != jax.tree.structure(returned):
        return False
    return all(
        x.shape == y.shape
        and (x.dtype == y.dtype or (x.dtype == jnp.float64 and is_real_number(y.dtype)))
        for x, y in zip(jax.tree.leaves(given), jax.tree.leaves(returned), strict=True)
    )


def _describe(own: PyTree) -> str:
    """Say what arrays a state is made of."""
    return repr(jax.tree.map(lambda x: _Plain(f"{x.dtype}{list(x.shape)}"), own))


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
