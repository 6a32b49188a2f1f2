"""A run: what moves, how a step is taken, where it stands, and what is asked of it."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Array, PyTree

from retrax.integrators.base import AbstractIntegrator
from retrax.mechanics.state import State
from retrax.mechanics.system import AbstractGroupSystem


@dataclass(frozen=True, slots=True)
class Plan:
    """What is asked of a run.

    **Attributes:**

    - `t0`: the time of step 0. Step k is at `t0 + k h`; times are never added up.
    - `h`: the size of a step in seconds; below zero the run goes back in time.
    - `steps`: how many steps it has in all.
    - `save_every`: how many steps lie between two saved states.
    - `commit_every`: how many steps lie between two commits to its checkpoint at the most; `None`
        leaves it to time and size.
    """

    t0: float | Array | np.ndarray
    h: float | Array
    steps: int
    save_every: int = 1
    commit_every: int | None = None

    def saves(self, step: int) -> bool:
        """Whether the state after so many steps is saved."""
        return step % self.save_every == 0 or step == self.steps


@dataclass(frozen=True, slots=True)
class Run:
    """A run that stands at a step: all that it takes to go on with it, bit for bit.

    **Attributes:**

    - `system`: what moves.
    - `integrator`: how a step is taken.
    - `state`: where the run stands.
    - `memory`: what the last step hands to the next one, as `integrator.memory` makes it at the
        start: an empty tuple for most integrators. `None` where it is not known: then it is made
        from the state.
    - `plan`: what is asked of the run.
    - `step`: how many steps lie behind the state.
    """

    system: AbstractGroupSystem
    integrator: AbstractIntegrator
    state: State
    memory: PyTree[Array | np.ndarray] | None
    plan: Plan
    step: int = 0
