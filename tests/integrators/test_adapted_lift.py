"""(11) with (12) of the nonholonomic paper, for 0 <= s <= 1, against the equations themselves."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import retrax as rx
from retrax.testing import measurements
from retrax.testing.constrained import (
    FULL,
    constrained_problem,
    heavy_suslov_body,
    sleigh,
    suslov_body,
)
from retrax.testing.integrators import check_order
from retrax.testing.problems import asymmetric_top

WEIGHT = np.array([0.6, -0.4, 1.4])


@jax.jit
def step(integrator, system, state, h):
    return integrator.step(system, state, h)[0]


def hat(v):
    return np.array([[0, -v[2], v[1]], [v[2], 0, -v[0]], [-v[1], v[0], 0]])


def vee(A):
    return np.array([A[2, 1] - A[1, 2], A[0, 2] - A[2, 0], A[1, 0] - A[0, 1]]) / 2


def exp(X):
    t = np.linalg.norm(vee(X))
    return np.eye(3) + np.sinc(t / np.pi) * X + np.sinc(t / (2 * np.pi)) ** 2 / 2 * X @ X


def cay(X):
    return np.linalg.solve(np.eye(3) - X / 2, np.eye(3) + X / 2)


def as_printed(R0, reduced, h, s, tau, inertia, force):
    """One step on SO(3), d = {e1, e2}: lift (9) by differences, project (11), solve (12).

    The covector of the base point is the transposed derivative of D(R, x) = (R tau(-s x),
    R tau((1-s) x)), taken by central differences of D itself, of (-mu0, mu1).
    """
    E = np.eye(3)[:, :2]
    restricted = E.T @ inertia @ E
    M = inertia @ E @ np.linalg.inv(restricted)
    eps = 1e-3

    def derivative(R, x):
        columns = []
        for k in range(6):
            moved = []
            for sign in (2, 1, -1, -2):
                d = sign * eps * np.eye(6)[k]
                base, x1 = R @ exp(hat(d[:3])), x + d[3:]
                moved.append((base @ tau(-s * hat(x1)), base @ tau((1 - s) * hat(x1))))
            ends = (R @ tau(-s * hat(x)), R @ tau((1 - s) * hat(x)))
            rates = [
                (-m[0] + 8 * m[1] - 8 * m[2] + m[3]) / (12 * eps)
                for m in ([one[i] for one in moved] for i in range(2))
            ]
            columns.append(np.concatenate([vee(ends[i].T @ rates[i]) for i in range(2)]))
        return np.array(columns).T

    def ends(u):
        """R_1, mu0 and mu1: (9) is linear in the two momenta."""
        x, mu = h * E @ u, M @ (restricted @ u)
        R = R0 @ tau(-s * hat(x)).T
        # Hamel's equation (6), lifted by T pi*, and trivialised as the group T*G is.
        rate = E.T @ (np.cross(mu, E @ u) + force(R))
        nu = h * M @ rate - np.cross(mu, x)
        both = np.linalg.solve(derivative(R, x).T, np.concatenate([nu, mu]))  # (9)
        return R @ tau((1 - s) * hat(x)), -both[:3], both[3:]

    def missed(u):
        return E.T @ ends(u)[1] - reduced  # (11), the start

    u = np.linalg.solve(restricted, reduced)
    for _ in range(6):
        slope = np.stack([(missed(u + d) - missed(u - d)) / 2e-5 for d in 1e-5 * np.eye(2)], axis=1)
        u = u - np.linalg.solve(slope, missed(u))
    end, _, mu1 = ends(u)
    return end, M @ (E.T @ mu1)  # (11), the end


@pytest.mark.parametrize(
    "tau, s, heavy", [("exp", 0.25, True), ("exp", 0.5, False), ("cay", 0.3, True)]
)
def test_the_step_solves_the_equations_of_the_paper(tau, s, heavy):
    system, state = heavy_suslov_body() if heavy else suslov_body()
    function, retraction = {"exp": (exp, rx.Exp()), "cay": (cay, rx.Cayley())}[tau]

    def force(R):
        return np.cross(R.T @ np.array([0, 0, 1.0]), WEIGHT) if heavy else np.zeros(3)

    reduced = np.asarray(state.momentum)[:2]
    R, mu = as_printed(np.asarray(state.g), reduced, 0.1, s, function, np.array(FULL), force)
    end = step(rx.AdaptedLift(retraction, s), system, state, 0.1)
    assert np.max(np.abs(end.g - R)) < 2e-11  # measured: at most 3e-12, of the differences
    assert np.max(np.abs(end.momentum - mu)) < 2e-11


@pytest.mark.parametrize("make, end, between", [(heavy_suslov_body, 0.0, 0.5), (sleigh, 1.0, 0.25)])
def test_it_is_lagrange_d_alembert_at_both_ends_and_not_between(make, end, between):
    system, state = make()
    for s, equal in ((end, True), (between, False)):
        ours = step(rx.AdaptedLift(rx.Cayley(), s), system, state, 0.1)
        other = step(rx.LagrangeDAlembert(rx.Cayley(), s), system, state, 0.1)
        apart = float(jnp.max(jnp.abs(ours.momentum - other.momentum)))
        assert apart < 2e-15 if equal else apart > 5e-6


def test_without_a_constraint_it_is_the_cotangent_lift():
    system, state = asymmetric_top()
    ours = step(rx.AdaptedLift(rx.Cayley(), 0.3), system, state, 0.2)
    free = step(rx.CotangentLift(rx.Cayley(), 0.3), system, state, 0.2)
    assert np.max(np.abs(ours.g - free.g)) < 4e-15
    assert np.max(np.abs(ours.momentum - free.momentum)) < 4e-15


def test_the_adjoint_of_s_is_one_minus_s():
    system, state = heavy_suslov_body()
    there = step(rx.AdaptedLift(s=0.25), system, state, 0.2)
    back = step(rx.AdaptedLift(s=0.75), system, there, -0.2)
    assert np.max(np.abs(back.momentum - state.momentum)) < 8e-15


@pytest.mark.parametrize(
    "title, s, order",
    [("Suslov body", 0.25, 2), ("heavy Suslov body", 0.25, 1), ("heavy Suslov body", 0.5, 2)],
)
def test_orders(title, s, order):
    method, problem = rx.AdaptedLift(s=s), constrained_problem(title)
    assert method.order_on(problem.system) == order
    check_order(method, problem)


def test_kharlamovas_momentum_is_kept_and_constraints_that_depend_on_g_are_refused():
    kharlamova = constrained_problem("Kharlamova's body")
    kept = measurements.conservation(rx.AdaptedLift(rx.Cayley(), s=0.25), kharlamova)
    assert kept.momentum < 1e-13
    with pytest.raises(rx.errors.BadInput, match="AdaptedLift needs admissible velocities"):
        rx.AdaptedLift().check(constrained_problem("Veselova's body").system)
