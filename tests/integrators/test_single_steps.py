"""One step of each kind: where it ends, at what time, and what it says of itself.

Orders are read off from ends that approach each other, claims from maps that may be maps of
another system; these tests hold single steps against the motion itself.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import retrax as rx
from retrax.integrators import hamel_midpoint
from retrax.integrators.base import StepInfo, worse
from retrax.integrators.kahan import pole_refusal
from retrax.integrators.lifted import LiftedMap, require_base_point
from retrax.integrators.rkmk import momentum_error
from retrax.numerics.compositions import fractions
from retrax.testing.problems import asymmetric_top, forced_top, gyroscopic_body, quartic_body

H = jnp.asarray(0.02)


@pytest.mark.parametrize(
    "problem, method, bound",
    [
        (forced_top, rx.LieVerlet(), 3e-5),
        (gyroscopic_body, rx.LieVerlet(), 1e-5),
        (forced_top, rx.CotangentLift(), 6e-6),
        (quartic_body, rx.CotangentLift(), 6e-6),
        (forced_top, rx.DiscreteGradient(), 3e-6),
        (forced_top, rx.LagrangeDAlembert(), 6e-6),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_a_step_ends_where_the_motion_is(problem, method, bound):
    """Against Runge-Kutta of order 5, whose error is below 3e-13; bounds are twice the measured."""
    system, state = problem()
    exact, _ = rx.RKMK("dopri5").step(system, state, H)
    end, info = method.step(system, state, H)
    error = max(np.max(np.abs(end.g - exact.g)), np.max(np.abs(end.momentum - exact.momentum)))
    assert error < bound
    np.testing.assert_allclose(end.t, float(state.t) + 0.02, rtol=1e-15)
    turn = np.max(np.abs(system.group.log(state.g.T @ end.g)))
    np.testing.assert_allclose(info.increment, turn, rtol=3e-4)  # of h xi; measured 8e-5


def test_the_time_of_an_explicit_step_is_that_of_its_end():
    top = rx.systems.EulerTop([1.0, 2.0, 3.0])
    start = rx.State(jnp.ones(3), top.at(jnp.ones(3)).momentum, jnp.asarray(0.3))
    assert float(rx.Kahan().step(top, start, H)[0].t) == pytest.approx(0.32, rel=1e-15)
    system, state = forced_top()
    assert float(rx.RKMK("rk4").step(system, state, H)[0].t) == pytest.approx(0.32, rel=1e-15)


def test_the_error_that_rkmk_finds_is_of_order_5_with_a_force_that_knows_the_time():
    system, state = forced_top()
    method = rx.RKMK("dopri5")
    errors = [float(method.step_with_error(system, state, jnp.asarray(h))[2]) for h in (0.1, 0.05)]
    assert abs(np.log2(errors[0] / errors[1]) - 5) < 0.3, errors  # measured 5.15
    end, _ = method.step(system, state, jnp.asarray(0.1))
    finer = state
    for _ in range(4):
        finer, _ = method.step(system, finer, jnp.asarray(0.025))
    assert errors[0] > np.max(np.abs(end.momentum - finer.momentum))


def test_the_error_of_a_momentum_is_relative_only_to_large_ones():
    large, small = jnp.array([3.0, -4.0]), jnp.array([0.3, -0.4])
    assert float(momentum_error(large, large + 0.2)) == pytest.approx(0.05, rel=1e-14)
    assert float(momentum_error(small, small + 0.2)) == pytest.approx(0.2, rel=1e-14)


def test_a_split_step_kicks_by_halves_and_can_be_taken_back():
    inertia = rx.solids.box(1.0, (0.5, 0.7, 0.9), (0.3, -0.2, 0.4))
    system = rx.systems.StringPendulum(4.0, 0.8, 6.0, 3, 1.0, [0.3, -0.2, 0.4], inertia, 1.3)
    rng = np.random.default_rng(2)
    g = (
        jnp.asarray([[0.2, 0.1, 1.5], [0.3, -0.4, 3.0], [-0.1, 0.2, 4.6]]),
        rx.SO3().exp(jnp.asarray([0.7, -0.4, 0.2])),
    )
    state = system.state(g, velocity=0.3 * rng.standard_normal(system.group.dim))
    step = jax.jit(lambda state, h: rx.LieVerlet().step(system, state, h)[0])
    rate = system.vector_field(state.g, state.momentum, state.t).momentum_rate
    near = step(state, 1e-5)
    kicked = (near.momentum - state.momentum) / 1e-5
    np.testing.assert_allclose(kicked, rate, rtol=0, atol=1e-4)  # measured 1.4e-5
    back = step(step(state, 0.1), -0.1)
    np.testing.assert_allclose(back.momentum, state.momentum, rtol=0, atol=1e-15)
    np.testing.assert_allclose(back.g[0], state.g[0], rtol=0, atol=1e-15)


@pytest.mark.parametrize("kind", [rx.CotangentLift, rx.LagrangeDAlembert])
def test_only_the_base_point_in_the_middle_is_symmetric_and_of_order_2(kind):
    middle, aside = kind(s=0.5), kind(s=0.3)
    assert (middle.order, aside.order) == (2, 1)
    assert middle.preserves - aside.preserves == {"symmetric"}
    assert {"group", "momentum"} <= aside.preserves


def test_base_points_lie_in_the_step():
    assert [require_base_point(s) for s in (0, 0.5, np.array(1.0))] == [0.0, 0.5, 1.0]
    for s in (-0.1, 1.5, "1", None):
        with pytest.raises(rx.BadInput, match="not between 0 and 1"):
            require_base_point(s)


def test_the_lifted_map_with_its_base_at_the_end():
    group, tau = rx.SO3(), rx.Exp()
    g, mu, x = jnp.eye(3), jnp.array([0.4, -0.2, 0.9]), jnp.array([0.3, -0.7, 0.5])
    turned = group.exp(x)
    base, carried = LiftedMap(group, tau, 1.0).base(g, mu, x)
    np.testing.assert_allclose(base, turned, atol=1e-15)
    np.testing.assert_allclose(carried, turned.T @ mu, atol=1e-15)
    end, moved = LiftedMap(group, tau, 1.0).end(turned, mu, x)
    np.testing.assert_allclose(end, turned, atol=1e-15)
    np.testing.assert_allclose(moved, mu, atol=1e-15)


def test_the_chart_of_a_step_is_that_of_its_length():
    """A velocity of 3 in steps of 0.02 turns by 0.06, about one axis: well within `Exp`."""
    system = rx.systems.FreeRigidBody([1.0, 1.7, 2.3])
    state = system.state(jnp.eye(3), momentum=[3.0, 0.0, 0.0])
    for method in (rx.CotangentLift(rx.Exp()), rx.LieVerlet(rx.Exp())):
        _, info = method.step(system, state, H)
        assert bool(info.in_chart) and bool(info.converged)


def test_compositions_take_symmetric_steps_of_order_2_and_lose_the_energy(monkeypatch):
    with pytest.raises(rx.BadInput, match="cannot be composed"):
        rx.Composition(rx.Composition(rx.LieVerlet(), 4), 4)
    base = rx.DiscreteGradient()
    assert base.preserves - rx.Composition(base, 4).preserves == {"energy"}
    seen = []
    monkeypatch.setattr(rx.LieVerlet, "check_step", lambda self, system, state, h: seen.append(h))
    system, state = asymmetric_top()
    rx.Composition(rx.LieVerlet(), 4).check_step(system, state, 0.2)
    assert seen == [pytest.approx(0.2 * max(map(abs, fractions(4))), rel=1e-15)]


def test_what_a_step_of_kahan_says_of_its_determinant():
    top = rx.systems.EulerTop([1.0, 2.0, 3.0])
    start = top.at(jnp.ones(3))
    outside, pole = (pole_refusal(rx.Kahan(), top, start, 9.0, d) for d in (0.5, -0.5))
    assert "no pole was crossed" in outside.why and "pole was crossed" in pole.what
    assert outside.h == pole.h == 4.5


def test_the_terms_that_cancel_in_a_discrete_gradient_are_counted(monkeypatch):
    r"""The scale of its equation is $|V|\,|\mu|/\langle\mu, \xi\rangle$ where that is large."""
    seen = []
    step = hamel_midpoint.hamel_step

    def spied(*arguments):
        seen.append(float(arguments[-1]))
        return step(*arguments)

    monkeypatch.setattr(hamel_midpoint, "hamel_step", spied)
    moments = np.array([1.0, 2.0, 2.5])
    system = rx.MechanicalSystem(rx.SO3(), moments, lambda R: 1e6 + 0.3 * R[2, 0])
    velocity = np.array([0.02, -0.03, 0.01])
    state = system.state(jnp.eye(3), velocity=velocity)
    _, info = rx.DiscreteGradient().step(system, state, H)
    mu = moments * velocity
    np.testing.assert_allclose(seen, [1e6 * np.max(np.abs(mu)) / (mu @ velocity)], rtol=1e-6)
    assert bool(info.converged)


def test_a_composed_step_is_as_good_as_the_worst_of_its_steps():
    good = StepInfo(*map(jnp.asarray, (True, 1e-16, 3, 0.1, True)))
    bad = StepInfo(*map(jnp.asarray, (False, 1e-3, 25, 0.2, False)))
    for pair in ((good, bad), (bad, good)):
        assert [float(part) for part in worse(*pair)] == [0.0, 1e-3, 28.0, 0.2, 0.0]
    top = rx.systems.EulerTop([1.0, 2.0, 3.0])
    _, info = rx.Composition(rx.Kahan(), 4).step(top, top.at(jnp.ones(3)), H)
    assert int(info.iterations) == 0 and bool(info.converged)
