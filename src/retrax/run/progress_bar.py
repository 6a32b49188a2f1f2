"""Progress of a long run, with an estimate of the time left."""

import contextlib
import inspect
import sys
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from retrax.errors import BadInput
from retrax.numerics.checks import quote

if TYPE_CHECKING:
    from rich.progress import Progress

# Called with (done, total).
Reporter = Callable[[int, int], object]
# What a user says about progress.
ProgressOption = bool | Reporter | None


@contextlib.contextmanager
def reporter(progress: object, description: str, unit: str = "steps") -> Iterator[Reporter]:
    """Yield a function to call with (steps done, steps in all), or what else is counted.

    `None` shows a bar where standard error is a terminal; `True` and `False` overrule that; a
    function is called as it is.
    """
    require_progress(progress)
    if callable(progress):
        yield progress
        return
    if not is_shown(progress):
        yield lambda done, total: None
        return
    with _bar(progress is True, unit) as bar:
        task = bar.add_task(description, total=None)

        def show(done: int, total: int) -> None:
            bar.update(task, completed=done, total=total)

        yield show


def require_progress(progress: object) -> None:
    """Reject what is neither `None`, a flag nor a function of (done, total)."""
    if callable(progress) and not isinstance(progress, type):
        _require_two_arguments(progress)
    elif progress is not None and not isinstance(progress, bool):
        raise BadInput(f"progress = {quote(progress)} must be None, True, False or a function.")


def is_shown(progress: object) -> bool:
    """Tell whether the progress of a run is reported."""
    return progress is not False and (progress is not None or sys.stderr.isatty())


def _require_two_arguments(progress: Reporter) -> None:
    """Reject a function that cannot be called with (done, total), before any step is taken."""
    try:
        inspect.signature(progress).bind(0, 1)
    except TypeError as cause:
        raise BadInput(
            f"progress = {quote(progress)} must be a function of (done, total), but {cause}."
        ) from cause
    except ValueError:  # a function of another language, whose arguments cannot be looked at
        return


def _bar(force: bool, unit: str) -> "Progress":
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn(f"{unit},"),
        TimeElapsedColumn(),
        TextColumn("gone,"),
        TimeRemainingColumn(),
        TextColumn("left"),
        console=Console(stderr=True, force_terminal=force or None),
        transient=True,
    )
