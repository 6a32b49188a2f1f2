"""Plans in NetCDF files: the numbers under their names, and the problem that they solve."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jax
import numpy as np

from retrax.errors import BadInput
from retrax.files import as_path, require_place
from retrax.numerics.checks import reason, require_instance
from retrax.planning.costs import MinimumEffort, MinimumTime
from retrax.planning.duration import Free
from retrax.planning.ends import Reach
from retrax.planning.plan import Plan
from retrax.planning.plan_checks import (
    require_possible,
    require_same_bounds,
    require_same_problem,
)
from retrax.planning.problem import ControlProblem
from retrax.planning.search import Errors
from retrax.planning.solve import Found
from retrax.planning.verification import require_solution
from retrax.store.checksum import CHECKSUM, checksum_of, require_whole, variables_of
from retrax.store.netcdf import PLAN, read_whole, write_netcdf
from retrax.store.objects import Data, Modules, Trust, Unstorable, decode, encode, read_trusted

if TYPE_CHECKING:
    import xarray as xr


# The problem as JSON in bytes: an attribute of NetCDF holds 64 kB at the most.
PROBLEM = "problem"
# What a plan knows beside its arrays, as attributes of the file.
_NUMBERS = ("h", "cost", "seconds", "iterations", "largest_defect")
_RESIDUALS = ("defects", "end", "path", "stationarity", "complementarity")


def save_plan(plan: Plan, path: str | Path) -> Path:
    """Write a plan to a NetCDF file, whole; `load_plan` and `xarray.open_dataset` read it."""
    path = as_path(path)
    require_place(path)
    ds = plan_dataset(plan)
    ds.attrs[CHECKSUM] = checksum_of(variables_of(ds), ds.attrs, _describes)
    write_netcdf(ds, path)
    return path


def _describes(attribute: str) -> bool:
    own = ("kind", "system", "integrator", "status", *_NUMBERS)
    return attribute in own or attribute.startswith("residual_")


def plan_dataset(plan: Plan) -> "xr.Dataset":
    """Return the numbers of a plan by their names."""
    import xarray as xr

    problem, s = plan.problem, plan.problem.model.sizes
    _, stages = plan.numbers
    before = s.inputs + s.state + s.limits
    leaves = jax.tree.leaves(plan.states.g)
    variables: dict[str, Any] = {
        f"g{k}": (("time", *(f"g{k}_{i}" for i in range(leaf.ndim - 1))), leaf)
        for k, leaf in enumerate(leaves)
    }
    variables |= {
        "momentum": (("time", "coordinate"), plan.states.momentum),
        "controls": (("stage", "input"), plan.controls),
        "costates": (("stage", "change"), plan.costates),
        "lower_multipliers": (("stage", "input"), plan.multipliers["lower"]),
        "upper_multipliers": (("stage", "input"), plan.multipliers["upper"]),
        "end_multipliers": (("condition",), plan.multipliers["end"]),
        "miss": (("condition",), plan.miss),
        "path": (("stage", "inequality"), plan.path),
        "path_multipliers": (("stage", "inequality"), plan.multipliers["path"]),
        "path_slacks": (("stage", "inequality"), stages[before : before + s.path].T),
        "lower": (("input",), problem.lower),
        "upper": (("input",), problem.upper),
        "others": (("extremal", "cost_and_duration"), np.reshape(plan.others, (-1, 2))),
        PROBLEM: (
            (f"{PROBLEM}_bytes",),
            np.frombuffer(json.dumps(_encode(problem), allow_nan=False).encode(), np.uint8),
        ),
    }
    numbers = {name: float(getattr(plan, name)) for name in _NUMBERS}
    return xr.Dataset(
        {name: x for name, x in variables.items() if 0 not in np.shape(x[1])},
        coords={"time": ("time", plan.t, {"units": "s"})},
        attrs={
            "kind": PLAN,
            "system": problem.system.name,
            "integrator": repr(problem.integrator),
            "status": plan.kind,
            **numbers,
            **{f"residual_{name}": value for name, value in plan.residuals.items()},
        },
    )


def load_plan(
    path: str | Path, *, problem: ControlProblem | None = None, trust: Modules | None = None
) -> Plan:
    """Read a plan from the file that `Plan.save` wrote.

    It is whole: its problem, its plant and its costs come with it, so that it can be flown, drawn,
    and made the guess of another. A file is data: nothing that it names outside retrax is imported
    or called.

    **Arguments:**

    - `path`: of the file.
    - `problem`: the problem that it solves, needed where that has functions of yours in it (a cost,
        an end, a path), which a file does not keep. It is compared with what the file keeps, and
        steps, end, cost, bounds and path of the plan are evaluated under it.
    - `trust`: the module, or a list of modules, whose functions marked with `factory` the file may
        name. They are imported, which runs them.

    **Raises:** `BadInput` where the file is no whole plan, or solves another problem.
    """
    place, modules = as_path(path), read_trusted(trust)
    if not place.is_file():
        raise BadInput(f"path = {str(place)!r}: there is no such file.")
    ds = read_whole(place)
    if ds.attrs.get("kind") != PLAN:
        raise BadInput(f"path = {str(place)!r} holds no plan; rx.load reads runs.")
    if problem is not None:
        require_instance("problem", problem, ControlProblem, "a ControlProblem")
    try:
        if problem is not None:
            require_same_problem(_data(ds), _encode(problem))
            for name, own in (("lower", problem.lower), ("upper", problem.upper)):
                kept = np.asarray(ds[name].values, float) if name in ds else np.zeros(0)
                require_same_bounds(name, kept, own)
        plan = _plan(ds, problem if problem is not None else _problem(ds, modules))
        require_solution(plan)
        require_whole(place, ds, _describes, "plan")
        return plan
    except BadInput as error:
        raise BadInput(f"path = {str(place)!r}: {error}") from error
    except Exception as cause:  # whatever forged numbers make of the parts of a plan
        raise BadInput(f"path = {str(place)!r} holds no whole plan: {reason(cause)}.") from cause


def holds_plan(path: str | Path) -> bool:
    """Tell whether a file holds a plan, and not a run or anything else."""
    import h5py

    try:
        with h5py.File(as_path(path), "r") as file:
            return file.attrs.get("kind") == PLAN
    except OSError:  # a folder, or no file of this kind: for `load` to say
        return False


# The problem as data


def _encode(problem: ControlProblem) -> dict[str, Data]:
    """Encode a problem; what a file cannot hold is `None`, and `lacking` says why."""
    parts: dict[str, Any] = {
        "plant": problem.plant,
        "integrator": problem.integrator,
        "start": problem.start,
        "final_cost": problem.final_cost,
        "path": problem.path,
        "steps": problem.steps,
    }
    duration = problem.duration
    if isinstance(duration, Free):
        free = {"guess": duration.guess, "lower": duration.lower, "upper": duration.upper}
        parts["duration"] = {"free": free}
    else:
        parts["duration"] = float(duration)
    parts |= {"cost": _cost(problem.cost), "end": _end(problem.end)}
    data: dict[str, Data] = {}
    lacking: dict[str, str] = {}
    for name, value in parts.items():
        try:
            data[name] = encode(value, name)
        except Unstorable as why:
            data[name], lacking[name] = None, str(why)
    return {**data, "lacking": lacking}


def _cost(cost: Any) -> Any:
    if isinstance(cost, MinimumTime):
        return {"minimum": "time"}
    if isinstance(cost, MinimumEffort):
        return {"minimum": "effort", "weights": cost.weights}
    return cost


def _end(end: Any) -> Any:
    if not isinstance(end, Reach):
        return end
    numbers = {"velocity": end.velocity, "axis": end.axis, "along": end.along}
    kept = {name: None if x is None else np.asarray(x, float) for name, x in numbers.items()}
    return {"reach": jax.tree.map(lambda x: np.asarray(x, float), end.pose), **kept}


def _data(ds: "xr.Dataset") -> dict[str, Data]:
    """Return what the file keeps of its problem."""
    if PROBLEM not in ds:
        raise BadInput("it has no problem, which belongs to a plan.")
    return json.loads(np.asarray(ds[PROBLEM].values, np.uint8).tobytes())


def _problem(ds: "xr.Dataset", trust: Trust) -> ControlProblem:
    """Make the problem of a file again."""
    data = _data(ds)
    if data["lacking"]:
        why = "; ".join(data["lacking"].values())
        raise BadInput(
            f"the file does not keep all of the problem ({why}): give it yourself, as in "
            "rx.load_plan(path, problem=problem)."
        )
    made = {name: decode(data[name], trust) for name in data if name != "lacking"}
    cost, end, duration = made["cost"], made["end"], made["duration"]
    if isinstance(cost, dict):
        effort = cost["minimum"] == "effort"
        cost = MinimumEffort(cost["weights"]) if effort else MinimumTime()
    if isinstance(end, dict):
        end = Reach(end["reach"], velocity=end["velocity"], axis=end["axis"], along=end["along"])
    if isinstance(duration, dict):
        free = duration["free"]
        duration = Free(free["guess"], lower=free["lower"], upper=free["upper"])
    return ControlProblem(
        made["plant"],
        made["integrator"],
        start=made["start"],
        end=end,
        duration=duration,
        steps=made["steps"],
        cost=cost,
        final_cost=made["final_cost"],
        path=made["path"],
        bounds=(np.asarray(ds["lower"].values), np.asarray(ds["upper"].values)),
    )


# The plan from its numbers


def _plan(ds: "xr.Dataset", problem: ControlProblem) -> Plan:
    s, N = problem.model.sizes, problem.steps
    leaves = jax.tree.leaves(problem.system.group.layout())
    g = [_array(ds, f"g{k}", (N + 1, *leaf.shape)) for k, leaf in enumerate(leaves)]
    nodes = [*(x.reshape(N + 1, -1) for x in g), _array(ds, "momentum", (N + 1, s.dim))]
    stages = [_array(ds, "controls", (N, s.inputs)), _array(ds, "costates", (N, s.state))]
    if s.bounded:
        names = ("lower_multipliers", "upper_multipliers")
        stages += [_array(ds, name, (N, s.inputs)) for name in names]
    stages += [_array(ds, name, (N, s.path)) for name in ("path_slacks", "path_multipliers")]
    about = ds.attrs
    status = about["status"]
    one = {name: np.array([float(about[name])]) for name in ("h", "cost", "largest_defect")}
    require_possible(about, [f"residual_{name}" for name in _RESIDUALS])
    errors = Errors(*(np.array([float(about[f"residual_{n}"])]) for n in _RESIDUALS))
    found = Found(
        nodes=np.concatenate(nodes, axis=1).T[..., None],
        stages=np.concatenate(stages, axis=1).T[..., None],
        path=_array(ds, "path", (N, s.path)).T[..., None],
        end_multipliers=_array(ds, "end_multipliers", (s.ends,))[:, None],
        time_multipliers=np.zeros((2, 1)),
        h=one["h"],
        cost=one["cost"],
        miss=_array(ds, "miss", (s.ends,))[:, None],
        converged=np.array([status != "not converged"]),
        minimum=np.array([status == "minimum"]),
        iterations=np.array([int(about["iterations"])]),
        errors=errors,
        defects=one["largest_defect"][:, None],
    )
    others = np.reshape(ds["others"].values, (-1, 2)) if "others" in ds else np.zeros((0, 2))
    listed = tuple((float(cost), float(duration)) for cost, duration in others)
    return Plan(problem, found, seconds=float(about["seconds"]), others=listed)


def _array(ds: "xr.Dataset", name: str, shape: tuple[int, ...]) -> np.ndarray:
    """Return an array of the file, of a shape that the problem asks for."""
    if 0 in shape:
        return np.zeros(shape)
    if name not in ds:
        raise BadInput(f"it has no {name.replace('_', ' ')}, which belongs to this problem.")
    values = np.asarray(ds[name].values, float)
    if values.shape != shape or not np.isfinite(values).all():
        raise BadInput(
            f"its {name} has shape {values.shape}, but finite numbers of shape {shape} belong to "
            "this problem."
        )
    return values
