"""Where the values of a program come from: the functions that were running when they were made."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from types import CodeType
from typing import Any, NamedTuple

from retrax.engine.program import Value

# So many functions, from the innermost outwards, say what a line is for.
_NEAREST = 8
_LIBRARIES = ("site-packages", "dist-packages", "/lib/python", "<string>", "<frozen")


class Origin(NamedTuple):
    """The functions around an operation, the innermost first, and whether it is a derivative."""

    functions: tuple[CodeType, ...]
    derived: bool


class Origins:
    """The origin of each value, noted while a program is built."""

    def __init__(self):
        self._of: dict[int, Origin] = {}
        self._now: Origin | None = None

    def enter(self, equation: Any) -> None:
        """Take what is emitted from now on for parts of this equation of a jaxpr."""
        info = equation.source_info
        if info.traceback is None:
            return
        codes, _ = info.traceback.raw_frames()
        own = [code for code in codes if not any(x in code.co_filename for x in _LIBRARIES)]
        if own:
            self._now = Origin(tuple(own[:_NEAREST]), "jvp" in str(info.name_stack))

    def note(self, value: Value) -> None:
        """Note that a value has been made."""
        if self._now is not None:
            self._of[value.number] = self._now

    def of(self, value: Value) -> Origin | None:
        """Return the origin of a value, if it is known."""
        return self._of.get(value.number)


_noting: ContextVar[Origins | None] = ContextVar("_noting", default=None)


def active_notes() -> Origins | None:
    """Return the notes that a program which is built now belongs to, if somebody keeps them."""
    return _noting.get()


@contextmanager
def noting() -> Iterator[Origins]:
    """Note where the values of programs come from that are built inside."""
    origins = Origins()
    token = _noting.set(origins)
    try:
        yield origins
    finally:
        _noting.reset(token)
