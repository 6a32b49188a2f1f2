"""The first thing that the command `retrax` runs, before it imports anything heavy."""

import os
import sys
from pathlib import Path
from types import TracebackType

INTERRUPTED = 130


def end_quietly() -> None:
    """Let Ctrl-C during the imports end the command with one line and a status.

    Programs that import retrax are left as they are.
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
