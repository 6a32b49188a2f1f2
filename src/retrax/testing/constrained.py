"""Constrained problems, and a flow, hard enough to fail on; which integrator fits which.

The inertia of the Suslov body is full: with a diagonal one most errors of sign are invisible.
"""

import math
from collections.abc import Callable
from functools import cache

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from retrax.cases.names import fits
from retrax.errors import BadInput
from retrax.groups.product import Product
from retrax.groups.so3 import SO3
from retrax.groups.translation import Translation
from retrax.integrators.base import AbstractIntegrator
from retrax.mechanics.constraints import Distribution
from retrax.mechanics.flow import GroupFlow
from retrax.mechanics.mechanical import MechanicalSystem
from retrax.mechanics.state import State
from retrax.mechanics.system import AbstractGroupSystem
from retrax.numerics.evaluate import as_jax, evaluate_in_jax
from retrax.systems.rolling_bodies import ChaplyginBall
from retrax.systems.sliding_bodies import Blade, ChaplyginSleigh
from retrax.systems.strings.strings_in_contact import StringsInContact
from retrax.systems.suslov import Suslov, Veselova, Weight
from retrax.testing.measurements import Problem
from retrax.testing.problems import FIELDS, asymmetric_free_body, asymmetric_top

FULL = ((2.0, 0.3, -0.6), (0.3, 3.0, 0.8), (-0.6, 0.8, 4.0))


def tilt() -> Float[Array, "3 3"]:
    """Return a turn of 0.4 about the first axis."""
    return evaluate_in_jax(SO3.exp, SO3(), np.array([0.4, 0.0, 0.0]))


@cache
def suslov_body() -> tuple[AbstractGroupSystem, State]:
    """Return Suslov's problem with a full inertia: left-invariant."""
    body = Suslov(FULL, physical=False)
    return body, body.state(np.eye(3), velocity=[1.0, 0.5, 0.0])


@cache
def heavy_suslov_body() -> tuple[AbstractGroupSystem, State]:
    """Return the same body with a weight that is nowhere near an axis: not integrable."""
    body = Suslov(FULL, Weight([0.6, -0.4, 1.4]), physical=False)
    return body, body.state(tilt(), velocity=[0.3, 0.7, 0.0])


@cache
def kharlamova_body() -> tuple[AbstractGroupSystem, State]:
    """Return a body of diagonal inertia, a weight in the plane: one momentum to conserve."""
    body, state, *_ = Suslov.kharlamova()
    return body, state


@cache
def skew_suslov_body() -> tuple[AbstractGroupSystem, State]:
    """Return a body with velocities in a skew plane, its basis not orthogonal; with forces."""
    plane = Distribution([[1.0, 0.2, -0.3], [0.5, 1.5, 0.4]])

    def force(rotation, omega, t):
        return 0.3 * jnp.cos(2 * t) * rotation[0] - 0.1 * omega

    def weight(rotation):
        return rotation[2] @ jnp.array([0.6, -0.4, 1.4])

    body = MechanicalSystem(SO3(), FULL, weight, force, constraint=plane, physical=False)
    state = body.state(tilt(), velocity=[0.8, 0.9, 0.1], t=0.3, project=True)
    return body, state


@cache
def sleigh() -> tuple[AbstractGroupSystem, State]:
    """Return Chaplygin's sleigh on SE(2), backing up before it turns round."""
    body = ChaplyginSleigh(mass=1.5, inertia=0.8, arm=0.6)
    return body, body.state((np.eye(2), np.zeros(2)), velocity=[1.25, -0.6, 0.0])


@cache
def blade() -> tuple[AbstractGroupSystem, State]:
    """Return a blade on SE(3) that is not framed at its centre of mass."""
    body = Blade([1.0, 1.3, 0.9], 1.4, [0.2, -0.1, 0.3])
    start = (np.eye(3), np.zeros(3))
    return body, body.state(start, velocity=[0.7, -0.4, 1.1, 0.9, 0.0, 0.0])


@cache
def veselova_body() -> tuple[AbstractGroupSystem, State]:
    """Return Veselova's problem: a constraint that depends on the configuration."""
    body = Veselova([1.0, 2.0, 3.5], physical=False)
    velocity = [0.6, 0.9 * math.cos(0.4), -0.9 * math.sin(0.4)]
    return body, body.state(tilt(), velocity=velocity)


@cache
def chaplygin_ball() -> tuple[AbstractGroupSystem, State]:
    """Return a ball with three moments of inertia, rolling: SO(3) x R^2."""
    ball = ChaplyginBall([1.0, 1.5, 2.0], 1.2, 0.8)
    start = (tilt(), as_jax(np.zeros(2)))
    return ball, ball.state(start, velocity=ball.velocity_of(start, [0.5, -0.7, 0.9]))


@cache
def flow() -> tuple[AbstractGroupSystem, State]:
    """Return a flow on SO(3) x R that depends on everything, the last entry being the clock."""

    def field(g):
        rotation, clock = g
        turning = jnp.cos(clock[0]) * rotation[2] + jnp.array([0.3, -0.5, 0.2]) * rotation[0, 1]
        return jnp.concatenate([turning, jnp.ones(1)])

    system = GroupFlow(Product(SO3(), Translation(1)), field)
    return system, system.at(
        (evaluate_in_jax(SO3.exp, SO3(), np.array([0.7, -0.4, 0.2])), np.array([0.3]))
    )


@cache
def strings() -> tuple[AbstractGroupSystem, State]:
    """Return two strings in contact, everything about them different, both moving."""
    system = StringsInContact(F=0.7, G=(0.5, 0.4), n=24, c=1.1)
    start = system.at(
        (2.0, 2.9),
        u=lambda x: np.sin(x) + 0.3 * np.sin(1.5 * x),
        v=lambda x: 0.4 * np.sin(2 * x),
        u_t=lambda x: 0.3 * np.sin(0.5 * x),
        project=True,
    )
    return system, start


CONSTRAINED: dict[str, Callable[[], tuple[AbstractGroupSystem, State]]] = {
    "Suslov body": suslov_body,
    "heavy Suslov body": heavy_suslov_body,
    "Kharlamova's body": kharlamova_body,
    "forced body with a skew plane": skew_suslov_body,
    "Chaplygin sleigh on SE(2)": sleigh,
    "blade on SE(3)": blade,
    "Veselova's body": veselova_body,
    "Chaplygin's ball": chaplygin_ball,
}
# Claims about constraints are measured on the first of these that an integrator can step.
_CLAIMS_CONSTRAINED = ("heavy Suslov body", "Suslov body")
_FLOW, _STRINGS = "flow on SO(3) x R", "pair of strings in contact"


def constrained_problem(title: str) -> Problem:
    """Return one of the constrained problems; all of them spread rounding errors."""
    return Problem(*CONSTRAINED[title](), spread=30.0)


def claims_problem(integrator: AbstractIntegrator) -> tuple[str, Problem]:
    """Return the problem, with its title, on which the claims of an integrator are measured."""
    candidates: dict[str, Callable[[], tuple[AbstractGroupSystem, State]]]
    if "constraint" in integrator.preserves:
        candidates = {title: CONSTRAINED[title] for title in _CLAIMS_CONSTRAINED}
    else:
        bodies = {"asymmetric top": asymmetric_top, "asymmetric free body": asymmetric_free_body}
        candidates = {**bodies, _FLOW: flow, **FIELDS, _STRINGS: strings}
    for title, make in candidates.items():
        if fits(make()[0], integrator):
            return title, constrained_problem(title) if title in CONSTRAINED else Problem(*make())
    raise BadInput(f"{integrator!r} cannot step any of the problems {', '.join(candidates)}.")
