"""What a run tells of contacts, joints and constraints, and of their forces."""

import abc
from functools import cached_property
from typing import TYPE_CHECKING

from retrax.trajectory.contacts import ContactMotions, History, history_of, reaction_of
from retrax.trajectory.energy_book import EnergyBook, book_of
from retrax.trajectory.joints import JointMotions
from retrax.trajectory.observe import Observations, Values
from retrax.trajectory.retaken import has_contact

if TYPE_CHECKING:
    from retrax.trajectory.trajectory import Trajectory


class AbstractReactions(abc.ABC):
    """What a trajectory knows of what touches, and of what is held."""

    # Whether its observations came with it, as from a file.
    _measured: bool = False

    @abc.abstractmethod
    def _with_numbers(self, what: str) -> "Trajectory":
        """Return the run; reject `what` while JAX is tracing it."""

    @property
    @abc.abstractmethod
    def observations(self) -> Observations:
        """Everything measured at the saved states."""

    @property
    @abc.abstractmethod
    def traced(self) -> bool:
        """Whether JAX is tracing the run."""

    @cached_property
    def _history(self) -> History:
        """What contacts did; computed once."""
        run = self._with_numbers("contacts")
        return run.as_it_was(lambda: history_of(run))

    @property
    def contacts(self) -> ContactMotions:
        """The contacts of a system along the run, by name: gaps, impulses, slip, friction work.

        They are found by taking the steps again from the saved states.
        """
        return ContactMotions(self._with_numbers("contacts"), self._history)

    def energy_book(self) -> EnergyBook:
        """Tell where the energy of a run with contact went: friction, impacts, forces, the rest."""
        return book_of(self._with_numbers("energy_book()"), self._history)

    @property
    def joints(self) -> JointMotions:
        """The joints and wheels of a mechanism along the run, by name: angles, rates, forces."""
        return JointMotions(self._with_numbers("joints"))

    @property
    def _tension(self) -> Values | None:
        """The multipliers where there are joints beside contacts, so that steps alone know them."""
        if self._measured or self.traced:
            return None
        run = self._with_numbers("multipliers")
        held = run.system is not None and run.system.constraint is not None
        return self._history.tension if held and has_contact(run) else None

    @property
    def multipliers(self) -> Values:
        """The multipliers of the constraint at every saved state, one column for each equation.

        Of a system with contact they are those of the step that ends there.
        """
        tension = self._tension
        return self.observations.multipliers if tension is None else tension

    @property
    def reaction(self) -> Values:
        """The reaction of the constraint, a body covector, at every saved state."""
        tension = self._tension
        if tension is None:
            return self.observations.reaction
        return reaction_of(self._with_numbers("reaction"), tension)

    def constraint_violation(self) -> Values:
        """Return by how much every saved velocity breaks the constraint; zero without one."""
        return self.observations.violation
