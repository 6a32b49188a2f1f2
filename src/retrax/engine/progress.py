"""Where a running loop is."""

from typing import Any, NamedTuple

import numpy as np
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


# NumPy's scalars: on the host they cost nothing, and a JAX program takes them for arrays.
_YES: Any = np.bool_(True)
_NO: Any = np.bool_(False)
_ZERO: Any = np.float64(0.0)
_NONE: Any = np.int64(0)


def quiet() -> Interval:
    """An interval in which nothing has happened."""
    return Interval(_NONE, _ZERO, _ZERO)


def start(state: Any) -> Progress:
    """A loop that has not taken a step."""
    return Progress(state, _NONE, _NO, StepInfo(_YES, _ZERO, _NONE, _ZERO, _YES), quiet())
