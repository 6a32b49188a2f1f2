"""Names of a run file and what they stand for: groups, retractions, nodes, integrators, systems."""

import warnings
from typing import Any

from retrax import systems
from retrax.cases.makers import Choices, make
from retrax.contact.contacts import Contacts
from retrax.contact.self_contact import SelfContact
from retrax.contact.shapes import Ball, Box, Capsule, Cylinder, Plane
from retrax.errors import BadInput
from retrax.groups.base import AbstractLieGroup
from retrax.groups.matrix_group import MatrixGroup
from retrax.groups.power import Power
from retrax.groups.product import Product
from retrax.groups.retractions import Cayley, Exp
from retrax.groups.se2 import SE2
from retrax.groups.se3 import SE3
from retrax.groups.second_kind import SecondKind
from retrax.groups.so2 import SO2
from retrax.groups.so3 import SO3
from retrax.groups.so_n import SO
from retrax.groups.translation import Translation
from retrax.integrators.adaptive import Adaptive
from retrax.integrators.base import AbstractIntegrator, require_fit
from retrax.mechanics.constraints import Distribution, VelocityConstraint
from retrax.mechanics.mechanical import MechanicalSystem
from retrax.mechanics.system import AbstractGroupSystem
from retrax.numerics import nodes
from retrax.systems.integrators import INTEGRATORS, TOUCHING

RETRACTIONS: Choices = {"Cayley": Cayley, "Exp": Exp, "SecondKind": SecondKind}
NODES: Choices = {
    family.__name__: family
    for family in (
        nodes.gauss,
        nodes.radau,
        nodes.radau_left,
        nodes.lobatto,
        nodes.chebyshev,
        nodes.chebyshev_lobatto,
    )
}

READY: dict[str, AbstractIntegrator] = INTEGRATORS | TOUCHING
METHODS: Choices = READY | {
    kind.__name__: kind for kind in (*(type(ready) for ready in READY.values()), Adaptive)
}
INTEGRATOR_PARTS: dict[str, Choices] = {"base": METHODS, "nodes": NODES, "retraction": RETRACTIONS}
# Unless an integrator is named, the first of these that can step the system.
_PREFERRED = (
    "nonsmooth-rattle",
    "rolling-verlet",
    "contact-dkd",
    "kahan",
    "lie-verlet",
    "lagrange-d-alembert",
    "rkmk-5",
)
# A run file cannot describe these: they are made of functions.
_OF_FUNCTIONS = {"CubicHamiltonian"}
_CLASSES = {
    name: value
    for name, value in ((name, getattr(systems, name)) for name in dir(systems))
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
    "andrews_squeezer": systems.andrews_squeezer,
    "bicycle": systems.bicycle,
    "bricard": systems.bricard,
    "chain": systems.chain,
    "clebsch": systems.clebsch,
    "double_pendulum": systems.double_pendulum,
    "euler_poisson": systems.euler_poisson,
    "four_bar": systems.four_bar,
    "four_dimensional_body": systems.four_dimensional_body,
    "henon_heiles": systems.henon_heiles,
    "kirchhoff": systems.kirchhoff,
    "lagrange_top": systems.lagrange_top,
    "manakov": systems.manakov,
    "robot_arm": systems.robot_arm,
    "strandbeest_leg": systems.strandbeest_leg,
    "zhukovski_volterra": systems.zhukovski_volterra,
}
_RODS: Choices = {name: SYSTEMS[name] for name in ("Rod", "Rod.from_material")}


def _product(groups: object) -> Product:
    if not isinstance(groups, list | tuple):
        raise BadInput(f"groups = {groups!r} must be a list of groups.")
    return Product(*(make_group(group) for group in groups))


GROUPS: Choices = {
    "SO2": SO2,
    "SO3": SO3,
    "SE2": SE2,
    "SE3": SE3,
    "SO": SO,
    "Translation": Translation,
    "MatrixGroup": MatrixGroup,
    "Power": Power,
    "Product": _product,
}


def make_group(described: object) -> AbstractLieGroup:
    """Make a group of a name, `"SO3"`, or a table, `{"name": "Translation", "n": 2}`."""
    return make("group", described, GROUPS, {"group": GROUPS})


def make_integrator(described: object) -> AbstractIntegrator:
    """Make an integrator of a name of `retrax list`, a class name, or a table with parameters.

    Example: `make_integrator({"name": "Composition", "base": "LieVerlet", "order": 4})`.
    """
    return make("integrator", described, METHODS, INTEGRATOR_PARTS)


def fitting(system: AbstractGroupSystem) -> list[str]:
    """Return the names of the integrators of `retrax list` that can step `system`."""
    return [name for name, ready in READY.items() if fits(system, ready)]


def fits(system: AbstractGroupSystem, integrator: AbstractIntegrator) -> bool:
    """Return whether `integrator` can step `system`."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            require_fit(system, integrator)
    except BadInput:
        return False
    return True


def default_integrator(system: AbstractGroupSystem) -> str:
    """Return the name of the integrator that steps `system` unless another is named."""
    for name in _PREFERRED:
        if fits(system, READY[name]):
            return name
    raise BadInput(f"name an integrator: the {system.name} has no usual one.")


def _velocity_constraint(A: Any, c: Any = None) -> VelocityConstraint:
    """Make the constraint A xi = c of constant numbers: a matrix that depends on g is no data."""
    for name, value in (("A", A), ("c", c)):
        if not isinstance(value, list | tuple | None):
            raise BadInput(
                f"{name} = {value!r} must be a list of numbers: a run file holds constant "
                "constraints; one that depends on g or t is written in Python."
            )
    if A is None:
        raise BadInput("A must be a matrix, one row of numbers for each equation A xi = c.")
    return VelocityConstraint(A, c)


_SHAPES: Choices = {shape.__name__: shape for shape in (Ball, Box, Capsule, Cylinder, Plane)}
# What a parameter may be that is an object; numbers and lists pass as they are.
SYSTEM_PARTS: dict[str, Choices] = {
    "against": _SHAPES,
    "algebra": GROUPS,
    "body": {"FreeRigidBody": systems.FreeRigidBody, "WheeledBody": systems.WheeledBody},
    "contact": {"Contacts": Contacts, "SelfContact": SelfContact},
    "constraint": {"Distribution": Distribution, "VelocityConstraint": _velocity_constraint},
    "damping": {"StringDamping": systems.StringDamping},
    "first": _RODS,
    "group": GROUPS,
    "pairs": _SHAPES,
    "potential": {"Weight": systems.Weight},
    "rods": _RODS,
    "second": _RODS,
    "string": {"StringPendulum": systems.StringPendulum},
}


def make_system(described: object) -> AbstractGroupSystem:
    """Make a system of a name, or of a table with a name and the parameters of its constructor.

    Example: `make_system({"name": "FreeRigidBody", "inertia": [1.0, 2.0, 2.5]})`.
    """
    return make("system", described, SYSTEMS, SYSTEM_PARTS)
