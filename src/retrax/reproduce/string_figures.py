"""Fig. 2 and 3 of the string pendulum paper, the growth of errors, and the long run."""

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from mpl_toolkits.mplot3d import Axes3D
from mpl_toolkits.mplot3d.art3d import Line3DCollection, Poly3DCollection

from retrax.show.strings import drawing, string_bodies
from retrax.show.style import BLUE, CYCLE, GREEN, ORANGE, new_figure, style
from retrax.trajectory.files import written_whole

if TYPE_CHECKING:
    from retrax.reproduce.string_pendulum import Growth, Measured, Plateau
    from retrax.trajectory.trajectory import Trajectory

_SNAPSHOTS = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0, 1.25, 1.5, 1.75, 2.0)
_FACES = ((0, 1, 3, 2), (4, 6, 7, 5), (0, 4, 5, 1), (2, 3, 7, 6), (0, 2, 6, 4), (1, 5, 7, 3))


def draw(folder: Path, measured: "Measured") -> list[Path]:
    """Write the four figures; returns their paths."""
    with style():
        figures = {
            "figure-2": _snapshots(measured.run),
            "figure-3": _curves(measured.run),
            "growth": _growth(measured.growth),
            "long-run": _long(measured.long),
        }
    paths = []
    for name, figure in figures.items():
        path = folder / f"{name}.png"
        with written_whole(path) as temporary:
            figure.savefig(temporary, format="png", dpi=160)
        paths.append(path)
    return paths


def _snapshots(run: "Trajectory") -> Figure:
    figure = new_figure(13.0, 5.6, "Snapshots; colour: elastic energy of the elements (J)")
    energy = run.observables()["elastic energy of elements"]
    shown = [int(np.argmin(np.abs(run.t - t))) for t in _SNAPSHOTS]
    norm = Normalize(0.0, float(np.max(energy[shown])))
    told = drawing(run)
    assert told is not None
    body = string_bodies(run, told)[0]
    assert body.rotation is not None and body.position is not None and body.corners is not None
    lines: Line3DCollection | None = None
    for place, k in enumerate(shown):
        axes = figure.add_subplot(2, 5, place + 1, projection="3d")
        assert isinstance(axes, Axes3D)
        nodes = np.concatenate([np.zeros((1, 3)), run.g[0][k]])
        lines = Line3DCollection(
            list(np.stack([nodes[:-1], nodes[1:]], axis=1)), cmap="viridis", norm=norm, lw=2.0
        )
        lines.set_array(energy[k])
        axes.add_collection3d(lines)
        corners = body.corners @ body.rotation[k].T + body.position[k]
        faces = Poly3DCollection([corners[list(f)] for f in _FACES], fc="#CCCCCC", ec="#555555")
        axes.add_collection3d(faces)
        axes.set(xlim=(-1.1, 1.1), ylim=(-0.6, 0.6), zlim=(1.15, -0.2))
        axes.set_box_aspect((2.2, 1.2, 1.35))
        axes.set_title(f"t = {run.t[k]:.2f} s", loc="center")
        axes.tick_params(labelsize=5)
    assert lines is not None
    figure.colorbar(lines, ax=figure.axes, shrink=0.6)
    return figure


def _curves(run: "Trajectory") -> Figure:
    figure = new_figure(11.0, 7.5, "String pendulum, h = 1e-4 s, 20 elements")
    seen, kept, t = run.observables(), run.invariants(), run.t
    panels: list[tuple[str, str, dict[str, np.ndarray]]] = [
        ("energies", "J", {n: y for n, y in seen.items() if "energy" in n and y.ndim == 1}),
        ("error of the total energy", "J", {"": kept["energy"] - kept["energy"][0]}),
        (
            "error of the angular momentum about e3",
            "kg m²/s",
            {"": kept["angular momentum e3"] - kept["angular momentum e3"][0]},
        ),
        ("distance of R from SO(3)", "1", {"": run.group_defect()}),
        ("speed", "m/s", {
            "point of attachment": _speed(seen["velocity of attachment"]),
            "centre of mass": _speed(seen["velocity of centre of mass"]),
        }),
        ("stretched length", "m", {"": seen["stretched length"]}),
    ]  # fmt: skip
    for k, (title, unit, curves) in enumerate(panels):
        axes = figure.add_subplot(3, 2, k + 1)
        for (name, values), colour in zip(curves.items(), CYCLE, strict=False):
            axes.plot(t, values, color=colour, label=name)
        axes.set_title(title)
        axes.set_ylabel(unit)
        if len(curves) > 1:
            axes.legend(fontsize=6, ncols=2)
        _label_time(axes, k >= 4)
    return figure


def _speed(v: np.ndarray) -> np.ndarray:
    return np.linalg.norm(v[:, 0], axis=1)


def _growth(growth: "Growth") -> Figure:
    figure = new_figure(7.0, 4.2, "Why curves can be compared for two or three seconds only")
    axes = figure.add_subplot(111)
    axes.semilogy(growth.t[1:], growth.step[1:], color=BLUE, label="error of r (m), h = 1e-4 s")
    axes.semilogy(growth.t[1:], growth.turn[1:], color=GREEN, label="error of R")
    axes.semilogy(
        growth.t[1:], growth.nudge[1:], color=ORANGE, label="effect of a nudge of 1e-9 on r (m)"
    )
    axes.legend(loc="lower right")
    _label_time(axes, True)
    return figure


def _long(runs: "dict[float, Plateau]") -> Figure:
    figure = new_figure(8.0, 4.2, "Energy deviation settles on a plateau in proportion to h²")
    left, right = figure.add_subplot(121), figure.add_subplot(122)
    for (h, one), colour in zip(runs.items(), CYCLE, strict=False):
        each = max(1, len(one.t) // 100)
        count = len(one.t) // each * each
        means = one.deviation[:count].reshape(-1, each).mean(axis=1)
        times = one.t[:count].reshape(-1, each).mean(axis=1)
        left.plot(times, means, color=colour, label=f"h = {h:g} s")
    left.set_ylabel("mean energy deviation (J)")
    left.legend()
    _label_time(left, True)
    h = np.array(list(runs))
    levels = np.array([-one.level for one in runs.values()])
    right.loglog(h, levels, "o-", color=BLUE, label="plateau")
    right.loglog(h, levels[-1] * (h / h[-1]) ** 2, "--", color=ORANGE, label="h²")
    right.set(xlabel="h (s)", ylabel="- deviation (J)")
    right.legend()
    return figure


def _label_time(axes: Axes, shown: bool) -> None:
    if shown:
        axes.set_xlabel("time (s)")
