"""Figures of a run, for print and for files."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.gridspec import SubplotSpec
from mpl_toolkits.mplot3d import Axes3D

from retrax.errors import BadInput
from retrax.files import require_folder, written_whole
from retrax.show import panels
from retrax.show.bodies import Body
from retrax.show.drawn import drawable, drawn_bodies
from retrax.show.sphere import draw_path, draw_sphere
from retrax.show.style import BLUE, GREEN, ORANGE, literal, new_figure, style

if TYPE_CHECKING:
    from retrax.trajectory.trajectory import Trajectory

_SHOWN_INVARIANTS = 8


@drawable()
def overview(run: "Trajectory") -> Figure:
    """Errors of the invariants, group defect, body velocity; what turns, also on a sphere."""
    body = _turning_body(run)
    momenta = [name for name in run.invariants() if name != "energy"]
    rows: list[Callable] = []
    if "energy" in run.invariants():
        rows.append(lambda axes: panels.draw_error(axes, run, ["energy"]))
    elif run.energy_balance() is not None:
        rows.append(lambda axes: panels.draw_balance(axes, run))
    if momenta:
        rows.append(lambda axes: panels.draw_error(axes, run, momenta[:6]))
    rows += [
        lambda axes: panels.draw_defect(axes, run),
        lambda axes: panels.draw_velocity(axes, run),
    ]
    with style():
        figure = new_figure(11.5 if body else 8.0, 1.9 * len(rows) + 0.4, title(run))
        grid = figure.add_gridspec(
            len(rows), 2 if body else 1, width_ratios=[5, 4] if body else None
        )
        stack = [figure.add_subplot(grid[k, 0]) for k in range(len(rows))]
        for axes, draw in zip(stack, rows, strict=True):
            draw(axes)
        _share_time(stack)
        if body:
            _draw_in_space(_sphere_axes(figure, grid[:, 1]), run, body)
    return figure


@drawable()
def invariants(run: "Trajectory") -> Figure:
    """One panel for the error of each invariant, with its largest error and its drift."""
    names = list(run.invariants())[:_SHOWN_INVARIANTS]
    if not names:
        raise BadInput(f"the {run.provenance['system']} has no invariants to show.")
    with style():
        figure = new_figure(8.0, 1.8 * len(names) + 0.5, title(run))
        stack = [figure.add_subplot(len(names), 1, k + 1) for k in range(len(names))]
        for axes, name in zip(stack, names, strict=True):
            panels.draw_error(axes, run, [name])
            panels.annotate_error(axes, run, name)
        _share_time(stack)
    return figure


@drawable()
def momentum_sphere(run: "Trajectory") -> Figure | None:
    """Directions on the unit sphere, seen from space and from the body; `None` if nothing turns."""
    body = _turning_body(run)
    if body is None:
        return None
    with style():
        figure = new_figure(9.5, 5.2, title(run))
        _draw_in_space(_sphere_axes(figure, 121), run, body)
        axes = _sphere_axes(figure, 122)
        draw_sphere(axes)
        momentum = panels.direction(np.asarray(run.momentum)[:, body.coordinates])
        draw_path(axes, momentum, ORANGE, "angular momentum")
        velocity = panels.direction(np.asarray(run.velocity)[:, body.coordinates])
        draw_path(axes, velocity, GREEN, "angular velocity")
        axes.set_title("directions seen from the body", loc="center")
        axes.legend(loc="lower center", ncols=2)
    return figure


def write_figures(run: "Trajectory", stem: str | Path) -> list[Path]:
    """Write the figures as PNG files `stem-overview.png`, ...; returns the paths written."""
    stem = Path(stem)
    require_folder(stem)
    made = {
        "overview": overview(run),
        "invariants": invariants(run) if run.invariants() else None,
        "momentum-sphere": momentum_sphere(run),
    }
    written = []
    for name, figure in made.items():
        if figure is not None:
            path = stem.with_name(f"{stem.name}-{name}.png")
            with written_whole(path) as temporary:
                figure.savefig(temporary, format="png", dpi=160)
            written.append(path)
    return written


def title(run: "Trajectory") -> str:
    """What was run, in one line."""
    made = run.provenance
    return literal(
        f"{made['system']} by {made['integrator']}, h = {run.h:g} s, {run.completed:,} steps"
    )


def _turning_body(run: "Trajectory") -> Body | None:
    found = drawn_bodies(run)
    return next((body for body in found if body.coordinates is not None), None)


def _share_time(stack: list[Axes]) -> None:
    """One time axis for all panels, labelled at the bottom."""
    for axes in stack[:-1]:
        axes.sharex(stack[-1])
        axes.tick_params(labelbottom=False)
    stack[-1].set_xlabel("time (s)")


def _sphere_axes(figure: Figure, where: int | SubplotSpec) -> Axes3D:
    axes = figure.add_subplot(where, projection="3d")
    assert isinstance(axes, Axes3D)
    return axes


def _draw_in_space(axes: Axes3D, run: "Trajectory", body: Body) -> None:
    up = run.provenance.get("up", "e3") == "e3"
    draw_sphere(axes, up)
    assert body.rotation is not None
    draw_path(axes, panels.direction(body.rotation[:, :, 2]), BLUE, "body axis e3", up)
    momentum = body.momentum(run)
    if momentum is not None:
        draw_path(axes, panels.direction(momentum), ORANGE, "angular momentum", up)
    axes.set_title("directions seen from space", loc="center")
    axes.legend(loc="lower center", ncols=2)
