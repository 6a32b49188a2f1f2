"""Hear signals while machine code runs.

Python runs signal handlers between two instructions of its own, and so never while a kernel runs.
For that time a handler in machine code takes their place: it stores the number of the signal in
memory. A kernel looks there after every step and in every loop that may not end, and returns; then
Python's own handler gets the signal. Only the main thread hears; the kernels of other threads are
told to stop by the thread that waits for them.
"""

import ctypes
import os
import platform
import signal
import threading
from collections.abc import Callable
from functools import cache

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
# The signal ends the process, or is ignored: SIG_DFL and SIG_IGN of every C library.
_LEFT_ALONE = (None, 1)


class _Action(ctypes.Structure):
    """`struct sigaction`: the handler, and more room than any C library needs for the rest."""

    _fields_ = (("handler", ctypes.c_void_p), ("rest", ctypes.c_byte * 1016))


class Flag:
    """A number in memory that kernels look at: they return where it is not zero."""

    def __init__(self) -> None:
        self._number = ctypes.c_int32(0)
        self.address = ctypes.addressof(self._number)

    def raise_it(self) -> None:
        self._number.value = 1


NEVER = Flag()


def interruptibly(run: Callable[..., int], *arguments: float) -> tuple[int, int]:
    """Call a kernel; return its result, and the number of the signal that ended it, or 0."""
    if threading.get_ident() != threading.main_thread().ident or not _can_listen():
        return run(*arguments, NEVER.address), 0
    return _ear().call(run, *arguments)


class _Ear:
    def __init__(self) -> None:
        from retrax.engine.llvm.machine_code import Compiled

        self._code = Compiled(_HANDLER)  # holds the memory of the handler
        place = ctypes.CFUNCTYPE(ctypes.c_int64)(self._code.address("place"))()
        self._heard, self._place = ctypes.c_int32.from_address(place), place
        self._action = ctypes.CDLL(None).sigaction
        self._action.argtypes = [ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p]
        self._buffers = [_Action() for _ in range(1 + len(_SIGNALS))]
        self._buffers[-1].handler = self._code.address("hear")
        *before, self._during = map(ctypes.addressof, self._buffers)
        self._before = list(zip(map(int, _SIGNALS), before, self._buffers[:-1], strict=True))

    def call(self, run: Callable[..., int], *arguments: float) -> tuple[int, int]:
        act, taken = self._action, []
        self._heard.value = 0
        try:
            for number, before, old in self._before:
                taken.append((number, before))
                act(number, self._during, before)
                if old.handler in _LEFT_ALONE:
                    act(number, before, None)
                    taken.pop()
            result = run(*arguments, self._place)
        finally:
            for number, before in taken:
                act(number, before, None)
        return result, self._heard.value


@cache
def _ear() -> _Ear:
    return _Ear()


@cache
def _can_listen() -> bool:
    return os.name == "posix" and platform.machine() in ("x86_64", "aarch64", "arm64")
