"""Look out for events while a run goes on: what happens where a loop halts."""

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from retrax.engine.backends import make_single
from retrax.engine.backends.stepping import Single
from retrax.engine.progress import Packing, Progress
from retrax.errors import warn
from retrax.integrators.watching import Seen, Watching
from retrax.mechanics.events import Event, Stop
from retrax.mechanics.state import State
from retrax.mechanics.system import AbstractGroupSystem
from retrax.numerics.crossing import Crossing, Start, crossings
from retrax.numerics.evaluate import evaluate
from retrax.trajectory.crossings import Events, Found
from retrax.trajectory.run import Run

# A step in which something may happen is looked at after each of so many parts of it.
_PARTS = 8
# Where an event turns more often in a step, crossings may lie between the parts.
_MOST_TURNS = 2
# A value is zero if it is this many units of round-off of what it is made from.
_ROUND_OFF = 64 * np.finfo(float).eps
# A rate is none if it is this small, compared to what it is the sum of.
_STILL = 4 * np.finfo(float).eps
# A value may be zero to round-off where it is this much smaller than its change in a step.
_NEAR = 1e-9
_TOUCHES = (
    "touches zero to round-off at t = {:.6g} s: whether it crosses there cannot be decided, and it "
    "is not counted."
)
_STAYS = (
    "rests on zero to round-off at t = {:.6g} s: on which side it is there cannot be decided, and "
    "no crossing is counted while it does. Shift it by what you allow for."
)
_RESTS = (
    "rests on zero at t = {:.6g} s and then leaves it, which is no crossing: say to which side it "
    "may not go, by rx.Stop(f, 'falling') or rx.Stop(f, 'rising')."
)


class Halt(NamedTuple):
    """Why a loop has halted: events were looked for, or one is not a number there."""

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
        self._warned: set[int] = set()

    def result(self) -> Events:
        """Return what has been found."""
        return Events(self.names, self.found, self._like, self.ended_by)

    def take_up(self, at: Progress, known: Events) -> None:
        """Go on with the events that are known up to the present step of the run.

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
        now = np.asarray(evaluate(_values, self.integrator, self._system, state))
        return inner, Seen(np.full_like(now, np.nan), now)

    def mute(self, at: Progress) -> Progress:
        """Return the progress with events that are not looked at in the next step."""
        assert at.memory is not None
        inner, (_, now) = at.memory
        now = np.asarray(now)
        return at._replace(memory=(inner, Seen(now, np.full_like(now, np.nan))))

    def look(self, at: Progress, backend: str) -> Halt | None:
        """Find the events of the step after `at`; `None` where it halts for another reason."""
        state: Any = jax.tree.map(np.asarray, at.state)
        if self._single is None:
            method = self.integrator
            self._single = make_single(self._system, method, state, self._h, backend)
        assert at.memory is not None
        start, seen = Packing.rows(state)[:, 0], at.memory[1]
        # No number at the start: this comes before any step, for to those it would be asleep.
        for name, *values in zip(self.names, *map(np.asarray, seen), strict=True):
            if np.isnan(values).all():
                return Halt(False, name)
        memory = Packing.rows(self.mute(at).memory)[:, 0]
        step = _Step(self._single, start, memory, len(self.events), self._h)
        if step.fails():
            return None
        times, values = step.parts(np.asarray(seen.now))
        for k, name in enumerate(self.names):
            if np.isnan(values[-1, k]):
                return Halt(False, name)
        self._warn_of_turns(state, values)
        starts = self._starts(state, int(at.step) == 0, np.asarray(seen.before), values)
        sizes = np.max(np.abs(np.nan_to_num(values)), axis=0)
        crossed: list[tuple[float, int, Crossing]] = []
        for k, event in enumerate(self.events):
            value = step.value_of(k)
            found = crossings(value, times, values[:, k], starts.get(k))
            if found and sizes[k] <= self._round_off(state, at_rest=True)[k]:
                self._warn(k, _STAYS.format(float(state.t)))
                continue
            for one in found:
                if not one.turn:
                    if one.off <= self._round_off(state)[k]:
                        self._warn(k, _TOUCHES.format(float(state.t) + one.tau))
                elif event.direction in ("both", "rising" if one.turn > 0 else "falling"):
                    crossed.append((abs(one.tau), k, one))
        return self._take(step, state, sorted(crossed, key=lambda one: one[:2]))

    def _take(self, step: "_Step", state: State, crossed: list) -> Halt:
        """Keep what has been found in a step, up to an event that ends the run and with it."""
        held = Packing.rows((state.g, state.momentum)).size
        stops = [(tau, k) for tau, k, _ in crossed if self.events[k].stops]
        for tau, k, one in crossed:
            if stops and tau > stops[0][0]:
                break
            numbers, _ = step.take(one.tau)
            numbers[held:-1] = step.start[held:-1]  # what acts in this step
            self.found.append(Found(k, numbers, one.turn))
        if stops:
            self.ended_by = self.names[stops[0][1]]
        return Halt(bool(stops), None)

    def _starts(
        self, state: State, begins: bool, before: np.ndarray, values: np.ndarray
    ) -> dict[int, Start]:
        """Return how events leave zero that are zero at the start of a step.

        At the start of a run a value that is zero to round-off is on the side to which it moves: so
        a run goes on from the end of another, and from an impact there. One that rests on zero, and
        then leaves it, comes from the side that its direction asks for, if it ends the run.
        """
        now, h = values[0], self._h
        change = np.nanmax(np.abs(values - now), axis=0)
        rates = moving = np.zeros_like(now)
        if not begins:
            doubt, zero = moving, now == 0
            known = before == 0
        elif np.any(np.abs(now) <= _NEAR * change):
            rates, moving, *_ = evaluate(_rates, self.integrator, self._system, state)
            doubt = self._round_off(state) + _ROUND_OFF * change
            zero, known = np.abs(now) <= doubt, np.full(len(now), True)
        else:
            doubt, zero, known = moving, now == 0, now == 0
        found = {}
        for k in np.flatnonzero(zero):
            event = self.events[k]
            wanted = {"rising": -1.0, "falling": 1.0, "both": 0.0}[event.direction]
            side, rate = 0.0, np.sign(h) * rates[k]
            if abs(rate) > _STILL * moving[k]:
                # What is still in front of the end of a run, by however little, has it before it.
                side = wanted if now[k] * wanted > 0 else np.sign(rate)
            elif known[k] and event.stops and np.any(values[1:, k] != 0):
                side = wanted
                if not wanted:
                    self._warn(int(k), _RESTS.format(float(state.t)))
            found[int(k)] = Start(float(side), float(rates[k]), float(doubt[k]))
        return found

    def _round_off(self, state: State, at_rest: bool = False) -> np.ndarray:
        """Return how far from zero a value may be that is zero but for round-off.

        A place is held to round-off of the largest coordinates where it is `at_rest` on another.
        """
        rates, _, *sizes = evaluate(_rates, self.integrator, self._system, state)
        return _ROUND_OFF * (sizes[at_rest] + abs(self._h) * np.abs(rates))

    def _warn_of_turns(self, state: State, values: np.ndarray) -> None:
        """Warn of events that turn more often within a step than its parts can tell."""
        moved = np.diff(values, axis=0)
        turns = np.sum(moved[1:] * moved[:-1] < 0, axis=0)
        spread = np.ptp(values, axis=0)
        for k in np.flatnonzero(turns > _MOST_TURNS):
            if spread[k] > 1e3 * self._round_off(state)[k]:
                self._warn(
                    int(k),
                    f"turns {turns[k]} times within the step from t = {float(state.t):.6g} s, and "
                    f"crossings within one step may be lost: take h smaller than {self._h:g} s.",
                )

    def _warn(self, event: int, what: str) -> None:
        """Warn of an event, once in a run."""
        if event not in self._warned:
            self._warned.add(event)
            warn(f"the {type(self.events[event]).__name__} {self.names[event]!r} {what}")


class _Step(NamedTuple):
    """Shorter steps from the state before one in which an event may happen."""

    single: Single
    start: np.ndarray
    memory: np.ndarray
    count: int
    h: float

    def take(self, tau: float) -> tuple[np.ndarray, np.ndarray]:
        """Return the numbers at the end of a step of size `tau`, and what the events are there.

        Or of the next longer one that can be taken: the whole step can.
        """
        while (found := self.single.take(self.start, tau, memory=self.memory)) is None:
            tau = 2 * tau if 2 * abs(tau) < abs(self.h) else self.h
        return found[0], found[1][-self.count :]

    def fails(self) -> bool:
        """Return whether not even the whole step can be taken."""
        return self.single.take(self.start, self.h, memory=self.memory) is None

    def parts(self, now: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return sizes of shorter steps, the whole one last, and the events at their ends."""
        times = self.h * np.arange(_PARTS + 1) / _PARTS
        return times, np.array([now, *(self.take(tau)[1] for tau in times[1:])])

    def value_of(self, event: int) -> Any:
        return lambda tau: float(self.take(tau)[1][event])


def _values(watching: Watching, system: AbstractGroupSystem, state: State) -> Any:
    return watching.values(system, state)


def _rates(watching: Watching, system: AbstractGroupSystem, state: State) -> Any:
    """Return how quickly events change, and how large the terms of that and of the values are.

    The sum of the absolute values of terms is nearly reached where their signs are random. Those of
    the values are told again with all coordinates of the place as large as the largest.
    """
    here = jax.tree.map(jnp.asarray, (state.g, state.momentum, state.t))
    g, mu, t = here
    xi, mu_dot = system.vector_field(g, mu, t)
    moves = (system.configuration_space.tangent(g, xi), mu_dot, jnp.ones(()))
    random = np.random.default_rng(0)

    def along(direction: Any) -> Any:
        seen = partial(watching.values, system)
        return jax.jvp(lambda *at: seen(State(*at)), here, direction)[1]

    def terms(direction: Any) -> Any:
        leaves, tree = jax.tree.flatten(direction)
        found = jnp.abs(along(direction))
        for _ in range(_PARTS):
            signed = [x * random.choice([-1.0, 1.0], np.shape(x)) for x in leaves]
            found = jnp.maximum(found, jnp.abs(along(jax.tree.unflatten(tree, signed))))
        return found

    largest = jnp.max(jnp.stack([jnp.max(jnp.abs(x)) for x in jax.tree.leaves(g)]))
    wide = jax.tree.map(lambda x: jnp.full_like(x, largest), g), mu, t
    return along(moves), terms(moves), terms(here), terms(wide)
