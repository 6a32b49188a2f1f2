r"""Problems hard enough to fail on: no accidental symmetry, nothing linear, nothing that commutes.

Each is a function that returns a system and a state. The scales are of order one, so a step of 0.1
is coarse and a step of 0.01 is fine. Every one without force has a symmetry, so that there is a
momentum to conserve. A problem is built once: runs that share it share compiled programs.
"""

from collections.abc import Callable
from functools import cache

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from retrax.groups.matrix_group import MatrixGroup
from retrax.groups.product import Product
from retrax.groups.se3 import SE3
from retrax.groups.so3 import SO3
from retrax.groups.translation import Translation
from retrax.mechanics.hamiltonian import HamiltonianSystem
from retrax.mechanics.lagrangian import LagrangianSystem
from retrax.mechanics.mechanical import MechanicalSystem
from retrax.mechanics.state import State
from retrax.mechanics.system import AbstractGroupSystem
from retrax.numerics.evaluate import evaluate, evaluate_in_jax
from retrax.systems.euler_top import EulerTop
from retrax.systems.lie_poisson import kirchhoff, zhukovski_volterra
from retrax.systems.rigid_body import FreeRigidBody, HeavyTop

_TILT = (0.7, -0.4, 0.2)
_SPIN = (1.2, -0.8, 2.0)
# A full inertia matrix: principal moments 0.90, 1.69 and 2.11.
_INERTIA = ((1.2, 0.2, -0.3), (0.2, 1.5, 0.25), (-0.3, 0.25, 2.0))


def _tilt() -> Float[Array, "3 3"]:
    """Return an attitude that is turned about no axis of the body or of space."""
    return evaluate_in_jax(SO3.exp, SO3(), np.array(_TILT))


@cache
def asymmetric_top() -> tuple[AbstractGroupSystem, State]:
    """Return a heavy top with three moments, a tilted arm and spin about no principal axis."""
    top = HeavyTop(inertia=[1.0, 1.7, 2.3], mass=1.0, arm=[0.4, -0.3, 1.1], gravity=1.0)
    return top, top.state(_tilt(), momentum=_SPIN)


@cache
def asymmetric_free_body() -> tuple[AbstractGroupSystem, State]:
    """Return a free rigid body in axes that are not its principal ones: left-invariant."""
    body = FreeRigidBody(_INERTIA)
    return body, body.state(_tilt(), momentum=_SPIN)


@cache
def tethered_body() -> tuple[AbstractGroupSystem, State]:
    """Return a rigid body on SE(3), not framed at its centre, on a stiffening spring, in gravity.

    Symmetric under turns about the vertical through the origin.
    """
    mass, centre, hook = 1.3, np.array([0.2, -0.1, 0.3]), np.array([-0.3, 0.4, 0.1])
    offset = evaluate(SO3.hat, SO3(), centre)
    about_frame = np.array(_INERTIA) - mass * offset @ offset
    inertia = np.block([[about_frame, mass * offset], [-mass * offset, mass * np.eye(3)]])

    def potential(g):
        rotation, position = g
        stretch = position + rotation @ jnp.asarray(hook)
        square = stretch @ stretch
        height = (position + rotation @ jnp.asarray(centre))[2]
        return 0.6 * square + 0.15 * square**2 + 1.1 * mass * height

    body = MechanicalSystem(SE3(), inertia, potential)
    start = (_tilt(), np.array([0.5, -0.2, 0.3]))
    return body, body.state(start, velocity=[0.6, -0.5, 0.8, 0.3, 0.4, -0.2])


@cache
def gyroscopic_body() -> tuple[AbstractGroupSystem, State]:
    r"""Return a gyroscopic body.

    $L = \tfrac12\Omega\cdot(I + 0.4\gamma\gamma^T)\Omega + \Omega\cdot A\gamma - V(\gamma)$.

    With $\gamma = R^Te_3$: inertia that changes with the configuration, and a term that is linear
    in the velocity.
    """
    inertia = np.array(_INERTIA)
    coupling = np.array([[0.3, 0.5, -0.2], [-0.4, 0.1, 0.6], [0.2, -0.3, 0.4]])

    def lagrangian(rotation, omega):
        gamma = rotation[2]
        kinetic = (omega @ inertia @ omega + 0.4 * (gamma @ omega) ** 2) / 2
        potential = 0.5 * gamma[0] - 0.4 * gamma[1] + 0.7 * gamma[2] ** 2
        return kinetic + omega @ coupling @ gamma - potential

    body = LagrangianSystem(SO3(), lagrangian)
    return body, body.state(_tilt(), velocity=[0.7, -0.5, 0.9])


@cache
def quartic_body() -> tuple[AbstractGroupSystem, State]:
    r"""Return a body with a quartic Hamiltonian.

    $H = \tfrac12\mu\cdot I^{-1}\mu + 0.02|\mu|^4 + \mu\cdot A\gamma + V(\gamma)$.
    """
    moments = np.array([1.0, 1.7, 2.3])
    coupling = np.array([[0.2, -0.1, 0.3], [0.1, 0.15, -0.2], [-0.25, 0.1, 0.1]])

    def hamiltonian(rotation, mu):
        gamma = rotation[2]
        potential = 0.4 * gamma[0] - 0.3 * gamma[1] + 1.1 * gamma[2] ** 3
        return mu @ (mu / moments) / 2 + 0.02 * (mu @ mu) ** 2 + mu @ coupling @ gamma + potential

    body = HamiltonianSystem(SO3(), hamiltonian)
    return body, body.state(_tilt(), momentum=[0.9, -0.6, 1.1])


@cache
def forced_top() -> tuple[AbstractGroupSystem, State]:
    """Return the asymmetric top, damped, pushed in space, steered in the body, clock running.

    It starts at t = 0.3: a method that forgets the time of the state, or of a stage, is found out.
    """
    arm = np.array([0.4, -0.3, 1.1])

    def force(rotation, omega, t):
        push = jnp.stack([0.5 * jnp.cos(2 * t), 0.25 * jnp.sin(t), 0.15 * jnp.cos(t)])
        steer = jnp.stack([0.1 * jnp.cos(t), 0.5 * jnp.sin(2 * t), jnp.asarray(-0.2)])
        damping = (0.1 + 0.02 * omega @ omega) * omega
        return rotation.T @ push + steer - damping

    top = MechanicalSystem(SO3(), [1.0, 1.7, 2.3], lambda rotation: rotation[2] @ arm, force)
    return top, top.state(_tilt(), momentum=_SPIN, t=0.3)


@cache
def body_on_cart() -> tuple[AbstractGroupSystem, State]:
    """Return SO(3) x R^2: a turning body coupled, by inertia and potential, to a point in a plane.

    Nothing depends on the second coordinate of the point.
    """
    inertia = np.zeros((5, 5))
    inertia[:3, :3], inertia[3:, 3:] = np.array(_INERTIA), [[1.4, 0.2], [0.2, 0.9]]
    inertia[:3, 3:] = [[0.1, -0.2], [0.3, 0.1], [-0.15, 0.2]]
    inertia[3:, :3] = inertia[:3, 3:].T
    arm = np.array([0.4, -0.3, 1.1])

    def potential(g):
        rotation, y = g
        tip = rotation @ arm
        return tip[2] + 0.5 * y[0] * tip[0] + 0.4 * y[0] ** 2 + 0.1 * y[0] ** 4

    system = MechanicalSystem(Product(SO3(), Translation(2)), inertia, potential)
    start = (_tilt(), np.array([0.4, -0.7]))
    return system, system.state(start, velocity=[0.7, -0.5, 0.9, 0.3, -0.4])


@cache
def four_dimensional_top() -> tuple[AbstractGroupSystem, State]:
    """Return a heavy top in four dimensions, on SO(4) as a general matrix group."""
    basis = np.zeros((6, 4, 4))
    for k, (i, j) in enumerate([(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)]):
        basis[k, i, j], basis[k, j, i] = -1.0, 1.0
    group = MatrixGroup(basis, name="SO(4)")
    arm = np.array([0.4, -0.3, 0.5, 0.8])
    moments = [1.0, 1.7, 2.3, 1.4, 2.1, 1.2]
    top = MechanicalSystem(group, moments, lambda g: g[3] @ arm)
    start = evaluate_in_jax(MatrixGroup.exp, group, np.array([0.3, -0.2, 0.4, 0.1, -0.5, 0.2]))
    return top, top.state(start, velocity=[0.6, -0.5, 0.8, 0.3, 0.4, -0.7])


PROBLEMS: dict[str, Callable[[], tuple[AbstractGroupSystem, State]]] = {
    "asymmetric top": asymmetric_top,
    "asymmetric free body": asymmetric_free_body,
    "tethered body on SE(3)": tethered_body,
    "gyroscopic body": gyroscopic_body,
    "quartic body": quartic_body,
    "forced top": forced_top,
    "body on a cart": body_on_cart,
    "top in four dimensions": four_dimensional_top,
}


@cache
def gyrostat() -> tuple[AbstractGroupSystem, State]:
    """Return a body with a rotor about no principal axis: linear terms, no integral left."""
    body = zhukovski_volterra([3.0, 2.0, 1.0], [0.7, -0.3, 0.4])
    return body, body.at([1.0, -0.6, 0.8])


@cache
def body_in_fluid() -> tuple[AbstractGroupSystem, State]:
    """Return Kirchhoff's equations with six different numbers: six dimensions, not integrable."""
    body = kirchhoff([1.0, 1.4, 0.7], [0.5, 0.3, 0.9])
    return body, body.at([0.6, -0.4, 0.5, 0.7, 0.2, -0.4])


@cache
def top() -> tuple[AbstractGroupSystem, State]:
    """Return Euler's top away from its axes and from the separatrix."""
    body = EulerTop([2.3, 1.7, 1.0])
    return body, body.at([1.2, -0.8, 2.0])


FIELDS: dict[str, Callable[[], tuple[AbstractGroupSystem, State]]] = {
    "gyrostat on R^3": gyrostat,
    "body in a fluid on R^6": body_in_fluid,
    "Euler top on R^3": top,
}
