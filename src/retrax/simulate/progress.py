"""Progress of a long run, with an estimate of the time left."""

import contextlib
import sys
from collections.abc import Callable, Iterator
from typing import Any

from retrax.errors import BadInput

Reporter = Callable[[int, int], object]


@contextlib.contextmanager
def reporter(progress: Any, description: str, unit: str = "steps") -> Iterator[Reporter]:
    """A function to call with (steps done, steps in all), or what else is counted.

    `None` shows a bar where standard error is a terminal; `True` and `False` overrule that; a
    function is called as it is.
    """
    if callable(progress):
        yield progress
        return
    if progress not in (None, True, False):
        raise BadInput(f"progress = {progress!r} must be None, True, False or a function.")
    wanted = sys.stderr.isatty() if progress is None else progress
    if not wanted:
        yield lambda done, total: None
        return
    with _bar(progress is True, unit) as bar:
        task = bar.add_task(description, total=None)

        def show(done: int, total: int) -> None:
            bar.update(task, completed=done, total=total)

        yield show


def _bar(force: bool, unit: str):
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
