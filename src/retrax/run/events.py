"""Look out for events while a run goes on: what happens where a loop halts."""

from typing import Any, NamedTuple

import jax
import numpy as np

from retrax.engine.backends import make_single
from retrax.engine.backends.stepping import Single
from retrax.engine.progress import Packing, Progress
from retrax.integrators.watching import Watching
from retrax.mechanics.events import Event, Stop
from retrax.mechanics.state import State
from retrax.mechanics.system import AbstractGroupSystem
from retrax.numerics.crossing import crossing
from retrax.numerics.evaluate import evaluate
from retrax.trajectory.crossings import Events, Found
from retrax.trajectory.run import Run


class Halt(NamedTuple):
    """Why a loop has halted: events were found, or one is not a number there."""

    stopped: bool
    lost: str | None


class Lookout:
    """The events of a run, and those that have been found.

    **Arguments:** `events`: by name; `run`; `backend`: what takes its steps.

    **Attributes:** `integrator`: how steps are taken that halt at events; `found`: what was found;
    `ended_by`: the name of the event that ended the run.
    """

    def __init__(self, events: dict[str, Event | Stop], run: Run):
        self.names, self.events = tuple(events), tuple(events.values())
        self.integrator = Watching(run.integrator, self.events)
        self._system, self._h = run.system, float(run.plan.h)
        self._like = run.state
        self.found: list[Found] = []
        self.ended_by: str | None = None
        self._single: Single | None = None

    def result(self) -> Events:
        """Return what has been found."""
        return Events(self.names, self.found, self._like, self.ended_by)

    def take_up(self, at: Progress, known: Events) -> None:
        """Go on with the events that are known up to where the run stands.

        Those of the step after it are found again.
        """
        t, forth, size = float(at.state.t), np.sign(self._h), Packing.rows(self._like).size
        for one in known.found:
            if forth * (one.numbers[-1] - t) <= 0:
                kept = np.zeros(size - len(one.numbers))  # a file has none of a controller
                numbers = np.concatenate([one.numbers[:-1], kept, one.numbers[-1:]])
                self.found.append(one._replace(numbers=numbers))

    def first_memory(self, state: State, inner: Any) -> Any:
        """Return the memory of a run that goes on from `state` with its own memory."""
        return inner, np.asarray(evaluate(_values, self.integrator, self._system, state))

    def asleep(self, at: Progress) -> Progress:
        """Return the progress with events that are not looked at in the next step."""
        assert at.memory is not None
        inner, values = at.memory
        return at._replace(memory=(inner, np.full_like(np.asarray(values), np.nan)))

    def look(self, at: Progress, backend: str) -> Halt | None:
        """Find the events of the step after `at`; `None` where it halts for another reason."""
        state: Any = jax.tree.map(np.asarray, at.state)
        if self._single is None:
            method = self.integrator
            self._single = make_single(self._system, method, state, self._h, backend)
        assert at.memory is not None
        start, before = Packing.rows(state)[:, 0], np.asarray(at.memory[1])
        memory = Packing.rows(self.asleep(at).memory)[:, 0]
        step = _Step(self._single, start, memory, len(self.events))
        after = step.values(self._h)
        if after is None:
            return None
        for k, name in enumerate(self.names):
            if np.isnan(after[k]) and not np.isnan(before[k]):
                return Halt(False, name)
        crossed = []
        for k, event in enumerate(self.events):
            turn = _turn(event, before[k], after[k])
            if turn:
                tau = crossing(step.value_of(k), self._h, before[k], after[k])
                crossed.append((abs(tau), k, turn, step.end(tau)))
        held = Packing.rows((state.g, state.momentum)).size
        for _, k, turn, numbers in sorted(crossed, key=lambda one: one[:2]):
            numbers[held:-1] = start[held:-1]  # what acts in this step
            self.found.append(Found(k, numbers, turn))
            if self.events[k].stops:
                self.ended_by = self.names[k]
                return Halt(True, None)
        return Halt(False, None)


class _Step(NamedTuple):
    """Shorter steps from the state before one in which an event happens."""

    single: Single
    start: np.ndarray
    memory: np.ndarray
    count: int

    def values(self, tau: float) -> np.ndarray | None:
        """What the events are at the end of a step of size `tau`; `None` where it fails."""
        taken = self.single.take(self.start, tau, memory=self.memory)
        return None if taken is None else taken[1][-self.count :]

    def value_of(self, event: int) -> Any:
        def value(tau: float) -> float:
            found = self.values(tau)
            return float("nan") if found is None else float(found[event])

        return value

    def end(self, tau: float) -> np.ndarray:
        taken = self.single.take(self.start, tau, memory=self.memory)
        assert taken is not None
        return taken[0]


def _turn(event: Event | Stop, before: float, after: float) -> int:
    """The direction in which an event crosses zero; 0 where it does not, or not as asked for."""
    if event.direction != "falling" and before < 0 <= after:
        return 1
    if event.direction != "rising" and before > 0 >= after:
        return -1
    return 0


def _values(watching: Watching, system: AbstractGroupSystem, state: State) -> Any:
    return watching.values(system, state)
