"""The system and the integrator of a run in its file: all of them, or as much as data can hold."""

import dataclasses
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import equinox as eqx
import jax
import numpy as np

from retrax.errors import BadInput, warn
from retrax.integrators.base import AbstractIntegrator
from retrax.integrators.driven import Driven
from retrax.mechanics.mechanical import AbstractMechanicalSystem, inertia_at_identity
from retrax.mechanics.remembered import MASS_MATRIX, RememberedSystem
from retrax.mechanics.state import State
from retrax.mechanics.symmetry import Symmetries
from retrax.mechanics.system import AbstractGroupSystem
from retrax.numerics.checks import quote, reason
from retrax.numerics.evaluate import as_jax
from retrax.store.objects import (
    ARRAY_TYPES,
    Data,
    NeedsImport,
    Trust,
    Unstorable,
    decode,
    encode,
    factories,
)
from retrax.trajectory.trajectory import Trajectory

_KINDS = {
    "system": (AbstractGroupSystem, "a retrax system"),
    "integrator": (AbstractIntegrator, "a retrax integrator"),
}


class RunObjects(NamedTuple):
    """What moves and how; `None` for what a file does not hold."""

    system: AbstractGroupSystem | None
    integrator: AbstractIntegrator | None


def encode_objects(
    system: AbstractGroupSystem | None, integrator: AbstractIntegrator | None
) -> tuple[dict[str, Data], dict[str, str]]:
    """Encode what moves and how, and say by name why something could not be encoded.

    The data of a system that holds functions of the user's is `None`, or names their factory; then
    `remembered` has its name, its space, its arrays and the names of its functions.
    """
    data: dict[str, Data] = {}
    lacking: dict[str, str] = {}
    system = None if system is None else system.for_storage()
    if isinstance(system, RememberedSystem) and system.recipe:
        data, lacking = encode_objects(None, integrator)
        return {
            **data,
            "system": json.loads(system.recipe),
            "remembered": encode(system, ""),
        }, lacking
    for name, value in (("system", system), ("integrator", integrator)):
        try:
            data[name] = encode(value, name)
        except Unstorable as why:
            data[name], lacking[name] = None, str(why)
    if system is not None and (data["system"] is None or any(factories(data["system"]))):
        data["remembered"] = _remember(system)
    return data, lacking


def encode_run(run: Trajectory) -> dict[str, Data]:
    """Encode all that it takes to take a run again: its objects, its start and its plan."""
    data, _ = encode_objects(run.system, run.integrator)
    events = {"events": run.events.data()} if run.events.names else {}
    return {**data, **_begin(run), **events}


def require_begun(run: Trajectory, objects: dict[str, Data]) -> None:
    """Reject a start or a plan that is not the one of the states."""
    for name, made in _begin(run).items():
        told: Any = objects.get(name, made)
        if name == "state":  # what a controller keeps is nested as the integrator says
            told, made = ({**x["fields"], "control": None} for x in (told, made))
        if told != made:
            raise BadInput(f"its {name} is not that of its states")


def _begin(run: Trajectory) -> dict[str, Any]:
    start = jax.tree.map(lambda x: np.asarray(x[0]), run.states)
    plan = {"h": float(run.h), "steps": run.steps, "save_every": run.save_every}
    return {"state": encode(start, "state"), "plan": plan}


def _remember(system: AbstractGroupSystem) -> Data:
    """Encode what can be kept of a system with functions of the user's in it."""
    fields = _fields(system)
    arrays = {
        name: np.asarray(value)
        for name, value in fields.items()
        if isinstance(value, np.ndarray | jax.Array) and str(value.dtype) in ARRAY_TYPES
    }
    if isinstance(system, AbstractMechanicalSystem) and system.invariant_inertia:
        inertia = inertia_at_identity(system)
        arrays[MASS_MATRIX] = inertia if inertia.ndim == 2 else np.diag(inertia)
    functions = [pair for name, x in fields.items() for pair in _name_lost(name, x)]
    if not type(system).__module__.startswith("retrax."):
        functions.append(("class", _name(type(system))))
    kept = RememberedSystem(
        title=system.name,
        space=system.configuration_space,
        numbers=arrays,
        functions=tuple(functions),
        drawing=getattr(system, "drawing", None),
        measured=dict(system.units),
        e3_points_up=getattr(system, "e3_points_up", True),
    )
    try:
        return encode(kept, "system")
    except Unstorable:  # a space of the user's own
        return None


def _fields(value: Any) -> dict[str, Any]:
    return {f.name: getattr(value, f.name, None) for f in dataclasses.fields(value)}


def _name_lost(where: str, value: Any) -> Iterator[tuple[str, str]]:
    """Name the functions and classes in a value that a file cannot keep: `constraint.A`."""
    try:
        encode(value, where)
    except Unstorable:
        if isinstance(value, eqx.Module) and not callable(value):
            inside = list(_fields(value).items())
        elif isinstance(value, dict):
            inside = list(value.items())
        elif isinstance(value, tuple | list):
            inside = list(enumerate(value))
        else:
            yield where, _name(getattr(value, "func", value))
            return
        found = [pair for name, x in inside for pair in _name_lost(f"{where}.{name}", x)]
        yield from found or [(where, _name(type(value)))]


def _name(value: Any) -> str:
    name = getattr(value, "__qualname__", type(value).__qualname__)
    return f"{name} of {getattr(value, '__module__', type(value).__module__)}"


def decode_object(data: Mapping[str, Data], name: str, trust: Trust) -> Any:
    """Rebuild the `system` or the `integrator`; `None` where the file does not hold it."""
    value = decode(data.get(name), trust)
    kind, what = _KINDS[name]
    if value is not None and not isinstance(value, kind):
        raise BadInput(f"the stored {name} is {quote(value)}, not {what}.")
    return value


def read_objects(path: Path, data: Mapping[str, Data], states: State, trust: Trust) -> RunObjects:
    """Rebuild as much of what moves and how as the data of a file allows.

    **Arguments:** `states`: the states of the run, which the system must fit; `trust`: as for
    `decode`. Warns where something is stored but cannot be rebuilt.
    """
    system = _readable(path, data, "system", states, trust)
    if system is None:
        system = _readable(path, data, "remembered", states, trust)
        if isinstance(system, RememberedSystem) and any(factories(data.get("system"))):
            modules = dict.fromkeys(name.partition(":")[0] for name in factories(data["system"]))
            system = dataclasses.replace(
                system, recipe=json.dumps(data["system"]), trust=tuple(modules)
            )
    return RunObjects(system, _readable(path, data, "integrator", states, trust))


def _readable(path: Path, data: Mapping[str, Data], name: str, states: State, trust: Trust) -> Any:
    try:
        if name == "integrator":
            return decode_object(data, name, trust)
        value = decode_object({"system": data.get(name)}, "system", trust)
        if value is not None:
            require_fit(value, states)
        return value
    except NeedsImport:
        if trust:
            raise
    except BadInput as cause:
        what = "integrator" if name == "integrator" else "system"
        warn(
            f"the {what} in {str(path)!r} cannot be rebuilt here, so its run is read without it: "
            f"{cause}"
        )
    return None


def require_fit(system: AbstractGroupSystem, states: State) -> None:
    """Reject a stored system that the states of its run do not fit, or that cannot measure them.

    Shapes come first: a forged system may claim more dimensions than there is memory for.
    """
    try:
        like = system.configuration_space.layout()
        wanted = [np.shape(leaf) for leaf in jax.tree.leaves(like)]
        fits = [np.shape(leaf)[1:] for leaf in jax.tree.leaves(states.g)] == wanted
        fits = fits and np.shape(states.momentum)[1:] == (system.group.dim,)
        if fits and not isinstance(system, RememberedSystem):
            fits = _measures(system, state_like(like, jax.tree.leaves(states)))
    except Exception as cause:  # whatever a system makes of parts that do not belong to it
        raise BadInput(f"the stored system is damaged: {reason(cause)}.") from cause
    if not fits:
        raise BadInput("the stored system is not that of the stored states.")


def _measures(system: AbstractGroupSystem, states: State) -> bool:
    """Return whether a system can be asked, in shapes alone, what `Observations` holds."""
    first = jax.tree.map(lambda x: jax.ShapeDtypeStruct(x.shape[1:], x.dtype), states)
    nothing = np.zeros((0, first.momentum.shape[0]))
    velocity, *_ = jax.eval_shape(
        lambda s: (
            system.velocity_at(s),
            system.invariants(s, Symmetries(nothing, nothing)),
            system.multipliers(s),
            system.observables(s),
            system.power(s),
        ),
        first,
    )
    return len(velocity.shape) == 1


def state_like(g: Any, leaves: list[Any]) -> State:
    """Build a state whose configuration is nested like `g` from its leaves as NumPy arrays.

    What lies between momentum and time is what a controller keeps, a tuple as far as this knows.
    """
    nested = jax.tree.map(lambda _: as_jax(np.zeros(())), g)
    kept = len(leaves) - len(jax.tree.leaves(g)) - 2
    control = tuple(as_jax(np.zeros(())) for _ in range(kept)) or None
    start = State(nested, as_jax(np.zeros(1)), as_jax(np.zeros(())), control)
    return jax.tree.unflatten(jax.tree.structure(start), leaves)


def with_kept(states: State, integrator: AbstractIntegrator | None) -> State:
    """Return states with what a controller keeps nested as it nests it, where that is known."""
    if states.control is None or not isinstance(integrator, Driven):
        return states
    blank = integrator.control.blank(integrator.actuators.count)
    kept, tree = jax.tree.leaves(states.control), jax.tree.structure(blank)
    records = len(np.atleast_1d(states.t))
    wanted = [(records, *np.shape(leaf)) for leaf in jax.tree.leaves(blank)]
    if [np.shape(leaf) for leaf in kept] != wanted:
        raise BadInput(
            f"the controller of {integrator!r} keeps arrays of shapes "
            f"{[shape[1:] for shape in wanted]}, but that of the run kept "
            f"{[np.shape(leaf)[1:] for leaf in kept]}: it is another one."
        )
    return State(states.g, states.momentum, states.t, jax.tree.unflatten(tree, kept))
