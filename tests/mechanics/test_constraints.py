"""Constraints, reactions, adapted frames, and what is refused."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import solve_ivp

import retrax as rx
from retrax.mechanics.hamel import is_subalgebra
from retrax.testing.constrained import (
    FULL,
    chaplygin_ball,
    heavy_suslov_body,
    suslov_body,
    veselova_body,
)

SO3 = rx.SO3()
PLANE = [[1.0, 0.2, -0.3], [0.5, 1.5, 0.4]]


def body(constraint, **options):
    return rx.MechanicalSystem(SO3, FULL, constraint=constraint, physical=False, **options)


@pytest.mark.parametrize(
    "rows, sentence",
    [
        ([[1, 0, 0], [2, 0, 0]], r"are dependent: their smallest singular value is 0"),
        ([[1, 0, 0], [1, 1e-14, 0]], "are dependent"),
        ([[1, 0, 0], [0, 1, 0], [0, 0, 1]], "span all 3 directions"),
        ([[1, 0, 0], [0, 1, 0], [0, 0, 1], [1, 1, 1]], "are dependent"),
        ([], "at least one row"),
        ([1, 0, 0], r"rows has shape \(3,\)"),
        ([[0, 0, 0]], "are dependent"),
        ([[1, 0, np.nan]], "rows must be finite"),
        ("e3", "array of real numbers"),
    ],
)
def test_rows_that_are_no_basis_are_refused(rows, sentence):
    with pytest.raises(rx.BadInput, match=sentence):
        rx.Distribution(rows)


@pytest.mark.parametrize(
    "constraint, sentence",
    [
        (rx.Distribution([[1, 0], [0, 1]][:1]), "has 2 velocity components, but"),
        ([[1, 0, 0]], "is not a constraint"),
        (rx.VelocityConstraint(lambda R: R), r"A\(g\) has shape \(3, 3\).*from 1 to 2 rows"),
        (rx.VelocityConstraint(lambda R: R[2]), r"A\(g\) has shape \(3,\)"),
        (rx.VelocityConstraint(lambda R: float(R[0, 0])), "A cannot be evaluated on JAX arrays"),
        (rx.VelocityConstraint(lambda R: R[:1], lambda R: R[0]), r"c returns .* shape \(3,\)"),
    ],
)
def test_constraints_that_do_not_fit_are_refused(constraint, sentence):
    with pytest.raises(rx.BadInput, match=sentence):
        body(constraint)


def test_a_subalgebra_is_noticed_and_a_plane_of_rotations_is_none():
    with pytest.warns(UserWarning, match="the constraint is holonomic"):
        body(rx.Distribution([[0.6, 0.8, 0.0]]))
    assert not is_subalgebra(SO3, rx.Distribution(PLANE))
    assert is_subalgebra(rx.SE2(), rx.Distribution([[0, 1, 0], [0, 0, 1]]))


def test_a_velocity_off_the_distribution_is_refused_with_its_distance_or_projected():
    system = body(rx.Distribution([[1, 0, 0], [0, 1, 0]]))
    with pytest.raises(rx.BadInput, match=r"breaks the constraint.*\|A xi - c\| = 0.25.*project"):
        system.state(jnp.eye(3), velocity=[1.0, 0.5, 0.25])
    with pytest.raises(rx.BadInput, match="breaks the constraint"):
        system.state(jnp.eye(3), momentum=[1.0, 0.5, 0.25])
    state = system.state(jnp.eye(3), velocity=[1.0, 0.5, 0.25], project=True)
    assert float(system.constraint_violation(state)) < 1e-16
    # The nearest in the kinetic metric: the difference is orthogonal to all admissible velocities.
    missed = jnp.asarray(FULL) @ jnp.array([1.0, 0.5, 0.25]) - state.momentum
    np.testing.assert_allclose(missed[:2], 0, atol=1e-15)


def test_rank_at_the_start_is_checked():
    system = body(rx.VelocityConstraint(lambda R: R[2, 2] * R[2:]))
    flat = SO3.exp(jnp.array([jnp.pi / 2, 0.0, 0.0]))
    with pytest.raises(rx.BadInput, match=r"loses rank at this g: the smallest singular value"):
        system.state(jnp.eye(3) @ flat, velocity=[0.0, 0.0, 0.0])


def test_methods_without_constraints_refuse_them_and_frames_need_a_distribution():
    for method in (rx.LieVerlet(), rx.CotangentLift(), rx.Composition(rx.LieVerlet(), 4)):
        with pytest.raises(rx.BadInput, match="knows no constraints"):
            method.check(suslov_body()[0])
    with pytest.raises(rx.BadInput, match="depend on its configuration"):
        rx.ProjectedLift().check(veselova_body()[0])
    with pytest.raises(rx.BadInput, match="use DiscreteGradient"):
        rx.HamelMidpoint().check(heavy_suslov_body()[0])
    with pytest.raises(rx.BadInput, match="inertia that is the same everywhere"):
        rx.HamelMidpoint().check(rx.HamiltonianSystem(SO3, lambda R, mu: mu @ mu))
    with pytest.raises(rx.BadInput, match="a flow of first order"):
        rx.RetractionFlow().check(suslov_body()[0])


def test_hamel_frame_in_a_skew_basis():
    system = body(rx.Distribution(PLANE))
    frame = rx.HamelFrame.of(system)
    basis, inertia = np.array(PLANE), np.array(FULL)
    np.testing.assert_allclose(frame.basis @ frame.covectors().T, np.eye(2), atol=1e-15)
    adapted = np.asarray(frame.adapted_basis())
    blocks = adapted @ inertia @ adapted.T
    np.testing.assert_allclose(blocks[:2, 2:], 0, atol=1e-15)
    mb = np.array([0.7, -0.4])
    u = np.linalg.solve(basis @ inertia @ basis.T, mb)
    assert float(frame.energy(jnp.asarray(mb))) == pytest.approx(mb @ u / 2, rel=1e-15)
    # Hamel's equations with brackets of the basis, against the Lagrange multiplier.
    hamel = -np.einsum("abc,c,b->a", frame.structure(), mb, u)
    np.testing.assert_allclose(frame.rate(jnp.asarray(mb)), hamel, atol=2e-16)
    state = system.state(jnp.eye(3), velocity=u @ basis)
    rate = system.vector_field(state.g, state.momentum, state.t).momentum_rate
    np.testing.assert_allclose(basis @ rate, hamel, atol=4e-16)


@pytest.mark.parametrize("make", [heavy_suslov_body, veselova_body, chaplygin_ball])
def test_reactions_keep_the_constraint_and_do_no_work(make):
    system, state = make()
    group, step = system.group, 1e-5
    xi, rate = system.vector_field(state.g, state.momentum, state.t)

    def violation(t):
        g = group.compose(state.g, group.exp(t * xi))
        return system.constraint.violation(
            g, system.velocity(g, state.momentum + t * rate), state.t
        )

    slope = (violation(step) - violation(-step)) / (2 * step)
    assert np.max(np.abs(slope)) < 1e-9
    assert abs(float(system.reaction(state) @ xi)) < 1e-15


def test_a_lagrangian_that_is_not_quadratic_can_be_constrained():
    def lagrangian(R, xi):
        return (
            xi @ jnp.asarray(FULL) @ xi / 2 + 0.1 * (xi @ xi) ** 2 - R[2] @ jnp.array([0.6, 0, 1])
        )

    system = rx.LagrangianSystem(SO3, lagrangian, constraint=rx.Distribution(PLANE))
    state = system.state(jnp.eye(3), velocity=[0.8, 0.9, 0.1], project=True)
    assert float(system.constraint_violation(state)) < 1e-15
    xi, rate = system.vector_field(state.g, state.momentum, state.t)
    step = 1e-5
    moved = [
        rx.State(state.g @ SO3.exp(t * xi), state.momentum + t * rate, state.t)
        for t in (-step, step)
    ]
    slopes = [
        system.constraint.violation(s.g, system.velocity(s.g, s.momentum), s.t) for s in moved
    ]
    assert np.max(np.abs(slopes[1] - slopes[0])) / (2 * step) < 1e-9


def test_chaplygin_ball_against_an_independent_solver():
    """Angular momentum about the point of contact is constant in space: solve for R and x alone."""
    system, state = chaplygin_ball()
    moments, mass, radius = np.array([1.0, 1.5, 2.0]), 1.2, 0.8
    up = np.array([0.0, 0.0, 1.0])

    def omega(R, L):
        inertia = R @ np.diag(moments) @ R.T + mass * radius**2 * (np.eye(3) - np.outer(up, up))
        return np.linalg.solve(inertia, L)

    def rhs(t, y):
        R, L = y[:9].reshape(3, 3), y[11:]
        w = omega(R, L)
        spin = np.array([[0, -w[2], w[1]], [w[2], 0, -w[0]], [-w[1], w[0], 0]])
        return np.concatenate([(spin @ R).ravel(), radius * np.cross(w, up)[:2], np.zeros(3)])

    R0 = np.asarray(state.g[0])
    w0 = R0 @ np.asarray(system.velocity(state.g, state.momentum))[:3]
    inertia = R0 @ np.diag(moments) @ R0.T + mass * radius**2 * (np.eye(3) - np.outer(up, up))
    y0 = np.concatenate([R0.ravel(), np.zeros(2), inertia @ w0])
    exact = solve_ivp(rhs, (0, 3), y0, method="DOP853", rtol=1e-13, atol=1e-14).y[:, -1]
    method = rx.Composition(rx.LagrangeDAlembert(), order=6)
    run = rx.simulate(system, method, state, h=0.05, steps=60)
    ours = np.concatenate([run.g[0][-1].ravel(), run.g[1][-1]])
    assert np.max(np.abs(ours - exact[:11])) < 3e-11  # measured: 4e-12


def test_systems_are_built_under_vmap():
    S = rx.systems
    ones = jnp.linspace(1.0, 1.2, 3)

    def build(x):
        systems = (
            S.Suslov(jnp.stack([x, 2 * x, 2.5 * x]), S.Weight(jnp.stack([x, x, x]))),
            S.ChaplyginSleigh(x, x, x),
            S.RollingDisk(x, x, x, x),
            S.Veselova(jnp.stack([x, 2 * x, 2.5 * x])),
            S.ChaplyginBall(jnp.stack([x, 2 * x, 2.5 * x]), x, x),
            S.BallOnTurntable(x, x, x),
            S.Blade(jnp.stack([x, 2 * x, 2.5 * x]), x, jnp.stack([x, x, x])),
        )
        return [jnp.sum(s.inertia_at(s.group.identity())) for s in systems]

    assert all(out.shape == (3,) for out in jax.vmap(build)(ones))
