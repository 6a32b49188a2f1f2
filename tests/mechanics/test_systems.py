"""Systems from energies: Legendre transforms, symmetries, refusals."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import retrax as rx

SO3 = rx.SO3()
MOMENTS = [1.0, 1.7, 2.3]
EPS = np.finfo(float).eps


def heavy(R):
    return R[2] @ jnp.array([0.4, -0.3, 1.1])


def test_the_three_forms_of_a_heavy_top_agree(key):
    inertia = jnp.array(MOMENTS)
    systems = [
        rx.MechanicalSystem(SO3, inertia, heavy),
        rx.LagrangianSystem(SO3, lambda R, xi: xi @ (inertia * xi) / 2 - heavy(R)),
        rx.HamiltonianSystem(SO3, lambda R, mu: mu @ (mu / inertia) / 2 + heavy(R)),
    ]
    g, mu = SO3.random(key), jnp.array([1.2, -0.8, 2.0])
    fields = [s.vector_field(g, mu, jnp.zeros(())) for s in systems]
    energies = [s.energy(s.state(g, momentum=mu)) for s in systems]
    for field, energy in zip(fields[1:], energies[1:], strict=True):
        np.testing.assert_allclose(field.velocity, fields[0].velocity, rtol=0, atol=4 * EPS)
        np.testing.assert_allclose(field.momentum_rate, fields[0].momentum_rate, atol=8 * EPS)
        np.testing.assert_allclose(energy, energies[0], rtol=4 * EPS)


def test_legendre_transform_of_a_lagrangian_that_is_not_quadratic(key):
    system = rx.LagrangianSystem(SO3, lambda R, xi: jnp.sum(jnp.cosh(xi)) + xi @ xi * R[0, 0] ** 2)
    g, xi = SO3.random(key), jnp.array([0.4, -1.3, 0.8])
    np.testing.assert_allclose(system.velocity(g, system.momentum(g, xi)), xi, rtol=8 * EPS)
    state = system.state(g, velocity=xi)
    expected = state.momentum @ xi - system.lagrangian(g, xi)
    np.testing.assert_allclose(system.energy(state), expected, rtol=8 * EPS)


def test_a_lagrangian_without_inverse_gives_nan_not_a_wrong_velocity():
    flat = rx.LagrangianSystem(SO3, lambda R, xi: jnp.sum(jnp.sqrt(1.0 + xi**2)))
    assert np.all(np.isnan(flat.velocity(jnp.eye(3), jnp.array([2.0, 0.0, 0.0]))))


def test_inertia_matrix_and_function_agree_with_the_vector(key):
    vector = rx.MechanicalSystem(SO3, MOMENTS, heavy)
    matrix = rx.MechanicalSystem(SO3, jnp.diag(jnp.array(MOMENTS)), heavy)
    function = rx.MechanicalSystem(SO3, lambda R: jnp.array(MOMENTS), heavy)
    g, mu = SO3.random(key), jnp.array([1.2, -0.8, 2.0])
    expected = vector.vector_field(g, mu, jnp.zeros(()))
    for system in (matrix, function):
        field = system.vector_field(g, mu, jnp.zeros(()))
        np.testing.assert_allclose(field.velocity, expected.velocity, rtol=4 * EPS)
        np.testing.assert_allclose(field.momentum_rate, expected.momentum_rate, atol=8 * EPS)


def test_symmetries_are_found():
    free = rx.systems.FreeRigidBody(MOMENTS).symmetries()
    assert np.array_equal(free.space, np.eye(3)) and len(free.body) == 0
    top = rx.MechanicalSystem(SO3, MOMENTS, heavy).symmetries()
    np.testing.assert_allclose(top.space, [[0, 0, 1]], atol=0)
    lagrange = rx.systems.HeavyTop([2.0, 2.0, 1.0], 1.0, [0.0, 0.0, 0.3]).symmetries()
    np.testing.assert_allclose(lagrange.body, [[0, 0, 1]], atol=0)
    tilted = jnp.array([1.0, 1.0, 0.0]) / jnp.sqrt(2.0)
    oblique = rx.MechanicalSystem(SO3, MOMENTS, lambda R: tilted @ R[:, 2]).symmetries()
    np.testing.assert_allclose(oblique.space, [[1, 1, 0]], atol=1e-12)
    pushed = rx.MechanicalSystem(SO3, MOMENTS, force=lambda R, xi, t: jnp.sin(t) * R[0])
    np.testing.assert_allclose(pushed.symmetries().space, [[0, 1, 0], [0, 0, 1]], atol=0)


def test_forces_of_all_sizes_hide_no_broken_symmetry():
    """A rod as a body of its own: it may be moved, and turned about its axis, and nothing else."""
    rod = rx.systems.Rod(
        8, 1.0, stretching=[4e4, 4e4, 1e5], bending=[1.0, 1.0, 0.8], mass=1.0,
        inertia=[1e-3, 1e-3, 2e-3],
    )  # fmt: skip
    system = rx.MechanicalSystem(rod.group, rod.inertia, rod.potential_energy)
    found = system.symmetries()
    assert found.space.shape == (3, 54) and found.body.shape == (4, 54)
    moved = 0.01 * np.random.default_rng(3).normal(size=(2, 54))
    g = rod.group.compose(rod.straight(), rod.group.exp(jnp.asarray(moved[0])))
    start = rod.state(g, velocity=moved[1])
    run = rx.simulate(rod, rx.LieVerlet(), start, h=1e-5, steps=20, save_every=20)
    kept = run.along(lambda state: jnp.stack(list(found.momenta(rod.group, state).values())))
    assert kept.shape == (2, 7) and np.abs(np.diff(kept, axis=0)).max() < 1e-13


def test_a_declared_symmetry_is_checked():
    system = rx.MechanicalSystem(SO3, MOMENTS, heavy, symmetry=[[0, 0, 2]])
    assert system.symmetries().space.tolist() == [[0, 0, 2]]
    with pytest.raises(rx.BadInput, match=r"symmetry = \[1.0, 0.0, 0.0\] is not a symmetry"):
        rx.MechanicalSystem(SO3, MOMENTS, heavy, symmetry=[[1, 0, 0]])
    with pytest.raises(rx.BadInput, match="3 components"):
        rx.MechanicalSystem(SO3, MOMENTS, heavy, symmetry=[[1, 0]])


def test_parameters_of_a_potential_can_be_differentiated():
    class Weight(eqx.Module):
        arm: jax.Array

        def __call__(self, R):
            return R[2] @ self.arm

    system = rx.MechanicalSystem(SO3, MOMENTS, Weight(jnp.array([0.4, -0.3, 1.1])))
    assert any(leaf.shape == (3,) for leaf in jax.tree.leaves(system.potential))


@pytest.mark.parametrize(
    "inertia, sentence",
    [
        ([1.0, 1.0, 5.0], r"1 \+ 1 < 5"),
        ([1.0, -1.0, 1.0], "every moment must be > 0"),
        ([1.0, 0.0, 1.0], "every moment must be > 0"),
        ([1.0, 2.0], r"inertia has shape \(2,\)"),
        ([1.0, 2.0, np.nan], "inertia must be finite"),
        ([[1, 0.5, 0], [0, 1, 0], [0, 0, 1]], "not symmetric"),
        ([[1, 2, 0], [2, 1, 0], [0, 0, 1]], "smallest eigenvalue is -1"),
        ("heavy", "array of real numbers"),
        (lambda R: jnp.array([1.0, 2.0]), r"inertia has shape \(2,\)"),
        (lambda R: jnp.array([1.0, 1.0, 5.0]), r"1 \+ 1 < 5"),
    ],
)
def test_an_inertia_that_no_body_has_is_refused(inertia, sentence):
    with pytest.raises(rx.BadInput, match=sentence):
        rx.MechanicalSystem(SO3, inertia)


def test_mathematical_inertias_pass_when_asked_for():
    rx.MechanicalSystem(SO3, [1.0, 10.0, 100.0], physical=False)
    with pytest.raises(rx.BadInput, match="> 0"):
        rx.MechanicalSystem(SO3, [1.0, -10.0, 100.0], physical=False)


def se3_inertia(about_centre, mass, arm):
    c = np.array([[0, -arm[2], arm[1]], [arm[2], 0, -arm[0]], [-arm[1], arm[0], 0]])
    return np.block(
        [[np.diag(about_centre) - mass * c @ c, mass * c], [-mass * c, mass * np.eye(3)]]
    )


def test_bodies_on_se3_are_checked_about_their_centre_of_mass():
    rx.MechanicalSystem(rx.SE3(), se3_inertia([1.0, 1.3, 0.9], 1.4, [0.2, -0.1, 0.3]))
    with pytest.raises(rx.BadInput, match=r"about the centre of mass .* 1 \+ 1.3 < 4"):
        rx.MechanicalSystem(rx.SE3(), se3_inertia([1.0, 1.3, 4.0], 1.4, [0.2, -0.1, 0.3]))
    added_mass = np.diag([1.0, 1.3, 4.0, 1.0, 2.0, 2.5])
    rx.MechanicalSystem(rx.SE3(), added_mass)


def test_every_factor_of_a_product_is_checked():
    group = rx.Product(rx.Translation(2), rx.SO3())
    with pytest.raises(rx.BadInput, match=r"1 \+ 1 < 5"):
        rx.MechanicalSystem(group, [1.0, 1.0, 1.0, 1.0, 5.0])
    with pytest.raises(rx.BadInput, match=r"1 \+ 1 < 5"):
        rx.MechanicalSystem(rx.Power(rx.SO3(), 2), [1.0, 1.0, 1.0, 1.0, 1.0, 5.0])


def test_functions_of_the_wrong_kind_are_refused():
    with pytest.raises(rx.BadInput, match=r"potential returns float64 of shape \(3,\)"):
        rx.MechanicalSystem(SO3, MOMENTS, lambda R: R[2])
    with pytest.raises(rx.BadInput, match="potential cannot be evaluated on JAX arrays"):
        rx.MechanicalSystem(SO3, MOMENTS, lambda R: float(R[2, 2]))
    with pytest.raises(rx.BadInput, match=r"force returns float64 of shape \(\)"):
        rx.MechanicalSystem(SO3, MOMENTS, force=lambda R, xi, t: t)
    with pytest.raises(rx.BadInput, match="lagrangian = 3 must be a function"):
        rx.LagrangianSystem(SO3, 3)
    with pytest.raises(rx.BadInput, match="is not a Lie group"):
        rx.MechanicalSystem(rx.SO3, MOMENTS)


@pytest.mark.parametrize(
    "arguments, sentence",
    [
        (dict(g=np.eye(3), velocity=[1.0, 2.0]), r"velocity has shape \(2,\)"),
        (dict(g=np.eye(3), velocity=[1.0, 2.0, np.inf]), r"velocity must be finite.*inf"),
        (dict(g=np.eye(3), velocity=["a", 2, 3]), "velocity = .* must be an array of real numbers"),
        (dict(g=np.eye(3)), "exactly one of velocity and momentum"),
        (dict(g=np.eye(3), velocity=[0, 0, 0], momentum=[0, 0, 0]), "exactly one"),
        (dict(g=1.01 * np.eye(3), velocity=[0, 0, 1]), r"g is not a rotation.*0\.02.*project"),
        (dict(g=-np.eye(3), velocity=[0, 0, 1]), "reflection"),
        (dict(g=np.eye(2), velocity=[0, 0, 1]), r"shape \(2, 2\)"),
        (dict(g=np.full((3, 3), np.nan), velocity=[0, 0, 1]), "g must be finite"),
        (dict(g=np.eye(3), velocity=[0, 0, 1], t=np.nan), "t must be finite"),
    ],
)
def test_states_that_are_none_are_refused(arguments, sentence):
    with pytest.raises(rx.BadInput, match=sentence):
        rx.systems.FreeRigidBody(MOMENTS).state(arguments.pop("g"), **arguments)


def test_lists_of_numbers_are_states_too():
    body = rx.systems.FreeRigidBody(MOMENTS)
    state = body.state([[1, 0, 0], [0, 1, 0], [0, 0, 1]], velocity=[1, 0, 0])
    assert state.g.dtype == state.momentum.dtype == jnp.float64
    floating = rx.MechanicalSystem(rx.SE3(), se3_inertia([1.0, 1.3, 0.9], 1.4, [0, 0, 0]))
    floating.state((np.eye(3), [0, 0, 0]), velocity=[1, 0, 0, 0, 0, 1])
    with pytest.raises(rx.BadInput, match="tuple"):
        floating.state(np.eye(4), velocity=[1, 0, 0, 0, 0, 1])


def test_bodies_need_mass_and_an_arm():
    with pytest.raises(rx.BadInput, match=r"mass = -1\.0 kg is not positive"):
        rx.systems.HeavyTop(MOMENTS, -1.0, [0, 0, 1])
    with pytest.raises(rx.BadInput, match=r"arm has shape \(2,\)"):
        rx.systems.Pendulum3D(MOMENTS, 1.0, [0, 1])
    with pytest.raises(rx.BadInput, match="gravity must be finite"):
        rx.systems.Pendulum3D(MOMENTS, 1.0, [0, 0, 1], gravity=np.nan)


def test_single_precision_is_refused():
    jax.config.update("jax_enable_x64", False)
    try:
        with pytest.raises(rx.BadInput, match="jax_enable_x64 = False"):
            rx.systems.FreeRigidBody(MOMENTS)
    finally:
        jax.config.update("jax_enable_x64", True)


def test_arrays_of_the_object_whose_method_is_a_potential_stay_parameters():
    top = rx.systems.HeavyTop([1.0, 1.7, 2.3], mass=1.5, arm=[0.4, -0.3, 1.1], gravity=2.0)
    system = rx.MechanicalSystem(rx.SO3(), [1.0, 1.7, 2.3], top.potential_energy)
    heavier = jax.tree.map(lambda x: 2 * x, system)
    one = jnp.eye(3)
    assert float(system.potential_energy(one)) == float(top.potential_energy(one)) == 1.5 * 2 * 1.1
    assert float(jax.jit(lambda s: s.potential_energy(one))(heavier)) == 8 * 1.5 * 2 * 1.1


def test_a_system_keeps_its_numbers_when_the_array_it_was_made_from_changes():
    inertia = np.array([1.0, 1.7, 2.3])
    body = rx.systems.FreeRigidBody(inertia)
    inertia[:] = 7.0
    assert np.asarray(body.inertia).tolist() == [1.0, 1.7, 2.3]


def turned_as_often_as_the_state_says(x):
    return lax.fori_loop(0, (x[2] * 3).astype(int), lambda k, y: y * 0.9 + x[0], x @ x)


@pytest.mark.parametrize(
    ("name", "make"),
    [
        ("potential", lambda V: rx.MechanicalSystem(rx.Translation(3), np.ones(3), V)),
        ("lagrangian", lambda V: rx.LagrangianSystem(rx.Translation(3), lambda x, v: v @ v - V(x))),
        (
            "hamiltonian",
            lambda V: rx.HamiltonianSystem(rx.Translation(3), lambda x, p: p @ p + V(x)),
        ),
    ],
)
def test_an_energy_without_a_gradient_is_rejected(name, make):
    with pytest.raises(rx.BadInput, match=f"{name} has no gradient.*Reverse-mode differentiation"):
        make(turned_as_often_as_the_state_says)
