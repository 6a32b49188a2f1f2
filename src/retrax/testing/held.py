"""Problems with constraints on positions, hard enough to fail on.

Inertias are full and not framed at the centre of mass, one problem says everything twice, one is
driven and forced with the clock running, and one rolls besides.
"""

from collections.abc import Callable
from functools import cache

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from retrax.groups.se3 import SE3
from retrax.groups.so3 import SO3
from retrax.mechanics.constraints import VelocityConstraint
from retrax.mechanics.holonomic import Holonomic
from retrax.mechanics.mechanical import MechanicalSystem
from retrax.mechanics.state import State
from retrax.mechanics.system import AbstractGroupSystem
from retrax.numerics.evaluate import evaluate, evaluate_in_jax
from retrax.testing.measurements import Problem

_MASS, _CENTRE = 1.3, np.array([0.2, -0.1, 0.3])
_HOOK = np.array([-0.3, 0.4, 0.1])
_TILT = np.array([0.7, -0.4, 0.2])


def _inertia() -> Float[np.ndarray, "6 6"]:
    """Return the inertia of a body in a frame neither principal nor at its centre of mass."""
    about_centre = np.array([[1.2, 0.2, -0.3], [0.2, 1.5, 0.25], [-0.3, 0.25, 2.0]])
    arm = evaluate(SO3.hat, SO3(), _CENTRE)
    about_frame = about_centre - _MASS * arm @ arm
    return np.block([[about_frame, _MASS * arm], [-_MASS * arm, _MASS * np.eye(3)]])


def _height(g: tuple[Array, Array]) -> Float[Array, ""]:
    rotation, position = g
    return _MASS * (position + rotation @ jnp.asarray(_CENTRE))[2]


@cache
def held_body() -> tuple[AbstractGroupSystem, State]:
    """Return a heavy body whose hook slides on a sphere: an equation that is written twice.

    Symmetric under turns about the vertical. It swings by half a radian about the way it hangs.
    That is chaotic too, but slowly, and low: the energy error has nowhere to wander to, and an
    order of eight shows before rounding does.
    """

    def on_sphere(g):
        rotation, position = g
        hook = position + rotation @ jnp.asarray(_HOOK)
        away = hook @ hook - 1.5**2
        return jnp.stack([away, 0.5 * away])

    body = MechanicalSystem(SE3(), _inertia(), _height, constraint=Holonomic(on_sphere))
    tilt = evaluate_in_jax(SO3.exp, SO3(), np.array([1.4, 0.9, -0.5]))  # hangs at (1.3, 1.3, 0)
    start = body.assembled((tilt, np.array([0.1, 0.3, -1.3])))
    return body, body.state(start, velocity=[0.1, 0.1, 0.0, 0.0, -0.1, -0.1], project=True)


@cache
def led_body() -> tuple[AbstractGroupSystem, State]:
    """Return a damped, steered body on a moving support: t is in the constraint and the force."""

    def on_support(g, t):
        rotation, position = g
        support = jnp.stack([0.3 * jnp.cos(1.3 * t), 0.2 * jnp.sin(2 * t), 0.4 * jnp.sin(0.9 * t)])
        return position + rotation @ jnp.asarray(_HOOK) - support

    def force(g, xi, t):
        steer = jnp.stack([0.5 * jnp.cos(2 * t), 0.25 * jnp.sin(t), jnp.asarray(-0.2)])
        return jnp.concatenate([steer, 0.1 * g[0][2]]) - 0.1 * xi

    body = MechanicalSystem(SE3(), _inertia(), _height, force, constraint=Holonomic(on_support))
    start = body.assembled((evaluate_in_jax(SO3.exp, SO3(), _TILT), np.zeros(3)), t=0.3)
    velocity = [0.6, -0.5, 0.8, 0.0, 0.0, 0.0]
    return body, body.state(start, velocity=velocity, t=0.3, project=True)


@cache
def skating_plate() -> tuple[AbstractGroupSystem, State]:
    """Return a plate on a plane, on a knife edge: positions and velocities constrained."""

    def on_plane(g):
        rotation, position = g
        return jnp.stack([position[2], rotation[2, 0], rotation[2, 1]])

    def slope(g):
        return 0.4 * g[1][0] - 0.3 * jnp.sin(g[1][1]) * g[0][0, 0]

    edge = VelocityConstraint([[0.0, 0.0, 0.0, 0.0, 1.0, 0.0]])
    plate = MechanicalSystem(SE3(), _inertia(), slope, constraint=Holonomic(on_plane, edge))
    start = (evaluate_in_jax(SO3.exp, SO3(), np.array([0.0, 0.0, 0.4])), np.array([0.3, -0.2, 0.0]))
    return plate, plate.state(start, velocity=[0.0, 0.0, -0.9, 1.1, 0.0, 0.0], project=True)


HELD: dict[str, Callable[[], tuple[AbstractGroupSystem, State]]] = {
    "body that is held by its hook": held_body,
    "forced body on a moving support": led_body,
    "plate on a plane and a knife edge": skating_plate,
}
"""By title. On the first all claims are measured: no force, nothing rolls. Orders on all."""

_UNITS = dict(zip(HELD, (1.9, 1.1, 1.3), strict=True))


def held_problem(title: str = "body that is held by its hook") -> Problem:
    """Return a problem with constraints on positions; all of them spread rounding errors."""
    return Problem(*HELD[title](), unit=_UNITS[title], spread=30.0)
