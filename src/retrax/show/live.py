"""The part of a page that runs: the step as WebAssembly, and what the page makes of its numbers.

A live page has the step of the run, a function that places a body at a start, and one that looks at
a state: its invariants and observables. The picture of a run is made from saved states by
`retrax.show.pictures`; here each of its tracks is found as a function of the numbers of one state,
from pictures of random states, and compared with the tracks of the run.
"""

import base64
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from retrax.engine.kinds import Unscalarisable
from retrax.engine.progress import quiet
from retrax.errors import BadInput
from retrax.export.model import StepModel
from retrax.export.wasm import Further, loader, state_place, wasm
from retrax.groups.so3 import SO3
from retrax.mechanics.holonomic import AbstractHolonomic
from retrax.mechanics.placement import placed
from retrax.mechanics.remembered import RememberedSystem
from retrax.mechanics.state import State
from retrax.numerics.evaluate import evaluate
from retrax.show.curves import panels
from retrax.show.pictures.choose import picture
from retrax.show.pictures.own import Draw
from retrax.show.pictures.things import Track
from retrax.trajectory.observe import deviations
from retrax.trajectory.trajectory import Trajectory

# So many sliders at most for the place, for the velocity, and for parameters.
_SLIDERS = 6
_PARAMETERS = 12
# States with more numbers are drawn by functions that are linear in them.
_FEW = 26
_EXACT = 1e-8
# The states that curves and tracks are compared at.
_COMPARED = 64


def live_data(run: Trajectory, draw: Draw | None = None) -> dict[str, Any]:
    """Everything that the page needs to run on: code, sliders, tracks, curves."""
    system, integrator = run.system, run.integrator
    if system is None or integrator is None or isinstance(system, RememberedSystem):
        raise BadInput(
            "this run does not know its system any more, and a live page needs its step; make the "
            "page of a run that was not loaded from a file, or leave live=True out."
        )
    start = _state(run, 0)
    if start.control is not None:
        raise BadInput("a live page has no inputs yet; leave live=True out for a driven run.")
    model = StepModel(system, integrator, start, float(run.h), "live")
    names, look = _looking(run, model)
    further = [
        Further("look", look, state_place(model), None),
        Further("place", _placing(model, start), None, state_place(model)),
    ]
    code, layout = wasm(model, further)
    return {
        "wasm": base64.b64encode(code).decode(),
        "layout": layout,
        "looks": len(names),
        "tracks": tracks(run, draw),
        "panels": _curves(run, names),
        "sliders": {"place": _turns(run), "velocity": _velocities(run, start)},
        "params": _parameters(model),
        "dim": system.group.dim,
        "velocity": np.asarray(run.velocity)[0].tolist(),
        "steps": _steps_a_frame(run),
    }


def _state(run: Trajectory, k: int) -> State:
    return jax.tree.map(lambda x: jnp.asarray(np.asarray(x)[k]), run.states)


def _looking(run: Trajectory, model: StepModel) -> tuple[list[str], Any]:
    """The program that looks at a state, and the names of what it sees.

    What has no scalar program is left out.
    """
    symmetries = model.system.symmetries()
    parts = {
        "invariants": lambda s, x: s.invariants(
            x, symmetries, s.energy(x, s.velocity_at(x)) if s.has_energy else None
        ),
        "velocity": lambda s, x: {"velocity": s.velocity_at(x)},
        "defect": lambda s, x: {"defect": s.configuration_space.defect(x.g)},
        "violation": lambda s, x: {"violation": s.constraint_violation(x)},
        "multipliers": lambda s, x: {"multipliers": s.multipliers(x)},
        "observables": lambda s, x: s.observables(x),
    }
    kept = dict(parts)

    def look(system: Any, integrator: Any, state: State) -> Any:
        return {name: part(system, state) for name, part in kept.items()}

    try:
        program = model.program_of(look, model.start)
    except Unscalarisable:
        kept = {name: part for name, part in parts.items() if _has_program(model, part)}
        program = model.program_of(look, model.start)
    shapes: Any = jax.eval_shape(lambda x: look(model.system, None, x), model.start)
    names = [
        f"{group} {key} {k}"
        for group, values in sorted(shapes.items())
        for key, value in sorted(values.items())
        for k in range(int(np.prod(value.shape)))
    ]
    return names, program


def _has_program(model: StepModel, part: Callable[[Any, State], Any]) -> bool:
    try:
        model.program_of(lambda system, integrator, state: part(system, state), model.start)
    except Unscalarisable:
        return False
    return True


def _placing(model: StepModel, start: State) -> Any:
    """The program that places the body: from where it was moved by u, with a velocity."""

    def place(system: Any, integrator: Any, u: Any, xi: Any) -> State:
        g = system.configuration_space.move(start.g, u)
        if system.flows or not system.has_momentum:
            return State(g, start.momentum, start.t)
        mu = system.momentum(g, xi)
        if isinstance(system.constraint, AbstractHolonomic):
            g = placed(system, system.constraint, g, mu, jnp.asarray(start.t))
        if system.constraint is not None:
            mu = system.projected(g, mu, start.t)
        return State(g, mu, start.t)

    free = jax.ShapeDtypeStruct((model.system.group.dim,), jnp.float64)
    return model.program_of(place, free, free)


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
    """Sliders for the first parameters that are numbers of a few."""
    found = []
    for field in model.params:
        if field.size > _SLIDERS:
            continue
        for k, value in enumerate(field.values):
            low, high = sorted((0.25 * value, 3.0 * value)) if value else (-1.0, 1.0)
            name = field.name.replace("_", " ").strip() + (f" {k + 1}" if field.shape else "")
            found.append(_Slider(field.first + k, name, value, low, high)._asdict())
    return found[:_PARAMETERS]


def _steps_a_frame(run: Trajectory) -> int:
    """Steps between two of sixty frames a second at which the motion is as fast as it was."""
    length = float(run.t[-1] - run.t[0])
    speed = 1.0 if 5 <= length <= 300 else length / 30
    return int(np.clip(round(speed / 60 / abs(float(run.h))), 1, 1000))


def _curves(run: Trajectory, names: Sequence[str]) -> list[dict[str, Any] | None]:
    """For each panel of the page, the places of its curves among what is looked at.

    `None` for a panel with a curve that is not seen there.
    """
    columns = _columns(run)
    # At random states no two quantities look alike.
    probe = _random(run, _COMPARED)
    try:
        others = {panel.title: panel.values for panel in panels(probe)}
        elsewhere = _columns(probe)
    except (ArithmeticError, ValueError, np.linalg.LinAlgError):
        others, elsewhere = {}, columns
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


def _columns(run: Trajectory) -> dict[str, np.ndarray]:
    """What is looked at, along a run, by the names of `_looking`."""
    seen = run.observations
    groups = {
        "invariants": seen.invariants,
        "velocity": {"velocity": seen.velocity},
        "defect": {"defect": seen.defect},
        "violation": {"violation": seen.violation},
        "multipliers": {"multipliers": seen.multipliers},
        "observables": seen.observables,
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
    """Which column a curve is, and whether it is the change of it since the start.

    One that has its name comes first: curves that are zero all the time look alike.
    """
    ordered = sorted(range(len(names)), key=lambda k: f" {name} " not in f" {names[k]} ")
    for k in ordered:
        column = columns.get(names[k])
        if column is not None and np.array_equal(column, y):
            return k, False
        if column is not None and np.array_equal(deviations(column), y):
            return k, True
    return None


# A term of a track: its factor, and the feature of the state that it multiplies.
_Term = tuple[float, int, int, int]


def tracks(run: Trajectory, draw: Draw | None = None) -> list[dict[str, Any]]:
    """For each thing of the picture its tracks, each column a sum of terms; see `_features`.

    A track that is no such sum is left out, and the page does not move its thing.
    """
    real = picture(run, draw)
    few = _numbers(run).shape[1] <= _FEW
    tries = [_Probe(run, draw, products=few, angles=False)]
    if few:
        tries.append(_Probe(run, draw, products=True, angles=True))
    return [
        {
            key: next((t for t in (x.terms(value, k, key) for x in tries) if t is not None), None)
            for key, value in thing.items()
            if isinstance(value, Track)
        }
        for k, thing in enumerate(real.things)
    ]


class _Probe:
    """A picture of random states, made when it is first needed, and features of the states."""

    def __init__(self, run: Trajectory, draw: Draw | None, products: bool, angles: bool):
        self.run, self.draw, self.features = run, draw, _features(run, products, angles)

    @cached_property
    def drawn(self) -> tuple[np.ndarray, list[dict[str, Any]]]:
        """The features of the states, and the things of their picture."""
        probe = _random(self.run, 3 * len(self.features) + 20)
        try:
            things = picture(probe, self.draw).things
        except (ArithmeticError, ValueError, np.linalg.LinAlgError):
            things = []  # a picture that not every state has
        return _valued(_numbers(probe), self.features), things

    def terms(self, track: Track, k: int, key: str) -> list[list[_Term]] | None:
        """Write the columns of a track as sums of terms; `None` if they are no such sums."""
        known, things = self.drawn
        other = things[k].get(key) if k < len(things) else None
        if not isinstance(other, Track) or other.values.shape[1] != track.values.shape[1]:
            return None
        factors, *_ = np.linalg.lstsq(known, other.values, rcond=None)
        size = float(np.max(np.abs(factors))) or 1.0
        factors[np.abs(factors) < _EXACT * size] = 0.0
        if not _alike(known @ factors, other.values):
            return None
        # Lengths of arrows depend on the run: one factor for the whole track.
        run, last = self.run, len(track.values) - 1
        few = np.unique(np.linspace(0, last, min(last + 1, _COMPARED)).astype(int))
        every = -(-len(run.t) // (last + 1))  # a picture may have a track for every few states only
        here = _valued(_numbers(run)[every * few], self.features) @ factors
        wanted = track.values[few]
        squares = float(np.sum(here * here))
        scale = float(np.sum(here * wanted)) / squares if squares else 1.0
        if not _alike(scale * here, wanted):
            return None
        return [
            [
                (float(f"{scale * factors[n, c]:.10g}"), *self.features[n])
                for n in np.flatnonzero(factors[:, c])
            ]
            for c in range(factors.shape[1])
        ]


def _numbers(run: Trajectory) -> Float[np.ndarray, "time n"]:
    """The numbers of all states: configuration, momentum."""
    leaves = jax.tree.leaves((run.states.g, run.states.momentum))
    return np.concatenate([np.asarray(x).reshape(len(run.t), -1) for x in leaves], axis=1)


def _features(run: Trajectory, products: bool, angles: bool) -> list[tuple[int, int, int]]:
    """Features (kind, i, j) of numbers x: 1; x_i; x_i x_j; cos(x_i) x_j; sin(x_i) x_j.

    In the last two j = -1 stands for a factor of 1. Products are those of a configuration with a
    momentum.
    """
    total = _numbers(run).shape[1]
    own = total - np.asarray(run.states.momentum).shape[1]
    found = [(0, 0, 0), *((1, i, 0) for i in range(total))]
    if products:
        found += [(2, i, j) for i in range(own) for j in range(own, total)]
    if angles:
        found += [(kind, i, j) for kind in (3, 4) for i in range(own) for j in range(-1, own)]
    return found


def _valued(x: np.ndarray, features: Sequence[tuple[int, int, int]]) -> np.ndarray:
    """The features of all states, one column each."""

    def factor(j: int) -> np.ndarray:
        return np.ones(len(x)) if j < 0 else x[:, j]

    made = {
        0: lambda i, j: np.ones(len(x)),
        1: lambda i, j: x[:, i],
        2: lambda i, j: x[:, i] * x[:, j],
        3: lambda i, j: np.cos(x[:, i]) * factor(j),
        4: lambda i, j: np.sin(x[:, i]) * factor(j),
    }
    return np.stack([made[kind](i, j) for kind, i, j in features], axis=1)


def _random(run: Trajectory, count: int) -> Trajectory:
    """A run through states at random, of the same system."""
    system = run.system
    assert system is not None
    space = system.configuration_space

    def points(seeds: Any) -> Any:
        return jax.vmap(lambda seed: space.random(jax.random.key(seed)))(seeds)

    g = evaluate(points, np.arange(count))
    size = float(np.max(np.abs(np.asarray(run.states.momentum)))) or 1.0
    momenta: Any = size * np.random.default_rng(2).standard_normal((count, system.group.dim))
    if system.flows or not system.has_momentum:
        momenta = np.zeros_like(momenta)
    t = np.arange(count) * float(run.h)
    return Trajectory(
        t=t,
        states=State(g, momenta, t),
        info=jax.tree.map(lambda x: np.zeros(count), quiet()),
        h=run.h,
        steps=count - 1,
        completed=count - 1,
        save_every=1,
        seconds=0.0,
        compile_seconds=0.0,
        provenance=run.provenance,
        system=system,
        integrator=run.integrator,
    )


def _alike(found: np.ndarray, wanted: np.ndarray) -> bool:
    size = float(np.max(np.abs(wanted), initial=0.0)) or 1.0
    return bool(np.all(np.abs(found - wanted) <= 1e-6 * size))


def stepper_script() -> str:
    """The script that makes a stepper of the code, as exported steps have it."""
    return loader()
