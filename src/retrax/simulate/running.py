"""A run on its way: the loop, where it is, and what it has saved."""

import time
from collections.abc import Callable
from typing import Any

import jax
import numpy as np

from retrax.engine.progress import Interval, Progress, quiet, start
from retrax.mechanics.state import Ending
from retrax.simulate.failure import ending_of, explain
from retrax.simulate.plan import Plan
from retrax.simulate.progress import Reporter
from retrax.trajectory.trajectory import Trajectory

Rows = list[np.ndarray]


class Running:
    """Takes chunks of steps until the run is done, a step fails, or it is told to stop.

    **Attributes:**

    - `at`: where the run is; `since`: what has happened since the last saved state.
    - `saved`: rows for each leaf of (state, interval), chunk by chunk.
    """

    def __init__(
        self, system: Any, integrator: Any, loop: Any, plan: Plan, at: Progress, steps: int
    ):
        self.system, self.integrator, self.loop, self.plan = system, integrator, loop, plan
        self.at, self.steps = at, steps
        self.since = quiet()
        self.saved: list[Rows] = []
        self.seconds = 0.0
        self._ended: tuple[Ending | None] | None = None
        self.tree = jax.tree.structure((at.state, at.interval))

    def save(self, state: Any, interval: Interval) -> None:
        """One more saved state."""
        self.saved.append([np.asarray(x)[None] for x in jax.tree.leaves((state, interval))])

    def go(self, report: Reporter, pause: Callable[[], bool] | None = None) -> None:
        """Take all steps that are left; `pause`, asked after each chunk, may stop the run."""
        before, clock = self.seconds, time.perf_counter()
        while int(self.at.step) < self.steps:
            records, every = next(self.plan.chunks(int(self.at.step), self.steps))
            self.at, states, intervals = self.loop.run(
                self.at, records, every, self.plan.capacity, whole=False
            )
            if self.at.failed or len(intervals.residual):
                self._keep(states, intervals)
            self.seconds = before + time.perf_counter() - clock
            report(int(self.at.step), self.steps)
            if self.at.failed or (pause is not None and pause()):
                break
        self.seconds = before + time.perf_counter() - clock

    def _keep(self, states: Any, intervals: Interval) -> None:
        """Save what a chunk brings; of one that ends between saved states only what happened."""
        step, count = int(self.at.step), len(intervals.residual)
        if self.at.failed:
            rows = jax.tree.leaves((states, intervals))
            self.saved += [rows] * (count > 0)
            if step % self.plan.save_every != 0:
                self.save(self.at.state, joined(self.since, self.at.interval))
        elif self.plan.ends_record(step, self.steps):
            if self.since.iterations or self.since.increment:
                last = jax.tree.map(lambda x: x[0], intervals)
                intervals = jax.tree.map(lambda x: np.asarray(x)[None], joined(self.since, last))
            self.saved.append(jax.tree.leaves((states, intervals)))
            self.since = quiet()
        else:
            self.since = joined(self.since, jax.tree.map(lambda x: x[0], intervals))

    def ended(self, h: float) -> Ending | None:
        """Where the model ended within the step that failed, looked for once."""
        if self._ended is None:
            found = ending_of(self.system, self.integrator, self.at, h) if self.at.failed else None
            self._ended = (found,)
        return self._ended[0]

    def trajectory(self, h: float, compile_seconds: float, provenance: dict) -> Trajectory:
        """What has been saved so far; where the model ended, up to there."""
        saved, ended = list(self.saved), self.ended(h)
        if ended is not None and ended.state.t != self.at.state.t:
            rows = jax.tree.leaves((ended.state, quiet()))
            saved.append([np.asarray(x)[None] for x in rows])
        stacked = [np.concatenate(parts) for parts in zip(*saved, strict=True)]
        states, info = jax.tree.unflatten(self.tree, stacked)
        run = Trajectory(
            t=np.asarray(states.t),
            states=states,
            info=info,
            h=h,
            steps=self.steps,
            completed=self.completed(),
            save_every=self.plan.save_every,
            seconds=self.seconds,
            compile_seconds=compile_seconds,
            provenance=provenance,
            system=self.system,
            integrator=self.integrator,
            identity=self.loop.identity,
        )
        if not self.loop.identity.complete:
            _ = run.observations  # later nobody could tell whether its functions read the same
        return run

    def completed(self) -> int:
        """The steps behind the last saved state."""
        step = int(self.at.step)
        ended = bool(self.at.failed) or self.plan.ends_record(step, self.steps)
        return step if ended else step - step % self.plan.save_every

    def failure(self, h: float) -> tuple[type, str] | None:
        """What to raise, and what to say, if a step has failed."""
        if not self.at.failed:
            return None
        ended = self.ended(h)
        return explain(self.system, self.integrator, self.at, h, self.steps, self._takes, ended)

    def _takes(self, h: float) -> bool:
        """Whether one step of size `h` can be taken from where the run is; nothing is compiled."""
        state = jax.tree.map(np.asarray, self.at.state)
        loop = type(self.loop)(self.system, self.integrator, state, h)
        at, *_ = loop.run(start(state), 1, 1, self.plan.capacity)
        return not bool(at.failed)


def joined(first: Interval, then: Interval) -> Interval:
    """Two stretches as one: iterations add up, the rest is as in the worse one."""
    numbers: list[Any] = [
        np.int64(first.iterations + then.iterations),
        np.float64(np.maximum(first.residual, then.residual)),
        np.float64(np.maximum(first.increment, then.increment)),
    ]
    return Interval(*numbers)
