r"""Optimal large-angle manoeuvres, on the group.

The paper on the string pendulum closes with a wish: to control such bodies by the discrete
Lagrange-d'Alembert principle, and to find large-angle manoeuvres that are optimal, without the
singularities of angles. Here a spacecraft turns by 150 degrees about its first axis and comes to
rest, once with the least effort and once in the least time its thrusters allow. Each unknown is a
step of `LieVerlet` itself, so a plan flies exactly as it was planned; its costates keep the
symmetry of space to round-off; and the quickest way is not the one about the axis between start
and end.
"""

import sys

import jax.numpy as jnp
import numpy as np

import retrax as rx
from retrax.show.style import new_figure, style

MOMENTS = [5621.0, 4547.0, 2364.0]  # kg m^2
TORQUE = 50.0  # N m
ANGLE = np.deg2rad(150.0)


def main(steps: int = 100):
    craft = rx.systems.spacecraft(MOMENTS, torque=TORQUE)
    start = craft.state(np.eye(3), velocity=np.zeros(3))
    there = rx.Reach(rx.SO3().exp(jnp.array([ANGLE, 0.0, 0.0])), velocity=np.zeros(3))
    common = {"start": start, "end": there, "steps": steps}
    problems = {
        "least effort, 40 s": rx.ControlProblem(
            craft, rx.LieVerlet(), duration=40.0, cost=rx.MinimumEffort(), **common
        ),
        "least time": rx.ControlProblem(
            craft, rx.LieVerlet(), duration=rx.Free(30.0), cost=rx.MinimumTime(), **common
        ),
    }
    plans = {name: rx.optimise(problem) for name, problem in problems.items()}
    quickest = plans["least time"]
    about_one_axis = 2 * np.sqrt(ANGLE * MOMENTS[0] / TORQUE)
    print(f"{quickest.T:.4f} s, and {about_one_axis:.4f} s about one axis")
    assert quickest.T < about_one_axis
    for plan in plans.values():
        assert plan.status == "minimum" and plan.invariant < 1e-10
        flown = rx.simulate(
            craft, rx.LieVerlet(), start, h=plan.h, steps=steps, control=plan.signal()
        )
        assert np.abs(flown.final.g - np.asarray(there.pose)).max() < 1e-7

    figure = new_figure(8.0, 4.6, "A slew by 150 degrees")
    panels = figure.subplots(2, 2, sharex="col")
    for column, (name, plan) in zip(panels.T, plans.items(), strict=True):
        column[0].stairs(plan.controls[:, 0], plan.t, baseline=None, label="torque 1")
        column[0].stairs(plan.controls[:, 1], plan.t, baseline=None, label="torque 2")
        column[0].stairs(plan.controls[:, 2], plan.t, baseline=None, label="torque 3")
        column[0].set(title=f"{name}: {plan.T:.3f} s", ylabel="torque (N m)")
        column[1].plot(plan.t, np.asarray(plan.states.momentum) / MOMENTS)
        column[1].set(xlabel="time (s)", ylabel="body rates (rad/s)")
    panels[0, 0].legend()
    return figure


if __name__ == "__main__":
    with style():
        main().savefig(sys.argv[1] if len(sys.argv) > 1 else "optimal_manoeuvres.png")
