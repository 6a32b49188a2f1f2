"""Signals that ask a run to stop, heard between two chunks of steps."""

import contextlib
import signal
import threading
from collections.abc import Iterator
from types import FrameType
from typing import Any

_SIGNALS = (signal.SIGINT, signal.SIGTERM)
# What a parent process told this one to ignore, and what was not set from Python.
_LEFT_ALONE = (signal.SIG_IGN, None)


class Ear:
    """The first signal that came; `None` while none has."""

    def __init__(self) -> None:
        self.heard: signal.Signals | None = None
        self.before: dict[int, Any] = {}

    def hear(self, number: int, frame: FrameType | None) -> None:
        """Remember the signal; a second one does what it did before the run."""
        self.heard = signal.Signals(number)
        self.restore()

    def restore(self) -> None:
        for number, handler in self.before.items():
            signal.signal(number, handler)
        self.before = {}


@contextlib.contextmanager
def listening() -> Iterator[Ear]:
    """Hear Ctrl-C and the request to end. Only the main thread of Python can; others hear none."""
    ear = Ear()
    if threading.current_thread() is threading.main_thread():
        ear.before = {n: h for n in _SIGNALS if (h := signal.getsignal(n)) not in _LEFT_ALONE}
        for number in ear.before:
            signal.signal(number, ear.hear)
    try:
        yield ear
    finally:
        ear.restore()
