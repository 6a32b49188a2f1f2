"""The first thing that the command `retrax` runs: before anything heavy is imported."""

import os
import sys
from pathlib import Path
from types import TracebackType

INTERRUPTED = 130


def end_quietly() -> None:
    """End the command with one line and a status where Ctrl-C comes before it can do it itself.

    Nothing is changed in programs that import retrax.
    """
    if Path(sys.argv[0] if sys.argv else "").stem == "retrax":
        sys.excepthook = _hook


def _hook(kind: type[BaseException], error: BaseException, traceback: TracebackType | None) -> None:
    if not issubclass(kind, KeyboardInterrupt):
        sys.__excepthook__(kind, error, traceback)
        return
    sys.stderr.write("Interrupted while starting: nothing has been run.\n")
    sys.stderr.flush()
    os._exit(INTERRUPTED)  # half-made modules have nothing to clean up
