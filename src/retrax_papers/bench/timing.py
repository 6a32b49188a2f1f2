"""Processor time, in pairs.

The machine may be shared, so what counts is the processor time of this process over all its
threads, not the time on the wall. Every run sits between two runs of the thing it is compared
with; the ratio is taken within the pair, and the median of several pairs is reported with the
smallest and the largest.
"""

import statistics
import time
from collections.abc import Callable
from typing import Any

# A measurement lasts at least this long, so that the clock's resolution does not matter.
_LEAST = 0.05

Timing = dict[str, Any]


def cpu_seconds(call: Callable[[], object], repeats: int | None = None) -> float:
    """Processor seconds of one call, averaged over `repeats` or over `_LEAST` seconds."""
    repeats = repeats or repetitions(call)
    start = time.process_time()
    for _ in range(repeats):
        call()
    return (time.process_time() - start) / repeats


def repetitions(call: Callable[[], object]) -> int:
    """How many calls last `_LEAST` seconds; the first call, which may compile, is not counted."""
    call()
    start = time.process_time()
    call()
    once = max(time.process_time() - start, 1e-6)
    return max(1, round(_LEAST / once))


def paired(call: Callable[[], object], base: Callable[[], object] | None, pairs: int = 7) -> Timing:
    """`call` against `base`: seconds of both, and their ratio with its spread.

    Without anything to compare with (`base` is None) only the seconds of `call`.
    """
    many = repetitions(call)
    if base is None:
        return {"seconds": statistics.median(cpu_seconds(call, many) for _ in range(pairs))}
    many_base = repetitions(base)
    times, base_times, ratios = [], [cpu_seconds(base, many_base)], []
    for _ in range(pairs):
        times.append(cpu_seconds(call, many))
        base_times.append(cpu_seconds(base, many_base))
        ratios.append(2 * times[-1] / (base_times[-2] + base_times[-1]))
    return {
        "seconds": statistics.median(times),
        "base_seconds": statistics.median(base_times),
        "ratio": statistics.median(ratios),
        "ratio_min": min(ratios),
        "ratio_max": max(ratios),
        "pairs": pairs,
    }


def nanoseconds(timing: Timing, steps: int) -> dict[str, float]:
    """Nanoseconds per step of retrax, and of C if it ran."""
    times = {"ns": timing["seconds"] / steps * 1e9}
    if "base_seconds" in timing:
        times["c_ns"] = timing["base_seconds"] / steps * 1e9
    return times


def spread(timing: Timing) -> str:
    """A ratio for the eye: median [smallest, largest]; a dash if nothing was compared."""
    if "ratio" not in timing:
        return "-"
    return f"{timing['ratio']:.3g} [{timing['ratio_min']:.3g}, {timing['ratio_max']:.3g}]"
