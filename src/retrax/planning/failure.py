"""Why there is no plan: what a search left behind, in sentences."""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from retrax.errors import BadInput
from retrax.groups.base import Element
from retrax.mechanics.actuated import Inputs
from retrax.mechanics.state import State
from retrax.numerics.evaluate import evaluate
from retrax.planning.evaluation import path_at
from retrax.planning.model import Model, cut
from retrax.planning.plan import Plan
from retrax.planning.problem import ControlProblem
from retrax.planning.solve import Found, Start

# A free duration that is so many times its guess, or that part of it, runs away.
_RUNS_AWAY = 20.0
# Inputs at which the path is looked at where the plant starts.
_LOOKS = 5


def require_start_on_path(problem: ControlProblem) -> None:
    """Reject a path constraint that the start breaks, whatever the inputs are."""
    if problem.path is None:
        return
    found = _path_with_inputs(problem, problem.start)
    broken = np.flatnonzero((found == found[0]).all(axis=0) & (found[0] < 0))
    if len(broken):
        k = int(broken[0])
        raise BadInput(
            f"the path is broken at the start, where no inputs can mend it: number {k} of "
            f"{found.shape[1]} is {found[0][k]:.3g} there; widen the path or start elsewhere."
        )


def describe_stop(plan: Plan, guesses: int) -> str:
    """Say what is wrong with an iterate that is no plan."""
    special = _not_finite(plan) or _running_away(plan)
    if special is not None:
        return f"no plan was found: {special}"
    if not np.isfinite(plan.largest_defect):
        return (
            "no plan was found: steps of the integrator, or functions of the problem, are not "
            "finite numbers on the way; try more steps, or a guess= from a similar problem."
        )
    residuals = {name: plan.residuals[name] for name in ("defects", "end", "path", "stationarity")}
    worst = max(residuals, key=lambda name: residuals[name])
    said = {
        "defects": "steps do not lead from one state to the next, by up to "
        f"{plan.largest_defect:.2g}",
        "end": f"the end is missed by {np.abs(plan.miss).max(initial=0.0):.2g}",
        "path": f"the path constraint is broken by {-plan.path.min(initial=0.0):.2g}",
        "stationarity": "the conditions of first order are met only to "
        f"{plan.residuals['stationarity']:.1g}",
    }
    more = ", a wider path" if plan.problem.path is not None else ""
    return (
        f"no plan was found from {_count(guesses, 'guess', 'guesses')}: after "
        f"{_count(plan.iterations, 'iteration', 'iterations')} {said[worst]}; try more steps, "
        f"another duration={more}, or a guess= from a similar problem."
    )


def describe_miss(problem: ControlProblem, found: Found) -> str:
    """Say how near to the end a search came that may miss it."""
    s, miss = problem.model.sizes, found.miss[:, 0]
    worst = int(np.argmax(np.abs(miss)))
    u = found.stages[: problem.count, :, 0].T
    room = np.minimum(u - problem.lower, problem.upper - u)
    width = problem.upper - problem.lower
    part = float((room <= 0.01 * np.where(np.isfinite(width), width, 0.0)).mean())
    limits = f"; inputs are at their bounds for {part:.0%} of the time" if part > 0 else ""
    slopes = np.asarray(evaluate(_end_slopes, problem.model, found.nodes[:, -1, 0]))
    flat = np.abs(slopes).max(axis=1) <= 1e-8 * max(1.0, np.abs(slopes).max())
    if flat[worst]:
        limits += "; it has no slope there, so that the search sees no way on: write it otherwise"
    ways = ["more time", *(["wider bounds"] if s.bounded else []), "more steps"]
    ways += [*(["a wider path"] if s.path else []), "a guess= from a similar problem"]
    took = found.h[0] * found.stages.shape[1]
    return (
        f"no plan was found: the nearest to the end that was found in {took:.4g} s misses it by "
        f"{np.abs(miss).max():.3g}, most in equation {worst} of {len(miss)}{limits}. Give it "
        f"{', '.join(ways)}, or another end."
    )


def path_warning(plan: Plan) -> str:
    """Say that the last state breaks the path constraint, which does not bind it."""
    values = ", ".join(f"{plan.path_at_end[k]:.3g}" for k in plan.path_broken_at_end)
    if _is_contradicted(plan):
        return (
            f"the end contradicts the path constraint, which is {values} at the last state "
            "whatever the inputs are: no motion keeps both, and this one leaves the path for the "
            "end in its last step. Ask for an end on the path, or for a wider path."
        )
    return (
        f"the path constraint is broken at the last state, where it is {values}: it holds where "
        "inputs act, at the first N states. Demand it at the end with an equation of end= or a "
        "final_cost=."
    )


def _is_contradicted(plan: Plan) -> bool:
    """Return whether the end leaves no room, of state or inputs, to mend the path there."""
    problem, broken = plan.problem, plan.path_broken_at_end
    if not problem.model.sizes.ends:
        return False
    last = jax.tree.map(lambda x: np.asarray(x)[-1], plan.states)
    values = _path_with_inputs(problem, last)[:, broken]
    fixed = (values == values[0]).all(axis=0)
    end, path = map(np.asarray, evaluate(_slopes_at, problem.model, last, plan.controls[-1]))
    path = path[broken]
    free = path - path @ np.linalg.pinv(end, rcond=1e-10) @ end
    size = np.linalg.norm(path, axis=1)
    return bool(np.any(fixed & (np.linalg.norm(free, axis=1) <= 1e-6 * np.maximum(size, 1e-300))))


def _slopes_at(model: Model, last: State, u: Array) -> tuple[Array, Array]:
    """Return slopes of end and path at a state."""

    def parts(w: Array) -> tuple[Array, Array]:
        assert model.end is not None
        g, mu = model.displace((last.g, last.momentum), w)
        return jnp.ravel(model.end(g, mu)), path_at(model, State(g, mu, last.t), u)

    return jax.jacfwd(parts)(jnp.zeros(model.sizes.state))


def _path_with_inputs(problem: ControlProblem, state: State) -> Float[np.ndarray, "look c"]:
    """Return the numbers of the path at a state with several inputs within their bounds."""
    low = np.where(np.isfinite(problem.lower), problem.lower, -1e3)
    high = np.where(np.isfinite(problem.upper), problem.upper, 1e3)
    parts = np.random.default_rng(0).random((_LOOKS, problem.count))
    parts[0] = 0.5
    inputs = [low + part * (high - low) for part in parts]
    return np.stack([np.asarray(evaluate(path_at, problem.model, state, u)) for u in inputs])


def _count(count: int, one: str, many: str) -> str:
    return f"{count} {one if count == 1 else many}"


def _running_away(plan: Plan) -> str | None:
    """Say that a free duration grows or shrinks without end."""
    problem = plan.problem
    ratio = plan.T / problem.first_duration
    if not problem.is_free or 1 / _RUNS_AWAY < ratio < _RUNS_AWAY:
        return None
    if ratio > 1:
        return (
            f"the duration runs away, to {plan.T:.3g} s: it costs less the longer it takes. Give "
            "Free(guess, upper=...), or a cost of time."
        )
    return (
        f"the duration shrinks away, to {plan.T:.3g} s: it costs less the shorter it is. Give the "
        "inputs bounds, or Free(guess, lower=...)."
    )


def _not_finite(plan: Plan) -> str | None:
    """Name the function of the problem that is not a number along an iterate."""
    states, controls, stands = plan.states, plan.controls, "where the search stands"
    if not (np.isfinite(plan.numbers[0]).all() and np.isfinite(controls).all()):
        stands = "on the way that the search starts from"
        states, controls = _first_guess(plan)
    found = evaluate(_functions, plan.problem.model, states, controls)
    names = ("cost", "path", "final_cost", "end")
    for kind, shown in ((0, "{name} is {value}"), (1, "a derivative of {name} is {value}")):
        for name, both in zip(names, found, strict=True):
            values = np.asarray(both[kind])
            bad = np.argwhere(~np.isfinite(values))
            if len(bad):
                at = tuple(bad[0])
                k = int(at[0]) if name in ("cost", "path") else len(plan.t) - 1
                said = shown.format(name=name, value=values[at])
                where = f"state {k}, t = {plan.t[k]:.4g} s"
                return (
                    f"{said} at {where}, {stands}. Write it so that it is a finite "
                    "number with finite derivatives on the way."
                )
    return None


def _first_guess(plan: Plan) -> tuple[State, np.ndarray]:
    """Return the way to the end that a search starts from, with inputs near zero."""
    problem, t = plan.problem, plan.t
    start = Start.of(problem.start).nodes[:, 0]
    states = evaluate(_way, problem.model, start, np.array([problem.first_duration, t[0]]), t)
    none = np.clip(np.zeros(problem.count), problem.lower, problem.upper)
    return states, np.tile(none, (problem.steps, 1))


def _way(model: Model, start: Array, clock: Array, t: Array) -> State:
    (way,) = model.aim(start, jnp.concatenate([clock, jnp.zeros(1)]))

    def at(part: Array) -> tuple[Element, Array]:
        here = jnp.concatenate([clock, part[None]])
        (numbers,) = model.along(start, way, jnp.zeros(model.sizes.dim), here)
        return model.node(numbers)

    g, mu = jax.vmap(at)(jnp.linspace(0.0, 1.0, t.shape[0]))
    return State(g, mu, t)


def _functions(model: Model, states: State, controls: Inputs) -> tuple[tuple[Array, Array], ...]:
    """Return values and slopes of cost and path at each stage, and of final cost and end."""
    s = model.sizes

    def stage(state: State, u: Inputs) -> tuple[tuple[Array, Array], tuple[Array, Array]]:
        def parts(w: Array) -> tuple[Array, Array]:
            dx, du = cut(w, s.state, s.inputs)
            g, mu = model.displace((state.g, state.momentum), dx)
            there = State(g, mu, state.t)
            cost = model.cost(g, model.system.velocity_at(there), u + du, state.t)
            return jnp.asarray(cost), path_at(model, there, u + du)

        at = jnp.zeros(s.state + s.inputs)
        (cost, path), (dcost, dpath) = parts(at), jax.jacfwd(parts)(at)
        return (cost, dcost), (path, dpath)

    last = jax.tree.map(lambda x: x[-1], states)

    def final(w: Array) -> tuple[Array, Array]:
        g, mu = model.displace((last.g, last.momentum), w)
        cost = 0.0 if model.final_cost is None else model.final_cost(g, mu)
        end = jnp.zeros(0) if model.end is None else jnp.ravel(model.end(g, mu))
        return jnp.asarray(cost, float), end

    along = jax.vmap(stage)(jax.tree.map(lambda x: x[:-1], states), controls)
    at = jnp.zeros(s.state)
    (cost, end), (dcost, dend) = final(at), jax.jacfwd(final)(at)
    return *along, (cost[None], dcost), (end, dend)


def _end_slopes(model: Model, node: Array) -> Float[Array, "p n"]:
    def end(w: Array) -> Array:
        assert model.end is not None
        return jnp.ravel(model.end(*model.displace(model.node(node), w)))

    return jax.jacfwd(end)(jnp.zeros(model.sizes.state))
