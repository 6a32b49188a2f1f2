"""The rule, applied to one call."""

import contextlib
import os
import re
import signal
import warnings
from collections.abc import Iterator
from typing import Any, NamedTuple

import jax
import numpy as np

import retrax as rx

from .entries import Entry

# What Python itself says of a wrong number of arguments, and of a keyword that is not known.
_PYTHON = re.compile(r"missing \d+ required|unexpected keyword|takes .* positional|multiple values")
LIMIT_SECONDS = 120
LONGEST = 1500


class Verdict(NamedTuple):
    """How a call ended: "accepted", "refused", "python" or "wrong", and why."""

    outcome: str
    detail: str


class Hangs(BaseException):
    """A call that has not come back in time."""


def judge(entry: Entry, arguments: dict[str, Any], complete: bool = True) -> Verdict:
    """Call, and say whether what came of it is right.

    Where an argument is missing or not known, and the call not `complete`, Python may refuse it.
    """
    try:
        with _limited(LIMIT_SECONDS), _quiet():
            result = entry.function(**arguments)
    except rx.RetraxError as error:
        return _refused(entry, error)
    except TypeError as error:
        if not complete and _PYTHON.search(str(error)):
            return Verdict("python", str(error))
        return _wrong(error)
    except Hangs:
        return Verdict("wrong", f"hangs: not back after {LIMIT_SECONDS} s")
    except Exception as error:
        return _wrong(error)
    return _accepted(entry, result)


def _wrong(error: BaseException) -> Verdict:
    at, where = error.__traceback__, "?"
    while at is not None:
        file = at.tb_frame.f_code.co_filename
        if f"{os.sep}retrax{os.sep}" in file:
            where = f"{file.split(f'{os.sep}retrax{os.sep}')[-1]}:{at.tb_lineno}"
        at = at.tb_next
    return Verdict("wrong", f"{type(error).__name__} at {where}: {str(error)[:300]}")


def _refused(entry: Entry, error: Exception) -> Verdict:
    text = str(error)
    if not isinstance(error, entry.refusals):
        return Verdict("wrong", f"class {type(error).__name__}: {text}")
    if "\n" in text or not text.endswith((".", "?")) or len(text) < 10:
        return Verdict("wrong", f"not a sentence: {text!r}")
    if len(text) > LONGEST:
        return Verdict("wrong", f"too long a sentence ({len(text)} characters): {text[:200]}")
    if getattr(error, "trajectory", None) is not None and not finite(error.trajectory):
        return Verdict("wrong", f"numbers not finite in the trajectory of: {text}")
    return Verdict("refused", text)


def _accepted(entry: Entry, result: Any) -> Verdict:
    if not finite(result):
        return Verdict("wrong", f"silent NaN: {str(result)[:200]!r}")
    try:
        with _quiet():
            sound = entry.sound(result)
    except Exception as error:
        return Verdict("wrong", f"not sound: {_wrong(error).detail}")
    if not sound:
        return Verdict("wrong", f"not sound: {str(result)[:200]!r}")
    return Verdict("accepted", "")


def finite(result: Any) -> bool:
    """Whether all numbers of a result are finite."""
    return all(_finite(leaf) for leaf in leaves(result))


def leaves(result: Any) -> list[Any]:
    """The numbers of a result, of whatever kind."""
    if isinstance(result, rx.Trajectory):
        return [result.t, *jax.tree.leaves(result.states), *jax.tree.leaves(result.info)]
    if hasattr(result, "data_vars"):
        return []  # members that failed are NaN: the entry looks at the others
    if hasattr(result, "__dict__") and not jax.tree.leaves(result):
        return list(vars(result).values())
    return jax.tree.leaves(result)


def _finite(leaf: Any) -> bool:
    if isinstance(leaf, jax.Array | np.ndarray | float | np.floating):
        array = np.asarray(leaf)
        return array.dtype.kind not in "fc" or bool(np.isfinite(array).all())
    return True


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        yield


@contextlib.contextmanager
def _limited(seconds: float) -> Iterator[None]:
    def stop(number: int, frame: Any) -> None:
        raise Hangs

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
