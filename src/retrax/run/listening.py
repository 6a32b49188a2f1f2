"""Hear the signals that ask a run with a checkpoint to stop."""

import contextlib
import signal
import threading
from collections.abc import Callable, Iterator
from types import FrameType

# Signals that ask a run to stop.
_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Ear:
    """The first signal that came; `None` while none has."""

    def __init__(self) -> None:
        self.heard: signal.Signals | None = None
        self.before: dict[int, Callable[..., object] | int] = {}

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
        # Left alone: what a parent process told this one to ignore, and what Python did not set.
        found = {number: signal.getsignal(number) for number in _SIGNALS}
        ear.before = {n: h for n, h in found.items() if h is not None and h is not signal.SIG_IGN}
        for number in ear.before:
            signal.signal(number, ear.hear)
    try:
        yield ear
    finally:
        ear.restore()
