"""Taylor's method: its order against other methods, its members, its errors, its refusals."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import retrax as rx
from retrax.engine.step_program import signature, step_program
from retrax.testing.measurements import derivative_error
from retrax.testing.problems import PROBLEMS
from retrax_papers.bench.problems import PENDULUM_AT_30, W2, attitude_error

TOP = rx.systems.HeavyTop([1.0, 2.0, 2.5], mass=1.0, arm=[0.2, -0.1, 0.4])


def end(system, integrator, state, time, steps, **options):
    h = time / steps
    run = rx.simulate(
        system, integrator, state, h=h, steps=steps, save_every=steps, progress=False, **options
    )
    last = run.final
    return np.concatenate([np.ravel(x) for x in (*jax.tree.leaves(last.g), last.momentum)])


@pytest.mark.parametrize("order, h", [(4, 0.1), (8, 0.5), (16, 0.9)])
def test_the_order_on_a_symmetric_body(order, h):
    """Its motion is a turn in space and one about its axis: R(t) = exp(t m/a) R exp(t b e3)."""
    a, c = 1.3, 2.1
    body = rx.systems.FreeRigidBody([a, a, c])
    start = rx.SO3().exp(jnp.array([0.4, -0.3, 0.7]))
    mu = np.array([1.1, -0.8, 1.9])
    turn, spin = np.asarray(start) @ mu / a, np.array([0.0, 0.0, (1 / c - 1 / a) * mu[2]])
    state = body.state(start, momentum=mu)

    def error(h):
        exact = rx.SO3().exp(jnp.asarray(h * turn)) @ start @ rx.SO3().exp(jnp.asarray(h * spin))
        return np.linalg.norm(end(body, rx.Taylor(order), state, h, 1)[:9] - np.ravel(exact))

    errors = error(h), error(0.8 * h)
    assert errors[1] > 1e-12  # far from rounding
    # In one step it falls as h^(p + 1). Measured: 5.004, 9.016, 17.018.
    assert abs(np.log(errors[0] / errors[1]) / np.log(1 / 0.8) - order - 1) < 0.1, errors


@pytest.mark.parametrize("order, coarse, fine", [(4, 160, 320), (8, 40, 60)])
def test_the_order_under_forces_that_depend_on_time(order, coarse, fine):
    """Against collocation with ten nodes."""
    system, state = PROBLEMS["forced top"]()
    exact = end(system, rx.Collocation(rx.gauss(10)), state, 4.0, 40)
    ends = [end(system, rx.Taylor(order), state, 4.0, n) for n in (coarse, fine)]
    errors = [np.max(np.abs(x - exact)) for x in ends]
    assert errors[1] > 1e-12
    seen = np.log(errors[0] / errors[1]) / np.log(fine / coarse)
    assert abs(seen - order) < 0.4, errors  # measured: 4.03, 7.71


@pytest.mark.parametrize("order, steps, allowed", [(8, 600, 3e-11), (13, 256, 1e-12)])
def test_the_pendulum_of_sixty_six_digits(order, steps, allowed):
    g = end(W2.system(), rx.Taylor(order), W2.start(), W2.end, steps)[:9].reshape(3, 3)
    assert attitude_error(g, PENDULUM_AT_30) < allowed  # measured: 1.5e-11, 2.4e-13


@pytest.mark.parametrize("problem", ["gyroscopic body", "quartic body", "body on a cart"])
def test_other_kinds_of_systems(problem):
    """A Lagrangian whose velocity is the solution of equations, a Hamiltonian, a product."""
    system, state = PROBLEMS[problem]()
    exact = end(system, rx.Collocation(rx.gauss(6)), state, 1.0, 20)
    found = end(system, rx.Taylor(12), state, 1.0, 20)
    assert np.max(np.abs(found - exact)) < 2e-15  # measured: 2e-16


def test_native_is_xla():
    system, state = PROBLEMS["forced top"]()
    native = end(system, rx.Taylor(6), state, 1.0, 10, backend="native")
    xla = end(system, rx.Taylor(6), state, 1.0, 10, backend="xla")
    assert np.max(np.abs(native - xla)) < 2e-15  # measured: 2e-16


@pytest.mark.parametrize("problem", ["asymmetric top", "gyroscopic body"])
def test_a_run_has_derivatives(problem):
    # Measured: 1e-12, the accuracy of the difference quotient.
    assert derivative_error(rx.Taylor(4), *PROBLEMS[problem](), h=0.05) < 1e-11


def test_members_move_as_single_bodies_do():
    rng = np.random.default_rng(5)
    velocities = rng.normal(size=(9, 3))
    turns = jax.vmap(TOP.group.exp)(jnp.asarray(rng.normal(size=(9, 3))))
    states = [TOP.state(turns[k], velocity=velocities[k]) for k in range(9)]
    together = jax.tree.map(lambda *leaves: jnp.stack(leaves), *states)
    for method in (rx.Taylor(10), rx.Adaptive(rx.Taylor(10), tolerance=1e-9)):
        data = rx.ensemble(TOP, method, together, h=0.2, steps=10, save_every=10, progress=False)
        assert data.attrs["provenance_backend"] == "native"
        for k in (0, 4, 8):
            alone = end(TOP, method, states[k], 2.0, 10)
            found = np.concatenate(
                [np.ravel(data[name].isel(time=-1)[k]) for name in ("g", "momentum")]
            )
            assert np.max(np.abs(found - alone)) < 5e-15, method


@pytest.mark.parametrize("order", [5, 12])
def test_the_error_of_an_adaptive_run_follows_the_tolerance(order):
    system, state = W2.system(), W2.start()
    errors = []
    for tolerance in (1e-6, 1e-9):
        method = rx.Adaptive(rx.Taylor(order), tolerance)
        g = end(system, method, state, W2.end, 1)[:9].reshape(3, 3)
        errors.append(float(attitude_error(g, PENDULUM_AT_30)) / tolerance)
    # Measured, in tolerances: 1.5 and 2.6 at order 5, 0.5 and 0.2 at order 12.
    assert all(0.05 < error < 10 for error in errors), errors


def on_a_line(**parts):
    return rx.MechanicalSystem(rx.Translation(1), [1.0], **parts)


@pytest.mark.parametrize("power, order", [(4, 6), (4, 7), (6, 9)])
def test_the_error_is_seen_where_terms_vanish_by_symmetry(power, order):
    """From the middle of x^4 / 4 the motion has the powers 1, 5, 9, ... of time alone."""
    system = on_a_line(potential=lambda x: x[0] ** power / power)
    state = system.state(np.zeros(1), velocity=[1.0])
    exact = end(system, rx.Taylor(20), state, 2.0, 40)
    ours = end(system, rx.Adaptive(rx.Taylor(order), 1e-10), state, 2.0, 2)
    assert np.abs(ours - exact).max() < 1e-10  # measured 2e-11 at most


def test_the_error_is_seen_where_a_force_changes_within_a_step():
    late = on_a_line(force=lambda x, v, t: jnp.where(t > 0.5, 1.0, 0.0) * jnp.ones(1))
    pushed = end(late, rx.Adaptive(rx.Taylor(6), 1e-8), late.state([0.0], velocity=[0.0]), 2.0, 1)
    assert pushed[-1] == pytest.approx(1.5, abs=3e-7)  # measured 3e-8
    kinked = on_a_line(potential=lambda x: jnp.abs(x[0]))
    start = kinked.state([1.0], velocity=[0.0])
    run = rx.simulate(kinked, rx.Adaptive(rx.Taylor(6), 1e-8), start, h=0.1, steps=60)
    assert np.abs(run.energy() - 1).max() < 2e-6  # measured 2e-7


@pytest.mark.parametrize(
    ("written", "whole"),
    [
        (lambda x: x[0] ** 2.0, lambda x: x[0] ** 2),
        (lambda x: x[0] ** 3.0, lambda x: x[0] ** 3),
        (lambda x: jnp.sum(x ** jnp.asarray(4.0)), lambda x: x[0] ** 4),
    ],
)
def test_a_whole_power_may_be_written_as_a_float(written, whole):
    """The series at x = 0 is that of a product, and the numbers are those of the whole power."""
    ends = []
    for potential in (written, whole):
        system = on_a_line(potential=potential)
        ends.append(end(system, rx.Taylor(6), system.state([0.0], velocity=[1.0]), 1.0, 10))
    assert ends[0] == pytest.approx(ends[1], rel=1e-14)


def test_only_two_rows_of_a_rotation_are_expanded():
    """Of a pendulum the potential reads the last row; the first follows from the others."""
    last, _ = step_program(*signature(W2.system(), rx.Taylor(8), W2.start()))
    first = rx.MechanicalSystem(rx.SO3(), W2.inertia, lambda R: -9.81 * R[0, 2])
    all_rows, _ = step_program(*signature(first, rx.Taylor(8), W2.start()))
    assert last.count() < 0.9 * all_rows.count()  # measured: 0.84


def test_products_that_differ_by_moments_of_inertia_are_shared():
    """Of Euler's equations mu1 (mu2/I2) - mu2 (mu1/I1) one product is expanded, not two."""
    program, _ = step_program(*signature(W2.system(), rx.Taylor(8), W2.start()))
    assert program.count() < 1650  # measured: 1576; two of each: 1720


@pytest.mark.parametrize(
    "group",
    [
        rx.SO2(), rx.SE2(), rx.SO3(), rx.SE3(), rx.SO(4), rx.Translation(2),
        rx.Product(rx.SE3(), rx.SO2()), rx.Power(rx.SO3(), 3),
    ],
    ids=repr,
)  # fmt: skip
def test_an_element_is_its_own_completion(group):
    g = group.random(jax.random.key(4))
    gaps = jax.tree.map(lambda a, b: jnp.max(jnp.abs(a - b)), g, group.fill_in(g))
    assert max(map(float, jax.tree.leaves(gaps))) < 1e-15


def test_half_a_turn_in_one_step_is_refused():
    body = rx.systems.FreeRigidBody([1.0, 2.0, 2.5])
    state = body.state(jnp.eye(3), velocity=[3.1, 0.0, 0.0])  # steadily about an axis
    with pytest.raises(rx.StepFailed, match="almost half a turn"):
        rx.simulate(body, rx.Taylor(20), state, h=1.0, steps=3, progress=False)
    run = rx.simulate(body, rx.Taylor(24), state, h=0.9, steps=3, progress=False)
    turned = rx.SO3().exp(jnp.array([3 * 0.9 * 3.1, 0.0, 0.0]))
    assert np.max(np.abs(np.asarray(run.final.g) - turned)) < 2e-13  # measured: 2e-14


def test_a_field_without_a_series_is_refused_by_name():
    def potential(R):
        return jnp.sort(R[2])[0]

    body = rx.MechanicalSystem(rx.SO3(), [1.0, 2.0, 2.5], potential, symmetry=np.zeros((0, 3)))
    state = body.state(rx.SO3().exp(jnp.array([0.3, 0.2, 0.1])), velocity=[0.3, 0.1, 0.0])
    with pytest.raises(rx.BadInput, match="uses 'sort', whose series is not known"):
        rx.simulate(body, rx.Taylor(4), state, h=0.01, steps=1, progress=False)


@pytest.mark.parametrize("order", [0, 41, 2.5, "4", True])
def test_orders_are_whole_numbers_up_to_forty(order):
    with pytest.raises(rx.BadInput, match="order"):
        rx.Taylor(order)
