"""A run on its way: take the steps that are left; return the trajectory or raise."""

import dataclasses
import shlex
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import jax
import numpy as np

from retrax.engine.backends import make_loop
from retrax.engine.progress import Interval, Packing, Progress, quiet, start
from retrax.engine.step_program import step_identity
from retrax.errors import CheckpointFailed, Interrupted, StepFailed, warn
from retrax.integrators.driven import Driven
from retrax.mechanics.state import Ending, State
from retrax.numerics.fingerprint import Fingerprint
from retrax.run.chunks import Chunks
from retrax.run.events import Lookout
from retrax.run.failure import ending_of, explain
from retrax.run.listening import listening
from retrax.run.progress_bar import Reporter, reporter
from retrax.trajectory.energy_band import escape
from retrax.trajectory.inputs import ask_inputs, limit, saturation
from retrax.trajectory.observe import aliasing
from retrax.trajectory.provenance import provenance
from retrax.trajectory.run import Run
from retrax.trajectory.trajectory import Trajectory

if TYPE_CHECKING:
    from retrax.store.checkpoint import Checkpoint

# An interval in which nothing has happened.
_QUIET = quiet()


class Running:
    """Takes chunks of steps until the run is done, a step fails, or it is told to stop.

    **Arguments:** `run`: the run at its first step; `backend`: what takes its steps; `adapts`:
    whether numbers of functions that have changed are parameters, which nothing that is resumed may
    do: its bits would depend on what ran before; `lookout`: for events on the way.

    **Attributes:**

    - `begun`: the run at its first step; `run`: the run where it stands now.
    - `at`: where the loop is; `since`: what has happened since the last saved state.
    - `saved`: rows for each leaf of (state, interval), chunk by chunk.
    - `seconds`, `compile_seconds`, `provenance`: as the trajectory has them.
    """

    def __init__(
        self, run: Run, backend: str, adapts: bool = False, lookout: Lookout | None = None
    ):
        clock = time.perf_counter()
        plan, state = run.plan, run.state
        self.begun, self.at, self.since = run, start(state, run.memory), _QUIET
        self.lookout = lookout
        method = run.integrator if lookout is None else lookout.integrator
        self.loop = make_loop(backend, run.system, method, state, float(plan.h), adapts)
        size = sum(leaf.nbytes for leaf in jax.tree.leaves(state))
        self.chunks = Chunks.of_run(size, plan.save_every, plan.commit_every)
        self.loop.compile(self.at, self.chunks.capacity)
        self.compile_seconds = time.perf_counter() - clock
        self.provenance = provenance(run.system, run.integrator, self.loop.name)
        self.saved: list[list[np.ndarray]] = []
        self.seconds = 0.0
        self._tree = jax.tree.structure((self.at.state, self.at.interval))
        self._looked_for_ending, self._found_ending = False, None
        self._lost: str | None = None  # an event that is not a number

    @property
    def run(self) -> Run:
        """The run where it stands now."""
        at, memory = self.at, self.at.memory
        if self.lookout is not None and memory is not None:
            memory, _ = memory  # what the events were is seen from the state
        return dataclasses.replace(self.begun, state=at.state, memory=memory, step=int(at.step))

    @property
    def chunk_steps(self) -> int:
        return self.chunks.length

    def first_steps(self, count: int) -> np.ndarray:
        """Take the first steps of the run again; return the numbers of the state after them."""
        loop, run = self.loop, self.begun
        if self.lookout is not None:  # which may halt
            loop = type(loop)(run.system, run.integrator, run.state, float(run.plan.h))
        at, *_ = loop.run(start(run.state), 1, count, self.chunks.capacity)
        return Packing.rows(at.state)[:, 0]

    def save(self, state: State, interval: Interval) -> None:
        """Keep one more state."""
        self.saved.append([np.asarray(x)[None] for x in jax.tree.leaves((state, interval))])

    @property
    def chunks_saved(self) -> int:
        return len(self.saved)

    def rows(self, first: int) -> list[list[np.ndarray]]:
        """Return the chunks from `first` on, in a driven run with its inputs beside them."""
        driven, plan = self.begun.integrator, self.begun.plan
        chunks = self.saved[first:]
        if not isinstance(driven, Driven):
            return chunks
        found = []
        for leaves in chunks:
            states, _ = jax.tree.unflatten(self._tree, leaves)
            u = limit(driven, ask_inputs(self.begun.system, driven, states, float(plan.h)))
            found.append([*leaves, u])
        return found

    def bytes_saved(self, first: int) -> int:
        """Return how much memory the chunks from `first` on take."""
        return sum(leaf.nbytes for leaves in self.saved[first:] for leaf in leaves)

    def go(self, report: Reporter, pause: Callable[[], bool] | None = None) -> None:
        """Take all steps that are left; `pause`, asked after each chunk, may stop the run."""
        steps = self.begun.plan.steps
        before, clock = self.seconds, time.perf_counter()
        while int(self.at.step) < steps:
            records, every = next(self.chunks.between(int(self.at.step), steps))
            here = self.at
            self.at, states, intervals = self.loop.run(
                here, records, every, self.chunks.capacity, whole=False
            )
            if self.at.failed and self.lookout is not None:
                states, intervals = self._handle_halt(self.lookout, here, states, intervals, every)
            if self.at.failed or len(intervals.residual):
                self._keep(states, intervals)
            self.seconds = before + time.perf_counter() - clock
            report(int(self.at.step), steps)
            if self.at.failed or self.stopped or (pause is not None and pause()):
                break
        self.seconds = before + time.perf_counter() - clock

    def _handle_halt(
        self, lookout: Lookout, here: Progress, states: State, intervals: Interval, every: int
    ) -> tuple[State, Interval]:
        """Look for events where the loop has halted, and go on from there if there are any.

        Return what a chunk that failed has brought: nothing where events explain it.
        """
        after, filled = self.at, len(intervals.residual)
        at = self.loop.catch_up(here, after, states, every, self.chunks.capacity)
        halt = lookout.look(at, self.loop.name)
        if halt is None:
            return states, intervals
        if filled:
            self.at = at._replace(step=np.int64(int(here.step) + filled * every))
            self._keep(states, intervals)
        self.since = join(self.since, at.interval)
        self._lost = halt.lost
        if halt.lost is not None:
            self.at = after
        else:
            self.at = lookout.mute(at._replace(interval=_QUIET))
        if halt.stopped and int(at.step) % self.begun.plan.save_every != 0:
            self.save(at.state, self.since)
        nothing = jax.tree.map(lambda x: np.asarray(x)[:0], (states, intervals))
        return nothing

    def events_record(self) -> dict[str, Any]:
        """Return what a checkpoint stores of events."""
        return {} if self.lookout is None else {"events": self.lookout.result().data()}

    @property
    def stopped(self) -> bool:
        """Whether an event has ended the run."""
        return self.lookout is not None and self.lookout.ended_by is not None

    def _keep(self, states: State, intervals: Interval) -> None:
        """Save what a chunk brings; of one that ends between saved states only what happened."""
        step, count = int(self.at.step), len(intervals.residual)
        if self.at.failed:
            rows = jax.tree.leaves((states, intervals))
            self.saved += [rows] * (count > 0)
            if step % self.begun.plan.save_every != 0:
                self.save(self.at.state, join(self.since, self.at.interval))
        elif self._saves(step):
            if self.since.iterations or self.since.increment:
                last = jax.tree.map(lambda x: x[0], intervals)
                intervals = jax.tree.map(lambda x: np.asarray(x)[None], join(self.since, last))
            self.saved.append(jax.tree.leaves((states, intervals)))
            # The end of this run may lie between two saved states of a longer one.
            between = step % self.begun.plan.save_every
            self.since = jax.tree.map(lambda x: x[-1], intervals) if between else _QUIET
        else:
            self.since = join(self.since, jax.tree.map(lambda x: x[0], intervals))

    def _saves(self, step: int) -> bool:
        plan = self.begun.plan
        return step % plan.save_every == 0 or step == plan.steps

    @property
    def ended(self) -> Ending | None:
        """Where the model ended within the step that failed, looked for once."""
        if not self._looked_for_ending:
            run, self._looked_for_ending = self.begun, True
            if self.at.failed and self._lost is None:
                self._found_ending = ending_of(
                    run.system, run.integrator, self.at, float(run.plan.h)
                )
        return self._found_ending

    def trajectory(self) -> Trajectory:
        """Return what has been saved so far; where the model ended, up to there."""
        saved, ended, plan = list(self.saved), self.ended, self.begun.plan
        events = None if self.lookout is None else self.lookout.result()
        last = None if ended is None or ended.state.t == self.at.state.t else ended.state
        if events is not None and events.end is not None:
            last = events.end
        if last is not None:
            rows = jax.tree.leaves((last, _QUIET))
            saved.append([np.asarray(x)[None] for x in rows])
        stacked = [np.concatenate(parts) for parts in zip(*saved, strict=True)]
        states, info = jax.tree.unflatten(self._tree, stacked)
        run = Trajectory(
            t=np.asarray(states.t),
            states=states,
            info=info,
            h=plan.h,
            steps=plan.steps,
            completed=self.completed,
            save_every=plan.save_every,
            seconds=self.seconds,
            compile_seconds=self.compile_seconds,
            provenance=self.provenance,
            system=self.begun.system,
            integrator=self.begun.integrator,
            identity=self.loop.identity if self.lookout is None else self._own_identity(),
            events=events,
        )
        if not self.loop.identity.complete:
            _ = run.observations  # later no one can tell whether its functions read the same
        return run

    def _own_identity(self) -> Fingerprint:
        """Return what the run reads without its events, if they do not make it incomplete."""
        own = step_identity(self.begun.system, self.begun.integrator)
        return own if self.loop.identity.complete else self.loop.identity

    @property
    def completed(self) -> int:
        """The steps behind the last saved state."""
        step, plan = int(self.at.step), self.begun.plan
        saved = bool(self.at.failed) or self.stopped or self._saves(step)
        return step if saved else step - step % plan.save_every

    @property
    def failure(self) -> tuple[type[StepFailed], str] | None:
        """What to raise, and what to say, if a step has failed."""
        if not self.at.failed:
            return None
        if self._lost is not None:
            return StepFailed, (
                f"the event {self._lost!r} is not a number at an end of step "
                f"{int(self.at.step) + 1}, from t = {float(self.at.state.t):.6g} s to "
                f"{float(self.at.state.t) + self.begun.plan.h:.6g} s: its sign must be known "
                "everywhere; the run up to there is in `.trajectory`."
            )
        return explain(self.begun, self.at, self._takes, self.ended)

    @property
    def status(self) -> str:
        if self.at.failed:
            return "failed"
        done = self.stopped or int(self.at.step) == self.begun.plan.steps
        return "finished" if done else "interrupted"

    def _takes(self, h: float, steps: int) -> bool:
        """Tell whether steps of size `h` can be taken from where the run is; compile nothing."""
        state = jax.tree.map(np.asarray, self.at.state)
        loop = type(self.loop)(self.begun.system, self.begun.integrator, state, h)
        at, *_ = loop.run(start(state), 1, steps, self.chunks.capacity)
        return not bool(at.failed)


def join(first: Interval, then: Interval) -> Interval:
    """Combine two stretches: iterations add up, the rest is as in the worse one."""
    numbers: list[Any] = [
        np.int64(first.iterations + then.iterations),
        np.float64(np.maximum(first.residual, then.residual)),
        np.float64(np.maximum(first.increment, then.increment)),
    ]
    return Interval(*numbers)


def finish(running: Running, progress: object) -> Trajectory:
    """Take all steps that are left.

    **Raises:** `StepFailed` with the trajectory up to a step that failed.
    """
    try:
        with reporter(progress, running.provenance["system"]) as report:
            running.go(report)
    except KeyboardInterrupt as stopped:
        raise interruption(int(running.at.step), running.begun.plan.steps) from stopped
    return _or_failed(running, running.trajectory())


def interruption(step: int, steps: int) -> KeyboardInterrupt:
    """Return what Ctrl-C raises in a run without a checkpoint."""
    return KeyboardInterrupt(
        f"The run was stopped after step {step} of {steps}, and nothing of it is kept; with "
        "checkpoint='run.zarr' it can be resumed."
    )


def finish_with_checkpoint(
    running: Running, checkpoint: "Checkpoint", progress: object
) -> Trajectory:
    """Take all steps that are left, and commit them on the way and at the end.

    **Raises:** `StepFailed` as `finish`, `Interrupted` if a signal stopped it, `CheckpointFailed`
    if the files could not be written; all with the trajectory up to there.
    """
    with listening() as ear, reporter(progress, running.provenance["system"]) as report:

        def pause() -> bool:
            checkpoint.after_chunk()
            return ear.heard is not None or checkpoint.failed

        try:
            running.go(report, pause)
            failure = running.failure
            checkpoint.commit(running.status, failure)
        finally:
            closed = _close(checkpoint)
    trajectory = running.trajectory()
    if closed is not None:
        closed.trajectory = trajectory
        raise closed
    if failure is None and ear.heard is not None:
        path = str(checkpoint.path)
        raise Interrupted(
            f"The run was stopped by {ear.heard.name} at step {int(running.at.step)} of "
            f"{running.begun.plan.steps}: all of it is in {path!r}, and rx.resume({path!r}) or "
            f"`retrax resume {shlex.quote(path)}` goes on from there.",
            trajectory,
            int(ear.heard),
        )
    return _or_failed(running, trajectory)


def _close(checkpoint: "Checkpoint") -> CheckpointFailed | None:
    try:
        checkpoint.close()
    except CheckpointFailed as failure:
        return failure
    return None


def _or_failed(running: Running, trajectory: Trajectory) -> Trajectory:
    doubt = running.begun.system.find_overlooked(trajectory.states)
    if doubt is not None:
        warn(doubt)
    failure = running.failure
    if failure is not None:
        error, sentence = failure
        trajectory.provenance["failure"] = sentence
        raise error(sentence, trajectory)
    for warning in (aliasing(trajectory), saturation(trajectory), escape(trajectory)):
        if warning is not None:
            warn(warning)
    return trajectory
