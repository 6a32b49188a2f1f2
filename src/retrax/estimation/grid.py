r"""Steps for measurements at any times.

Where all times are whole multiples of one step, states are saved there. Elsewhere every state is
saved, and a shorter step of the same method leads from the last state to the time of a measurement:
its error is that of one step, so nothing of the order is lost.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int

# Times that miss a common step by more rounding errors than this do not lie on it.
_ROUNDINGS = 64.0
# A common step may take so many times the steps that a run with shorter steps between them takes.
_DEARER = 2


class Grid(NamedTuple):
    """The steps of a run, and where measurements lie between them.

    **Attributes:** `h`, `steps`, `save_every`: the run; `rows`: for each sensor the saved state at
    or before each time; `rest`: the time that has passed since, zero for times on the grid.
    """

    h: float
    steps: int
    save_every: int
    rows: tuple[Int[np.ndarray, " time"], ...]
    rest: tuple[Float[np.ndarray, " time"], ...]


def grid(start: float, times: Sequence[np.ndarray], longest: float) -> Grid:
    """Choose steps of at most `longest` from `start` to the last of all times."""
    behind = [np.asarray(t) - start for t in times]
    every = np.unique(np.concatenate(behind))
    span = float(every[-1])
    error = _ROUNDINGS * np.finfo(float).eps * max(abs(start), abs(start + span), span)
    common = _common_step(every[every > error], error)
    steps = max(1, math.ceil(span / longest - 1e-9))
    if common is not None and span / common <= _DEARER * (steps + len(every)):
        parts = max(1, math.ceil(common / longest - 1e-9))
        rows = [np.rint(t / common).astype(int) for t in behind]
        records = round(span / common)
        rest = tuple(np.zeros(len(t)) for t in behind)
        return Grid(span / records / parts, records * parts, parts, tuple(rows), rest)
    h = span / steps
    rows = [np.minimum(np.floor(t / h + 1e-12).astype(int), steps) for t in behind]
    rest = [np.maximum(t - k * h, 0.0) for t, k in zip(behind, rows, strict=True)]
    return Grid(h, steps, 1, tuple(rows), tuple(np.where(r > error, r, 0.0) for r in rest))


def _common_step(t: np.ndarray, error: float) -> float | None:
    """Return the largest step of which all times are multiples, or `None` without one.

    By Euclid's algorithm on the distances; the result is judged on the times themselves.
    """
    gaps = np.diff(np.concatenate([[0.0], t]))
    step = 0.0
    for gap in np.unique(gaps[gaps > error]):
        a, b = max(step, float(gap)), min(step, float(gap))
        while b > _ROUNDINGS * error:
            a, b = b, a - b * round(a / b)
            b = abs(b)
        step = a
    count = round(float(t[-1]) / step)
    step = float(t[-1]) / count
    return step if np.max(np.abs(t - np.rint(t / step) * step)) <= error else None
