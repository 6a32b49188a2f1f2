"""Who chooses the inputs of a driven run: a table, a law of feedback, a digital controller."""

import abc

import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree

from retrax.mechanics.actuated import Actuated, Inputs, Law
from retrax.mechanics.functions import Function, as_pytree
from retrax.mechanics.state import State
from retrax.mechanics.system import AbstractGroupSystem
from retrax.numerics.checks import ArrayLike, finite64
from retrax.numerics.frozen import Frozen

# What a controller keeps from step to step: `State.control`.
Kept = PyTree[Float[Array, "..."]] | None


class AbstractControl(Frozen):
    """Chooses the inputs of each step, from the state at its start or, as feedback, within it."""

    @abc.abstractmethod
    def check(self, plant: Actuated) -> None:
        """Reject, with `BadInput`, a plant whose inputs this does not fit."""

    def first(self, system: AbstractGroupSystem, state: State, count: int) -> Kept:
        """Return what is kept at the start of a run."""
        return None

    @abc.abstractmethod
    def during(self, state: State) -> Law:
        """Return the inputs `u(g, xi, t)` during the step from `state`."""

    def next(
        self, system: AbstractGroupSystem, new: State, kept: Kept, h: Float[Array, ""]
    ) -> Kept:
        """Return what is kept after a step that has led to `new`."""
        return kept


class Held(AbstractControl):
    """Inputs that whoever steps the plant writes into `State.control`, and that are held."""

    def check(self, plant: Actuated) -> None:
        return None

    def first(self, system: AbstractGroupSystem, state: State, count: int) -> Inputs:
        return jnp.zeros(count)

    def during(self, state: State) -> Law:
        return lambda g, xi, t: jnp.asarray(state.control)


class Feedback(AbstractControl):
    """A law $u = $ `law(g, xi, t)`, which acts within the step, at every instant that it uses."""

    law: Function

    def __init__(self, law: Law):
        self.law = as_pytree(law)

    def check(self, plant: Actuated) -> None:
        return None

    def during(self, state: State) -> Law:
        return self.law


class Signal(AbstractControl):
    """Inputs from a table: `u[k]` from `t[k]` on, held until `t[k + 1]`."""

    t: Float[Array, " n"]
    u: Float[Array, "n m"]

    def __init__(self, t: ArrayLike, u: ArrayLike):
        times = jnp.asarray(t, float)
        self.t = finite64("t", times, times.shape)
        self.u = finite64("u", u, jnp.shape(u))

    def check(self, plant: Actuated) -> None:
        return None

    def during(self, state: State) -> Law:
        k = jnp.searchsorted(self.t, state.t, side="right") - 1
        u = self.u[jnp.clip(k, 0, len(self.t) - 1)]
        return lambda g, xi, t: u
