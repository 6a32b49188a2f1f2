"""Many problems that differ in their starts, in blocks over the processor's cores."""

import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import jax
import numpy as np
from jaxtyping import Array

from retrax.engine.backends.team import cores
from retrax.errors import BadInput, warn
from retrax.mechanics.state import State
from retrax.numerics.checks import require_instance
from retrax.numerics.evaluate import evaluate
from retrax.numerics.looks import looking
from retrax.planning.evaluation import path_at
from retrax.planning.explore import explore
from retrax.planning.kernels import Programs, programs
from retrax.planning.model import Model
from retrax.planning.plan import BROKEN_AT_END, ON_PATH
from retrax.planning.problem import ControlProblem
from retrax.planning.solve import Found, Solver, Start
from retrax.run.member_checks import require_ensemble
from retrax.trajectory.dataset import Variable, configuration_variables

if TYPE_CHECKING:
    import xarray as xr

# Problems to a block: as many as fill the lanes a few times and leave its arrays in the cache.
_BLOCK = 32
STATUS = ("no plan", "minimum", "extremal", BROKEN_AT_END)


@looking()
def optimise_many(
    problem: ControlProblem, starts: object, tries: int | None, most: int
) -> "xr.Dataset":
    """Solve a problem from each of many starts."""
    began = time.perf_counter()
    states = require_instance("starts", starts, State, "a State with a leading axis of members")
    host = jax.tree.map(np.asarray, State(states.g, states.momentum, states.t))
    h = problem.first_duration / problem.steps
    require_ensemble(problem.system, problem.integrator, host, h, problem.steps, None, shared=True)
    if problem.guess is not None:
        raise BadInput("guess=... is for one problem, and starts=... are many.")
    code, start = programs(problem.model), Start.of_many(host)
    members = len(start.times)
    blocks = [slice(a, min(a + _BLOCK, members)) for a in range(0, members, _BLOCK)]

    def work(block: slice) -> Found:
        mine = Start(np.ascontiguousarray(start.nodes[:, block]), start.times[block])
        return solve_block(problem, code, mine, tries, most)

    with ThreadPoolExecutor(min(cores(), len(blocks))) as pool:
        found = join(list(pool.map(work, blocks)))
    return plans_dataset(problem, start, found, time.perf_counter() - began)


def solve_block(
    problem: ControlProblem, code: Programs, starts: Start, tries: int | None, most: int
) -> Found:
    """Solve the problems of a block; those that fail, and those with bounds, one by one."""
    sizes, count = problem.model.sizes, len(starts.times)
    solver = Solver(problem, code, most)
    again = range(count)
    parts: list[Found | None] = [None] * count
    if tries is None and not (sizes.bounded or sizes.path):
        none = np.zeros((sizes.dim, count))
        whole = solver.from_ways(starts, none, problem.steps)
        parts = [member(whole, k) for k in range(count)]
        again = [k for k in range(count) if not (whole.converged[k] and whole.minimum[k])]
    for k in again:
        one = Start(np.ascontiguousarray(starts.nodes[:, k : k + 1]), starts.times[k : k + 1])
        own = Solver(problem, code, most)
        found = [*explore(problem, own, one, tries)]
        before = parts[k]
        parts[k] = best(found if before is None else [before, *found])
    return join([part for part in parts if part is not None])


def best(found: list[Found]) -> Found:
    """Return the best of several solutions of one problem."""
    return min(found, key=lambda f: (not f.converged[0], not f.minimum[0], f.cost[0]))


def member(found: Found, k: int) -> Found:
    """Return one of the problems."""
    return jax.tree.map(lambda x: x[..., k : k + 1], found)


def join(parts: list[Found]) -> Found:
    """Put blocks of problems together."""
    return jax.tree.map(lambda *x: np.concatenate(x, axis=-1), *parts)


def plans_dataset(
    problem: ControlProblem, starts: Start, found: Found, seconds: float
) -> "xr.Dataset":
    """Return the plans as a dataset with axes of nodes, steps and members."""
    import xarray as xr

    s, N = problem.model.sizes, problem.steps
    lost = ~found.converged
    nodes, stages = found.nodes.copy(), found.stages.copy()
    nodes[..., lost] = stages[..., lost] = np.nan
    leaves, tree = jax.tree.flatten(problem.system.group.layout())
    ends = np.cumsum([int(np.prod(leaf.shape)) for leaf in leaves])
    parts = np.split(nodes[: s.element], ends[:-1])
    g = jax.tree.unflatten(
        tree,
        [
            np.moveaxis(x, 0, -1).reshape(*x.shape[1:], *leaf.shape)
            for x, leaf in zip(parts, leaves, strict=True)
        ],
    )
    both, steps = ("node", "member"), ("step", "member")
    h = np.where(lost, np.nan, found.h)
    t = starts.times + np.arange(N + 1)[:, None] * h
    code = np.where(lost, 0, np.where(found.minimum, 1, 2))

    def last(x: np.ndarray) -> np.ndarray:
        return np.moveaxis(x, 0, -1)

    variables: dict[str, Variable] = configuration_variables(g, both, problem.system.group.name)
    variables |= {
        "momentum": ((*both, "body"), last(nodes[s.element :]), {"long_name": "body momentum"}),
        "t": (both, t, {"units": "s", "long_name": "time"}),
        "control": ((*steps, "input"), last(stages[: s.inputs]), {"long_name": "inputs"}),
        "costate": (
            (*steps, "coordinate"),
            last(stages[s.inputs : s.inputs + s.state]),
            {"long_name": "costates of the configuration, then of the momentum"},
        ),
        "cost": ("member", np.where(lost, np.nan, found.cost), {}),
        "duration": ("member", N * h, {"units": "s"}),
        "status": ("member", np.array(STATUS)[code], {"long_name": "how the search ended"}),
        "iterations": ("member", np.where(lost, np.nan, found.iterations), {}),
        "end_miss": (
            "member",
            np.where(lost, np.nan, np.abs(found.miss).max(axis=0, initial=0.0)),
            {"long_name": "largest miss of the end"},
        ),
    }
    if s.path:
        at_end = _path_at_end(problem, nodes, stages, t)
        about = {"long_name": "path constraint at the last state, which it does not bind"}
        variables["path_at_end"] = ("member", "inequality"), at_end, about
        breaks = (at_end < -ON_PATH * (1 + np.abs(at_end))).any(axis=1) & ~lost
        broken = int(breaks.sum())
        status = np.array(STATUS)[np.where(breaks, len(STATUS) - 1, code)]
        variables["status"] = ("member", status, variables["status"][2])
        if broken:
            warn(
                f"the path constraint is broken at the last state of {broken} of {len(lost)} "
                "members (path_at_end): it holds where inputs act. Demand it at the end with an "
                "equation of end= or a final_cost=."
            )
    attributes: dict[str, Any] = {
        "format": "retrax-plans",
        "system": problem.system.name,
        "integrator": repr(problem.integrator),
        "steps": N,
        "seconds": seconds,
    }
    coordinates = {"member": np.arange(len(starts.times))}
    return xr.Dataset(variables, coordinates, attributes)


def _path_at_end(
    problem: ControlProblem, nodes: np.ndarray, stages: np.ndarray, t: np.ndarray
) -> np.ndarray:
    """Return the path constraint at the last state of each member, with its last inputs."""
    s = problem.model.sizes
    last, u = nodes[:, -1].T, stages[: s.inputs, -1].T
    found = evaluate(_path_at_nodes, problem.model, last, u, t[-1])
    return np.asarray(found)


def _path_at_nodes(model: Model, nodes: Array, u: Array, t: Array) -> Array:
    def one(numbers: Array, u: Array, t: Array) -> Array:
        g, mu = model.node(numbers)
        return path_at(model, State(g, mu, t), u)

    return jax.vmap(one)(nodes, u, t)
