"""The part of a page that runs: the step as WebAssembly, and what the page makes of its numbers.

A live page has the step of the run, a function that places a body at a start, and one that looks at
a state: its invariants and observables. `retrax.show.live_tracks` has the formulas it draws by.
"""

import base64
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from retrax.engine.kinds import Unscalarisable
from retrax.errors import BadInput
from retrax.exporting.model import StepModel
from retrax.exporting.wasm import Further, loader, state_place, wasm
from retrax.groups.so3 import SO3
from retrax.integrators.base import AbstractIntegrator
from retrax.integrators.driven import Driven
from retrax.mechanics.holonomic import AbstractHolonomic
from retrax.mechanics.placement import place_near
from retrax.mechanics.remembered import RememberedSystem
from retrax.mechanics.state import State
from retrax.mechanics.system import AbstractGroupSystem
from retrax.mechanisms.system import MechanismSystem
from retrax.show.curves import panels
from retrax.show.live_tracks import COMPARED, random_states, touches, tracks
from retrax.show.pictures.own import Draw
from retrax.trajectory.observe import deviations
from retrax.trajectory.trajectory import Trajectory

# So many sliders at most for the place, for the velocity, and for parameters.
_SLIDERS = 6
_PARAMETERS = 12
# What curves with a letter and a number are the components of, as `_looking` names it.
_LETTERS = {"ξ": "velocity velocity", "λ": "multipliers multipliers", "u": "inputs inputs"}


def live_data(run: Trajectory, draw: Draw | None = None) -> dict[str, Any]:
    """Return everything that the page needs to run on: code, sliders, tracks, curves."""
    system, integrator = run.system, run.integrator
    if system is None or integrator is None or isinstance(system, RememberedSystem):
        raise BadInput(
            "this run does not know its system any more, and a live page needs its step; make the "
            "page of a run that was not loaded from a file, or leave live=True out."
        )
    return run.as_it_was(lambda: _data(run, system, integrator, draw))


def _data(
    run: Trajectory, system: AbstractGroupSystem, integrator: AbstractIntegrator, draw: Draw | None
) -> dict[str, Any]:
    start = _state(run, 0)
    model = StepModel(system, integrator, start, float(run.h), "live")
    names, look = _looking(run, model)
    moved = _placing(model, start)
    place = moved or _scaling(model, start)
    further = [
        Further("look", look, state_place(model), None),
        Further("place", place, None, state_place(model)),
    ]
    code, layout = wasm(model, further)
    return {
        "wasm": base64.b64encode(code).decode(),
        "layout": layout,
        "looks": len(names),
        "tracks": tracks(run, draw),
        "panels": _curves(run, names),
        "sliders": _starts(run, start) if moved else _scale(start),
        "params": _parameters(model),
        "dim": system.group.dim,
        "velocity": np.asarray(run.velocity)[0].tolist() if moved else [1.0],
        "steps": _steps_a_frame(run),
    }


def _state(run: Trajectory, k: int) -> State:
    return jax.tree.map(lambda x: jnp.asarray(np.asarray(x)[k]), run.states)


def _looking(run: Trajectory, model: StepModel) -> tuple[list[str], Any]:
    """Return the program that evaluates the curves at a state, and the names of its results.

    What has no scalar program is left out.
    """
    symmetries = model.system.symmetries()
    parts = {
        "invariants": lambda s, i, x: s.invariants(
            x, symmetries, s.energy(x, s.velocity_at(x)) if s.has_energy else None
        ),
        "velocity": lambda s, i, x: {"velocity": s.velocity_at(x)},
        "defect": lambda s, i, x: {"defect": s.configuration_space.defect(x.g)},
        "violation": lambda s, i, x: {"violation": s.constraint_violation(x)},
        "multipliers": lambda s, i, x: {"multipliers": s.multipliers(x)},
        "observables": lambda s, i, x: s.observables(x),
    }
    if isinstance(model.integrator, Driven):
        parts["inputs"] = lambda s, i, x: {"inputs": i.inputs(s, x, jnp.asarray(run.h))}
    kept = dict(parts)

    def look(system: Any, integrator: Any, state: State) -> Any:
        return {name: part(system, integrator, state) for name, part in kept.items()}

    try:
        program = model.program_of(look, model.start)
    except Unscalarisable:
        kept = {name: part for name, part in parts.items() if _has_program(model, part)}
        program = model.program_of(look, model.start)
    shapes: Any = jax.eval_shape(lambda x: look(model.system, model.integrator, x), model.start)
    names = [
        f"{group} {key} {k}"
        for group, values in sorted(shapes.items())
        for key, value in sorted(values.items())
        for k in range(int(np.prod(value.shape)))
    ]
    return names, program


def _has_program(model: StepModel, part: Callable[[Any, Any, State], Any]) -> bool:
    try:
        model.program_of(part, model.start)
    except Unscalarisable:
        return False
    return True


def _placing(model: StepModel, start: State) -> Any:
    """Return the program that places the body: from where it was moved by u, with a velocity.

    `None` where that has no scalar program, and for the many coordinates of a mechanism, which
    would be moved apart one by one.
    """

    def place(system: Any, integrator: Any, u: Any, xi: Any) -> State:
        g = system.configuration_space.move(start.g, u)
        if system.flows or not system.has_momentum:
            return State(g, start.momentum, start.t)
        mu = system.momentum(g, xi)
        if isinstance(system.constraint, AbstractHolonomic):
            g = place_near(system, system.constraint, g, mu, jnp.asarray(start.t))
        if system.constraint is not None:
            mu = system.project_momentum(g, mu, start.t)
        return begin(system, integrator, State(g, mu, start.t))

    if isinstance(model.system, MechanismSystem):
        return None
    try:
        return model.program_of(place, *_free(model))
    except Unscalarisable:
        return None


def _scaling(model: StepModel, start: State) -> Any:
    """Return the program that starts where the run did, with all velocities scaled by a factor.

    Joints and wheels that allow a velocity allow every multiple of it.
    """

    def place(system: Any, integrator: Any, u: Any, xi: Any) -> State:
        return begin(system, integrator, State(start.g, xi[0] * start.momentum, start.t))

    return model.program_of(place, *_free(model))


def begin(system: Any, integrator: Any, state: State) -> State:
    """Return a start, with what a controller keeps."""
    return integrator.begin(system, state) if isinstance(integrator, Driven) else state


def _free(model: StepModel) -> tuple[jax.ShapeDtypeStruct, jax.ShapeDtypeStruct]:
    free = jax.ShapeDtypeStruct((model.system.group.dim,), jnp.float64)
    return free, free


def _starts(run: Trajectory, start: State) -> dict[str, list[dict[str, Any]]]:
    return {"place": _turns(run), "velocity": _velocities(run, start)}


def _scale(start: State) -> dict[str, list[dict[str, Any]]]:
    """Return one slider: how many times as fast as the run it starts."""
    moves = bool(np.any(np.asarray(start.momentum)))
    sliders = [_Slider(0, "times as fast", 1.0, -3.0, 3.0)._asdict()] if moves else []
    return {"place": [], "velocity": sliders}


class _Slider(NamedTuple):
    """A number that can be moved: its place among those it belongs to, its name and its range."""

    at: int
    name: str
    value: float
    low: float
    high: float


def _turns(run: Trajectory) -> list[dict[str, Any]]:
    dim = run.system.group.dim if run.system is not None else 0
    turns = isinstance(getattr(run.system, "group", None), SO3)
    name = "turned about e" if turns else "moved along e"
    return [
        _Slider(k, f"{name}{k + 1}", 0.0, -3.0, 3.0)._asdict() for k in range(min(dim, _SLIDERS))
    ]


def _velocities(run: Trajectory, start: State) -> list[dict[str, Any]]:
    system = run.system
    assert system is not None
    if system.flows or not system.has_momentum:
        return []
    xi = np.asarray(run.velocity)[0]
    reach = 2.0 * float(np.max(np.abs(np.asarray(run.velocity)))) or 1.0
    return [
        _Slider(k, f"velocity {k + 1}", float(xi[k]), -reach, reach)._asdict()
        for k in range(min(len(xi), _SLIDERS))
    ]


def _parameters(model: StepModel) -> list[dict[str, Any]]:
    """Return sliders for the first parameters that are numbers of a few."""
    found = []
    for field in model.params:
        # Shapes that touch stay as they are, and the places where bodies are joined.
        if field.size > _SLIDERS or "pairs" in field.name or field.name.startswith("reference"):
            continue
        for k, value in enumerate(field.values):
            low, high = sorted((0.25 * value, 3.0 * value)) if value else (-1.0, 1.0)
            if "restitution" in field.name:
                low, high = 0.0, 1.0
            name = field.name.replace("_", " ").strip() + (f" {k + 1}" if field.shape else "")
            found.append(_Slider(field.first + k, name, value, low, high)._asdict())
    return found[:_PARAMETERS]


def _steps_a_frame(run: Trajectory) -> int:
    """Return steps between two of sixty frames a second that show the motion as fast as it was."""
    length = float(run.t[-1] - run.t[0])
    speed = 1.0 if 5 <= length <= 300 else length / 30
    return int(np.clip(round(speed / 60 / abs(float(run.h))), 1, 1000))


def _curves(run: Trajectory, names: Sequence[str]) -> list[dict[str, Any] | None]:
    """Return, for each panel of the page, the places of its curves among the results of `_looking`.

    `None` for a panel with a curve that is not seen there.
    """
    columns = _columns(run)
    # At random states no two quantities look alike. Bodies that touch are in no such state.
    others, elsewhere = ({}, columns) if touches(run) else _elsewhere(run, columns)
    found = []
    for panel in panels(run):
        if panel.values:
            told = others.get(panel.title, {})
            curves = [
                _matching(name, told[name], elsewhere, names)
                if name in told and np.all(np.isfinite(told[name]))
                else _matching(name, y, columns, names)
                for name, y in panel.values.items()
            ]
            found.append(None if None in curves else {"curves": curves})
    return found


def _elsewhere(
    run: Trajectory, columns: dict[str, np.ndarray]
) -> tuple[dict[str, dict[str, np.ndarray]], dict[str, np.ndarray]]:
    """Return curves of the panels by title, and the results of `_looking`, at random states."""
    probe = random_states(run, COMPARED)
    try:
        return {panel.title: panel.values for panel in panels(probe)}, _columns(probe)
    except (ArithmeticError, ValueError, np.linalg.LinAlgError):
        return {}, columns


def _columns(run: Trajectory) -> dict[str, np.ndarray]:
    """Return the results of `_looking` along a run, by their names."""
    seen = run.observations
    groups = {
        "invariants": seen.invariants,
        "velocity": {"velocity": seen.velocity},
        "defect": {"defect": seen.defect},
        "violation": {"violation": seen.violation},
        "multipliers": {"multipliers": seen.multipliers},
        "observables": seen.observables,
        "inputs": {"inputs": run.inputs},
    }
    columns: dict[str, np.ndarray] = {}
    for group, values in groups.items():
        for key, value in values.items():
            flat = np.asarray(value).reshape(len(run.t), -1)
            columns |= {f"{group} {key} {k}": flat[:, k] for k in range(flat.shape[1])}
    return columns


def _matching(
    name: str, y: np.ndarray, columns: dict[str, np.ndarray], names: Sequence[str]
) -> tuple[int, bool] | None:
    """Return which column a curve is, and whether it is the change of it since the start.

    Curves that are zero all the time look alike. Among several such columns take the one with the
    name of the curve; return `None` where no column has it.
    """
    letter, number = name[:1], name[1:]
    numbered = f"{_LETTERS.get(letter)} {int(number) - 1}" if number.isdecimal() else ""
    found = []
    for k, other in enumerate(names):
        column = columns.get(other)
        if column is not None and np.array_equal(column, y):
            found.append((k, False))
        elif column is not None and np.array_equal(deviations(column), y):
            found.append((k, True))
    named = [one for one in found if f" {name} " in f" {names[one[0]]} "]
    exact = [one for one in found if names[one[0]] == numbered]
    likely = exact or named or found
    return likely[0] if exact or named or len(found) == 1 else None


def stepper_script() -> str:
    """Return the script that makes a stepper of the code, as exported steps have it."""
    return loader()
