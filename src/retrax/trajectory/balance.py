"""Where the energy of a run went: its change, and the work that was done on the system."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float

Series = Float[np.ndarray, " time"]


class EnergyBalance(NamedTuple):
    r"""The energy of a run against the work of forces, damping and driven constraints, in joules.

    **Attributes:**

    - `change`: $H(t) - H(t_0)$ at every saved state.
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
        """The change, the work and their difference at the last saved state, by name."""
        return {name: float(getattr(self, name)[-1]) for name in self._fields[:3]}


def energy_balance(t: Series, energy: Series, power: Series) -> EnergyBalance:
    """The balance of the energies and powers at the times `t`."""
    change, work = energy - energy[0], _work(t, power)
    some = np.unique([*range(0, len(t), 2), len(t) - 1])
    uncertainty = float("nan")
    if len(t) >= 5:
        uncertainty = float(np.max(np.abs(_work(t[some], power[some]) - work[some])))
    return EnergyBalance(change, work, change - work, uncertainty)


def _work(t: Series, power: Series) -> Series:
    r"""The integral of the power up to each time, by the trapezoidal rule with end slopes.

    $$ \int_0^d P\,dt \approx \tfrac d2(P_0 + P_1) + \tfrac{d^2}{12}(P_0' - P_1') $$

    The slopes are those of parabolas through three neighbours. Fewer than three states have none.
    """
    d = np.diff(t)
    parts = d * (power[1:] + power[:-1]) / 2
    if len(t) >= 3:
        slope = np.gradient(power, t, edge_order=2)
        parts = parts + d**2 / 12 * (slope[:-1] - slope[1:])
    return np.concatenate([[0.0], np.cumsum(parts)])
