"""A way to solve a problem, with one knob, and the setting of the knob that meets an error."""

import math
import time
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from retrax_papers.bench.problems import attitude_error
from retrax_papers.bench.timing import cpu_seconds

# A setting that takes longer than this many seconds is not waited for, nor any finer one.
_PATIENCE = 4.0
# Settings per octave of steps, or per decade of tolerance.
_STRIDE = 4

Call = Callable[[], np.ndarray]


class Method(NamedTuple):
    """A method of some library.

    **Attributes:**

    - `library`, `name`: what it is called in tables.
    - `knob`: what is turned, `"steps"` or `"tolerance"`.
    - `settings`: of the knob, from coarse to fine.
    - `prepare`: a function of the setting that returns a call, which solves and returns R.
    """

    library: str
    name: str
    knob: str
    settings: tuple[float, ...]
    prepare: Callable[[float], Call]


class Match(NamedTuple):
    """A setting, the error it leads to, and the call to be timed."""

    setting: float
    error: float
    call: Call


def step_counts(first: int, last: int) -> tuple[int, ...]:
    """Numbers of steps, each about 2^(1/4) times the one before."""
    count = round(_STRIDE * math.log2(last / first)) + 1
    return tuple(dict.fromkeys(round(first * 2 ** (k / _STRIDE)) for k in range(count)))


def tolerances(last: float = 1e-14) -> tuple[float, ...]:
    """Tolerances from 0.1 down, each 10^(1/4) times smaller than the one before."""
    count = round(-_STRIDE * math.log10(last)) - _STRIDE + 1
    return tuple(10 ** (-1 - k / _STRIDE) for k in range(count))


def measure(method: Method, setting: float, exact: np.ndarray) -> Match:
    """The error at a setting, the median one of an ensemble; infinite where the method fails."""
    call = method.prepare(setting)
    try:
        with np.errstate(all="ignore"):  # a run that explodes shows in its error
            error = float(np.median(attitude_error(call(), exact)))
    except Exception as failure:  # every library has its own
        print(f"    {method.name} fails at {setting:g}: {str(failure).splitlines()[0]:.80}")
        error = math.inf
    return Match(setting, error if math.isfinite(error) else math.inf, call)


def walk(method: Method, exact: np.ndarray, stride: int = _STRIDE) -> Iterator[Match]:
    """Every `stride`-th setting from coarse to fine, as long as patience lasts."""
    for setting in method.settings[::stride]:
        start = time.process_time()
        match = measure(method, setting, exact)
        slow = time.process_time() - start > _PATIENCE
        yield match
        # The first call may have compiled; what counts is the second.
        if slow and match.error < math.inf and cpu_seconds(match.call, repeats=1) > _PATIENCE:
            return


def matched(method: Method, exact: np.ndarray, target: float) -> Match | None:
    """The coarsest setting whose error is at most `target`, or None where none is found."""
    for k, best in enumerate(walk(method, exact)):
        if best.error <= target:
            low, high = max(k - 1, 0) * _STRIDE, k * _STRIDE
            break
    else:
        return None
    while high - low > 1:
        middle = (low + high) // 2
        match = measure(method, method.settings[middle], exact)
        if match.error <= target:
            high, best = middle, match
        else:
            low = middle
    return best
