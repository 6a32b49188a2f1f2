"""A function that JAX cannot trace is told what to write instead, by the name of what it calls."""

import math
from math import cos as cosine

import jax.numpy as jnp
import numpy as np
import pytest

import retrax as rx

INERTIA = np.array([1.0, 1.2, 1.5])


def _branch(R):
    if R[2, 2] > 0:
        return R[2, 2]
    return 0.0 * R[2, 2]


def _loop(R):
    total, x = 0.0, R[0, 0]
    while x > 0.1:
        x, total = x / 2, total + x
    return total


def _fill(R):
    a = np.zeros(2)
    a[0] = R[0, 0]
    return a.sum()


def _assign(R):
    a = jnp.zeros(2)
    a[0] = R[0, 0]
    return a.sum()


def _deep(R):
    return _deeper(R[1, 1])


def _deeper(x):
    return np.sqrt(x)


CASES = {
    "np.cos": (lambda R: np.cos(R[2, 2]), "np.cos .*: use jnp.cos"),
    "math.cos": (lambda R: math.cos(R[2, 2]), "math.cos .*: use jnp.cos"),
    "math.atan2": (lambda R: math.atan2(R[2, 2], R[0, 0]), "math.atan2 .*: use jnp.a"),
    "an alias": (lambda R: cosine(R[2, 2]), "cosine .*: use jnp.cos"),
    "np.linalg.norm": (lambda R: np.linalg.norm(R), "np.linalg.norm .*: use jnp.linalg.norm"),
    "np.array": (lambda R: np.array([R[0, 0], 1.0]).sum(), "np.array .*: use jnp.array"),
    "float": (lambda R: float(R[2, 2]), r"leave float\(\) out"),
    "item": (lambda R: R[2, 2].item(), r"leave .item\(\) out"),
    "max": (lambda R: max(R[2, 2], 0.0), "use jnp.maximum"),
    "range": (lambda R: sum(R[0, 0] for _ in range(R[2, 2])), "fori_loop"),
    "if": (_branch, r"decides .*\(if.*jnp.where.*jax.lax.cond"),
    "an if in one line": (lambda R: R[0, 0] if R[0, 0] > 0 else 1.0, "jnp.where"),
    "and": (lambda R: R[0, 0] and R[1, 1], "jnp.where"),
    "a chain of comparisons": (lambda R: 1.0 * (0 < R[0, 0] < 1), "jnp.where"),
    "while": (_loop, "jnp.where"),
    "an entry of a NumPy array": (_fill, r"x.at\[i\].set\(y\)"),
    "an entry of a JAX array": (_assign, r"x.at\[i\].set\(y\)"),
    "a function of a function": (_deep, "of _deeper calls np.sqrt .*: use jnp.sqrt"),
}


@pytest.mark.parametrize("name", CASES)
def test_a_potential_that_cannot_be_traced_is_told_what_to_write(name):
    potential, words = CASES[name]
    with pytest.raises(rx.BadInput, match=f"^potential cannot be evaluated .*{words}"):
        rx.MechanicalSystem(rx.SO3(), inertia=INERTIA, potential=potential)


def test_the_line_is_that_of_the_user():
    line = _branch.__code__.co_firstlineno + 1
    with pytest.raises(rx.BadInput, match=f"line {line} of _branch"):
        rx.MechanicalSystem(rx.SO3(), inertia=INERTIA, potential=_branch)


def test_functions_without_a_source_are_told_too():
    space = {"np": np}
    exec("def V(R):\n    return np.tanh(R[0, 0])", space)
    with pytest.raises(rx.BadInput, match=r"line 2 of V calls np.tanh .* use jnp.tanh"):
        rx.MechanicalSystem(rx.SO3(), inertia=INERTIA, potential=space["V"])


@pytest.mark.parametrize("place", ["lagrangian", "hamiltonian", "force", "law", "event", "cost"])
def test_laws_and_lagrangians_are_told_too(place):
    plane, body = rx.Translation(2), rx.systems.FreeRigidBody(INERTIA)
    plant = rx.Actuated(body, inputs=jnp.eye(3))
    start = body.state(jnp.eye(3), velocity=jnp.ones(3))
    calls = {
        "lagrangian": lambda: rx.LagrangianSystem(plane, lambda q, v: np.sin(v[0])),
        "hamiltonian": lambda: rx.HamiltonianSystem(plane, lambda q, p: np.sin(p[0])),
        "force": lambda: rx.MechanicalSystem(
            rx.SO3(), inertia=INERTIA, force=lambda g, xi, t: np.sin(xi)
        ),
        "law": lambda: rx.simulate(
            plant, "lie-verlet", start, h=0.1, steps=2,
            control=rx.Feedback(lambda g, xi, t: np.sin(xi)),
        ),
        "event": lambda: rx.simulate(
            body, "lie-verlet", start, h=0.1, steps=2, events={"e": lambda g, xi, t: np.sin(xi[0])}
        ),
        "cost": lambda: rx.ControlProblem(
            plant, "lie-verlet", start=start, end=None, duration=1.0, steps=4,
            cost=lambda g, xi, u, t: np.sin(u[0]),
        ),
    }  # fmt: skip
    with pytest.raises(rx.BadInput, match=r"np.sin .*: use jnp.sin"):
        calls[place]()
