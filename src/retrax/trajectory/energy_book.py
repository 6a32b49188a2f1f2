"""Where the energy of a run with contact went."""

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from retrax.trajectory.contacts import History
from retrax.trajectory.energy_balance import EnergyBalance, balance_of_forces
from retrax.trajectory.observe import Series
from retrax.trajectory.rod_contacts import ALL

if TYPE_CHECKING:
    from retrax.trajectory.trajectory import Trajectory


class Taken(NamedTuple):
    """What one contact took of the energy up to each saved state, in J."""

    friction_work: Series
    impact_loss: Series


class EnergyBook(NamedTuple):
    r"""The energy of a run with contact: what changed it, up to each saved state, in joules.

    $$ H(t) - H(t_0) = \text{work} - \text{friction work} - \text{impact loss} + \text{difference}
    $$

    **Attributes:**

    - `change`: $H(t) - H(t_0)$.
    - `work`: of forces and damping, by quadrature over the saved states, which `uncertainty` says
        the quality of; and of joints, from the impulses of the steps.
    - `friction_work`, `impact_loss`: what friction and impacts took, from the impulses of steps. A
        contact that rests or sticks books $O(h^2)$, which does not add up.
    - `difference`: what is left: the error of the integrator, $O(h^2)$, and of `work`. It is zero
        to round-off where a step without contact keeps the energy, as in free flight.
    - `contacts`: `friction_work` and `impact_loss` of each contact, by name; of rods, of each pair
        of things that has touched, and of all.
    """

    change: Series
    work: Series
    friction_work: Series
    impact_loss: Series
    difference: Series
    uncertainty: float
    contacts: dict[str, Taken]

    @property
    def balance(self) -> EnergyBalance:
        """The same with all work in one: of forces, and what contacts take."""
        work = self.work - self.friction_work - self.impact_loss
        return EnergyBalance(self.change, work, self.difference, self.uncertainty)

    def words(self) -> str:
        """Tell in one sentence what changed the energy."""
        outside = ""
        if np.any(self.work):
            known = f" (to {self.uncertainty:.1e} J or better)" if self.uncertainty > 0 else ""
            outside = f", forces and joints did {self.work[-1]:+.6g} J{known}"
        return (
            f"it changed by {self.change[-1]:+.6g} J: friction took {self.friction_work[-1]:.6g} "
            f"J, impacts {self.impact_loss[-1]:.6g} J{outside}; difference "
            f"{self.difference[-1]:+.2e} J"
        )


def book_of(run: "Trajectory", history: History) -> EnergyBook:
    """Book the energy of a run."""
    forces = balance_of_forces(run)

    def summed(values: np.ndarray) -> np.ndarray:
        return np.concatenate([np.zeros((1, values.shape[1])), np.cumsum(values, axis=0)])

    friction, impacts = summed(history.friction_work), summed(history.impact_loss)
    each = slice(1 if history.names[:1] == (ALL,) else 0, None)
    taken = np.sum(friction[:, each], axis=1), np.sum(impacts[:, each], axis=1)
    joints = summed(history.joint_work[:, None])[:, 0]
    return EnergyBook(
        forces.change,
        forces.work + joints,
        *taken,
        forces.difference - joints + taken[0] + taken[1],
        forces.uncertainty,
        {name: Taken(friction[:, k], impacts[:, k]) for k, name in enumerate(history.names)},
    )
