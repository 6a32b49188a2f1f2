"""Where a model ends: an event that no smaller step size would avoid."""

from typing import NamedTuple

from retrax.errors import StepFailed
from retrax.mechanics.state import State


class Ending(NamedTuple):
    """What happened, why, what the run raises, and the last state at which the model holds."""

    what: str
    why: str
    error: type[StepFailed]
    state: State
