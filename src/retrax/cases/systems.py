"""Systems by their names, with parameters: the ready ones, and a body on a group."""

from typing import Any

from retrax import systems
from retrax.cases.groups import GROUPS
from retrax.cases.parts import Choices, make
from retrax.errors import BadInput
from retrax.mechanics.constraints import Distribution, VelocityConstraint
from retrax.mechanics.mechanical import MechanicalSystem
from retrax.mechanics.system import AbstractGroupSystem

# These are made of functions, which are no data.
_OF_FUNCTIONS = {"CubicHamiltonian"}

_CLASSES = {
    name: value
    for name, value in vars(systems).items()
    if isinstance(value, type)
    and issubclass(value, AbstractGroupSystem)
    and name not in _OF_FUNCTIONS
}

SYSTEMS: Choices = {
    **_CLASSES,
    "MechanicalSystem": MechanicalSystem,
    "LotkaVolterra.cyclic": systems.LotkaVolterra.cyclic,
    "LotkaVolterra.predator_prey": systems.LotkaVolterra.predator_prey,
    "Rod.from_material": systems.Rod.from_material,
    "clebsch": systems.clebsch,
    "euler_poisson": systems.euler_poisson,
    "four_dimensional_body": systems.four_dimensional_body,
    "henon_heiles": systems.henon_heiles,
    "kirchhoff": systems.kirchhoff,
    "lagrange_top": systems.lagrange_top,
    "manakov": systems.manakov,
    "zhukovski_volterra": systems.zhukovski_volterra,
}


def _velocity_constraint(A: Any, c: Any = None) -> VelocityConstraint:
    """A xi = c with numbers; a matrix that depends on the configuration is a function, no data."""
    for name, value in (("A", A), ("c", c)):
        if not isinstance(value, list | tuple | None):
            raise BadInput(
                f"{name} = {value!r} must be a list of numbers: a run file holds constant "
                "constraints; one that depends on g or t is written in Python."
            )
    if A is None:
        raise BadInput("A must be a matrix, one row of numbers for each equation A xi = c.")
    return VelocityConstraint(A, c)


_RODS: Choices = {name: SYSTEMS[name] for name in ("Rod", "Rod.from_material")}

# What may stand at a parameter that is an object; numbers and lists go through as they are.
SYSTEM_PARTS: dict[str, Choices] = {
    "algebra": GROUPS,
    "constraint": {"Distribution": Distribution, "VelocityConstraint": _velocity_constraint},
    "damping": {"StringDamping": systems.StringDamping},
    "first": _RODS,
    "group": GROUPS,
    "potential": {"Weight": systems.Weight},
    "second": _RODS,
}


def make_system(described: Any) -> AbstractGroupSystem:
    """A system from a name, or from a table with a name and the parameters of its constructor.

    Example: `make_system({"name": "FreeRigidBody", "inertia": [1.0, 2.0, 2.5]})`.
    """
    return make("system", described, SYSTEMS, SYSTEM_PARTS)
