"""diffrax: adaptive Runge-Kutta, and the midpoint rule with fixed steps."""

import diffrax
import jax
import jax.numpy as jnp
import numpy as np

from benchmarks.methods import Call, Method, step_counts, tolerances
from benchmarks.problems import Problem
from benchmarks.rivals.quaternion import attitude, field, initial

ADAPTIVE = ("Tsit5", "Dopri5", "Dopri8")
# At a coarse tolerance the step size may shrink for ever; a run that ends here returns infinity.
MOST_STEPS = {"tolerance": 100_000, "steps": 1_000_000}


def methods(problem: Problem) -> list[Method]:
    first, last = int(problem.end), min(int(problem.end * 1e4), MOST_STEPS["steps"])
    return [
        *(_method(problem, name, "tolerance", tolerances()) for name in ADAPTIVE),
        _method(problem, "Midpoint", "steps", step_counts(first, last)),
    ]


def _method(problem: Problem, name: str, knob: str, settings: tuple) -> Method:
    y0 = jnp.asarray(initial(problem))
    solve = jax.jit(solution(problem, name))

    def prepare(setting: float) -> Call:
        number = setting if knob == "tolerance" else problem.end / setting
        return lambda: attitude(np.asarray(solve(y0, problem.end, number)))

    return Method("diffrax", name, knob, settings, prepare)


def solution(problem: Problem, name: str):
    """A function of (start, end, tolerance or step) that returns the state at the end."""
    term = diffrax.ODETerm(lambda t, y, args: jnp.stack(field(problem, y)))
    solver = getattr(diffrax, name)()

    def solve(y0, end, number):
        if name in ADAPTIVE:
            control, dt0, knob = diffrax.PIDController(rtol=number, atol=number), None, "tolerance"
        else:
            control, dt0, knob = diffrax.ConstantStepSize(), number, "steps"
        run = diffrax.diffeqsolve(
            term, solver, 0.0, end, dt0, y0,
            stepsize_controller=control, saveat=diffrax.SaveAt(t1=True),
            max_steps=MOST_STEPS[knob], throw=False,
        )  # fmt: skip
        return run.ys[-1]

    return solve


def ensemble_methods(problem: Problem, starts: np.ndarray, end: float) -> list[Method]:
    """The bodies of `starts` (7, members) under `vmap`."""
    y0 = jnp.asarray(starts)

    def method(name: str, knob: str, settings: tuple) -> Method:
        solve = jax.jit(jax.vmap(solution(problem, name), in_axes=(1, None, None), out_axes=1))

        def prepare(setting: float) -> Call:
            number = setting if knob == "tolerance" else end / setting
            return lambda: attitude(np.asarray(solve(y0, end, number)))

        return Method("diffrax", f"{name}, vmap", knob, settings, prepare)

    counts = step_counts(10 * int(end), 1000 * int(end))
    return [method("Tsit5", "tolerance", tolerances()), method("Midpoint", "steps", counts)]
