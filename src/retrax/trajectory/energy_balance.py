"""The energy of a run against the work that is done on it."""

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from retrax.trajectory.observe import Series
from retrax.trajectory.reactions import has_contact

if TYPE_CHECKING:
    from retrax.trajectory.trajectory import Trajectory


class EnergyBalance(NamedTuple):
    r"""The energy of a run against the work of forces, damping, driven constraints and contacts.

    **Attributes:**

    - `change`: $H(t) - H(t_0)$ at every saved state, in joules.
    - `work`: $\int_{t_0}^t P\,dt$ of the power $P = \dot H$ of `system.power`, by quadrature over
        the saved states.
    - `difference`: `change - work`: the error of the integrator, as far as `work` is known.
    - `uncertainty`: by how much `work` moves, at most, where every other saved state is left out.
        The quadrature is of order 4 in the time between saved states where the power is smooth, so
        that `work` itself is better than this; NaN for fewer than five states.
    """

    change: Series
    work: Series
    difference: Series
    uncertainty: float

    def at_the_end(self) -> dict[str, float]:
        """Return the change, the work and their difference at the last saved state, by name."""
        return {name: float(getattr(self, name)[-1]) for name in self._fields[:3]}


def energy_balance(
    t: Series, energy: np.ndarray, power: Series, saved: np.ndarray | None = None
) -> EnergyBalance:
    """Balance the energies against the powers at the times `t`.

    `saved`: at which of these times there are energies, if not at all.
    """
    change, work = energy - energy[0], _work(t, power)
    some = np.unique([*range(0, len(t), 2), len(t) - 1])
    uncertainty = float("nan")
    if len(t) >= 5:
        uncertainty = float(np.max(np.abs(_work(t[some], power[some]) - work[some])))
    work = work if saved is None else work[saved]
    return EnergyBalance(change, work, change - work, uncertainty)


def balance_of(run: "Trajectory") -> EnergyBalance | None:
    """Balance the energy of a run; `None` where it is an invariant."""
    seen = run.observations
    if seen.power is None or seen.energy is None:
        return None
    if has_contact(run):
        return run.energy_book().balance
    return balance_of_forces(run)


def balance_of_forces(run: "Trajectory") -> EnergyBalance:
    """Balance the energy of a run against the work of everything but contacts."""
    seen = run.observations
    assert seen.power is not None and seen.energy is not None
    if seen.inputs is None or seen.rates is None or not run.inputs_are_held:
        return energy_balance(run.t, seen.energy, seen.power)
    smooth = seen.power - np.sum(seen.inputs * seen.rates, axis=1)
    rest = energy_balance(run.t, seen.energy, smooth)
    work, unknown = _work_of_held(run.t, seen.inputs, seen.rates, run.save_every)
    return EnergyBalance(
        rest.change, rest.work + work, rest.difference - work, rest.uncertainty + unknown
    )


def _work_of_held(
    t: Series, u: np.ndarray, rates: np.ndarray, save_every: int
) -> tuple[Series, float]:
    r"""Integrate the power of inputs that are held, $\sum \tfrac d2 u_k(y_k + y_{k+1})$.

    Their power jumps at saved states, and is smooth between them. How well the work is known is
    told by how the rates $y$ bend and, where states are not saved at every step, by how much the
    inputs may have changed in between.
    """
    d = np.diff(t)
    parts = d / 2 * np.sum(u[:-1] * (rates[1:] + rates[:-1]), axis=1)
    bend = np.abs(np.diff(rates, n=2, axis=0)) if len(t) > 2 else np.zeros((0, u.shape[1]))
    unknown = np.sum(np.abs(d[1:])[:, None] / 12 * np.abs(u[1:-1]) * bend)
    if save_every > 1:
        unknown += np.sum(np.abs(d)[:, None] * np.abs(np.diff(u, axis=0) * rates[:-1]))
    return np.concatenate([[0.0], np.cumsum(parts)]), float(unknown)


def _work(t: Series, power: Series) -> Series:
    r"""Integrate the power up to each time, by the trapezoidal rule with end slopes.

    $$ \int_0^d P\,dt \approx \tfrac d2(P_0 + P_1) + \tfrac{d^2}{12}(P_0' - P_1') $$

    The slopes are those of parabolas through three neighbours. Fewer than three states have none.
    """
    d = np.diff(t)
    parts = d * (power[1:] + power[:-1]) / 2
    if len(t) >= 3:
        slope = np.gradient(power, t, edge_order=2)
        parts = parts + d**2 / 12 * (slope[:-1] - slope[1:])
    return np.concatenate([[0.0], np.cumsum(parts)])
