"""One self-contained page of a plan: its motion in 3-D, inputs between their bounds, costates."""

import html
from pathlib import Path
from string import Template
from typing import Any

import jax
import numpy as np

from retrax.engine.progress import Interval
from retrax.files import write_text
from retrax.numerics.evaluate import as_jax, evaluate
from retrax.planning.plan import Plan
from retrax.show.bodies import unit
from retrax.show.curves import Panel, components, thin_panel
from retrax.show.drawn import drawable
from retrax.show.page import asset, block, fill_page, table_rows
from retrax.show.pictures.choose import picture
from retrax.show.scene import scene
from retrax.show.style import CYCLE, CYCLE_ON_DARK
from retrax.trajectory.provenance import versions
from retrax.trajectory.trajectory import Trajectory

_SHOWN = 6


def report_plan(plan: Plan, path: str | Path) -> Path:
    """Write the page to `path`; it opens without a network and without a server."""
    return write_text(path, lambda: plan_page(plan))


@drawable()
def plan_page(plan: Plan) -> str:
    """Return the page as text."""
    problem, run = plan.problem, motion(plan)
    tables = Template(asset("plan_tables.html")).substitute(
        summary=table_rows(_results(plan)),
        made=table_rows(_provenance(plan)),
        again=_flight_code(plan),
    )
    free = ", free" if problem.is_free else ""
    subtitle = (
        f"{plan.status}, cost {plan.cost:.8g}, {plan.T:.6g} s{free}, {problem.steps:,} steps of "
        f"{problem.integrator!r}"
    )
    shown = {
        "scene": scene(run, picture(run)),
        "panels": [thin_panel(t, panel) for t, panel in panels(plan)],
        "colours": {"light": CYCLE, "dark": CYCLE_ON_DARK},
    }
    return fill_page(f"Plan: {problem.system.name}", subtitle, _warning(plan), tables, shown)


def motion(plan: Plan) -> Trajectory:
    """Return the motion of a plan as a run, to be drawn and measured."""
    problem = plan.problem
    system, N = problem.system, problem.steps
    nothing = np.zeros(N + 1)
    return Trajectory(
        t=plan.t,
        states=plan.states,
        info=Interval(as_jax(nothing.astype(int)), as_jax(nothing), as_jax(nothing)),
        h=plan.h,
        steps=N,
        completed=N,
        save_every=1,
        seconds=plan.seconds,
        compile_seconds=0.0,
        provenance={
            "system": system.name,
            "group": system.configuration_space.name,
            "integrator": repr(problem.integrator),
            **versions(),
        },
        system=system,
        integrator=problem.integrator,
    )


def panels(plan: Plan) -> list[tuple[np.ndarray, Panel]]:
    """List what is plotted, each with its times: inputs, bounds, velocities, costates, path."""
    problem, run = plan.problem, motion(plan)
    dim, t = problem.system.group.dim, plan.t
    held = np.repeat(t, 2)[1:-1]
    found = []
    for k in range(min(problem.count, _SHOWN)):
        u = np.repeat(plan.controls[:, k], 2)
        limits = {"upper bound": problem.upper[k], "lower bound": problem.lower[k]}
        lines = {n: np.full_like(u, x) for n, x in limits.items() if np.isfinite(x)}
        found.append((held, Panel(f"input {k + 1}", "SI", {f"u{k + 1}": u, **lines})))
    velocity = np.asarray(evaluate(_velocities, problem.system, plan.states))
    found.append((t, components(velocity, "ξ", "body velocity", unit(run, "velocity"))))
    if plan.path.shape[1]:
        found.append((t[:-1], components(plan.path, "c", "path, to stay above zero", "SI")))
    ends = t[1:]
    of_g, of_mu = plan.costates[:, :dim], plan.costates[:, dim:]
    found.append((ends, components(of_g, "λ", "costate of the configuration", "SI")))
    found.append((ends, components(of_mu, "λ", "costate of the momentum", "SI")))
    return found


def _velocities(system: Any, states: Any) -> Any:
    return jax.vmap(system.velocity_at)(states)


def _results(plan: Plan) -> list[tuple[str, ...]]:
    """Return what was found, and how well its equations hold."""
    rows = [
        ("cost", f"{plan.cost:.12g}"),
        ("duration", f"{plan.T:.12g} s{' (free)' if plan.problem.is_free else ''}"),
        ("status", plan.status),
        ("iterations", f"{plan.iterations}"),
        ("search and compiling", f"{plan.seconds:.3g} s"),
        ("largest defect of a step", f"{plan.largest_defect:.1e}"),
        ("end missed by", f"{float(np.abs(plan.miss).max(initial=0.0)):.1e}"),
        *((name, f"{value:.1e}") for name, value in plan.residuals.items() if name != "defects"),
        ("costates", plan.constancy),
    ]
    if plan.path.shape[1]:
        last = ", ".join(f"{x:.3g}" for x in plan.path_at_end)
        broken = ", broken there" if plan.path_broken_at_end else ""
        rows.append(("path at the end", f"{last}{broken}"))
    if plan.problem.model.sizes.bounded:
        counts = ", ".join(map(str, plan.active_bounds()))
        rows.append(("steps at a bound, by input", f"{counts} of {plan.problem.steps}"))
    for cost, duration in plan.others:
        rows.append(("another extremal", f"cost {cost:.10g}, {duration:.8g} s"))
    return rows


def _provenance(plan: Plan) -> list[tuple[str, ...]]:
    problem = plan.problem
    cost = problem.cost
    named = getattr(cost, "__name__", type(cost).__name__)
    return [
        ("system", problem.system.name),
        ("group", problem.system.configuration_space.name),
        ("integrator", repr(problem.integrator)),
        ("inputs", str(problem.count)),
        ("cost", named),
        ("steps", f"{problem.steps:,} of h = {plan.h:.8g} s"),
        *versions().items(),
    ]


def _flight_code(plan: Plan) -> str:
    """Return the lines of Python that take the plant along the plan."""
    lines = (
        "import retrax as rx",
        "",
        "# problem: the ControlProblem of this plan",
        "plan = rx.optimise(problem)",
        "run = rx.simulate(problem.plant, problem.integrator, problem.start,",
        "                  h=plan.h, steps=problem.steps, control=plan.signal())",
    )
    return block("In Python, with the problem that it solves", "\n".join(lines))


def _warning(plan: Plan) -> str:
    """Return a sentence where this is less than a minimum."""
    if plan.status == "minimum":
        return ""
    why = (
        "Its last state breaks the path constraint, which binds only states from which inputs act: "
        "demand it at the end, or ask for another end."
        if plan.path_broken_at_end
        else "The first-order conditions hold, but a minimum is not certain: try more guesses with "
        "rx.optimise(problem, tries=...)."
    )
    return (
        f'<p class="failure" role="alert"><strong>{html.escape(plan.status.capitalize())}.'
        f"</strong> {why}</p>"
    )
