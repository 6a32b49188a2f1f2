"""diffrax: Runge-Kutta with adaptive and with fixed steps; `vmap` for ensembles.

One body is an array of seven numbers, which compiles to the faster code for it; an ensemble is
seven arrays, one number of every body in each, which is the faster form for many.
"""

from typing import Any

import diffrax
import jax
import jax.numpy as jnp
import numpy as np

from benchmarks.methods import Call, Method, step_counts, tolerances
from benchmarks.rivals.quaternion import attitude, field, initial
from retrax_papers.bench.problems import TimedProblem

ADAPTIVE = ("Tsit5", "Dopri5", "Dopri8")
FIXED = ("Tsit5", "Midpoint")
# At a coarse tolerance the step size may shrink for ever; a run that ends here returns infinity.
MOST_STEPS = {"tolerance": 100_000, "steps": 1_000_000}


def methods(problem: TimedProblem) -> list[Method]:
    y0 = jnp.asarray(initial(problem))

    def method(name: str, knob: str, settings: tuple) -> Method:
        solve = jax.jit(solution(problem, name, knob, jnp.stack))

        def prepare(setting: float) -> Call:
            number = setting if knob == "tolerance" else problem.end / setting
            return lambda: attitude(np.asarray(solve(y0, problem.end, number)))

        return Method("diffrax", _title(name, knob), knob, settings, prepare)

    first, last = int(problem.end), min(int(problem.end * 1e4), MOST_STEPS["steps"])
    return [
        *(method(name, "tolerance", tolerances()) for name in ADAPTIVE),
        *(method(name, "steps", step_counts(first // 2, last)) for name in FIXED),
    ]


def ensemble_methods(problem: TimedProblem, starts: np.ndarray, end: float) -> list[Method]:
    """The bodies of `starts` (7, members) under `vmap`."""
    y0 = tuple(jnp.asarray(row) for row in starts)

    def method(name: str, knob: str, settings: tuple) -> Method:
        solve = jax.jit(jax.vmap(solution(problem, name, knob, tuple), in_axes=(0, None, None)))

        def prepare(setting: float) -> Call:
            number = setting if knob == "tolerance" else end / setting
            return lambda: attitude(np.stack(solve(y0, end, number)))

        return Method("diffrax", f"{_title(name, knob)}, vmap", knob, settings, prepare)

    counts = step_counts(int(end) // 2, 1000 * int(end))
    adaptive = method("Tsit5", "tolerance", tolerances())
    return [adaptive, *(method(name, "steps", counts) for name in FIXED)]


def solution(problem: TimedProblem, name: str, knob: str, pack: Any):
    """A function of (start, end, tolerance or step) that returns the state at the end."""
    term = diffrax.ODETerm(lambda t, y, args: pack(field(problem, y)))
    solver = getattr(diffrax, name)()

    def solve(y0, end, number):
        if knob == "tolerance":
            control, dt0 = diffrax.PIDController(rtol=number, atol=number), None
        else:
            control, dt0 = diffrax.ConstantStepSize(), number
        run = diffrax.diffeqsolve(
            term, solver, 0.0, end, dt0, y0,
            stepsize_controller=control, saveat=diffrax.SaveAt(t1=True),
            max_steps=MOST_STEPS[knob], throw=False,
        )  # fmt: skip
        return jax.tree.map(lambda y: y[-1], run.ys)

    return solve


def _title(name: str, knob: str) -> str:
    return name if knob == "tolerance" else f"{name}, fixed steps"
