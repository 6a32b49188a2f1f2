"""A step of the string: discrete Euler-Lagrange equations, symplectic, symmetric, momenta exact."""

import jax
import numpy as np
import pytest
from oracle import Chain, one_body, random_state, two_bodies

import retrax as rx

H = 2.5e-3


def states(system, state, h=H, steps=2, integrator=None):
    run = rx.simulate(
        system,
        integrator or rx.LieVerlet(),
        state,
        h=h,
        steps=steps,
    )
    r, R = run.g[0], np.stack(run.g[1:], axis=1)
    return r, R, run.momentum


def split(system, momentum):
    n = 3 * system.elements
    return momentum[:n].reshape(-1, 3), momentum[n:].reshape(-1, 3)


@pytest.mark.parametrize("make", [one_body, two_bodies])
def test_the_step_satisfies_the_discrete_euler_lagrange_equations(make):
    system, chain = make()
    r, R, mu = states(system, random_state(system))
    after_first = chain.legendre(r[0], R[0], r[1], R[1], H)[1]
    before_second = chain.legendre(r[1], R[1], r[2], R[2], H)[0]
    size = np.max(np.abs(before_second[0]))
    for left, right in zip(after_first, before_second, strict=True):
        assert np.max(np.abs(left - right)) < 1e-13 * size  # measured 3e-14 of it
    # The momenta of the state are both discrete Legendre transforms.
    for transform, k in ((chain.legendre(r[0], R[0], r[1], R[1], H)[0], 0), (after_first, 1)):
        for ours, theirs in zip(split(system, mu[k]), transform, strict=True):
            assert np.max(np.abs(ours - theirs)) < 1e-13 * size


def test_the_vector_field_is_that_of_the_semi_discrete_equations():
    system, chain = two_bodies()
    state = random_state(system)
    xi = np.asarray(system.velocity(state.g, state.momentum))
    v, omega = split(system, xi)
    R = np.stack(state.g[1:])
    rate = chain.rates(0.0, np.concatenate([np.ravel(x) for x in (state.g[0], v, R, omega)]))

    def velocity(t):
        """The velocity on the curve that the vector field is tangent to."""
        d = system.vector_field(state.g, state.momentum, state.t)
        g = system.group.compose(state.g, system.group.exp(t * d.velocity))
        return system.velocity(g, state.momentum + t * d.momentum_rate)

    _, acceleration = jax.jvp(velocity, (0.0,), (1.0,))
    n = 3 * system.elements
    expected = np.concatenate([rate[n : 2 * n], rate[-6:]])
    assert np.max(np.abs(acceleration - expected)) < 1e-11 * np.max(np.abs(expected))


def test_forces_and_velocities_belong_to_the_energy():
    # Lengths and masses of order one, where differences of the energy are accurate.
    inertia = rx.solids.box(1.0, (0.5, 0.7, 0.9), (0.3, -0.2, 0.4))
    heavy = rx.solids.ellipsoid(1.5, (0.5, 0.7, 0.9), (0.1, 0.2, -0.3))
    system = rx.systems.StringPendulum(
        4.0, 0.8, 6.0, 4, [1.0, 1.5], [[0.3, -0.2, 0.4], [0.1, 0.2, -0.3]], [inertia, heavy], 1.3,
        nodes=[4, 2], law="slack", damping=rx.systems.StringDamping(drag=0.02, viscosity=0.1),
    )  # fmt: skip
    rx.testing.check_system(system, random_state(system, stretch=0.4))


@pytest.mark.parametrize("order", [2, 4])
def test_the_order_is_that_of_the_composition(order):
    system, chain = one_body()
    state = random_state(system)
    v, omega = split(system, np.asarray(system.velocity(state.g, state.momentum)))
    r, R, _ = chain.solve(state.g[0], v, state.g[1], omega, 0.1)
    integrator = rx.LieVerlet() if order == 2 else rx.Composition(rx.LieVerlet(), order=order)
    errors = []
    for steps in (160, 320):
        end = rx.simulate(system, integrator, state, h=0.1 / steps, steps=steps).final
        errors.append(max(np.max(np.abs(end.g[0] - r)), np.max(np.abs(end.g[1] - R[0]))))
    slopes = np.log2(np.divide(errors[:-1], errors[1:]))
    assert abs(slopes[0] - order) < 0.1, (errors, slopes)


def test_a_step_is_symplectic_and_symmetric():
    system, _ = one_body()
    state = random_state(system)
    assert rx.analysis.symplecticity(system, rx.LieVerlet(), state, h=H) < 2e-14
    assert rx.analysis.reversibility(system, rx.LieVerlet(), state, h=H, steps=50) < 1e-13


@pytest.mark.parametrize("make", [one_body, two_bodies])
def test_the_vertical_momentum_is_kept_to_round_off_at_a_coarse_step(make):
    system, _ = make()
    run = rx.simulate(system, rx.LieVerlet(), random_state(system), h=H, steps=5000)
    J3 = run.invariants()["angular momentum e3"]
    assert np.max(np.abs(J3 - J3[0])) < 1e-15  # 5e-17 of 1e-2


def test_without_gravity_all_of_the_angular_momentum_is_kept():
    system, _ = one_body(gravity=0.0)
    run = rx.simulate(system, rx.LieVerlet(), random_state(system), h=H, steps=2000)
    J = run.observables()["angular momentum"]
    assert np.max(np.abs(J - J[0])) < 1e-15


def test_exp_takes_the_general_step_to_the_same_order():
    system, chain = one_body()
    state = random_state(system)
    v, omega = split(system, np.asarray(system.velocity(state.g, state.momentum)))
    exact, _, _ = chain.solve(state.g[0], v, state.g[1], omega, 0.02)
    integrator, errors = rx.LieVerlet(rx.Exp()), []
    for steps in (20, 40):
        run = rx.simulate(
            system, integrator, state, h=0.02 / steps, steps=steps, save_every=20, backend="xla"
        )
        errors.append(np.max(np.abs(run.final.g[0] - exact)))
    assert 3.8 < errors[0] / errors[1] < 4.2


@pytest.mark.parametrize("elements", [9, 20])
def test_the_native_program_gives_the_same_numbers(elements):
    system, state, h, _ = rx.systems.StringPendulum.paper(elements=elements)
    h = h * min(1.0, 20 / elements)
    native, xla = (
        rx.simulate(system, rx.LieVerlet(), state, h=h, steps=40, save_every=40, backend=name)
        for name in ("native", "xla")
    )
    assert native.provenance["backend"] == "native"
    assert np.max(np.abs(native.final.g[0] - xla.final.g[0])) < 1e-14
    assert np.max(np.abs(native.final.momentum - xla.final.momentum)) < 1e-14


def test_the_oracle_has_the_mass_matrix_of_the_specification():
    m, M = 0.05 * 0.2, 0.1
    _, chain = one_body()
    T = m / 6 * np.array([[4, 1, 0], [1, 4, 1], [0, 1, 2.0]])
    T[2, 2] += M
    assert isinstance(chain, Chain) and np.max(np.abs(chain.T - T)) < 1e-17
    assert np.max(np.abs(one_body()[0].mass_matrix.masses.diagonal - np.diag(T))) < 1e-16
