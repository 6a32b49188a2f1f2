"""What the integrators of strings in contact have in common: which systems they step."""

from retrax.errors import BadInput
from retrax.integrators.base import AbstractIntegrator
from retrax.mechanics.system import AbstractGroupSystem
from retrax.systems.strings.strings_in_contact import StringsInContact


def require_strings(integrator: AbstractIntegrator, system: AbstractGroupSystem) -> None:
    """Refuse everything but a pair of strings."""
    if not isinstance(system, StringsInContact):
        raise BadInput(
            f"{type(integrator).__name__} steps StringsInContact, whose contacts carry no momentum,"
            f" but the {system.name} is another system; use LieVerlet or, under a constraint, "
            "LagrangeDAlembert."
        )
