"""What a page plots against time: errors of invariants, and the system's own quantities."""

import re
from typing import Any, NamedTuple

import numpy as np

from retrax.show.bodies import factors_of, unit
from retrax.show.drawn import (
    contact_force,
    drawing_data,
    joint_forces,
    middle_velocity,
    unit_of,
    unwrap_angle,
)
from retrax.show.scene import single
from retrax.show.style import extremes
from retrax.trajectory.energy_balance import balance_of
from retrax.trajectory.observe import deviations
from retrax.trajectory.trajectory import Trajectory

_POINTS = 2000
_SHOWN = 6
# The name of a group that is longer than this is left out of titles.
_LONG = 24
# What a mechanism calls the coordinates of its joints, and their rates.
_COORDINATE = re.compile(
    r"(?P<rate>rate of )?(?P<word>angle|position)(?P<which> \d+)? of (?P<joint>.+)", re.S
)


class Panel(NamedTuple):
    """One plot: its title, the unit of its curves, the curves by name, and the kind of axis."""

    title: str
    unit: str
    values: dict[str, np.ndarray]
    log: bool = False


def curves(run: Trajectory) -> list[dict[str, Any]]:
    """Return the panels of a page."""
    return [thin_panel(run.t, panel) for panel in panels(run) if panel.values]


def thin_panel(t: np.ndarray, panel: Panel) -> dict[str, Any]:
    """Return a panel for the page, each curve with at most 2,000 points and all extremes."""
    return {
        "title": panel.title,
        "unit": panel.unit,
        "log": panel.log,
        "curves": [_curve(t, name, y) for name, y in panel.values.items()],
    }


def panels(run: Trajectory) -> list[Panel]:
    """Return everything worth a plot, errors first."""
    motion = joint_panels(run) or _motion(run)
    return [
        *_errors(run),
        *motion,
        *_driving_panels(run),
        *_constraint(run),
        *_measured_panels(run),
    ]


def mechanical(run: Trajectory) -> bool:
    """Return whether the run is that of bodies in SI units, not that of a flow or a field."""
    return bool(factors_of(run)) and "field" not in drawing_data(run)


def _errors(run: Trajectory) -> list[Panel]:
    errors = {name: deviations(x) for name, x in run.observations.invariants.items()}
    energy = {name: errors.pop(name) for name in list(errors) if name == "energy"}
    shown = dict(list(errors.items())[:_SHOWN])
    momenta = all("momentum" in name for name in shown)
    title = "change of momenta" if momenta else "change of other invariants"
    if len(shown) < len(errors):
        title += f", {len(shown)} of {len(errors)}"
    balance = balance_of(run)
    if balance is not None:
        energy = {"change": balance.change, "work": balance.work, "difference": balance.difference}
    worked_on = "change of energy" if balance is None else "change of energy and work done"
    found = [
        Panel(worked_on, "J" if mechanical(run) else "", energy),
        Panel(title, unit(run, "momentum") if momenta else "", shown),
    ]
    defect = run.group_defect()
    if np.any(defect > 0):
        group = run.provenance["group"]
        name = f"distance from {group if len(group) <= _LONG else 'the group'}"
        found.append(Panel(name, "", {"defect": defect}, log=True))
    return found


def _motion(run: Trajectory) -> list[Panel]:
    said = drawing_data(run)
    if not mechanical(run):
        y = np.concatenate([np.asarray(x).reshape(len(run.t), -1) for x in _leaves(run.y)], axis=1)
        return [components(y, "y", "point", "")]
    velocity = np.asarray(run.velocity)
    if "rods" in said:
        middle = middle_velocity(run, velocity)
        return [
            components(middle, "ξ", "velocity of the middle of the first rod", "SI"),
            Panel("force on the first rod", "N", contact_force(run)),
        ]
    if "strings" in said:
        s = np.asarray(run.g[2])
        force = np.asarray(run.multipliers)[:, 0]
        return [
            Panel("where the strings touch", "m", {"s1": s[:, 0], "s2": s[:, 1]}),
            Panel("force λ between the strings", "m/s²", {"λ": force}),
        ]
    if "string" in said or np.isnan(velocity).all():  # all NaN: a file without the functions
        return []
    return [components(velocity, "ξ", "body velocity", unit(run, "velocity"))]


def joint_panels(run: Trajectory) -> list[Panel]:
    """Return the angles, travels and forces of the joints of a mechanism."""
    if "mechanism" not in drawing_data(run):
        return []
    coordinates: dict[str, dict[str, np.ndarray]] = {"angle": {}, "position": {}}
    for name, values in run.observations.observables.items():
        found = _COORDINATE.fullmatch(name)
        if found and not found["rate"]:
            joint = found["joint"] + (found["which"] or "")
            coordinates[found["word"]][joint] = values
    angles = {
        name: unwrap_angle(run, name, values) for name, values in coordinates["angle"].items()
    }
    forces = {name: np.linalg.norm(x, axis=1) for name, (_, x) in joint_forces(run).items()}
    panels = [
        _first("angles of joints", "rad", angles),
        _first("positions of joints", "m", coordinates["position"]),
        _first("forces of joints", "N", forces),
    ]
    return [panel for panel in panels if panel.values]


def _first(title: str, of: str, values: dict[str, np.ndarray]) -> Panel:
    """Return a panel of a few of many curves."""
    shown = dict(list(values.items())[:_SHOWN])
    more = f", {len(shown)} of {len(values)}" if len(shown) < len(values) else ""
    return Panel(title + more, of, shown)


def _driving_panels(run: Trajectory) -> list[Panel]:
    """Return what drives the run."""
    inputs = np.asarray(run.inputs)
    return [components(inputs, "u", "inputs", "")] if inputs.shape[1] else []


def _constraint(run: Trajectory) -> list[Panel]:
    """Return how well a constraint is kept, and the multipliers that keep it."""
    if not run.multipliers.shape[1] or {"rods", "strings"} & drawing_data(run).keys():
        return []
    broken = run.constraint_violation()
    kept = Panel("velocity across the constraint", "SI", {"violation": broken}, True)
    if "mechanism" in drawing_data(run):  # forces of joints say more than multipliers
        return [kept] if np.any(broken > 0) else []
    return [
        *([kept] if np.any(broken > 0) else []),
        components(np.asarray(run.multipliers), "λ", "multipliers of the constraint", "SI"),
    ]


def _measured_panels(run: Trajectory) -> list[Panel]:
    """Plot what the system measures: energies in one panel, everything else in its own."""
    numbers = {name: y for name, y in run.observations.observables.items() if y.ndim == 1}
    if "mechanism" in drawing_data(run):
        numbers = {name: y for name, y in numbers.items() if not _COORDINATE.fullmatch(name)}
    vectors = {
        n: y for n, y in run.observations.observables.items() if y.ndim == 2 and y.shape[1] == 3
    }
    energies = {name: y for name, y in numbers.items() if "energy" in name}
    found = [Panel("energies", "J", energies)] if energies else []
    for name in numbers:
        if name not in energies:
            found.append(Panel(name, unit_of(run, name), {name: numbers[name]}))
    return found + [components(y, "e", n, unit_of(run, n)) for n, y in vectors.items()]


def components(values: np.ndarray, letter: str, title: str, of: str) -> Panel:
    """Return a panel of the first components of a vector."""
    shown = min(values.shape[1], _SHOWN)
    more = f", {shown} of {values.shape[1]} components" if shown < values.shape[1] else ""
    return Panel(title + more, of, {f"{letter}{k + 1}": values[:, k] for k in range(shown)})


def _leaves(y: Any) -> list[Any]:
    return [leaf for part in y for leaf in _leaves(part)] if isinstance(y, tuple) else [y]


def _curve(t: np.ndarray, name: str, values: np.ndarray) -> dict[str, Any]:
    kept = extremes(np.asarray(values, dtype=float), _POINTS)
    times, shown = single(np.asarray(t)[kept]), single(values[kept])
    return {"name": name, "t": times, "y": shown, "whole": len(kept) == len(t)}
