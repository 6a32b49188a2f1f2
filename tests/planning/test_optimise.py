"""Plans against closed forms, symmetries, driven runs and each other."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from craft import SO3, rest_to_rest, spacecraft, turned

import retrax as rx
from retrax.planning.kernels import programs
from retrax.planning.solve import Solver, Start


@pytest.fixture(scope="module")
def slew():
    return rx.optimise(rest_to_rest(spacecraft(), (0.7, 1.1, -0.8)))


def test_one_axis_has_the_closed_form_to_second_order():
    inertia, theta, T = 2.2, 0.9, 2.0
    exact = 6 * inertia**2 * theta**2 / T**3
    errors = []
    for steps in (20, 40):
        problem = rest_to_rest(spacecraft(), (0.0, theta, 0.0), duration=T, steps=steps)
        plan = rx.optimise(problem)
        errors.append(plan.cost - exact)
        middle = (plan.t[:-1] + plan.t[1:]) / 2
        u = 6 * inertia * theta / T**2 * (1 - 2 * middle / T)
        assert np.abs(plan.controls[:, 1] - u).max() < 30 / steps**2
        assert np.abs(plan.controls[:, [0, 2]]).max() < 1e-12
    assert np.log2(errors[0] / errors[1]) == pytest.approx(2.0, abs=0.02)


def test_costates_are_constant_in_space(slew):
    assert slew.status == "minimum"
    assert slew.invariant is not None
    assert slew.invariant < 1e-13
    assert slew.residuals["stationarity"] < 1e-12
    assert slew.largest_defect < 1e-13


def test_costates_are_what_the_end_is_worth(slew):
    """The multiplier of the end is the slope of the cost in the target."""
    e = 1e-4
    costs = []
    for sign in (1, -1):
        pose = turned(0.7, 1.1, -0.8) @ turned(0.0, sign * e, 0.0)
        end = rx.Reach(pose, velocity=jnp.zeros(3))
        problem = rest_to_rest(spacecraft(), (0.0, 0.0, 0.0), end=end)
        costs.append(rx.optimise(problem).cost)
    slope = (costs[0] - costs[1]) / (2 * e)
    assert -slew.multipliers["end"][1] == pytest.approx(slope, rel=1e-6)


def test_a_driven_run_follows_the_plan(slew):
    problem = slew.problem
    run = rx.simulate(
        problem.plant, problem.integrator, problem.start, h=slew.h, steps=40, control=slew.signal()
    )
    assert np.abs(np.asarray(run.g) - slew.states.g).max() < 1e-12
    assert np.abs(np.asarray(run.momentum) - slew.states.momentum).max() < 1e-12
    assert np.abs(slew.states.g[-1] - turned(0.7, 1.1, -0.8)).max() < 1e-14


def test_no_small_change_of_the_inputs_is_better(slew):
    """Against NumPy: changes of inputs that keep the end cost more, to second order."""
    problem = slew.problem
    rng = np.random.default_rng(1)

    @jax.jit
    def ends(u):
        def step(x, u):
            state = rx.State(*x, jnp.zeros(()), u)
            new, _ = problem.model.step.step(problem.system, state, jnp.asarray(slew.h))
            return (new.g, new.momentum), None

        (g, mu), _ = jax.lax.scan(
            step, tuple(map(jnp.asarray, (problem.start.g, problem.start.momentum))), u
        )
        return jnp.concatenate([SO3.log(turned(0.7, 1.1, -0.8).T @ g), mu])

    slope = jax.jit(jax.jacfwd(ends))(slew.controls).reshape(6, -1)
    for _ in range(3):
        u = slew.controls.ravel() + 0.02 * rng.normal(size=slew.controls.size)
        for _ in range(8):
            u = u - np.linalg.pinv(slope) @ np.asarray(ends(u.reshape(-1, 3)))
        assert np.abs(ends(u.reshape(-1, 3))).max() < 1e-12
        assert slew.h * u @ u / 2 > slew.cost + 1e-6


def test_machine_code_and_xla_find_the_same_plan(slew):
    solver = Solver(slew.problem, programs(slew.problem.model, native=False), 30)
    found = solver.from_ways(Start.of(slew.problem.start), np.zeros((3, 1)), 40)
    assert found.converged[0]
    assert np.abs(found.nodes[..., 0] - slew.numbers[0]).max() < 1e-11
    assert np.abs(found.stages[..., 0] - slew.numbers[1]).max() < 1e-9


def test_half_turns_are_no_obstacle():
    plant = spacecraft()
    rng = np.random.default_rng(2)
    axes = rng.normal(size=(12, 3))
    axes = np.concatenate([axes / np.linalg.norm(axes, axis=1)[:, None], np.eye(3), -np.eye(3)])
    angles = np.concatenate([np.linspace(0.1, 1.0, 12) * np.pi, np.full(6, np.pi)])
    angles[6:12] = np.pi
    starts = jax.vmap(lambda v: plant.state(SO3.exp(v), velocity=jnp.zeros(3)))(
        jnp.asarray(axes * angles[:, None])
    )
    plans = rx.optimise(rest_to_rest(plant, (0.0, 0.0, 0.0)), starts=starts)
    assert (plans.status == "minimum").all()
    assert float(plans.end_miss.max()) < 1e-12


def test_members_are_the_plans_of_their_starts(slew):
    plant = slew.problem.plant
    starts = jax.vmap(lambda v: plant.state(SO3.exp(v), velocity=v))(
        jnp.array([[0.0, 0.0, 0.0], [0.3, -0.2, 0.1], [1.0, 0.5, -2.0]])
    )
    plans = rx.optimise(slew.problem, starts=starts)
    assert float(plans.cost[0]) == pytest.approx(slew.cost, rel=1e-12)
    alone = rx.optimise(
        rest_to_rest(
            plant,
            (0.7, 1.1, -0.8),
            start=plant.state(turned(1.0, 0.5, -2.0), velocity=jnp.array([1.0, 0.5, -2.0])),
        )
    )
    assert float(plans.cost[2]) == pytest.approx(alone.cost, rel=1e-11)
    assert np.abs(plans.control.values[:, 2] - alone.controls).max() < 1e-9


def test_a_sphere_turns_faster_than_about_its_axis():
    ball = spacecraft((1.0, 1.0, 1.0))
    problem = rest_to_rest(
        ball, (0.0, 0.0, np.pi), duration=rx.Free(4.0), cost=rx.MinimumTime(), bounds=(-1.0, 1.0)
    )
    plan = rx.optimise(problem)
    assert plan.T < 3.26 < 2 * np.sqrt(np.pi)
    assert np.abs(plan.controls).max() <= 1.0
    assert plan.cost == pytest.approx(plan.T, rel=1e-14)
    assert plan.invariant is not None
    assert plan.invariant < 1e-12
    # Inputs push where their bounds are worth something, and only there.
    for bound, at in (("lower", -1.0), ("upper", 1.0)):
        worth = plan.multipliers[bound]
        active = worth > 1e-4 * worth.max()
        assert np.abs(plan.controls[active] - at).max() < 1e-4


def test_the_time_of_one_axis_is_that_of_full_thrust():
    plant = rx.Actuated(rx.MechanicalSystem(rx.Translation(1), [2.0], lambda x: 0.0), [[1.0]])
    start = plant.state(jnp.zeros(1), velocity=jnp.zeros(1))
    problem = rx.ControlProblem(
        plant, rx.LieVerlet(), start=start, end=rx.Reach(jnp.array([3.0]), velocity=jnp.zeros(1)),
        duration=rx.Free(10.0), steps=50, cost=rx.MinimumTime(), bounds=(-1.5, 1.5),
    )  # fmt: skip
    plan = rx.optimise(problem)
    assert pytest.approx(2 * np.sqrt(2.0 * 3.0 / 1.5), rel=1e-7) == plan.T


def test_bounds_of_a_free_duration_hold():
    free = rx.Free(2.0, lower=1.0, upper=2.5)
    plan = rx.optimise(rest_to_rest(spacecraft(), (0.7, 1.1, -0.8), duration=free))
    longest = rx.optimise(rest_to_rest(spacecraft(), (0.7, 1.1, -0.8), duration=2.5))
    assert pytest.approx(2.5, rel=1e-6) == plan.T
    assert plan.cost == pytest.approx(longest.cost, rel=1e-6)


def test_a_bound_on_the_speed_holds():
    problem = rest_to_rest(
        spacecraft(), (0.7, 1.1, -0.8), path=lambda g, xi, u: 1.3**2 - xi @ xi, steps=60
    )
    plan = rx.optimise(problem)
    free = rx.optimise(rest_to_rest(spacecraft(), (0.7, 1.1, -0.8), steps=60))
    speeds = np.linalg.norm(plan.states.momentum / np.array([1.4, 2.2, 3.1]), axis=1)
    assert speeds[:-1].max() <= 1.3 + 1e-9
    assert plan.cost > free.cost
    assert (plan.multipliers["path"] * plan.path).max() < 1e-6 * plan.cost


def test_an_axis_may_end_upright_at_any_heading():
    plant = spacecraft()
    start = plant.state(turned(0.5, 1.0, 0.2), velocity=jnp.array([0.1, 0.0, 0.3]))
    end = rx.Reach(axis=[0.0, 0.0, 1.0], velocity=jnp.zeros(3))
    plan = rx.optimise(rest_to_rest(plant, (0.0, 0.0, 0.0), start=start, end=end))
    assert np.abs(plan.states.g[-1][:, 2] - [0, 0, 1]).max() < 1e-12
    assert np.abs(plan.states.momentum[-1]).max() < 1e-12
    fixed = rx.optimise(
        rest_to_rest(
            plant, (0, 0, 0), start=start, end=rx.Reach(plan.states.g[-1], velocity=jnp.zeros(3))
        )
    )
    assert fixed.cost == pytest.approx(plan.cost, rel=1e-9)
    other = turned(0.0, 0.0, 0.2) @ plan.states.g[-1]
    worse = rx.optimise(
        rest_to_rest(plant, (0, 0, 0), start=start, end=rx.Reach(other, velocity=jnp.zeros(3)))
    )
    assert worse.cost > plan.cost


def test_a_function_and_a_final_cost_make_an_end():
    plant = spacecraft()
    psi = rx.optimise(
        rest_to_rest(plant, (0, 0, 0), end=lambda g, mu: jnp.stack([g[0, 1] - 0.3, mu[0] - 0.2]))
    )
    assert psi.states.g[-1][0, 1] == pytest.approx(0.3, abs=1e-12)
    assert psi.states.momentum[-1][0] == pytest.approx(0.2, abs=1e-12)
    pulled = rx.optimise(
        rest_to_rest(plant, (0, 0, 0), end=None, final_cost=lambda g, mu: -3.0 * g[0, 1] + mu @ mu)
    )
    assert pulled.status == "minimum"
    assert pulled.states.g[-1][0, 1] > 0.1
    assert pulled.cost < 0.0


def test_a_plan_is_a_guess_for_finer_steps(slew):
    finer = rx.optimise(rest_to_rest(spacecraft(), (0.7, 1.1, -0.8), steps=120, guess=slew))
    direct = rx.optimise(rest_to_rest(spacecraft(), (0.7, 1.1, -0.8), steps=120))
    assert finer.cost == pytest.approx(direct.cost, rel=1e-11)


def test_summary_tells_what_people_need(slew):
    text = slew.summary()
    for word in ("minimum", "cost", "duration", "iterations", "defects", "missed", "costates"):
        assert word in text
    told = slew.measures()
    assert told["cost"] == slew.cost
    assert told["costate drift"] == slew.invariant
