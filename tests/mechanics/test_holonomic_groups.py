"""Constraints on positions on every group: order, symplectic form, positions to round-off."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import retrax as rx

INERTIA = np.array([[1.2, 0.2, -0.3], [0.2, 1.5, 0.25], [-0.3, 0.25, 2.0]])
TILTED = rx.SO3().exp(jnp.array([0.7, -0.4, 0.2]))


def on_so3():
    def phi(R):
        return R[0, 1] + 0.2 * R[2, 0] ** 2 - 0.3

    system = rx.MechanicalSystem(
        rx.SO3(),
        INERTIA,
        lambda R: R[2] @ jnp.array([0.4, -0.3, 1.1]),
        constraint=rx.Holonomic(phi),
    )
    return system, TILTED, [0.6, -0.5, 0.8]


def on_so3_with_inertia_that_changes():
    def inertia(R):
        return jnp.asarray(INERTIA) + 0.4 * R[2][:, None] * R[2][None]

    system = rx.MechanicalSystem(
        rx.SO3(),
        inertia,
        lambda R: R[2] @ jnp.array([0.4, -0.3, 1.1]),
        constraint=rx.Holonomic(lambda R: R[0, 1] - 0.3),
    )
    return system, TILTED, [0.6, -0.5, 0.8]


def on_so3_with_a_gyroscopic_lagrangian():
    coupling = jnp.array([[0.3, 0.5, -0.2], [-0.4, 0.1, 0.6], [0.2, -0.3, 0.4]])

    def lagrangian(R, omega):
        kinetic = (omega @ jnp.asarray(INERTIA) @ omega + 0.4 * (R[2] @ omega) ** 2) / 2
        return kinetic + omega @ coupling @ R[2] - 0.5 * R[2, 0] - 0.7 * R[2, 2] ** 2

    def twice(R):
        return jnp.stack([R[0, 1] - 0.3, 2 * R[0, 1] - 0.6])

    system = rx.LagrangianSystem(rx.SO3(), lagrangian, constraint=rx.Holonomic(twice))
    return system, TILTED, [0.6, -0.5, 0.8]


def on_so3_with_a_quartic_hamiltonian():
    def hamiltonian(R, mu):
        quadratic = mu @ (mu / jnp.array([1.0, 1.7, 2.3])) / 2
        return quadratic + 0.02 * (mu @ mu) ** 2 + 0.4 * R[2, 0] + 1.1 * R[2, 2] ** 3

    system = rx.HamiltonianSystem(
        rx.SO3(), hamiltonian, constraint=rx.Holonomic(lambda R: R[0, 1] - 0.3)
    )
    return system, TILTED, [0.6, -0.5, 0.8]


def on_se3():
    hook = jnp.array([-0.3, 0.4, 0.1])

    def phi(g):
        y = g[1] + g[0] @ hook
        return y @ y / 1.5**2 - 1

    inertia = np.block([[INERTIA, np.zeros((3, 3))], [np.zeros((3, 3)), 1.3 * np.eye(3)]])
    system = rx.MechanicalSystem(
        rx.SE3(), inertia, lambda g: 1.4 * g[1][2] + 0.4 * g[0][2, 0], constraint=rx.Holonomic(phi)
    )
    return system, (TILTED, np.array([0.9, 0.5, -1.0])), [0.6, -0.5, 0.8, 0.3, 0.4, -0.2]


def on_se2():
    def phi(g):
        return g[0][0, 0] * g[1][1] - 0.2 * g[1][0] ** 2 - 0.1

    system = rx.MechanicalSystem(
        rx.SE2(),
        [0.8, 1.5, 1.5],
        lambda g: 0.6 * (g[1] @ g[1]) + 0.5 * g[1][0],
        constraint=rx.Holonomic(phi),
    )
    return system, (np.eye(2), np.array([0.4, 0.2])), [0.6, 0.5, 0.3]


def on_translations():
    def phi(x):
        return jnp.stack([x[:3] @ x[:3] - 1, x[3] * x[0] - 0.2])

    system = rx.MechanicalSystem(
        rx.Translation(4),
        [1.0, 2.0, 1.5, 0.7],
        lambda x: x[2] + 0.3 * x[3] ** 2 * x[0],
        constraint=rx.Holonomic(phi),
    )
    return system, np.array([0.8, 0.3, -0.4, 0.3]), [0.6, 0.5, 0.3, 0.1]


def on_a_product():
    arm = jnp.array([0.3, -0.2, 0.5])

    def phi(g):
        return g[1] - (g[0] @ arm)[:2]

    system = rx.MechanicalSystem(
        rx.Product(rx.SO3(), rx.Translation(2)),
        [1.0, 1.7, 2.3, 0.8, 0.8],
        lambda g: g[0][2, 2] + g[1][0] ** 2 - 0.3 * g[1][1],
        constraint=rx.Holonomic(phi),
    )
    return system, (TILTED, np.zeros(2)), [0.6, -0.5, 0.8, 0.0, 0.0]


def on_a_power():
    def phi(g):
        R, x = g
        first, second = jnp.array([0.3, 0.0]), jnp.array([-0.2, 0.1])
        return jnp.concatenate([x[0] + R[0] @ first, x[1] + R[1] @ second - x[0] + R[0] @ first])

    system = rx.MechanicalSystem(
        rx.Power(rx.Product(rx.SO2(), rx.Translation(2)), 2),
        [0.4, 1.2, 1.2, 0.3, 0.7, 0.7],
        lambda g: 1.2 * g[1][0][1] + 0.7 * g[1][1][1],
        constraint=rx.Holonomic(phi),
    )
    turned = np.stack([np.asarray(rx.SO2().exp(jnp.array([a]))) for a in (0.3, -0.5)])
    return system, (turned, np.zeros((2, 2))), [0.6, 0.0, 0.0, -0.9, 0.0, 0.0]


def on_so4():
    system = rx.MechanicalSystem(
        rx.SO(4),
        [1.0, 1.7, 2.3, 1.4, 2.1, 1.2],
        lambda g: g[3] @ jnp.array([0.4, -0.3, 0.5, 0.8]),
        constraint=rx.Holonomic(lambda g: g[0, 0] - g[1, 2] - 0.6),
    )
    start = rx.SO(4).exp(jnp.array([0.3, -0.2, 0.4, 0.1, -0.5, 0.2]))
    return system, start, [0.6, -0.5, 0.8, 0.3, 0.4, -0.7]


def on_a_matrix_group():
    """Upper triangular matrices: Heisenberg's group."""
    basis = np.zeros((3, 3, 3))
    basis[0, 0, 1] = basis[1, 1, 2] = basis[2, 0, 2] = 1.0
    group = rx.MatrixGroup(basis, name="Heisenberg")

    def phi(g):
        return g[0, 1] ** 2 + 2 * g[1, 2] ** 2 + g[0, 2] ** 2 - 1

    system = rx.MechanicalSystem(
        group,
        [1.0, 1.4, 0.8],
        lambda g: 0.7 * g[0, 2] + 0.3 * g[0, 1],
        constraint=rx.Holonomic(phi),
    )
    return system, group.exp(jnp.array([0.5, 0.4, 0.3])), [0.3, -0.4, 0.5]


EVERYWHERE = [
    on_so3,
    on_so3_with_inertia_that_changes,
    on_so3_with_a_gyroscopic_lagrangian,
    on_so3_with_a_quartic_hamiltonian,
    on_se3,
    on_se2,
    on_translations,
    on_a_product,
    on_a_power,
    on_so4,
    on_a_matrix_group,
]


@pytest.mark.parametrize("make", EVERYWHERE)
def test_order_and_positions(make):
    system, place, velocity = make()
    place = jax.tree.map(jnp.asarray, place)
    found = system.assembled(place)
    moved = system.group.log(system.group.compose(system.group.inverse(place), found))
    assert float(jnp.max(jnp.abs(moved))) < 1.0
    state = system.state(found, velocity=velocity, project=True)
    run = rx.simulate(system, rx.LieVerlet(), state, h=0.05, steps=200)
    assert run.provenance["backend"] == "native"
    assert run.constraint_violation().max() < 1e-14  # measured: at most 1.2e-15
    seen = rx.analysis.convergence(system, rx.LieVerlet(), state, h=0.02, time=1.0, halvings=2)
    assert abs(seen.order - 2) < 0.01  # measured: 1.997 to 2.001


@pytest.mark.parametrize("make", [on_a_product, on_translations])
def test_the_symplectic_form_of_what_is_left_is_kept(make):
    system, place, velocity = make()
    state = system.state(system.assembled(place), velocity=velocity, project=True)
    assert rx.analysis.symplecticity(system, rx.LieVerlet(), state, h=0.2) < 5e-15  # 4e-16
