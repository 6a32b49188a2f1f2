"""Figures of a run, for print, for files and for notebooks."""

import base64
import io
from collections.abc import Callable, Iterable
from pathlib import Path

import jax
import numpy as np
from jaxtyping import Float
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.gridspec import SubplotSpec
from mpl_toolkits.mplot3d import Axes3D

from retrax.errors import BadInput
from retrax.estimation.smoothed import Smoothed
from retrax.files import as_path, require_folder, write_whole
from retrax.show.bodies import Body, unit
from retrax.show.curves import Panel, joint_panels
from retrax.show.drawn import drawable, drawn_bodies, e3_points_up, is_drawn, require_run
from retrax.show.movie import instants
from retrax.show.pictures.choose import picture
from retrax.show.pictures.own import Draw
from retrax.show.sphere import draw_path, draw_sphere
from retrax.show.style import (
    BLUE,
    GREEN,
    ORANGE,
    POINTS,
    extremes,
    literal,
    look,
    new_figure,
    style,
)
from retrax.trajectory.energy_balance import balance_of
from retrax.trajectory.observe import deviations, drift
from retrax.trajectory.trajectory import Trajectory

_SHOWN_INVARIANTS = 8

_SHOWN_COMPONENTS = 6
_POINTS, _CURVES = 400, 4
_INSTANTS = 5
# What is followed is shown over this way, in sizes of its own.
_APART = 16.0


@drawable()
def overview(run: Trajectory, draw: Draw | None = None) -> Figure:
    """Draw errors of the invariants, group defect, velocity, inputs, and how it moves.

    A mechanism, and what has a `draw` of its own, is shown at a few instants with the angles and
    forces of joints; other bodies that turn by their directions on a sphere.
    """
    moves = is_drawn(require_run(run)) or draw is not None
    body = None if moves else _turning_body(run)
    momenta = [name for name in run.observations.invariants if name != "energy"]
    rows: list[Callable[[Axes], None]] = []
    if "energy" in run.observations.invariants:
        rows.append(lambda axes: draw_error(axes, run, ["energy"]))
    elif balance_of(run) is not None:
        rows.append(lambda axes: draw_balance(axes, run))
    if momenta:
        rows.append(lambda axes: draw_error(axes, run, momenta[:6]))
    rows.append(lambda axes: draw_defect(axes, run))
    joints = joint_panels(run)
    rows += [lambda axes, panel=panel: draw_panel(axes, run, panel) for panel in joints]
    if not joints:
        rows.append(lambda axes: draw_velocity(axes, run))
    if run.inputs.shape[1]:
        rows.append(lambda axes: draw_inputs(axes, run))
    beside = moves or body is not None
    height = 1.9 * len(rows) + 0.4
    with style():
        figure = new_figure(11.5 if beside else 8.0, height, title(run))
        grid = figure.add_gridspec(
            len(rows), 2 if beside else 1, width_ratios=[5, 4] if beside else None
        )
        stack = [figure.add_subplot(grid[k, 0]) for k in range(len(rows))]
        for axes, draw_row in zip(stack, rows, strict=True):
            draw_row(axes)
        _share_time(stack)
        if body:
            _draw_in_space(_sphere_axes(figure, grid[:, 1]), run, body)
        if moves:
            _draw_instants(figure.add_subplot(grid[:, 1]), run, draw, height / 5.0)
    return figure


@drawable()
def invariants(run: Trajectory) -> Figure:
    """Draw the error of each invariant in its own panel, with its largest error and its drift."""
    names = list(require_run(run).observations.invariants)[:_SHOWN_INVARIANTS]
    if not names:
        raise BadInput(f"the {run.provenance['system']} has no invariants to show.")
    with style():
        figure = new_figure(8.0, 1.8 * len(names) + 0.5, title(run))
        stack = [figure.add_subplot(len(names), 1, k + 1) for k in range(len(names))]
        for axes, name in zip(stack, names, strict=True):
            draw_error(axes, run, [name])
            annotate_error(axes, run, name)
        _share_time(stack)
    return figure


@drawable()
def momentum_sphere(run: Trajectory) -> Figure | None:
    """Draw directions on the unit sphere, from space and from the body; `None` if nothing turns."""
    body = _turning_body(require_run(run))
    if body is None:
        return None
    with style():
        figure = new_figure(9.5, 5.2, title(run))
        _draw_in_space(_sphere_axes(figure, 121), run, body)
        axes = _sphere_axes(figure, 122)
        draw_sphere(axes)
        momentum = direction(np.asarray(run.momentum)[:, body.coordinates])
        draw_path(axes, momentum, ORANGE, "angular momentum")
        velocity = direction(np.asarray(run.velocity)[:, body.coordinates])
        draw_path(axes, velocity, GREEN, "angular velocity")
        axes.set_title("directions seen from the body", loc="center")
        axes.legend(loc="lower center", ncols=2)
    return figure


def write_figures(run: Trajectory, stem: str | Path) -> list[Path]:
    """Write the figures as PNG files `stem-overview.png`, ...; returns the paths written."""
    stem = as_path(stem)
    require_folder(stem)
    made = {
        "overview": overview(run),
        "invariants": invariants(run) if run.observations.invariants else None,
        "momentum-sphere": momentum_sphere(run),
    }
    written = []
    for name, figure in made.items():
        if figure is not None:
            path = stem.with_name(f"{stem.name}-{name}.png")
            with write_whole(path) as temporary:
                figure.savefig(temporary, format="png", dpi=160)
            written.append(path)
    return written


def smoothing(found: Smoothed) -> Figure:
    """Draw a smoothed motion; the band about each force is twice its standard deviation."""
    system = found.system
    velocity = found.along(lambda state: system.velocity_at(state))
    with style():
        figure = new_figure(8.0, 2.0 * (2 + len(found.residuals)) + 0.4, f"{system.name}, smoothed")
        rows = 2 + len(found.residuals)
        panels = [figure.add_subplot(rows, 1, k + 1) for k in range(rows)]
        for k, column in enumerate(velocity.T[:_SHOWN_COMPONENTS]):
            kept = extremes(column, POINTS)
            panels[0].plot(found.t[kept], column[kept], label=f"$\\xi_{k + 1}$", **look(k))
        panels[0].set_title("body velocity")
        ends, wide = found.t[1:], 2 * found.control_noise / np.diff(found.t)[0]
        for k, column in enumerate(found.force.T[:_SHOWN_COMPONENTS]):
            panels[1].plot(ends, column, **look(k))
            panels[1].axhspan(-wide[k], wide[k], color=look(k)["color"], alpha=0.05)
        panels[1].set_title("force that the system lacks")
        for axes, (name, values) in zip(panels[2:], found.residuals.items(), strict=True):
            for k, column in enumerate(values.T[:_SHOWN_COMPONENTS]):
                axes.plot(found.times[name], column, linestyle="", marker=".", markersize=2,
                          color=look(k)["color"])  # fmt: skip
            axes.set_title(f"residuals of {literal(name)}")
        panels[0].legend(ncols=_SHOWN_COMPONENTS)
        panels[-1].set_xlabel("time (s)")
    return figure


def title(run: Trajectory) -> str:
    """Return the title of a figure: the system, the integrator and the steps of a run."""
    made = run.provenance
    return literal(
        f"{made['system']} by {made['integrator']}, h = {run.h:g} s, {run.completed:,} steps"
    )


def _turning_body(run: Trajectory) -> Body | None:
    found = drawn_bodies(run)
    return next((body for body in found if body.coordinates is not None), None)


def _share_time(stack: list[Axes]) -> None:
    """Share one time axis among all panels, labelled at the bottom."""
    for axes in stack[:-1]:
        axes.sharex(stack[-1])
        axes.tick_params(labelbottom=False)
    stack[-1].set_xlabel("time (s)")


def _draw_instants(axes: Axes, run: Trajectory, draw: Draw | None, tall: float) -> None:
    """Draw the motion at a few instants, `tall` times as high as it is wide."""
    first = _first_seconds(run, draw)
    times = np.linspace(run.t[0], first, _INSTANTS)
    axes.imshow(instants(run, times, (760, round(760 * min(tall, 1.6))), draw))
    axes.set_axis_off()
    axes.set_title(f"from t = {run.t[0]:g} s, pale, to {first:.4g} s", loc="center")


def _first_seconds(run: Trajectory, draw: Draw | None) -> float:
    """Return the end of what a few instants can show: most of the way, or a few body sizes."""
    places = np.concatenate(
        [np.asarray(x).reshape(len(run.t), -1) for x in jax.tree.leaves(run.g)], axis=1
    )
    apart = np.linalg.norm(places - places[0], axis=1)
    shown = picture(run, draw)
    far = np.flatnonzero(
        apart >= (_APART * shown.follow if shown.followed else 0.7 * np.max(apart))
    )
    return float(run.t[far[0]]) if len(far) and far[0] else float(run.t[-1])


def draw_panel(axes: Axes, run: Trajectory, panel: Panel) -> None:
    """Draw the curves that a page has as well."""
    for name, values in panel.values.items():
        _curve(axes, run.t, values, literal(name))
    axes.set_title(literal(panel.title))
    axes.set_ylabel(panel.unit)
    _legend(axes)


def _sphere_axes(figure: Figure, where: int | SubplotSpec) -> Axes3D:
    axes = figure.add_subplot(where, projection="3d")
    assert isinstance(axes, Axes3D)
    return axes


def _draw_in_space(axes: Axes3D, run: Trajectory, body: Body) -> None:
    up = e3_points_up(run)
    draw_sphere(axes, up)
    assert body.rotation is not None
    draw_path(axes, direction(body.rotation[:, :, 2]), BLUE, "body axis e3", up)
    momentum = body.momentum(run)
    if momentum is not None:
        draw_path(axes, direction(momentum), ORANGE, "angular momentum", up)
    axes.set_title("directions seen from space", loc="center")
    axes.legend(loc="lower center", ncols=2)


def draw_error(axes: Axes, run: Trajectory, names: list[str]) -> None:
    """Draw the errors of some invariants on one scale."""
    values = {name: run.observations.invariants[name] for name in names}
    for name, series in values.items():
        _curve(axes, run.t, deviations(series), literal(name))
    if len(names) == 1:
        axes.set_title(f"error of {literal(names[0])} ({values[names[0]][0]:.6g} at the start)")
    else:
        momenta = all("momentum" in name for name in names)
        axes.set_title(f"error of {'momenta' if momenta else 'other invariants'}")
        _legend(axes)
    axes.set_ylabel(f"error ({unit(run, names[0])})")
    if not any(np.any(deviations(series)) for series in values.values()):
        axes.set_ylim(-1e-16, 1e-16)


def draw_balance(axes: Axes, run: Trajectory) -> None:
    """Draw the change of an energy that is not conserved, and the work done on the system."""
    balance = balance_of(run)
    assert balance is not None
    _curve(axes, run.t, balance.change, "change of energy")
    _curve(axes, run.t, balance.work, "work done")
    axes.set_title(f"energy ({run.energy()[0]:.6g} J at the start)")
    axes.set_ylabel("energy (J)")
    _legend(axes)


def annotate_error(axes: Axes, run: Trajectory, name: str) -> None:
    """Write the largest error and the drift of an invariant above its curve."""
    values = run.observations.invariants[name]
    worst = np.max(np.abs(deviations(values)))
    text = f"largest {worst:.2e}, drift {drift(run.t, values):+.1e} per second"
    axes.set_title(text, loc="right", fontsize=8, color="#555555")


def draw_defect(axes: Axes, run: Trajectory) -> None:
    """Draw the distance from the group, on a logarithmic axis unless it is zero throughout."""
    defect = run.group_defect()
    _curve(axes, run.t, defect, "")
    axes.set_title(f"distance from {literal(run.provenance['group'])}")
    axes.set_ylabel("defect (1)")
    if np.any(defect > 0):
        axes.set_yscale("log", nonpositive="mask")
    else:
        axes.set_ylim(-1e-16, 1e-16)


def draw_velocity(axes: Axes, run: Trajectory) -> None:
    """Draw the components of the body velocity, at most six of them."""
    velocity = np.asarray(run.velocity)
    for k in range(min(velocity.shape[1], _SHOWN_COMPONENTS)):
        _curve(axes, run.t, velocity[:, k], f"$\\xi_{k + 1}$")
    more = velocity.shape[1] > _SHOWN_COMPONENTS
    which = f", {_SHOWN_COMPONENTS} of {velocity.shape[1]} components" if more else ""
    axes.set_title(f"body velocity{which}")
    axes.set_ylabel(f"velocity ({unit(run, 'velocity')})")
    _legend(axes)


def draw_inputs(axes: Axes, run: Trajectory) -> None:
    """Draw the inputs of a driven run, at most six of them; those that are held as stairs."""
    inputs = np.asarray(run.inputs)
    for k in range(min(inputs.shape[1], _SHOWN_COMPONENTS)):
        _curve(axes, run.t, inputs[:, k], f"$u_{k + 1}$")
    if run.inputs_are_held:
        for line in axes.lines:
            line.set_drawstyle("steps-post")
    more = inputs.shape[1] > _SHOWN_COMPONENTS
    which = f", {_SHOWN_COMPONENTS} of {inputs.shape[1]}" if more else ""
    axes.set_title(f"inputs{which}")
    axes.set_ylabel("input")
    _legend(axes)


def _curve(axes: Axes, t: np.ndarray, values: np.ndarray, label: str) -> None:
    kept = extremes(np.asarray(values, dtype=float), POINTS)
    axes.plot(t[kept], values[kept], label=label, **look(len(axes.lines)))


def _legend(axes: Axes) -> None:
    """Write the names of the curves above the axes, clear of the curves."""
    axes.legend(
        loc="lower right",
        bbox_to_anchor=(1.0, 0.98),
        borderaxespad=0.0,
        ncols=len(axes.lines),
        columnspacing=1.0,
        handlelength=1.0,
    )


def direction(vectors: Float[np.ndarray, "time 3"]) -> Float[np.ndarray, "time 3"]:
    """Scale vectors to length 1; a zero vector has no direction and becomes NaN."""
    length = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.divide(vectors, length, out=np.full_like(vectors, np.nan), where=length > 0)


def inline_image(run: Trajectory) -> str:
    """Return an SVG image as a `data:` address: body velocity, and the errors of the invariants.

    In an `img` it is a picture and nothing else: it runs no scripts, and its names cannot clash
    with those of the page.
    """
    errors = {name: deviations(x) for name, x in run.observations.invariants.items()}
    parts: list[tuple[str, Iterable[np.ndarray]]] = [
        ("velocity", np.asarray(run.velocity).T[:_CURVES])
    ]
    if errors:
        parts.append(("errors of the invariants", list(errors.values())[:_CURVES]))
    with style(), rc_context({"svg.fonttype": "path", "axes.titlesize": 8}):
        figure = new_figure(6.4, 1.6, "")
        for column, (title, curves) in enumerate(parts):
            axes = figure.add_subplot(1, len(parts), column + 1)
            for k, values in enumerate(curves):
                kept = extremes(np.asarray(values, dtype=float), _POINTS)
                axes.plot(run.t[kept], values[kept], **look(k))
            axes.set_title(title)
            axes.set_xlabel("time (s)")
        stream = io.BytesIO()
        figure.savefig(stream, format="svg", metadata={"Date": None})
    return "data:image/svg+xml;base64," + base64.b64encode(stream.getvalue()).decode()
