"""How good an iterate is: sums and maxima over its stages, for problems side by side."""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from retrax.planning.model import Numbers, Sizes, cut

# Products of so many numbers have a logarithm in common.
_TOGETHER = 6


class Measured(NamedTuple):
    """Numbers of each problem, [component, problem] or [problem].

    **Attributes:** `costates`, `inputs`, `defects`, `slack_gaps`: the largest of each component;
    `residuals`, `input_residuals`: of the conditions of first order, likewise; `highest`, `lowest`:
    products of slacks and multipliers; `violation`: the sum of defects over their scales; `cost`,
    `logs`, `step_slope`: sums.
    """

    costates: np.ndarray
    inputs: np.ndarray
    defects: np.ndarray
    slack_gaps: np.ndarray
    residuals: np.ndarray
    input_residuals: np.ndarray
    highest: np.ndarray
    lowest: np.ndarray
    violation: np.ndarray
    cost: np.ndarray
    logs: np.ndarray
    step_slope: np.ndarray


class Scales(NamedTuple):
    """What counts as one: of changes of the state, of inputs, equations at the end, the path."""

    state: np.ndarray
    inputs: np.ndarray
    ends: np.ndarray
    path: np.ndarray


class Errors(NamedTuple):
    """Residuals of each problem, relative to what they are made of."""

    defects: np.ndarray
    end: np.ndarray
    path: np.ndarray
    dual: np.ndarray
    complementarity: np.ndarray

    @property
    def largest(self) -> np.ndarray:
        first = np.maximum(np.maximum(self.defects, self.end), self.path)
        return np.maximum(np.maximum(first, self.dual), self.complementarity)

    @property
    def primal(self) -> np.ndarray:
        return np.maximum(np.maximum(self.defects, self.end), self.path)


def counts(s: Sizes) -> tuple[int, ...]:
    """Return how many numbers each field of `Measured` has."""
    return (s.state, s.inputs, s.state, s.path, s.state, s.inputs, 1, 1, 1, 1, 1, 1)


def name_numbers(s: Sizes, numbers: np.ndarray) -> Measured:
    """Name the numbers that the sweep of `measure` leaves."""
    fields, first = [], s.state
    for count in counts(s):
        fields.append(numbers[first : first + count])
        first += count
    return Measured(*fields[:6], *(x[0] for x in fields[6:]))


def start(s: Sizes, numbers: np.ndarray) -> None:
    """Set what the sweep carries before its first stage."""
    numbers[...] = 0.0
    numbers[s.state + sum(counts(s)[:7])] = np.inf


def measure(
    s: Sizes,
    scales: Numbers,
    carried: Numbers,
    values: Numbers,
    own: Numbers,
    bounds: Numbers,
    clock: Numbers,
) -> list[Numbers]:
    """Add a stage to what is carried: the costates before it, then the fields of `Measured`."""
    n, m = s.state, s.inputs
    before, *parts = cut(carried, n, *counts(s))
    phi, slope, c, cost = cut(values, n, s.changes, s.path, 1)
    u, lam, limits, slack, z = cut(own, m, n, s.limits, s.path, s.path)
    of_state, of_path = cut(scales, n, s.path)
    later = jnp.where(clock[2] > 0, 1.0, 0.0)
    residual = later * (slope[:n] - before)
    gap = c - slack
    rest, rooms, duals = slope[n : n + m], [slack], [z]
    if s.bounded:
        low, high = cut(bounds, m, m)
        rest = rest - limits[:m] + limits[m:]
        rooms, duals = [u - low, high - u, slack], [limits, z]
    room, dual = jnp.concatenate(rooms), jnp.concatenate(duals)
    finite = room < jnp.inf
    room = jnp.where(finite, room, 1.0)
    highest, lowest, logs = parts[6], parts[7], parts[10]
    for k in range(room.shape[0]):
        product = room[k] * dual[k]
        highest = jnp.where(finite[k], jnp.maximum(highest, product), highest)
        lowest = jnp.where(finite[k], jnp.minimum(lowest, product), lowest)
    for k in range(0, room.shape[0], _TOGETHER):
        logs = logs + jnp.log(_product(room[k : k + _TOGETHER]))
    violation = parts[8] + jnp.abs(phi) @ (1 / of_state) + jnp.abs(gap) @ (1 / of_path)
    new = [
        lam,
        jnp.maximum(parts[0], jnp.abs(lam)),
        jnp.maximum(parts[1], jnp.abs(u)),
        jnp.maximum(parts[2], jnp.abs(phi)),
        jnp.maximum(parts[3], jnp.abs(gap)),
        jnp.maximum(parts[4], jnp.abs(residual)),
        jnp.maximum(parts[5], jnp.abs(rest)),
        highest,
        lowest,
        violation,
        parts[9] + cost,
        logs,
        parts[11] + slope[-1],
    ]
    return [jnp.concatenate(new)]


def _product(numbers: Numbers) -> Array:
    """Multiply numbers; NaN if one is not positive, so that two negative ones do not pass."""
    product = jnp.ones(())
    for k in range(numbers.shape[0]):
        product = product * jnp.where(numbers[k] > 0, numbers[k], jnp.nan)
    return product
