"""Signals that come while machine code runs.

Python runs signal handlers between two instructions of its own, and so never while a kernel runs.
For that time a handler in machine code takes their place: it stores the number of the signal in
memory. A kernel looks there after every step and in every loop that may not end, and returns; then
Python's own handler gets the signal. Only the main thread hears; the kernels of other threads are
told to stop by whoever waits for them.
"""

import ctypes
import os
import platform
import signal
import threading
from collections.abc import Callable
from functools import cache
from typing import Any

_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_HANDLER = """
@heard = internal global i32 0, align 4

define void @hear(i32 %signal) {
  store atomic i32 %signal, ptr @heard monotonic, align 4
  ret void
}

define i64 @place() {
  %place = ptrtoint ptr @heard to i64
  ret i64 %place
}
"""
# More than any C library needs to describe what a signal does; the handler is the first pointer.
_ROOM = 1024


class Flag:
    """A number in memory that kernels look at: they return where it is not zero."""

    def __init__(self) -> None:
        self._number = ctypes.c_int32(0)
        self.address = ctypes.addressof(self._number)

    def raise_it(self) -> None:
        self._number.value = 1


NEVER = Flag()


def interruptibly(run: Callable[..., int], *arguments: Any) -> tuple[int, int]:
    """Call a kernel; what it returns, and the number of the signal that made it return, or 0."""
    if threading.current_thread() is not threading.main_thread() or not _can_listen():
        return run(*arguments, NEVER.address), 0
    return _ear().call(run, *arguments)


class _Ear:
    def __init__(self) -> None:
        from retrax.engine.compiled import Compiled

        self._code = Compiled(_HANDLER)  # holds the memory of the handler
        place = ctypes.CFUNCTYPE(ctypes.c_int64)(self._code.address("place"))()
        self._heard = ctypes.c_int32.from_address(place)
        self._place, self._handler = place, self._code.address("hear")
        self._action = ctypes.CDLL(None).sigaction
        self._before = {n: ctypes.create_string_buffer(_ROOM) for n in _SIGNALS}
        self._during = ctypes.create_string_buffer(_ROOM)

    def call(self, run: Callable[..., int], *arguments: Any) -> tuple[int, int]:
        self._heard.value = 0
        taken = [n for n in _SIGNALS if callable(signal.getsignal(n))]
        try:
            for n in taken:
                self._listen(n)
            result = run(*arguments, self._place)
        finally:
            for n in taken:
                self._action(n, self._before[n], None)
        return result, self._heard.value

    def _listen(self, n: int) -> None:
        """As it was, with another handler."""
        before, during = self._before[n], self._during
        self._action(n, None, before)
        ctypes.memmove(during, before, _ROOM)
        ctypes.c_void_p.from_buffer(during).value = self._handler
        self._action(n, during, None)


@cache
def _ear() -> _Ear:
    return _Ear()


@cache
def _can_listen() -> bool:
    return os.name == "posix" and platform.machine() in ("x86_64", "aarch64", "arm64")
