"""Plans of the ready plants: they arrive, and stay where they arrived."""

import numpy as np
import pytest

import retrax as rx
from retrax.planning.catalogue import PROBLEMS


def flown(plan):
    """The plant under the inputs of a plan."""
    p = plan.problem
    return rx.simulate(
        p.plant, p.integrator, p.start, h=plan.h, steps=p.steps, control=plan.signal()
    )


def left_alone(run, plan, steps):
    """What the plant does when nobody pushes it any more."""
    p, s = plan.problem, run.final
    rest = rx.State(s.g, s.momentum, s.t)
    return rx.simulate(p.plant, p.integrator, rest, h=plan.h, steps=steps)


def test_a_crane_leaves_no_swing_and_takes_less_effort_with_more_time():
    costs = []
    for duration, steps in ((2.0, 200), (3.0, 300)):
        plan = rx.optimise(PROBLEMS["crane"].make(duration, steps))
        run = flown(plan)
        after = left_alone(run, plan, 500)
        load = np.asarray(after.observables()["place of the load"])[:, 0]
        assert np.max(np.ptp(load, axis=0)) < 1e-12  # measured 2e-14 m
        assert np.max(np.abs(np.asarray(after.g[-1]) - [1.0, 0.3])) < 1e-12
        assert np.ptp(np.asarray(run.g[0])[:, 0, 0]) > 0.15  # it swings on the way
        # Horizontal momentum and that about the vertical balance all along.
        P, X, u = np.asarray(run.momentum)[:, -2:], np.asarray(run.g[-1]), plan.controls
        np.testing.assert_allclose(np.diff(P, axis=0), plan.h * u, rtol=0, atol=1e-14)
        spin = np.asarray(run.along(plan.problem.system.angular_momentum))
        mean = (X[1:] + X[:-1]) / 2
        impulse = plan.h * (mean[:, 0] * u[:, 1] - mean[:, 1] * u[:, 0])
        np.testing.assert_allclose(np.diff(spin), impulse, rtol=0, atol=1e-14)
        costs.append(plan.cost)
    assert costs[1] < costs[0] / 4


@pytest.mark.parametrize("name", ["slew", "swing-up", "parking"])
def test_a_ready_problem_has_a_plan_that_flies(name, tmp_path):
    ready = PROBLEMS[name]
    plan = rx.optimise(ready.make(ready.duration, ready.steps))
    assert plan.status == "minimum"
    run = flown(plan)
    miss = np.abs(np.asarray(run.momentum)[-1]).max()
    assert miss < 1e-8 * np.abs(np.asarray(run.momentum)).max()
    after = rx.load_plan(plan.save(tmp_path / "plan.nc"))
    assert after.measures() == plan.measures()


def test_a_sleigh_parks_where_it_cannot_slide():
    ready = PROBLEMS["parking"]
    plan = rx.optimise(ready.make(ready.duration, ready.steps))
    run = flown(plan)
    np.testing.assert_allclose(run.final.g[0], np.eye(2), atol=1e-10)
    np.testing.assert_allclose(run.final.g[1], [1.0, 0.5], atol=1e-10)
    assert np.max(np.abs(run.constraint_violation())) < 1e-14
