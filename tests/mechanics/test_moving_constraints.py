"""Constraints A(g, t) xi = c(g, t) against SciPy on equations written by hand."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.tree_util import Partial
from moving_constraints import (
    START,
    TIME,
    ball_on_a_wobbling_table,
    driven_body,
    driven_body_end,
    driven_body_equations,
    wobbling_table_place,
)

import retrax as rx

SO3 = rx.SO3()


def error(method, steps):
    system, state = driven_body()
    run = rx.simulate(system, method, state, h=TIME / steps, steps=steps, progress=False)
    ours = np.concatenate([run.g[-1].ravel(), run.velocity[-1]])
    return float(np.max(np.abs(ours - driven_body_end()))), float(run.constraint_violation().max())


# The last column is the velocity across the constraint, measured, at the finer step.
METHODS = [
    (rx.LagrangeDAlembert(), 2, 2e-15),
    (rx.DiscreteGradient(), 2, 2e-15),
    (rx.RKMK("rk4"), 4, 2e-8),
    (rx.Collocation(rx.gauss(2)), 4, 7e-9),
    pytest.param(rx.LagrangeDAlembert(s=0.0), 1, 2e-15, marks=pytest.mark.campaign),
    pytest.param(rx.Composition(rx.LagrangeDAlembert(), 4), 4, 2e-15, marks=pytest.mark.campaign),
    pytest.param(rx.Composition(rx.DiscreteGradient(), 4), 4, 2e-15, marks=pytest.mark.campaign),
    pytest.param(rx.TangentLift(), 2, 2e-4, marks=pytest.mark.campaign),
    pytest.param(rx.Magnus(4), 4, 6e-9, marks=pytest.mark.campaign),
    pytest.param(rx.PlainCollocation(rx.gauss(2)), 4, 6e-9, marks=pytest.mark.campaign),
]


@pytest.mark.parametrize("method, order, across", METHODS)
def test_order_and_violation_under_a_constraint_that_moves(method, order, across):
    coarse, _ = error(method, 40)
    fine, violation = error(method, 80)
    assert np.log2(coarse / fine) == pytest.approx(order, abs=0.06)
    assert violation < 3 * across
    assert method.order_on(driven_body()[0]) == order


def test_multipliers_and_power_of_a_constraint_that_moves():
    system, state = driven_body()
    xi = system.velocity_at(state)
    y = np.concatenate([np.asarray(state.g).ravel(), np.asarray(xi)])
    rates, lam = driven_body_equations(START, y)
    assert float(system.multipliers(state)[0]) == pytest.approx(lam, abs=1e-15)
    rate = system.vector_field(state.g, state.momentum, state.t).momentum_rate
    np.testing.assert_allclose(system.velocity(state.g, rate), rates[9:], atol=1e-15)
    # The reaction works: its power is lambda . c, not zero.
    power = float(system.multipliers(state) @ system.constraint.offset(state.g, state.t))
    assert float(system.reaction(state) @ xi) == pytest.approx(power, rel=1e-14)
    assert abs(power) > 0.1


def test_the_energy_of_the_discrete_gradient_changes_by_the_work_of_the_reaction():
    system, state = driven_body()
    method, h = rx.DiscreteGradient(), jnp.asarray(0.1)
    done = jax.jit(method.full_step)(system, state, h)
    middle = SO3.compose(state.g, SO3.exp(h / 2 * done.xi))
    work = done.impulse @ system.constraint.offset(middle, state.t + h / 2)
    gained = system.energy(done.state) - system.energy(state)
    assert float(gained) == pytest.approx(float(work), abs=2e-15)
    assert abs(float(work)) > 1e-3


def test_a_ball_on_a_table_whose_rate_changes():
    system, state = ball_on_a_wobbling_table()
    method = rx.Composition(rx.LagrangeDAlembert(), order=6)
    run = rx.simulate(system, method, state, h=0.1, steps=30, progress=False)
    v = np.asarray(system.velocity_at(state))[3:]
    exact = wobbling_table_place(np.asarray(state.g[1]), v, 3.0)
    assert np.max(np.abs(run.g[1][-1] - exact)) < 3e-11  # measured: 5e-12
    assert run.constraint_violation().max() < 1e-15


def test_states_are_checked_at_their_own_time():
    system, state = driven_body()
    xi = system.velocity_at(state)
    assert system.state(state.g, velocity=xi, t=START).t == START
    with pytest.raises(rx.BadInput, match=r"breaks the constraint .* at t = 0.8 s: max"):
        system.state(state.g, velocity=xi, t=0.8)
    blinking = rx.VelocityConstraint(lambda R, t: jnp.sin(t) * R[2:])
    body = rx.MechanicalSystem(SO3, [1.0, 2.0, 2.5], constraint=blinking)
    with pytest.raises(rx.BadInput, match=r"loses rank at this g at t = 0 s"):
        body.state(jnp.eye(3), velocity=[0.0, 0.0, 0.0])


def test_a_run_in_two_pieces_and_an_ensemble_are_the_run():
    system, state = driven_body()
    method = rx.LagrangeDAlembert()
    whole = rx.simulate(system, method, state, h=0.05, steps=40, progress=False)
    half = rx.simulate(system, method, state, h=0.05, steps=20, progress=False)
    rest = rx.simulate(
        system, method, jax.tree.map(jnp.asarray, half.final), h=0.05, steps=20, progress=False
    )
    assert np.max(np.abs(rest.momentum[-1] - whole.momentum[-1])) < 1e-14
    both = jax.tree.map(lambda *x: jnp.stack(x), state, jax.tree.map(jnp.asarray, half.final))
    crowd = rx.ensemble(system, method, both, h=0.05, steps=20, progress=False)
    ends = crowd["momentum"].values[-1]
    for k, run in enumerate((half, rest)):
        assert np.max(np.abs(ends[k] - run.momentum[-1])) < 1e-14


def test_native_and_xla_agree_under_a_constraint_that_moves():
    system, state = driven_body()
    ends = [
        rx.simulate(
            system, rx.DiscreteGradient(), state, h=0.1, steps=20, backend=b, progress=False
        ).momentum[-1]
        for b in ("native", "xla")
    ]
    assert np.max(np.abs(ends[0] - ends[1])) < 2e-14


class Rudder:
    """A callable object: its method has `self`, a configuration and the time."""

    def __call__(self, R, t):
        return jnp.cos(t) * R[2:]


@pytest.mark.parametrize(
    "A, c, moving",
    [
        (lambda R: R[2:], None, False),
        (lambda R, scale=2.0: scale * R[2:], None, False),
        (lambda R, t=0.0: (1 + t) * R[2:], None, True),
        (Rudder(), None, True),
        (Partial(lambda k, R, t: k * t * R[2:], jnp.asarray(2.0)), None, True),
        ([[0.0, 0.1, 1.0]], None, False),
        ([[0.0, 0.1, 1.0]], [0.2], False),
        ([[0.0, 0.1, 1.0]], lambda R, t: jnp.sin(t)[None], True),
        (lambda R: R[2:], [0.2], False),
    ],
)
def test_the_signature_says_whether_a_constraint_depends_on_time(A, c, moving):
    constraint = rx.VelocityConstraint(A, c)
    assert constraint.moving == moving
    body = rx.MechanicalSystem(SO3, [1.0, 2.0, 2.5], constraint=constraint)
    state = body.state(SO3.exp(jnp.array([0.4, 0.2, 0.1])), velocity=[1, 2, 3], t=0.7, project=True)
    assert float(body.constraint_violation(state)) < 4e-15


@pytest.mark.parametrize(
    "make, sentence",
    [
        (lambda: rx.VelocityConstraint(lambda g, t, k: g), r"takes the arguments g, t, k, but"),
        (lambda: rx.VelocityConstraint([[0, 0, 1.0], [0, 0, 2.0]]), "has dependent rows"),
        (lambda: rx.VelocityConstraint([[0, 0, 1.0]], [1.0, 2.0]), r"c has shape \(2,\)"),
    ],
)
def test_constraints_that_cannot_be_are_refused(make, sentence):
    with pytest.raises(rx.BadInput, match=sentence):
        make()


def test_methods_that_need_one_frame_refuse_a_constraint_that_moves():
    system, _ = driven_body()
    with pytest.raises(rx.BadInput, match="depend on time; use LagrangeDAlembert"):
        rx.ProjectedLift().check(system)
    for method in (rx.LieVerlet(), rx.CotangentLift(), rx.GalerkinVariational(rx.gauss(2))):
        with pytest.raises(rx.BadInput, match="knows no constraints"):
            method.check(system)


def test_constant_rows_are_a_distribution():
    rows = rx.VelocityConstraint([[0.2, -0.3, 1.0]])
    ends = []
    for constraint in (rows, rows.distribution):
        body = rx.MechanicalSystem(SO3, [1.0, 2.0, 2.5], constraint=constraint)
        state = body.state(jnp.eye(3), velocity=[1.0, 0.5, 0.0], project=True)
        ends.append(jax.jit(rx.HamelMidpoint().step)(body, state, jnp.asarray(0.1))[0].momentum)
    assert np.max(np.abs(ends[0] - ends[1])) < 2e-15
    body = rx.MechanicalSystem(SO3, [1.0, 2.0, 2.5], constraint=rows)
    with pytest.raises(rx.BadInput, match=r"write the constant rows .* as constraint=Distribution"):
        rx.ProjectedLift().check(body)


def test_members_may_differ_in_constant_rows():
    bodies = [
        rx.MechanicalSystem(SO3, [1.0, 2.0, 2.5], constraint=rx.VelocityConstraint([[k, -0.3, 1]]))
        for k in (0.2, 0.4)
    ]
    states = [b.state(jnp.eye(3), velocity=[1.0, 0.5, 0.0], project=True) for b in bodies]
    both = jax.tree.map(lambda *x: jnp.stack(x), *states)
    crowd = rx.ensemble(bodies, rx.HamelMidpoint(), both, h=0.1, steps=3, progress=False)
    xi = crowd["momentum"].values[-1] / np.array([1.0, 2.0, 2.5])
    for k, v in zip((0.2, 0.4), xi, strict=True):
        assert abs(np.array([k, -0.3, 1.0]) @ v) < 1e-15
