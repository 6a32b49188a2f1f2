"""Runs as xarray datasets: one run and back, and the runs of many bodies at once."""

import json
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import jax
import numpy as np
from jaxtyping import PyTree

from retrax.engine.progress import FAILURE, INTERVAL, Interval
from retrax.errors import BadInput, printable, printable_lines
from retrax.mechanics.state import State
from retrax.mechanics.system import AbstractGroupSystem
from retrax.numerics.checks import require_instance, shown
from retrax.numerics.evaluate import as_jax
from retrax.trajectory.observe import Observations, observe

if TYPE_CHECKING:
    import xarray as xr

    from retrax.trajectory.trajectory import Trajectory

FORMAT, FORMAT_VERSION = "retrax-trajectory", 1
_NUMBERS = {"h": float, "steps": int, "completed": int, "save_every": int}
_TIMINGS = {"seconds": float, "compile_seconds": float}
MEMBERS_FORMAT = "retrax-ensemble"
REASONS = ("none", "not_converged", "left_chart", "not_finite")
# No configuration has more parts.
_MOST = 100_000

# Dimensions, values and attributes of a variable of a dataset.
Variable = tuple[tuple[str, ...] | str, Any, dict[str, Any]]
# A configuration: an array, or nested tuples of arrays.
Configuration = PyTree[Any]
# The number of a leaf, or a list of nestings.
Nesting = int | list[Any]

T = TypeVar("T")


class Contents(NamedTuple):
    """All of a run, as a dataset or a file holds it: variables, their coordinates, attributes."""

    variables: dict[str, Variable]
    coordinates: dict[str, Variable]
    attributes: dict[str, Any]


def dataset(run: "Trajectory") -> "xr.Dataset":
    """Return the contents of a run as a dataset."""
    import xarray as xr

    return xr.Dataset(*contents(run))


def contents(run: "Trajectory") -> Contents:
    """Collect all of a run: configuration, momentum, velocity, invariants, statistics."""
    _, structure = flattened(run.g)
    variables = configuration_variables(run.g, ("time",), run.provenance["group"])
    body = ("time", "body")
    variables["momentum"] = (body, np.asarray(run.momentum), {"long_name": "body momentum"})
    variables["velocity"] = (body, np.asarray(run.velocity), {"long_name": "body velocity"})
    for name, values in run.observations.invariants.items():
        attributes = {"long_name": name, "kind": "invariant"}
        if name == "energy":
            attributes["units"] = "J"
        variables[identifier(name)] = ("time", np.asarray(values), attributes)
    if run.observations.power is not None:
        variables |= _worked_on(run)
    variables["group_defect"] = (
        "time",
        run.group_defect(),
        {"long_name": "distance from the group"},
    )
    if run.multipliers.shape[1]:
        variables |= _reactions(run)
    variables |= _observables(run)
    for name, values in run.info._asdict().items():
        long_name = f"Newton {name} since the last saved state"
        variables[name] = ("time", np.asarray(values), {"long_name": long_name})
    variables["increment"][2]["long_name"] = "largest |h xi| since the last saved state"
    return Contents(
        variables,
        {"time": ("time", np.asarray(run.t), {"units": "s", "long_name": "time"})},
        {
            "format": FORMAT,
            "format_version": FORMAT_VERSION,
            "configuration": json.dumps(structure),
            **{name: getattr(run, name) for name in (*_NUMBERS, *_TIMINGS)},
            **{f"provenance_{key}": value for key, value in run.provenance.items()},
        },
    )


def configuration_variables(
    g: Configuration, dims: tuple[str, ...], group: str
) -> dict[str, Variable]:
    """Name the parts of a configuration as variables; `dims` are the axes before its own."""
    leaves, _ = flattened(g)
    variables: dict[str, Variable] = {}
    for k, leaf in enumerate(leaves):
        name = "g" if len(leaves) == 1 else f"g{k}"
        own = tuple(f"{name}_{axis}" for axis in range(leaf.ndim - len(dims)))
        attributes = {"long_name": f"configuration in {group}", "kind": "configuration"}
        variables[name] = ((*dims, *own), leaf, attributes)
    return variables


def from_dataset(ds: "xr.Dataset") -> "Trajectory":
    """Rebuild the trajectory that a dataset holds, but for its system and integrator."""
    from retrax.trajectory.trajectory import Trajectory

    if ds.attrs.get("format") == "retrax-ensemble":
        raise BadInput(
            "this dataset holds an ensemble, many runs at once: it is read with xarray, and a page "
            "shows a single run, simulated by itself."
        )
    if ds.attrs.get("format") != FORMAT:
        raise BadInput(
            f"this dataset is not a retrax run: it has no attribute format = {FORMAT!r}."
        )
    version = _attribute(ds, "format_version", int)
    if version > FORMAT_VERSION:
        raise BadInput(
            f"this run was written in format {version}, and this retrax reads up to "
            f"{FORMAT_VERSION}: a newer retrax is needed."
        )
    if version < 1:
        raise BadInput(f"this run is of format {version}, which there never was.")
    structure = read_nesting(ds.attrs["configuration"])

    def read(name: str) -> Any:
        if name not in ds:
            raise BadInput(f"it has no variable {name!r}.")
        return ds[name].values

    invariants = {
        _text("long_name", v.attrs["long_name"]): v.values
        for v in ds.data_vars.values()
        if v.attrs.get("kind") == "invariant"
    }
    prefix = "provenance_"
    g = unflattened(structure, lambda k: as_jax(read("g" if structure == 0 else f"g{k}")))
    numbers: dict[str, Any] = {
        name: _attribute(ds, name, kind) for name, kind in (_NUMBERS | _TIMINGS).items()
    }
    return Trajectory(
        t=read("time"),
        states=jax.tree.map(np.asarray, State(g, as_jax(read("momentum")), read("time"))),
        info=Interval(*(read(name) for name in Interval._fields)),
        **numbers,
        provenance={
            printable(str(key)[len(prefix) :]): _text(str(key), value)
            for key, value in ds.attrs.items()
            if str(key).startswith(prefix)
        },
        observations=Observations(
            read("velocity"),
            invariants,
            read("group_defect"),
            *_read_reactions(ds),
            {
                _text("long_name", v.attrs["long_name"]): v.values
                for v in ds.data_vars.values()
                if v.attrs.get("kind") == "observable"
            },
            *(ds[name].values if name in ds else None for name in ("energy", "power")),
        ),
    )


def _attribute(ds: "xr.Dataset", name: str, kind: type) -> Any:
    """Read a number among the attributes; whole numbers are stored as such."""
    value = np.asarray(ds.attrs[name])
    if value.ndim or value.dtype.kind not in ("iu" if kind is int else "iuf"):
        wanted = "a whole number" if kind is int else "a number"
        raise ValueError(f"its attribute {name} = {shown(ds.attrs[name])} is not {wanted}")
    return kind(value)


def _text(name: str, value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError(f"its attribute {name} = {shown(value)} is not text")
    return printable_lines(value)


def _observables(run: "Trajectory") -> dict[str, Variable]:
    """Collect what else the system measures; own axes are named after the quantity."""
    variables = {}
    for name, values in run.observations.observables.items():
        short = identifier(name)
        own = tuple(f"{short}_{axis}" for axis in range(values.ndim - 1))
        attributes = {"long_name": name, "kind": "observable"}
        unit = "" if run.system is None else run.system.unit_of(name)
        if unit:
            attributes["units"] = unit
        variables[short] = (("time", *own), values, attributes)
    return variables


def _worked_on(run: "Trajectory") -> dict[str, Variable]:
    """Collect an energy that changes, and its rate."""
    words = "power of forces, damping and driven constraints"
    return {
        "energy": ("time", run.energy(), {"long_name": "energy", "units": "J"}),
        "power": ("time", run.observations.power, {"long_name": words, "units": "W"}),
    }


def _reactions(run: "Trajectory") -> dict[str, Variable]:
    """Collect what a constraint does, and how well it is kept."""
    multipliers = ("time", "constraint"), run.multipliers, {"long_name": "multipliers"}
    reaction = ("time", "body"), run.reaction, {"long_name": "reaction of the constraint"}
    violation = "time", run.constraint_violation(), {"long_name": "velocity across the constraint"}
    return {
        "multipliers": multipliers,
        "reaction": reaction,
        "constraint_violation": violation,
    }


def _read_reactions(ds: "xr.Dataset") -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    if "multipliers" in ds:
        violation = ds["constraint_violation"].values
        return ds["multipliers"].values, ds["reaction"].values, violation
    shape = ds["velocity"].shape
    return np.zeros((shape[0], 0)), np.zeros(shape), np.zeros(shape[0])


def identifier(name: str) -> str:
    kept = "".join(c if c.isalnum() else "_" for c in name)
    return "_".join(part for part in kept.split("_") if part)


# Nested tuples of arrays as numbered leaves


def flattened(g: Configuration, first: int = 0) -> tuple[list[np.ndarray], Nesting]:
    """Return the leaves of nested tuples, and the same nesting with their numbers in place."""
    if not isinstance(g, tuple):
        return [np.asarray(g)], first
    leaves: list[np.ndarray] = []
    structure = []
    for part in g:
        inner, numbered = flattened(part, first + len(leaves))
        leaves += inner
        structure.append(numbered)
    return leaves, structure


def read_nesting(text: Any) -> Nesting:
    """Read the nesting of a configuration as a file tells it in JSON.

    **Raises:** `ValueError` unless it is lists in lists of the numbers from 0 on, in order.
    """
    try:
        structure = json.loads(text)
        found = list(_numbers(structure))
    except (TypeError, ValueError, RecursionError):
        found = []
    if not 0 < len(found) <= _MOST or found != list(range(len(found))):
        raise ValueError(f"configuration = {shown(text)} is not a nesting")
    return structure


def _numbers(structure: Nesting) -> Iterator[int]:
    if isinstance(structure, list):
        for part in structure:
            yield from _numbers(part)
    elif type(structure) is int:
        yield structure
    else:
        raise ValueError


def unflattened(structure: Nesting, leaf: Callable[[int], T]) -> T | tuple[Any, ...]:
    """Rebuild nested tuples from their numbered leaves."""
    if isinstance(structure, int):
        return leaf(structure)
    return tuple(unflattened(part, leaf) for part in structure)


# The runs of many bodies


def members_dataset(
    states: State,
    interval: np.ndarray,
    failure: np.ndarray,
    behind: np.ndarray,
    attributes: dict[str, Any],
) -> "xr.Dataset":
    """Collect states (time, member, ...), statistics (time, row, member), failures by member.

    `behind` is the number of steps behind each saved state.
    """
    import xarray as xr

    failures = _failures(failure)
    _blank(states, interval, behind, failures["failed_step"][1])
    both = ("time", "member")
    variables: dict[str, Any] = configuration_variables(
        states.g, both, attributes["provenance_group"]
    )
    variables["momentum"] = ((*both, "body"), states.momentum, {"long_name": "body momentum"})
    for row, name in enumerate(INTERVAL):
        long_name = f"Newton {name} since the last saved state"
        variables[name] = (both, interval[:, row], {"long_name": long_name})
    variables["increment"][2]["long_name"] = "largest |h xi| since the last saved state"
    times = states.t[:, 0]
    if np.any(states.t != times[:, None]):
        variables["t"] = (both, states.t, {"units": "s", "long_name": "time of the member"})
    return xr.Dataset(
        variables | failures,
        coords={
            "time": ("time", times, {"units": "s", "long_name": "time"}),
            "member": ("member", np.arange(failure.shape[1])),
        },
        attrs={"format": MEMBERS_FORMAT, **attributes},
    )


def _failures(failure: np.ndarray) -> dict[str, Variable]:
    """Say where and why members failed."""
    row = dict(zip(FAILURE, failure, strict=True))
    (failed,) = np.nonzero(~np.isnan(row["step"]))
    members = failure.shape[1]
    failed_step, reason = np.full(members, -1, np.int64), np.zeros(members, np.int8)
    failed_step[failed] = row["step"][failed] + 1
    diverged, left = row["converged"][failed] == 0, row["in_chart"][failed] == 0
    reason[failed] = np.where(diverged, 1, np.where(left, 2, 3))
    one = ("member",)
    return {
        "failed_step": (
            one,
            failed_step,
            {"long_name": "number of the step that failed, -1 where none did"},
        ),
        "failure": (
            one,
            reason,
            {
                "long_name": "why it failed",
                "flag_values": np.arange(len(REASONS), dtype=np.int8),
                "flag_meanings": " ".join(REASONS),
            },
        ),
        "failure_residual": (
            one,
            np.array(row["residual"]),
            {"long_name": "relative residual there"},
        ),
        "failure_increment": (one, np.array(row["increment"]), {"long_name": "|h xi| there"}),
    }


def _blank(
    states: State, interval: np.ndarray, behind: np.ndarray, failed_step: np.ndarray
) -> None:
    """Put NaN for everything that a failed member has not reached."""
    for member in np.nonzero(failed_step > 0)[0]:
        lost = behind >= failed_step[member]
        for leaf in jax.tree.leaves((states.g, states.momentum)):
            leaf[lost, member] = np.nan
        interval[lost, :, member] = np.nan


def observe_members(system: AbstractGroupSystem, runs: "xr.Dataset") -> "xr.Dataset":
    """Add velocity, invariants and group defect to the dataset of `ensemble`.

    **Arguments:** `system`: the one system of all members, or one for each along the first axis of
    its arrays; `runs`: what `ensemble` returned.
    """
    require_instance("system", system, AbstractGroupSystem, "a retrax system")
    if getattr(runs, "attrs", {}).get("format") != MEMBERS_FORMAT:
        raise BadInput(f"runs = {shown(runs)} is not a dataset that ensemble returned.")
    records, members = runs.sizes["time"], runs.sizes["member"]
    g = [
        runs[name].values
        for name in runs.data_vars
        if runs[name].attrs.get("kind") == "configuration"
    ]
    like = system.configuration_space.layout()
    shapes = [leaf.shape for leaf in jax.tree.leaves(like)]
    if [part.shape[2:] for part in g] != shapes:
        raise BadInput(
            f"runs has configurations of shapes {[part.shape[2:] for part in g]}, but those of the "
            f"{system.name} have {shapes}: it is of another system."
        )
    tree = jax.tree.unflatten(jax.tree.structure(like), g)
    g, momentum = jax.tree.map(
        lambda x: as_jax(np.reshape(x, (records * members, *x.shape[2:]))),
        (tree, runs["momentum"].values),
    )
    t = runs["t"].values if "t" in runs else np.repeat(runs["time"].values[:, None], members, 1)
    states = State(g, momentum, as_jax(t.ravel()))
    shared = runs.attrs.get("shared_system", 1)
    owner = None if shared else np.tile(np.arange(members), records)
    seen = observe(system, states, owner=owner)
    both = ("time", "member")

    def shaped(x):
        return x.reshape(records, members, *x.shape[1:])

    added: dict[str, Any] = {
        identifier(name): (both, shaped(x), {"long_name": name, "kind": "invariant"})
        for name, x in seen.invariants.items()
    }
    if seen.energy is not None and "energy" not in added:
        added["energy"] = (both, shaped(seen.energy), {"long_name": "energy", "units": "J"})
    added["velocity"] = ((*both, "body"), shaped(seen.velocity), {"long_name": "body velocity"})
    added["group_defect"] = (both, shaped(seen.defect), {"long_name": "distance from the group"})
    return runs.assign(added)
