"""A run as an xarray dataset, and back."""

import json
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr

from retrax.engine.progress import Interval
from retrax.errors import BadInput, printable, printable_lines
from retrax.mechanics.state import State
from retrax.numerics.checks import shown
from retrax.trajectory.nesting import flattened, read_nesting, unflattened
from retrax.trajectory.observe import Observations

if TYPE_CHECKING:
    from retrax.trajectory.trajectory import Trajectory

FORMAT, FORMAT_VERSION = "retrax-trajectory", 1
_NUMBERS = {"h": float, "steps": int, "completed": int, "save_every": int}
_TIMINGS = {"seconds": float, "compile_seconds": float}


def dataset(run: "Trajectory") -> xr.Dataset:
    """All of a run: configuration, momentum, velocity, invariants, statistics, provenance."""
    _, structure = flattened(run.g)
    variables = configuration_variables(run.g, ("time",), run.provenance["group"])
    body = ("time", "body")
    variables["momentum"] = (body, np.asarray(run.momentum), {"long_name": "body momentum"})
    variables["velocity"] = (body, np.asarray(run.velocity), {"long_name": "body velocity"})
    for name, values in run.invariants().items():
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
    return xr.Dataset(
        variables,
        coords={"time": ("time", np.asarray(run.t), {"units": "s", "long_name": "time"})},
        attrs={
            "format": FORMAT,
            "format_version": FORMAT_VERSION,
            "configuration": json.dumps(structure),
            **{name: getattr(run, name) for name in (*_NUMBERS, *_TIMINGS)},
            **{f"provenance_{key}": value for key, value in run.provenance.items()},
        },
    )


def configuration_variables(g: Any, dims: tuple[str, ...], group: str) -> dict[str, Any]:
    """The parts of a configuration as variables; `dims` are the axes in front of its own."""
    leaves, _ = flattened(g)
    variables: dict[str, Any] = {}
    for k, leaf in enumerate(leaves):
        name = "g" if len(leaves) == 1 else f"g{k}"
        own = tuple(f"{name}_{axis}" for axis in range(leaf.ndim - len(dims)))
        attributes = {"long_name": f"configuration in {group}", "kind": "configuration"}
        variables[name] = ((*dims, *own), leaf, attributes)
    return variables


def from_dataset(ds: xr.Dataset) -> "Trajectory":
    """The trajectory that a dataset holds. Its system and integrator are known by name only."""
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
        return ds[name].values

    invariants = {
        _text("long_name", v.attrs["long_name"]): v.values
        for v in ds.data_vars.values()
        if v.attrs.get("kind") == "invariant"
    }
    prefix = "provenance_"
    g = unflattened(structure, lambda k: jnp.asarray(read("g" if structure == 0 else f"g{k}")))
    numbers: dict[str, Any] = {
        name: _attribute(ds, name, kind) for name, kind in (_NUMBERS | _TIMINGS).items()
    }
    return Trajectory(
        t=read("time"),
        states=jax.tree.map(np.asarray, State(g, jnp.asarray(read("momentum")), read("time"))),
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


def _attribute(ds: xr.Dataset, name: str, kind: type) -> Any:
    """A number among the attributes; whole numbers are stored as such."""
    value = np.asarray(ds.attrs[name])
    if value.ndim or value.dtype.kind not in ("iu" if kind is int else "iuf"):
        wanted = "a whole number" if kind is int else "a number"
        raise ValueError(f"its attribute {name} = {shown(ds.attrs[name])} is not {wanted}")
    return kind(value)


def _text(name: str, value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError(f"its attribute {name} = {shown(value)} is not text")
    return printable_lines(value)


def _observables(run: "Trajectory") -> dict[str, Any]:
    """What else the system measures; own axes are named after the quantity."""
    variables = {}
    for name, values in run.observables().items():
        short = identifier(name)
        own = tuple(f"{short}_{axis}" for axis in range(values.ndim - 1))
        attributes = {"long_name": name, "kind": "observable"}
        if run.system is not None and name in run.system.units:
            attributes["units"] = run.system.units[name]
        variables[short] = (("time", *own), values, attributes)
    return variables


def _worked_on(run: "Trajectory") -> dict[str, Any]:
    """The energy that is no invariant, and its rate."""
    words = "power of forces, damping and driven constraints"
    return {
        "energy": ("time", run.energy(), {"long_name": "energy", "units": "J"}),
        "power": ("time", run.observations.power, {"long_name": words, "units": "W"}),
    }


def _reactions(run: "Trajectory") -> dict[str, Any]:
    """What a constraint does, and how well it is kept."""
    multipliers = ("time", "constraint"), run.multipliers, {"long_name": "multipliers"}
    reaction = ("time", "body"), run.reaction, {"long_name": "reaction of the constraint"}
    violation = "time", run.constraint_violation(), {"long_name": "velocity across the constraint"}
    return {
        "multipliers": multipliers,
        "reaction": reaction,
        "constraint_violation": violation,
    }


def _read_reactions(ds: xr.Dataset) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    if "multipliers" in ds:
        violation = ds["constraint_violation"].values
        return ds["multipliers"].values, ds["reaction"].values, violation
    shape = ds["velocity"].shape
    return np.zeros((shape[0], 0)), np.zeros(shape), np.zeros(shape[0])


def identifier(name: str) -> str:
    kept = "".join(c if c.isalnum() else "_" for c in name)
    return "_".join(part for part in kept.split("_") if part)
