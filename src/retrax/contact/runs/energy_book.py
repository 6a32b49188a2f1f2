"""Where the energy of a run with contact went."""

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from retrax.contact.runs.motions import History
from retrax.contact.runs.node_columns import ALL
from retrax.trajectory.energy_balance import EnergyBalance, balance_of_forces, energy_balance
from retrax.trajectory.observe import Series

if TYPE_CHECKING:
    from retrax.trajectory.trajectory import Trajectory


# What is not known to this part of itself is not told.
_KNOWN = 0.1


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
    - `work`: of forces and damping, by quadrature over the steps, which `uncertainty` says the
        quality of; and of joints, from the impulses of the steps. Joints that nobody drives do
        none: what they seem to do, $O(h^2)$, is in the uncertainty.
    - `friction_work`, `impact_loss`: what friction and impacts took, from the impulses of steps.
        Nodes of rods and balls that neither slip nor land book nothing; a body that sticks or rests
        books $O(h^2)$, which does not add up.
    - `difference`: what is left: the error of the integrator, $O(h^2)$, and of `work`. It is zero
        to round-off where a step without contact keeps the energy, as in free flight, and
        no node sticks: of nodes of rods and balls that do nothing is booked.
    - `contacts`: `friction_work` and `impact_loss` of each contact, by name; of rods, of each pair
        of things that has touched, and of all.
    - `friction_uncertainty`, `impact_uncertainty`: by how much these may be off up to each saved
        state: the largest `difference` so far, which may belong to either, and of nodes and impacts
        how far two rules are apart that tell work from impulses.
    """

    change: Series
    work: Series
    friction_work: Series
    impact_loss: Series
    difference: Series
    uncertainty: float
    contacts: dict[str, Taken]
    friction_uncertainty: Series
    impact_uncertainty: Series

    def __repr__(self) -> str:
        return f"<energy of {len(self.change)} states: {self.words()}>"

    @property
    def balance(self) -> EnergyBalance:
        """The same with all work in one: of forces, and what contacts take."""
        work = self.work - self.friction_work - self.impact_loss
        return EnergyBalance(self.change, work, self.difference, self.uncertainty)

    def words(self) -> str:
        """Tell in one sentence what changed the energy, and how well that is known."""
        outside = ""
        if np.any(self.work):
            off = np.nan_to_num(self.uncertainty) + abs(self.difference[-1])
            outside = f", forces and joints did {_describe(self.work[-1], off, '+')}"
        friction = _describe(self.friction_work[-1], self.friction_uncertainty[-1])
        impacts = _describe(self.impact_loss[-1], self.impact_uncertainty[-1])
        return (
            f"it changed by {self.change[-1]:+.6g} J: friction took {friction}, impacts {impacts}"
            f"{outside}; difference {self.difference[-1]:+.2e} J"
        )


def _describe(value: float, off: float, sign: str = "") -> str:
    """Tell an energy with its uncertainty, or only a bound of it where it is hardly known."""
    if off <= 1e-6 * abs(value):
        return f"{value:{sign}.6g} J"
    if off <= _KNOWN * abs(value):
        return (
            f"{value:{sign}.{max(2, 1 + round(-np.log10(off / abs(value))))}g} J (to {off:.1e} J)"
        )
    return f"{abs(value) + off:.1e} J at most"


def book_of(run: "Trajectory", history: History) -> EnergyBook:
    """Book the energy of a run."""
    forces, seen, powers = balance_of_forces(run), run.observations, history.powers
    if seen.inputs is None and seen.energy is not None and np.sum(powers.saved) == len(run.t):
        forces = energy_balance(powers.t, seen.energy, powers.power, powers.saved)

    def total(values: np.ndarray) -> np.ndarray:
        return np.concatenate([np.zeros((1, values.shape[1])), np.cumsum(values, axis=0)])

    each = slice(1 if history.names[:1] == (ALL,) else 0, None)
    friction, impacts, *doubts = (
        total(x)
        for x in (
            history.friction_work,
            history.impact_loss,
            history.friction_doubt,
            history.impact_doubt,
        )
    )
    taken = np.sum(friction[:, each], axis=1), np.sum(impacts[:, each], axis=1)
    joints = total(history.joint_work[:, None])[:, 0]
    idle = np.max(np.abs(total(history.joint_doubt[:, None])))
    difference = forces.difference - joints + taken[0] + taken[1]
    left = np.maximum.accumulate(np.abs(difference))
    unsure = [np.maximum(left, np.abs(np.sum(x[:, each], axis=1))) for x in doubts]
    return EnergyBook(
        forces.change,
        forces.work + joints,
        *taken,
        difference,
        forces.uncertainty + idle,
        {name: Taken(friction[:, k], impacts[:, k]) for k, name in enumerate(history.names)},
        *(np.where(x == 0, 0.0, y) for x, y in zip(taken, unsure, strict=True)),
    )
