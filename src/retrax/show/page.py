"""One self-contained page of a run: the motion in 3-D with its invariants beside it."""

import html
import json
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING, Any

import numpy as np
from plotly.offline import get_plotlyjs

from retrax.show.downsample import extremes
from retrax.show.drawn import drawn_bodies, told
from retrax.show.frames import scene
from retrax.show.rods import contact_force, middle_velocity
from retrax.show.style import CYCLE, CYCLE_ON_DARK
from retrax.show.units import unit
from retrax.trajectory.files import require_folder, written_whole
from retrax.trajectory.measure import deviations
from retrax.trajectory.summary import counted

if TYPE_CHECKING:
    from retrax.trajectory.trajectory import Trajectory

_POINTS = 2000
_SHOWN_CURVES = 6
_SCRIPTS = ("motion.js", "view.js", "scene.js", "plots.js", "player.js")


def write_page(run: "Trajectory", path: str | Path) -> Path:
    """Write the page to `path`; it opens without a network and without a server."""
    path = Path(path)
    require_folder(path)
    text = page(run)
    with written_whole(path) as temporary:
        temporary.write_text(text, encoding="utf-8")
    return path


def page(run: "Trajectory") -> str:
    """The page as text."""
    made = run.provenance
    data = json.dumps(page_data(run), separators=(",", ":"), allow_nan=False)
    return Template(_asset("page.html")).substitute(
        title=html.escape(made["system"]),
        subtitle=html.escape(
            f"{made['integrator']}, {run.completed:,} steps of h = {run.h:g} s, "
            f"from t = {run.t[0]:g} s to {run.t[-1]:g} s"
        ),
        style=_asset("page.css"),
        summary=_invariant_rows(run),
        made=_made_rows(run),
        data=data.replace("<", "\\u003c"),  # or a name with "</script>" in it would end the script
        plotly=get_plotlyjs(),
        scripts="\n".join(_asset(name) for name in _SCRIPTS),
    )


def page_data(run: "Trajectory") -> dict[str, Any]:
    """Everything that moves or is plotted, as small as it can be without losing an extreme."""
    found = drawn_bodies(run)
    return {
        "scene": scene(run, found) if found else None,
        "panels": _panels(run),
        "colours": {"light": CYCLE, "dark": CYCLE_ON_DARK},
    }


def _panels(run: "Trajectory") -> list[dict[str, Any]]:
    invariants = run.invariants()
    momenta = [name for name in invariants if name != "energy"][:_SHOWN_CURVES]
    errors = {name: deviations(x) for name, x in invariants.items()}
    velocity, of_rods = np.asarray(run.velocity), "rods" in told(run)
    if of_rods:
        velocity = middle_velocity(run, velocity)
    components = {f"ξ{k + 1}": velocity[:, k] for k in range(min(velocity.shape[1], _SHOWN_CURVES))}
    panels = [
        (
            "error of energy",
            unit(run, "energy"),
            {name: errors[name] for name in errors if name == "energy"},
            False,
        ),
        (
            "error of momenta",
            unit(run, "momentum"),
            {name: errors[name] for name in momenta},
            False,
        ),
        (
            f"distance from {run.provenance['group']}",
            "1",
            {"defect": run.group_defect()},
            bool(np.any(run.group_defect() > 0)),
        ),
        (
            "velocity of the middle of the first rod" if of_rods else "body velocity",
            unit(run, "velocity"),
            components,
            False,
        ),
        ("force on the first rod", "N", contact_force(run) if of_rods else {}, False),
        *_measured_panels(run),
    ]
    return [
        {
            "title": title,
            "unit": of,
            "log": log,
            "curves": [_curve(run.t, name, values) for name, values in curves.items()],
        }
        for title, of, curves, log in panels
        if curves
    ]


def _measured_panels(run: "Trajectory") -> list[tuple[str, str, dict[str, np.ndarray], bool]]:
    """What the system measures: energies in one panel, each other number in its own."""
    numbers = {name: y for name, y in run.observables().items() if y.ndim == 1}
    units = {} if run.system is None else run.system.units
    energies = {name: y for name, y in numbers.items() if "energy" in name}
    panels = [("energies", "J", energies, False)] if energies else []
    rest = [name for name in numbers if name not in energies]
    return panels + [(name, units.get(name, "SI"), {name: numbers[name]}, False) for name in rest]


def _curve(t: np.ndarray, name: str, values: np.ndarray) -> dict[str, Any]:
    kept = extremes(np.asarray(values, dtype=float), _POINTS)
    return {
        "name": name,
        "t": [float(f"{x:.8g}") for x in t[kept]],
        "y": [float(f"{x:.5g}") if np.isfinite(x) else None for x in values[kept]],
    }


def _invariant_rows(run: "Trajectory") -> str:
    measures = run.measures()
    rows = [
        (name, f"{of['initial']:.10g}", f"{of['max_error']:.2e}", f"{of['drift']:+.2e}")
        for name, of in measures["invariants"].items()
    ]
    defect = f"distance from {run.provenance['group']}"
    rows.append((defect, f"{run.group_defect()[0]:.2g}", f"{measures['group_defect']:.2e}", ""))
    return _table(rows)


def _made_rows(run: "Trajectory") -> str:
    measures = run.measures()
    iterations = int(np.sum(run.info.iterations))
    rows = {
        **run.provenance,
        "step": f"h = {run.h:g} s",
        "steps": f"{run.completed:,} of {run.steps:,}; {len(run.t):,} states saved",
        "time": f"{run.seconds:.3g} s, {measures['steps_per_second']:,.0f} steps/s; "
        f"compiled in {run.compile_seconds:.2g} s",
        "solver": f"{iterations / max(run.completed, 1):.2f} {counted(run)} a step",
    }
    return _table(list(rows.items()))


def _table(rows: list[tuple[str, ...]]) -> str:
    """Table rows, the first cell of each a heading."""
    lines = []
    for heading, *cells in rows:
        rest = "".join(f"<td>{html.escape(cell)}</td>" for cell in cells)
        lines.append(f'<tr><th scope="row">{html.escape(heading)}</th>{rest}</tr>')
    return "\n".join(lines)


def _asset(name: str) -> str:
    return files("retrax.show").joinpath("assets", name).read_text(encoding="utf-8")
