"""States between those that were saved: whole steps from the one before, and a shorter one."""

import math
from typing import TYPE_CHECKING, Any

import jax
import numpy as np

from retrax.engine.backends import make_single
from retrax.engine.backends.stepping import Single
from retrax.engine.progress import Packing
from retrax.errors import BadInput
from retrax.mechanics.remembered import RememberedSystem
from retrax.mechanics.state import State
from retrax.numerics.checks import host_float64, require_finite

if TYPE_CHECKING:
    from retrax.trajectory.trajectory import Trajectory

# A time is that of a step if it misses it by this part of a step, or by rounding errors.
_NEAR, _ROUNDING = 1e-9, 4


class DenseOutput:
    """The states of a run at any time within it.

    A state between two saved ones has the order of the method: it is the end of whole steps from
    the saved state before it, and of one shorter step.
    """

    def __init__(self, run: "Trajectory"):
        system, integrator = run.system, run.integrator
        if isinstance(system, RememberedSystem):
            raise BadInput(f"{system.lack()}.")
        if system is None or integrator is None:
            raise BadInput("this run has no system and no integrator to take shorter steps with.")
        self._run, self._h = run, float(run.h)
        self._t = np.asarray(run.t)
        one: Any = jax.tree.map(lambda x: np.asarray(x)[0], run.states)
        self._packing = Packing(one)
        leaves = [np.asarray(x).reshape(len(self._t), -1) for x in jax.tree.leaves(run.states)]
        self._rows = np.concatenate(leaves, axis=1)
        backend = "xla" if run.provenance.get("backend") == "xla" else "auto"
        self._single: Single = make_single(system, integrator, one, self._h, backend)
        held = self._packing.slots[len(jax.tree.leaves((one.g, one.momentum))) : -1]
        self._held = slice(held[0][1], held[-1][2]) if held else slice(0, 0)

    def at(self, t: object) -> State:
        """Return the state at a time, or the states at several, stacked."""
        times = host_float64("t", t)
        require_finite("t", times)
        if times.ndim > 1:
            raise BadInput(f"t has shape {times.shape}, but it is a time or a list of them.")
        rows = np.array([self._row(float(x)) for x in np.atleast_1d(times)])
        rows = rows.reshape(-1, self._packing.size)
        return self._packing.unpack_one(rows[0] if times.ndim == 0 else rows, copy=True)

    def after(self, state: State, h: float) -> State:
        """Return the state one step of size `h` after any state."""
        start = self._packing.rows(state)[:, 0]
        end = self._take(start, h, 1, 0)
        end[self._held] = start[self._held]
        return self._packing.unpack_one(end)

    def _row(self, t: float) -> np.ndarray:
        """Return the numbers of the state at one time."""
        h, first, last = self._h, float(self._t[0]), float(self._t[-1])
        forth = 1.0 if h > 0 else -1.0
        rounding = _ROUNDING * math.ulp(max(abs(first), abs(last), abs(t)))
        if forth * (t - first) < -rounding or forth * (t - last) > rounding:
            raise BadInput(
                f"t = {t:.12g} s is not within this run, which goes from {first:.12g} to "
                f"{last:.12g} s."
            )
        k = int(np.searchsorted(forth * self._t, forth * t, side="right")) - 1
        k = max(k, 0)
        if self._t[k] == t or forth * (t - last) >= 0:
            return self._rows[k]
        behind = round((float(self._t[k]) - first) / h)
        whole = math.floor((t - (first + behind * h)) / h + _NEAR)
        start = self._rows[k]
        if whole > 0:
            start = self._take(np.append(start[:-1], first), h, whole, behind)
        left = t - float(start[-1])
        if abs(left) <= max(_NEAR * abs(h), rounding):
            return start
        end = self._take(start, left, 1, 0)
        end[self._held], end[-1] = start[self._held], t
        return end

    def _take(self, start: np.ndarray, h: float, steps: int, taken: int) -> np.ndarray:
        found = self._single.take(start, h, steps, taken=taken)
        if found is None:
            raise BadInput(f"a step of {h:g} s from t = {float(start[-1]):.12g} s fails.")
        return found[0]
