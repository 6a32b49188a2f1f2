"""Writing beside the run: the loop goes on while its states go to disk."""

import threading
import time
from typing import Any

import numpy as np

from retrax.simulate.checkpoint_store import Store

Rows = list[np.ndarray]

# Writing may take this part of the processor's time: after a commit the thread rests so long, but
# no longer than this many seconds.
_PART, _LONGEST = 0.005, 10.0


class Writer:
    """A thread that takes rows and commits them, in order.

    After a commit it rests; it is `idle` when the next one would be written at once. What goes
    wrong is kept in `failure`, and nothing is written after it.
    """

    def __init__(self, store: Store):
        self.store, self.failure, self.idle = store, None, True
        self._waiting: list[tuple[list[Rows], dict[str, Any]]] = []
        self._changed, self._closing = threading.Condition(), False
        self._thread = threading.Thread(target=self._work, name="checkpoint", daemon=True)
        self._thread.start()

    def commit(self, rows: list[Rows], changes: dict[str, Any]) -> None:
        """Have rows, and what there is to say about the run, committed soon."""
        with self._changed:
            self.idle = False
            self._waiting.append((rows, changes))
            self._changed.notify()

    def close(self) -> None:
        """Wait until all is written."""
        with self._changed:
            self._closing = True
            self._changed.notify()
        self._thread.join()
        self.store.release()

    def _work(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._waiting or self._closing)
                todo, self._waiting = self._waiting, []
            if not todo:
                return
            if self.failure is None:
                clock = time.thread_time()
                self._write(todo)
                self._rest((time.thread_time() - clock) / _PART)
                self.idle = True

    def _rest(self, seconds: float) -> None:
        """Wait until this process has had so many seconds of the processor, or it is time."""
        end, latest = time.process_time() + seconds, time.monotonic() + _LONGEST
        with self._changed:
            while not self._closing and time.monotonic() < latest:
                left = end - time.process_time()
                if left <= 0:
                    return
                self._changed.wait_for(lambda: self._closing, timeout=min(left, _LONGEST))

    def _write(self, todo: list[tuple[list[Rows], dict[str, Any]]]) -> None:
        try:
            for rows, _ in todo:
                for leaves in rows:
                    self.store.append(leaves)
            self.store.commit(todo[-1][1])
        except Exception as cause:
            self.failure = cause
