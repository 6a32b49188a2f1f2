"""Integrators by their names: those of `retrax list`, and the classes with parameters."""

import warnings
from typing import Any

from retrax.cases.groups import NODES, RETRACTIONS
from retrax.cases.parts import Choices, make
from retrax.errors import BadInput
from retrax.integrators.adaptive import Adaptive
from retrax.integrators.base import AbstractIntegrator
from retrax.integrators.catalogue import INTEGRATORS, ROLLING
from retrax.mechanics.system import AbstractGroupSystem

READY: dict[str, AbstractIntegrator] = INTEGRATORS | ROLLING

METHODS: Choices = READY | {
    kind.__name__: kind for kind in (*(type(ready) for ready in READY.values()), Adaptive)
}
INTEGRATOR_PARTS: dict[str, Choices] = {"base": METHODS, "nodes": NODES, "retraction": RETRACTIONS}

# The first of these that can step a system is taken where none is named.
_PREFERRED = (
    "rolling-verlet",
    "contact-dkd",
    "kahan",
    "lie-verlet",
    "lagrange-d-alembert",
    "rkmk-5",
)


def make_integrator(described: Any) -> AbstractIntegrator:
    """An integrator from a name of `retrax list`, a class name, or a table with parameters.

    Example: `make_integrator({"name": "Composition", "base": "LieVerlet", "order": 4})`.
    """
    return make("integrator", described, METHODS, INTEGRATOR_PARTS)


def fitting(system: AbstractGroupSystem) -> list[str]:
    """The names of the integrators of `retrax list` that can step `system`."""
    return [name for name, ready in READY.items() if fits(system, ready)]


def fits(system: AbstractGroupSystem, integrator: AbstractIntegrator) -> bool:
    """Whether `integrator` can step `system`."""
    if integrator.needs_momentum and not system.has_momentum:
        return False
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            integrator.check(system)
    except BadInput:
        return False
    return True


def default_integrator(system: AbstractGroupSystem) -> str:
    """The name of the integrator that is taken for `system` where none is named."""
    for name in _PREFERRED:
        if fits(system, READY[name]):
            return name
    raise BadInput(f"no integrator is the usual one for the {system.name}: name one.")
