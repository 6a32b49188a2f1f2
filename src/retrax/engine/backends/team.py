"""One large body on several cores: a team of threads runs its kernel side by side.

The bits of a run do not depend on how many threads there are, so their number is chosen by
counting: as many as make a step at least a third faster than one thread does, and no more than
this process may use. A team whose cores are needed by others parts (`llvm.meeting`).
"""

import ctypes
import math
import os
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from retrax.engine.llvm.meeting import PARTED, PLACE, SCRATCH
from retrax.engine.passes.placement import LINE
from retrax.engine.passes.work import work
from retrax.engine.program import Program, stores_at

# Seconds: an operation of a loop that is shared out, one of anything else, and what each thread
# adds to a meeting: its cache line goes round among the cores.
_SHARED, _ALIKE, _MEETING = 5e-11, 2e-10, 1e-6
# A team has to be faster than one thread by this.
_GAIN = 1.3
# Seconds that a call has to take before it is worth starting threads.
_WORTH = 5e-3
# Seconds for which one thread works alone after a team has parted.
_ALONE = 1.0

_POINTER, _NUMBER = ctypes.c_void_p, ctypes.c_int64
_WORK = ctypes.CFUNCTYPE(
    _NUMBER, *[_POINTER] * 6, ctypes.c_double, *[_NUMBER] * 7, _POINTER, _POINTER
)


def cores() -> int:
    """Count the cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def team_for(program: Program, most: int) -> tuple[int, float]:
    """Choose how many threads, up to `most`, step a program; return the seconds of a step too."""
    if stores_at(program.block):
        # What is stored at places found at run time is read again at once: threads would only wait.
        return 1, 0.0
    loops, alike = work(program.block)
    operations = sum(length * each for length, each in loops)

    def seconds(threads: int) -> float:
        alone = _SHARED * operations / threads + _ALIKE * alike
        return alone if threads == 1 else alone + _MEETING * threads * len(loops)

    best = min(range(1, most + 1), key=seconds)
    threads = best if os.name == "posix" and seconds(1) > _GAIN * seconds(best) else 1
    return threads, seconds(threads)


class Team:
    """Calls a kernel in several threads; called as a kernel for one thread is."""

    def __init__(self, address: int, scratch: int, threads: int, seconds: float):
        self._work = _WORK(address)
        self._scratch, self.threads, self._seconds = scratch, threads, seconds
        self._parted = -math.inf

    def __call__(self, *arguments: Any) -> int:
        *given, records, every, stride, opens, _first, _last, flag = arguments
        lasts = records * every * self._seconds
        busy = time.monotonic() - self._parted < _ALONE
        threads = self.threads if lasts > _WORTH and not busy else 1
        place = np.zeros(PLACE + LINE, np.int64)
        scratch = np.empty(self._scratch + LINE)
        where = _align(place)
        told = place[(where - place.ctypes.data) // 8 :]
        told[SCRATCH] = _align(scratch)
        common = (*given, records, every, stride, opens)

        def work(me: int, size: int) -> int:
            return self._work(*common, me, size, where, flag)

        filled = _together(work, threads)
        if told[PARTED]:
            self._parted = time.monotonic()
        return filled


def _align(array: np.ndarray) -> int:
    """Return the first address of an array that begins a cache line."""
    return -(-array.ctypes.data // (8 * LINE)) * 8 * LINE


def _together(work: Callable[[int, int], int], threads: int) -> int:
    """Run `work(me, size)` in `threads` threads, this one the first; return what it returned.

    Where no more threads can be had, there are fewer.
    """
    ready = threading.Event()
    others: list[threading.Thread] = []

    def begin(me: int) -> None:
        ready.wait()
        work(me, 1 + len(others))

    try:
        for me in range(1, threads):
            other = threading.Thread(target=begin, args=(me,), name=f"retrax-{me}", daemon=True)
            other.start()
            others.append(other)
    except RuntimeError:
        pass
    ready.set()
    try:
        return work(0, 1 + len(others))
    finally:
        for other in others:
            other.join()
