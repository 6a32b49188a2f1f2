"""What a run tells of contacts, joints and constraints, and of their forces.

Mechanisms and contact are loaded when somebody asks about them.
"""

import abc
from functools import cached_property
from typing import TYPE_CHECKING

from retrax.integrators.base import AbstractIntegrator
from retrax.integrators.driven import Driven
from retrax.mechanics.remembered import RememberedSystem
from retrax.trajectory.observe import Observations, Values

if TYPE_CHECKING:
    from retrax.contact.runs.energy_book import EnergyBook
    from retrax.contact.runs.motions import ContactMotions, History
    from retrax.mechanisms.joint_motions import JointMotions
    from retrax.trajectory.trajectory import Trajectory


def method_of(run: "Trajectory") -> AbstractIntegrator | None:
    """Return the integrator that knows the contacts."""
    found = run.integrator
    return found.integrator if isinstance(found, Driven) else found


def has_contact(run: "Trajectory") -> bool:
    """Tell whether the steps of a run can be asked what contacts did in them."""
    system = run.system
    if system is None or isinstance(system, RememberedSystem) or system.contact is None:
        return False
    return hasattr(method_of(run), "contact_record")


def had_contact(run: "Trajectory") -> bool:
    """Tell whether a run had contacts that its file, which lacks functions, cannot tell about."""
    return isinstance(run.system, RememberedSystem) and hasattr(method_of(run), "contact_record")


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
    def _history(self) -> "History":
        """What contacts did; computed once."""
        from retrax.contact.runs.motions import history_of

        run = self._with_numbers("contacts")
        return run.as_it_was(lambda: history_of(run))

    @property
    def contacts(self) -> "ContactMotions":
        """The contacts of a system along the run, by name: gaps, impulses, slip, friction work.

        They are found by taking the steps again from the saved states.
        """
        from retrax.contact.runs.motions import ContactMotions

        return ContactMotions(self._with_numbers("contacts"), self._history)

    def energy_book(self) -> "EnergyBook":
        """Tell where the energy of a run with contact went: friction, impacts, forces, the rest."""
        from retrax.contact.runs.energy_book import book_of

        return book_of(self._with_numbers("energy_book()"), self._history)

    @property
    def joints(self) -> "JointMotions":
        """The joints and wheels of a mechanism along the run, by name: angles, rates, forces."""
        from retrax.mechanisms.joint_motions import JointMotions

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
        from retrax.contact.runs.motions import reaction_of

        return reaction_of(self._with_numbers("reaction"), tension)

    def constraint_violation(self) -> Values:
        """Return by how much every saved velocity breaks the constraint; zero without one."""
        return self.observations.violation
