"""Quadratic fields hard enough to fail on: the claims of Kahan's method are measured on these."""

from collections.abc import Callable
from functools import cache

from retrax.mechanics.state import State
from retrax.mechanics.system import AbstractGroupSystem
from retrax.systems.euler_top import EulerTop
from retrax.systems.lie_poisson import kirchhoff, zhukovski_volterra


@cache
def gyrostat() -> tuple[AbstractGroupSystem, State]:
    """A body with a rotor about no principal axis: quadratic and linear terms, no integral left."""
    body = zhukovski_volterra([3.0, 2.0, 1.0], [0.7, -0.3, 0.4])
    return body, body.at([1.0, -0.6, 0.8])


@cache
def body_in_fluid() -> tuple[AbstractGroupSystem, State]:
    """Kirchhoff's equations with six different numbers: six dimensions, not integrable."""
    body = kirchhoff([1.0, 1.4, 0.7], [0.5, 0.3, 0.9])
    return body, body.at([0.6, -0.4, 0.5, 0.7, 0.2, -0.4])


@cache
def top() -> tuple[AbstractGroupSystem, State]:
    """Euler's top away from its axes and from the separatrix."""
    body = EulerTop([2.3, 1.7, 1.0])
    return body, body.at([1.2, -0.8, 2.0])


FIELDS: dict[str, Callable[[], tuple[AbstractGroupSystem, State]]] = {
    "gyrostat on R^3": gyrostat,
    "body in a fluid on R^6": body_in_fluid,
    "Euler top on R^3": top,
}
