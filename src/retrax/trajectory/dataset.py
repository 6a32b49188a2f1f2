"""A run as an xarray dataset, and back."""

import json
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import jax
import numpy as np
from jaxtyping import PyTree

from retrax.engine.progress import Interval
from retrax.errors import BadInput, printable, printable_lines
from retrax.mechanics.state import State
from retrax.numerics.checks import quote
from retrax.numerics.evaluate import as_jax
from retrax.trajectory.observe import Observations

if TYPE_CHECKING:
    import xarray as xr

    from retrax.trajectory.trajectory import Trajectory

FORMAT, FORMAT_VERSION = "retrax-trajectory", 1
_NUMBERS = {"h": float, "steps": int, "completed": int, "save_every": int}
_TIMINGS = {"seconds": float, "compile_seconds": float}
# The inputs of a driven run, and the leaves of what its controller keeps, `control0` and so on.
INPUTS, CONTROL = "inputs", "control"
# What only some runs have, in the order of `Observations`.
_OPTIONAL = ("energy", "power", INPUTS, "input_rates")
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


def describes(attribute: str) -> bool:
    """Return whether an attribute is one of those that describe a run."""
    own = ("format", "format_version", "configuration", *_NUMBERS, *_TIMINGS)
    return attribute in own or attribute.startswith("provenance_")


def dataset(run: "Trajectory") -> "xr.Dataset":
    """Return the contents of a run as a dataset."""
    import xarray as xr

    return xr.Dataset(*contents(run))


def contents(run: "Trajectory") -> Contents:
    """Collect all of a run: configuration, momentum, velocity, invariants, statistics."""
    _, structure = flatten(run.g)
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
        variables |= _collect_work(run)
    variables |= _inputs(run)
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
    leaves, _ = flatten(g)
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
    g = unflatten(structure, lambda k: as_jax(read("g" if structure == 0 else f"g{k}")))
    numbers: dict[str, Any] = {
        name: _attribute(ds, name, kind) for name, kind in (_NUMBERS | _TIMINGS).items()
    }
    return Trajectory(
        t=read("time"),
        states=jax.tree.map(
            np.asarray, State(g, as_jax(read("momentum")), read("time"), _read_control(ds))
        ),
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
            *(ds[name].values if name in ds else None for name in _OPTIONAL),
        ),
        held=INPUTS in ds and bool(ds[INPUTS].attrs.get("held", 0)),
    )


def _read_control(ds: "xr.Dataset") -> tuple[Any, ...] | None:
    """Read what a controller keeps, its leaves in order; `None` if it keeps nothing."""
    kept = [v for v in ds.data_vars.values() if v.attrs.get("kind") == CONTROL]
    return tuple(as_jax(ds[f"{CONTROL}{k}"].values) for k in range(len(kept))) or None


def _attribute(ds: "xr.Dataset", name: str, kind: type) -> Any:
    """Read a number among the attributes; whole numbers are stored as such."""
    value = np.asarray(ds.attrs[name])
    if value.ndim or value.dtype.kind not in ("iu" if kind is int else "iuf"):
        wanted = "a whole number" if kind is int else "a number"
        raise ValueError(f"its attribute {name} = {quote(ds.attrs[name])} is not {wanted}")
    return kind(value)


def _text(name: str, value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError(f"its attribute {name} = {quote(value)} is not text")
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


def _collect_work(run: "Trajectory") -> dict[str, Variable]:
    """Collect an energy that changes, and its rate."""
    words = "power of forces, damping and driven constraints"
    return {
        "energy": ("time", run.energy(), {"long_name": "energy", "units": "J"}),
        "power": ("time", run.observations.power, {"long_name": words, "units": "W"}),
    }


def _inputs(run: "Trajectory") -> dict[str, Variable]:
    """Collect what drove the run, and on what the inputs did work."""
    seen, dims, found = run.observations, ("time", "input"), {}
    if seen.inputs is not None:
        about = {"long_name": "inputs from here on", "held": int(run.inputs_are_held)}
        found[INPUTS] = (dims, np.asarray(seen.inputs), about)
    if seen.rates is not None:
        about = {"long_name": "velocities on which the inputs do work"}
        found["input_rates"] = (dims, np.asarray(seen.rates), about)
    for k, leaf in enumerate(jax.tree.leaves(run.states.control)):
        name = f"{CONTROL}{k}"
        own = tuple(f"{name}_{axis}" for axis in range(leaf.ndim - 1))
        about = {"long_name": "what the controller keeps", "kind": CONTROL}
        found[name] = (("time", *own), np.asarray(leaf), about)
    return found


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


def flatten(g: Configuration, first: int = 0) -> tuple[list[np.ndarray], Nesting]:
    """Return the leaves of nested tuples, and the same nesting with their numbers in place."""
    if not isinstance(g, tuple):
        return [np.asarray(g)], first
    leaves: list[np.ndarray] = []
    structure = []
    for part in g:
        inner, numbered = flatten(part, first + len(leaves))
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
        raise ValueError(f"configuration = {quote(text)} is not a nesting")
    return structure


def _numbers(structure: Nesting) -> Iterator[int]:
    if isinstance(structure, list):
        for part in structure:
            yield from _numbers(part)
    elif type(structure) is int:
        yield structure
    else:
        raise ValueError


def unflatten(structure: Nesting, leaf: Callable[[int], T]) -> T | tuple[Any, ...]:
    """Rebuild nested tuples from their numbered leaves."""
    if isinstance(structure, int):
        return leaf(structure)
    return tuple(unflatten(part, leaf) for part in structure)


# The runs of many bodies
