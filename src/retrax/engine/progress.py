"""Where a running loop is."""

from typing import Any, NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from retrax.integrators.base import StepInfo


class Interval(NamedTuple):
    """What happened between two saved states: iterations in all, the rest at its largest."""

    iterations: Int[Array, "*time"]
    residual: Float[Array, "*time"]
    increment: Float[Array, "*time"]


class Progress(NamedTuple):
    """The last good state, the steps behind it, and how the step after it failed, if one did."""

    state: Any
    step: Int[Array, ""]
    failed: Bool[Array, ""]
    failure: StepInfo
    interval: Interval


def quiet() -> Interval:
    """An interval in which nothing has happened."""
    return Interval(jnp.asarray(0), jnp.zeros(()), jnp.zeros(()))


def start(state: Any) -> Progress:
    """A loop that has not taken a step."""
    yes, zero = jnp.asarray(True), jnp.zeros(())
    no_failure = StepInfo(yes, zero, jnp.asarray(0), zero, yes)
    return Progress(state, jnp.asarray(0), jnp.asarray(False), no_failure, quiet())
