"""Inputs from a table: known before the run begins."""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax.tree_util import Partial
from jaxtyping import Array, Float, Int

from retrax.errors import BadInput
from retrax.groups.base import Coordinates, Element
from retrax.mechanics.actuated import Inputs, Law
from retrax.mechanics.controls import AbstractControl, hold
from retrax.mechanics.state import State
from retrax.mechanics.system import AbstractGroupSystem
from retrax.numerics.checks import ArrayLike, float64, is_traced, require_choice, require_finite
from retrax.numerics.known import require_each

# Times of a table count as those of a step that ends so near, in steps: tables are rounded.
_NEAR = 1e-3
# Times of a table are evenly spaced if they miss it by less, relative to the spacing.
_EVEN = 1e-6


class Signal(AbstractControl):
    r"""Inputs from a table: `u[k]` at the time `t[k]`.

    After its last entry a table goes on with that entry, and a run that ends later says so; none
    may start before its first.

    **Arguments:**

    - `t`: the times in seconds, increasing.
    - `u`: the inputs, of shape `(len(t), m)`; `(len(t),)` for one input.
    - `hold`: `"zero"` holds `u[k]` from `t[k]` until `t[k + 1]`. The inputs of a step are those in
        its middle, so rounding of times does not matter; jumps that lie within a step act from one
        of its ends, and a warning says so. `"linear"` joins the entries by straight lines.
    """

    t: Float[Array, " n"]
    u: Float[Array, "n m"]
    hold: str = eqx.field(static=True)
    even: bool = eqx.field(static=True)  # whether all times are known to be equally far apart

    def __init__(self, t: ArrayLike, u: ArrayLike, hold: str = "zero"):
        self.hold = require_choice("hold", hold, ("zero", "linear"))
        self.t, table = float64("t", t), float64("u", u)
        if self.t.ndim != 1 or not len(self.t):
            raise BadInput(f"t has shape {self.t.shape}, but it is the list of a table's times.")
        table = table[:, None] if table.ndim == 1 else table
        if table.ndim != 2 or len(table) != len(self.t) or not table.shape[1]:
            raise BadInput(
                f"u has shape {np.shape(u)}, but with {len(self.t)} times it is a table of shape "
                f"({len(self.t)}, m) for m inputs, or ({len(self.t)},) for one."
            )
        self.u, self.even = table, _is_even(self.t)
        require_each(_require_times, self.t)
        require_each(lambda u: require_finite("u", u), self.u)

    @property
    def holds(self) -> bool:
        return self.hold == "zero"

    def __repr__(self) -> str:
        return f"Signal({self.u.shape[-2]} entries, hold={self.hold!r})"

    def check(self, system: AbstractGroupSystem, count: int) -> None:
        if self.u.shape[1] != count:
            raise BadInput(
                f"u of the Signal has {self.u.shape[1]} columns, but the plant has {count} "
                f"{'input' if count == 1 else 'inputs'}."
            )

    def check_run(self, t: float, h: float, steps: int) -> str | None:
        times, u = np.asarray(self.t), np.asarray(self.u)
        near, (first, last) = _NEAR * abs(h), sorted((t, t + steps * h))
        if first < times[0] - near:
            raise BadInput(
                f"the run begins at t = {first:g} s, but the table of the Signal begins at "
                f"t = {times[0]:g} s: nothing says what acts before."
            )
        ends, lasts = times[-1], ""
        if self.holds and len(times) > 1:
            ends = ends + (times[-1] - times[-2])  # the last entry has an interval as well
            lasts = f", and lasts as long as the one before, until t = {ends:g} s"
        if len(times) > 1 and last > ends + near:
            return (
                f"the last entry of the Signal is that of t = {times[-1]:g} s{lasts}, but the run "
                f"goes on until t = {last:g} s: that entry is held until then."
            )
        return _doubtful_jumps(times, u, t, h, (first, last)) if self.holds else None

    def during(self, state: State, h: Float[Array, ""]) -> Law:
        if not self.holds:
            return Partial(_joined, self)
        return hold(self.u[self.entry(state.t + h / 2, len(self.t) - 1)])

    def entry(self, t: Float[Array, ""], last: int) -> Int[Array, ""]:
        """Return which entry the time `t` follows, from 0 to `last`."""
        if self.even:
            spacing = (self.t[-1] - self.t[0]) / (len(self.t) - 1)
            k = jnp.floor((t - self.t[0]) / spacing).astype(int)
        else:
            k = jnp.searchsorted(self.t, t, side="right") - 1
        return jnp.clip(k, 0, last)


def _joined(table: Signal, g: Element, xi: Coordinates, t: Float[Array, ""]) -> Inputs:
    """Return the inputs on the straight line between two entries."""
    times, u, n = table.t, table.u, len(table.t)
    if n == 1:
        return u[0]
    k = table.entry(t, n - 2)
    part = (t - times[k]) / (times[k + 1] - times[k])
    return u[k] + jnp.clip(part, 0.0, 1.0) * (u[k + 1] - u[k])


def _is_even(t: Float[Array, " n"]) -> bool:
    if is_traced(t) or len(t) < 2:
        return False
    times = np.asarray(t)
    spacing = (times[-1] - times[0]) / (len(times) - 1)
    off = np.abs(times - (times[0] + spacing * np.arange(len(times))))
    return bool(np.max(off) <= _EVEN * abs(spacing))


def _require_times(t: np.ndarray) -> None:
    require_finite("t", t)
    (back,) = np.nonzero(np.diff(t) <= 0)
    if len(back):
        k = int(back[0])
        raise BadInput(
            f"the times of a table must increase, but t[{k + 1}] = {t[k + 1]:g} s comes after "
            f"t[{k}] = {t[k]:g} s."
        )


def _doubtful_jumps(
    times: np.ndarray, u: np.ndarray, t0: float, h: float, run: tuple[float, float]
) -> str | None:
    """Return a sentence about jumps that lie within steps."""
    jumps = times[1:][np.any(np.diff(u, axis=0) != 0, axis=1)]
    jumps = jumps[(jumps > run[0]) & (jumps < run[1])]
    at = (jumps - t0) / h
    within = jumps[np.abs(at - np.round(at)) > _NEAR]
    if not len(within):
        return None
    return (
        f"{len(within)} of the {len(jumps)} jumps of the Signal lie within a step, the first at "
        f"t = {within[0]:g} s, and act from the nearer end of it, so that the run is of first "
        "order: choose h so that they lie on the ends of steps, or hold='linear'."
    )
