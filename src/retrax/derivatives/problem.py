"""A run without its numbers: what its programs are made from, and what is saved."""

from retrax.derivatives.stretches import Schedule, is_short, piece_length
from retrax.engine.backends import require_quick
from retrax.engine.progress import Packing
from retrax.engine.step_program import Parts, step_program
from retrax.numerics.reuse import Signature

# Which of some arguments have an axis of members, or are there at all.
Flags = tuple[bool, ...]


class Problem:
    """A run as a function of arrays: parameters, then the leaves of its start, then the step.

    **Attributes:**

    - `made_for`: what its programs depend on; `parts`: systems and integrators from parameters.
    - `params`, `state`: the layouts of parameters and state, whose time is last.
    - `plan`: how many steps, and which are saved.
    - `remembered`: how many numbers a step hands to the next one.
    """

    def __init__(self, made_for: Signature, plan: Schedule):
        self.made_for, self.plan = made_for, plan
        self.parts = Parts(made_for.tree, made_for.avals)
        self.params, self.state = Packing(self.parts.params), Packing(self.parts.state)
        self.remembered = step_program(*made_for)[1].memory.size
        require_quick(*made_for)

    @property
    def leaves(self) -> int:
        """How many arrays it is a function of."""
        return len(self.params.shapes) + len(self.state.shapes) + 1

    @property
    def kept(self) -> tuple[int, int]:
        """How many rows a run of one body keeps for its derivative, and of how many numbers."""
        steps = self.plan.steps
        if is_short(steps, self.state.size):
            return steps, self.state.size
        pieces = self.plan.pieces(0, steps, piece_length(steps, self.state.size))
        return len(pieces), self.state.size + self.remembered

    @property
    def reverses(self) -> bool:
        """Whether a step backwards needs nothing but the state: what is remembered saves work."""
        return self.remembered == 0 or self.parts.integrator.memory_saves_work
