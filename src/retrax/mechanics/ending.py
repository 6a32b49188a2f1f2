"""Where a model ends: an event that no smaller step size would avoid."""

from collections.abc import Callable
from typing import NamedTuple

from retrax.errors import StepFailed
from retrax.mechanics.state import State

_HALVINGS = 40


class Ending(NamedTuple):
    """What happened, why, what the run raises, and the last state at which the model holds."""

    what: str
    why: str
    error: type[StepFailed]
    state: State


def bracket(lasts: Callable[[float], bool], h: float) -> tuple[float, float]:
    """The longest step at whose end the model holds, and the shortest at whose end it does not.

    By bisection between 0 and `h`, down to round-off: the event lies between them.
    """
    first, last = 0.0, h
    for _ in range(_HALVINGS):
        middle = (first + last) / 2
        first, last = (middle, last) if lasts(middle) else (first, middle)
    return first, last
