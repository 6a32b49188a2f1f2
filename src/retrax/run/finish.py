"""From the first step that is left to the trajectory, or to the sentence why there is none."""

import shlex
import warnings
from typing import Any

from retrax.errors import CheckpointFailed, Interrupted
from retrax.run.checkpoint import Checkpoint
from retrax.run.interrupts import listening
from retrax.run.progress_bar import reporter
from retrax.run.running import Running
from retrax.trajectory.observe import aliasing
from retrax.trajectory.trajectory import Trajectory


def finish(running: Running, progress: Any, about: dict[str, Any]) -> Trajectory:
    """Take all steps that are left.

    **Arguments:** `about`: what the trajectory is told besides (h, compile_seconds, provenance).

    **Raises:** `StepFailed` with the trajectory up to a step that failed.
    """
    try:
        with reporter(progress, running.system.name) as report:
            running.go(report)
    except KeyboardInterrupt as stopped:
        raise KeyboardInterrupt(
            f"The run was stopped after step {int(running.at.step)} of {running.steps}, and "
            "nothing of it is kept; with checkpoint='run.zarr' it can be resumed."
        ) from stopped
    return _or_failed(running, running.trajectory(**about))


def finish_with_checkpoint(
    running: Running, checkpoint: Checkpoint, progress: Any, about: dict[str, Any]
) -> Trajectory:
    """The same, committed on the way and at the end.

    **Raises:** `Interrupted` where a signal stopped it, `CheckpointFailed` where the files could
    not be written; both with the trajectory up to there.
    """
    with listening() as ear, reporter(progress, running.system.name) as report:

        def pause() -> bool:
            checkpoint.after_chunk()
            return ear.heard is not None or checkpoint.failed

        try:
            running.go(report, pause)
            failure = running.failure(about["h"])
            checkpoint.commit(_status(running), failure)
        finally:
            closed = _closed(checkpoint)
    trajectory = running.trajectory(**about)
    if closed is not None:
        closed.trajectory = trajectory
        raise closed
    if failure is None and ear.heard is not None:
        path = str(checkpoint.path)
        raise Interrupted(
            f"The run was stopped by {ear.heard.name} at step {int(running.at.step)} of "
            f"{running.steps}: all of it is in {path!r}, and rx.resume({path!r}) or `retrax resume "
            f"{shlex.quote(path)}` goes on from there.",
            trajectory,
            int(ear.heard),
        )
    return _or_failed(running, trajectory)


def _status(running: Running) -> str:
    if running.at.failed:
        return "failed"
    return "finished" if int(running.at.step) == running.steps else "interrupted"


def _closed(checkpoint: Checkpoint) -> CheckpointFailed | None:
    try:
        checkpoint.close()
    except CheckpointFailed as failure:
        return failure
    return None


def _or_failed(running: Running, trajectory: Trajectory) -> Trajectory:
    doubt = running.system.overlooked(trajectory.states)
    if doubt is not None:
        warnings.warn(doubt, stacklevel=5)
    failure = running.failure(trajectory.h)
    if failure is not None:
        error, sentence = failure
        trajectory.provenance["failure"] = sentence
        raise error(sentence, trajectory)
    warning = aliasing(trajectory)
    if warning is not None:
        warnings.warn(warning, stacklevel=5)
    return trajectory
