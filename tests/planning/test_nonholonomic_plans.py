"""Plans for plants that cannot go everywhere at once."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from craft import SO3, turned

import retrax as rx

MASS, INERTIA = 1.3, 0.7
STEP, ROLL = rx.LagrangeDAlembert(), rx.LagrangeDAlembert(rx.Cayley())


def pose(x: float, y: float, heading: float) -> Any:
    c, s = np.cos(heading), np.sin(heading)
    return np.array([[c, -s], [s, c]]), np.array([x, y])


def parked(arm: float, there: Any, **changed: Any) -> rx.ControlProblem:
    plant = rx.systems.steered_sleigh(MASS, INERTIA, arm)
    options: dict[str, Any] = {
        "start": plant.state(pose(0.0, 0.0, 0.0), velocity=np.zeros(3)),
        "end": rx.Reach(there, velocity=np.zeros(3)),
        "duration": 3.0,
        "steps": 30,
        "cost": rx.MinimumEffort(),
    } | changed
    return rx.ControlProblem(plant, STEP, **options)


@pytest.mark.parametrize("arm", [0.0, 0.25])
@pytest.mark.parametrize("there", [(1.2, 0.7, 0.8), (-0.4, 0.8, -1.0)])
def test_a_sleigh_is_steered_from_rest_to_rest(arm, there):
    problem = parked(arm, pose(*there))
    plan = rx.optimise(problem)
    assert plan.status == "minimum"
    assert plan.multipliers["end"].shape == (5,)  # a pose, and what the skate leaves of a velocity
    assert plan.invariant is not None
    assert plan.invariant < 1e-12
    run = rx.simulate(problem.plant, STEP, problem.start, h=plan.h, steps=30, control=plan.signal())
    assert np.abs(np.asarray(run.g[0][-1]) - pose(*there)[0]).max() < 1e-12
    assert np.abs(np.asarray(run.g[1][-1]) - pose(*there)[1]).max() < 1e-12
    assert np.abs(np.asarray(run.momentum[-1])).max() < 1e-12


def test_no_input_would_rather_be_another():
    """The conditions of first order without recursion: a gradient through the whole motion."""
    problem = parked(0.25, pose(1.2, 0.7, 0.8))
    plan = rx.optimise(problem)
    model, system, end = problem.model, problem.system, problem.model.end
    assert end is not None

    def reached(u):
        def step(x, u):
            state = rx.State(x[0], x[1], jnp.zeros(()), u)
            new, _ = model.step.step(system, state, jnp.asarray(plan.h))
            return (new.g, new.momentum), None

        start = jax.tree.map(jnp.asarray, (problem.start.g, problem.start.momentum))
        return end(*jax.lax.scan(step, start, u)[0])

    miss, pull = jax.vjp(jax.jit(reached), jnp.asarray(plan.controls))
    (slope,) = pull(jnp.asarray(plan.multipliers["end"]))
    assert np.abs(miss).max() < 1e-13
    assert np.abs(plan.h * plan.controls + slope).max() < 1e-13


def test_a_sleigh_is_parked_beside_itself():
    """Nodes on the way there stand still and cannot be moved sideways: bumps lead out of that."""
    plan = rx.optimise(parked(0.25, pose(0.0, 0.5, 0.0)))
    assert plan.status == "minimum"
    assert plan.residuals["end"] < 1e-12
    assert np.abs(plan.states.g[1][:, 0]).max() > 0.05  # it goes to and fro


def test_the_least_curved_way_is_eulers_elastica():
    speed, T, there = 0.9, 2.2, pose(1.5, 0.9, 0.5)
    sleigh = rx.systems.steered_sleigh(MASS, INERTIA).system
    plant = rx.Actuated(sleigh, inputs=jnp.eye(3)[:, :1])
    residuals = []
    for steps in (40, 80):
        h = T / steps

        def bending(g, xi, u, t, h=h):
            return 0.5 * (xi[0] + h / 2 * u[0] / INERTIA) ** 2  # in the middle of the step

        problem = rx.ControlProblem(
            plant,
            STEP,
            start=plant.state(pose(0.0, 0.0, 0.0), velocity=[0.4, speed, 0.0]),
            end=rx.Reach(there),
            duration=T,
            steps=steps,
            cost=bending,
        )
        plan = rx.optimise(problem)
        assert plan.status == "minimum"
        turning = np.asarray(plan.states.momentum)[:, 0] / INERTIA
        kappa, ds = (turning[1:] + turning[:-1]) / 2 / speed, speed * h
        inside = kappa[1:-1]
        left = (kappa[2:] - 2 * inside + kappa[:-2]) / ds**2 + inside**3 / 2
        c = (left @ inside) / (inside @ inside)
        residuals.append(np.abs(left - c * inside).max() / np.abs(left).max())
    assert residuals[1] < 1e-2
    assert np.log2(residuals[0] / residuals[1]) == pytest.approx(2.0, abs=0.2)


def upright_spin() -> rx.Actuated:
    """Veselova's top: it may not turn about the vertical, which moves in the body."""
    top = rx.MechanicalSystem(
        SO3,
        [1.0, 1.7, 2.2],
        lambda R: 0.0 * R[0, 0],
        constraint=rx.VelocityConstraint(lambda R: R[2:3, :]),
    )
    return rx.Actuated(top, inputs=jnp.eye(3))


@pytest.mark.parametrize("axis", [False, True])
def test_a_constraint_that_moves_in_the_body(axis):
    plant = upright_spin()
    target = turned(0.4, -0.3, 0.2)
    along = np.array([0.6, 0.0, 0.8])
    end = rx.Reach(target, velocity=np.zeros(3))
    if axis:
        end = rx.Reach(axis=[0.0, 0.0, 1.0], velocity=np.zeros(3))
    start = plant.state(jnp.eye(3) if not axis else turned(0.7, 0.4, 0.0), velocity=np.zeros(3))
    problem = rx.ControlProblem(
        plant, ROLL, start=start, end=end, duration=2.0, steps=25, cost=rx.MinimumEffort()
    )
    plan = rx.optimise(problem)
    assert plan.status == "minimum"
    assert len(plan.multipliers["end"]) == (4 if axis else 5)
    run = rx.simulate(plant, ROLL, start, h=plan.h, steps=25, control=plan.signal())
    last = np.asarray(run.g[-1])
    miss = last[:, 2] - [0.0, 0.0, 1.0] if axis else last - np.asarray(target)
    assert np.abs(miss).max() < 1e-12
    assert np.abs(np.asarray(run.momentum[-1])).max() < 1e-12
    with pytest.raises(rx.BadInput, match="rotation about the axis"):
        other = rx.Reach(axis=along, along=[1.0, 0.0, 0.0], velocity=np.zeros(3))
        rx.ControlProblem(
            plant, ROLL, start=start, end=other, duration=2.0, steps=25, cost=rx.MinimumEffort()
        )


def test_velocities_that_the_end_cannot_have():
    with pytest.raises(rx.BadInput, match="breaks the constraint"):
        parked(
            0.0, pose(1.0, 0.0, 0.0), end=rx.Reach(pose(1.0, 0.0, 0.0), velocity=[0.0, 0.0, 0.3])
        )
    system = rx.MechanicalSystem(
        SO3,
        [1.0, 1.7, 2.2],
        lambda R: 0.0 * R[0, 0],
        constraint=rx.VelocityConstraint(lambda R, t: jnp.array([[jnp.cos(t), jnp.sin(t), 0.0]])),
    )
    plant = rx.Actuated(system, inputs=jnp.eye(3))
    with pytest.raises(rx.BadInput, match="for every duration"):
        rx.ControlProblem(
            plant,
            STEP,
            start=plant.state(jnp.eye(3), velocity=np.zeros(3)),
            end=rx.Reach(turned(0.1, 0.2, 0.3), velocity=np.zeros(3)),
            duration=rx.Free(2.0),
            steps=10,
            cost=rx.MinimumEffort(),
        )
