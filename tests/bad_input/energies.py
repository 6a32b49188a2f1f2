"""Systems from energies, their constraints and their states."""

import jax.numpy as jnp
import numpy as np

import retrax as rx

from .entries import entry, simple

MOMENTS = [1.0, 1.7, 2.3]


def heavy(R):
    return R[2] @ jnp.array([0.4, -0.3, 1.1])


def damping(R, xi, t):
    return -0.1 * xi


def lagrangian(R, xi):
    return xi @ (jnp.array(MOMENTS) * xi) / 2 - heavy(R)


def hamiltonian(R, mu):
    return mu @ (mu / jnp.array(MOMENTS)) / 2 + heavy(R)


def turn(t, y):
    return jnp.stack([t, 0.0 * t, 1.0 + 0.0 * t]) + y


def euler(m):
    return jnp.stack([m[1] * m[2], -2.0 * m[2] * m[0], m[0] * m[1]])


KIND = "systems from energies"
simple("constraints", "Distribution", rows=[[1.0, 0.0, 0.2], [0.0, 1.0, 0.0]])
simple("constraints", "VelocityConstraint", A=[[0.1, 0.0, 1.0]], c=[0.5])
simple(
    "constraints", "HamelFrame", group=rx.SO3(), basis=jnp.eye(3)[:2],
    inertia=jnp.diag(jnp.array(MOMENTS)),
)  # fmt: skip
entry("HamelFrame.of", kind="constraints")(
    lambda: {"system": rx.systems.Suslov([[2.0, 0.3, -0.6], [0.3, 3.0, 0.8], [-0.6, 0.8, 4.0]],
                                         physical=False)}
)  # fmt: skip


@entry("MechanicalSystem", kind=KIND, weight=2.0)
def _mechanical():
    return {
        "group": rx.SO3(), "inertia": MOMENTS, "potential": heavy, "force": None, "symmetry": None,
        "physical": True, "constraint": None,
    }  # fmt: skip


@entry("MechanicalSystem (more)", rx.MechanicalSystem, kind=KIND, weight=2.0)
def _constrained():
    return {
        "group": rx.SO3(), "inertia": lambda R: jnp.diag(jnp.array(MOMENTS)), "potential": heavy,
        "force": damping,
        "constraint": rx.VelocityConstraint(lambda R: R[2:]),
    }  # fmt: skip


@entry("MechanicalSystem (symmetry)", rx.MechanicalSystem, kind=KIND, weight=0.05, cheap=False)
def _symmetric():
    return {
        "group": rx.SO3(), "inertia": MOMENTS, "potential": heavy, "symmetry": [0.0, 0.0, 1.0],
    }  # fmt: skip


simple(KIND, "LagrangianSystem", group=rx.SO3(), lagrangian=lagrangian, force=damping,
       symmetry=None, constraint=None)  # fmt: skip
simple(KIND, "HamiltonianSystem", group=rx.SO3(), hamiltonian=hamiltonian, force=damping,
       symmetry=None, constraint=rx.Distribution([[1.0, 0.0, 0.2], [0.0, 1.0, 0.0]]))  # fmt: skip
simple(KIND, "GroupFlow", group=rx.SO3(), field=lambda R: R[0])
simple(KIND, "SpaceFlow", space=rx.Sphere(3), generator=turn, invariants={"z": lambda y: y[2]})
entry("QuadraticField", kind=KIND, weight=0.3)(lambda: {"field": euler, "dim": 3})
entry("SpaceFlow (field)", rx.SpaceFlow, kind=KIND, weight=0.1)(
    lambda: {"space": rx.Sphere(3), "field": lambda t, y: jnp.cross(jnp.array([1.0, 2.0, 3.0]), y)}
)
entry("QuadraticField (numbers)", rx.QuadraticField, kind=KIND, weight=0.2)(
    lambda: {"field": (np.ones((2, 2, 2)), [[0.0, 1.0], [-1.0, 0.0]], [0.1, 0.2]), "dim": None}
)
