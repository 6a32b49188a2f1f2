"""Problems from outside: bodies that touch a floor, and bodies that are driven.

Their integrators are in no catalogue of names, since a contact or a law belongs to each.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from retrax.contact.contacts import Contacts
from retrax.contact.shapes import Ball, Plane
from retrax.contact.steps.nonsmooth_rattle import NonsmoothRattle
from retrax.groups.product import Product
from retrax.groups.so3 import SO3
from retrax.groups.translation import Translation
from retrax.integrators.base import AbstractIntegrator
from retrax.integrators.driven import Driven
from retrax.mechanics.actuated import Actuated
from retrax.mechanics.controls import Feedback
from retrax.mechanics.mechanical import MechanicalSystem
from retrax.numerics.evaluate import evaluate_in_jax
from retrax.systems.integrators import INTEGRATORS
from retrax.testing.measurements import Problem
from retrax.testing.problems import forced_top

_MASS, _MOMENTS, _RADIUS = 1.3, np.array([0.02, 0.013, 0.007]), 0.1
# Of the ball on the body: away from the centre of mass in every direction.
_CENTRE = np.array([0.01, -0.015, 0.008])
_ROTATION, _SPIN = np.array([0.3, -0.4, 0.2]), np.array([3.0, 2.0, -1.5])
_UP = np.array([0.0, 0.0, 1.0])


class Outside(NamedTuple):
    """An integrator by what it is called, and the problem on which its order is measured."""

    name: str
    integrator: AbstractIntegrator
    title: str
    problem: Problem


def _weight(g: tuple[Array, Array]) -> Array:
    return _MASS * 9.81 * g[1][2]


def _touching(friction: float, height: float, push: tuple[float, float, float]) -> Problem:
    """Return a tumbling body with an off-centre ball that rolls on the floor unless pushed."""
    contact = Contacts([(Ball(_RADIUS, at=_CENTRE, body=0), Plane())], friction=friction)
    space, inertia = Product(SO3(), Translation(3)), np.r_[_MOMENTS, 3 * [_MASS]]
    body = MechanicalSystem(space, inertia, _weight, contact=contact)
    turned = np.asarray(evaluate_in_jax(SO3.exp, SO3(), _ROTATION))
    arm = turned @ _CENTRE
    velocity = -np.cross(turned @ _SPIN, arm - _RADIUS * _UP) + push
    place = (_RADIUS + height) * _UP - arm
    start = body.state((turned, place), velocity=np.r_[_SPIN, velocity])
    return Problem(body, start, unit=0.02)


def _steer(rotation: Array, omega: Array, t: Array) -> Array:
    return jnp.stack([0.4 * jnp.sin(2 * t) - 0.2 * omega[1], 0.3 * rotation[0, 2] + 0.1 * t])


def _driven_top(name: str) -> Outside:
    """Return the forced top, with a law that acts within the step through two skew inputs."""
    top, start = forced_top()
    plant = Actuated(top, inputs=[[1.0, 0.2], [-0.3, 0.8], [0.1, 0.4]])
    method = Driven(INTEGRATORS[name], plant.actuators, Feedback(_steer))
    return Outside(f"{name}, driven", method, "steered top", Problem(top, start))


def _on_a_floor(title: str, *how: Any) -> Callable[[], Outside]:
    return lambda: Outside("nonsmooth-rattle", NonsmoothRattle(), title, _touching(*how))


OUTSIDE: dict[str, Callable[[], Outside]] = {
    "rolling": _on_a_floor("body that rolls on a floor", 0.9, 0.0, (0.0, 0.0, 0.0)),
    "slipping": _on_a_floor("body that slips on a floor", 0.15, 0.0, (1.5, 0.8, 0.0)),
    "flight": _on_a_floor("body that flies above a floor", 0.9, 1.0, (0.0, 0.0, 1.0)),
    "lie-verlet": lambda: _driven_top("lie-verlet"),
    "composition-4": lambda: _driven_top("composition-4"),
    "rkmk-4": lambda: _driven_top("rkmk-4"),
}
"""What is measured besides the integrators that have names."""
