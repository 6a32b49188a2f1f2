"""Figs. 1 to 3 of the string pendulum paper, growth of errors, the long run, and the solver."""

from typing import Any

import numpy as np
from matplotlib.colors import Normalize
from mpl_toolkits.mplot3d.art3d import Line3DCollection, Poly3DCollection

from retrax.show.bodies import Body
from retrax.show.drawn import drawing_data, string_bodies
from retrax.show.style import BLUE, CYCLE, GREEN, GREY, ORANGE, extremes, new_figure, style
from retrax.trajectory.dataset import identifier
from retrax.trajectory.trajectory import Trajectory
from retrax_papers.drawings import Column, DataFigure, along_time, by_name, columns, labels
from retrax_papers.report import nearest
from retrax_papers.string_pendulum.findings import powers
from retrax_papers.string_pendulum.runs import Growth, Plateau

# Points of a curve that is drawn; its extremes over all steps are among them.
_POINTS = 3000
_SPANS = ((0.0, 1.25), (1.25, 2.5), (2.5, 3.75), (3.75, 5.0))
_SHOWN = 6  # snapshots in each span
_SKETCHED = 0.45  # the time of the sketch, in seconds
_FACES = ((0, 1, 3, 2), (4, 6, 7, 5), (0, 4, 5, 1), (2, 3, 7, 6), (0, 2, 6, 4), (1, 5, 7, 3))


def figure_1(run: Trajectory) -> DataFigure:
    """The pendulum at one moment, with what the paper calls its parts."""
    k = nearest(run.t, _SKETCHED)
    nodes, body = _nodes(run, k), _body(run)
    assert body.rotation is not None and body.position is not None
    R, centre, end = body.rotation[k], body.position[k], nodes[-1]
    middle = nodes[len(nodes) // 2]
    with style():
        figure = new_figure(
            7.0, 5.0, f"The elastic string pendulum (Fig. 1), at t = {run.t[k]:g} s"
        )
        axes: Any = figure.add_subplot(projection="3d")
        axes.plot(*nodes.T, color=BLUE, lw=2.0)
        axes.plot(*nodes.T, ".", color=BLUE, ms=4)
        _draw_body(axes, body, k, alpha=0.25)
        for x, text in ((np.zeros(3), "pivot"), (middle, "$P$: $r(s, t)$"), (end, "")):
            axes.plot(*x[:, None], "o", color=GREY, ms=5)
            axes.text(*(x + np.array([0.03, 0.0, -0.04])), text, fontsize=9)
        axes.plot(*np.stack([end, centre]).T, color=ORANGE, lw=2.0)
        axes.text(*(centre + np.array([0.02, 0.0, 0.06])), "$R\\rho_c$", color=ORANGE, fontsize=10)
        for i in range(3):
            axes.plot(*np.stack([end, end + 0.16 * R[:, i]]).T, color=GREEN, lw=1.2)
            axes.text(*(end + 0.19 * R[:, i]), f"$b_{i + 1}$", color=GREEN, fontsize=9)
        low, high = np.min(nodes, axis=0) - 0.15, np.max(nodes, axis=0) + 0.2
        axes.set(xlim=(low[0], high[0]), ylim=(low[1] - 0.1, high[1] + 0.1), zlim=(high[2], low[2]))
        axes.set_box_aspect(high - low + np.array([0.0, 0.2, 0.0]))
        axes.set_yticks((-0.2, 0.0, 0.2))
        axes.set(xlabel="$e_1$ (m)", ylabel="$e_2$ (m)", zlabel="$e_3$, down (m)")
        axes.view_init(elev=15, azim=-70)
    data = columns(
        node=("node", np.arange(len(nodes)), "1", "node, the pivot first"),
        axis=_axis(),
        position=(("node", "axis"), nodes, "m", "position of the nodes"),
        centre=("axis", centre, "m", "centre of mass"),
        attitude=(("axis", "body_axis"), R, "1", "attitude of the body"),
    )
    return DataFigure(
        "figure-1",
        "Fig. 1: the pendulum, drawn from a run",
        "A string of 20 elements from the pivot to the body; the origin of the body frame is where "
        "the string ends, its centre of mass is R rho_c away.",
        figure,
        data,
    )


def figure_2(run: Trajectory) -> DataFigure:
    """Snapshots in four spans of time, coloured by elastic energy."""
    energy, body = run.observables()["elastic energy of elements"], _body(run)
    spans = [np.linspace(a, b, _SHOWN) for a, b in _SPANS]
    chosen = [[nearest(run.t, t) for t in span] for span in spans]
    flat = [k for shown in chosen for k in shown]
    norm = Normalize(0.0, float(np.quantile(energy[flat], 0.98)))
    lines: Line3DCollection | None = None
    with style():
        figure = new_figure(12.0, 7.2, "Snapshots; colour: elastic energy of the elements (J)")
        for place, (span, shown) in enumerate(zip(_SPANS, chosen, strict=True)):
            axes: Any = figure.add_subplot(2, 2, place + 1, projection="3d")
            for k in shown:
                nodes = _nodes(run, k)
                parts = list(np.stack([nodes[:-1], nodes[1:]], axis=1))
                lines = Line3DCollection(parts, cmap="viridis", norm=norm, lw=1.8, clip_on=False)
                lines.set_array(energy[k])
                axes.add_collection3d(lines)
                _draw_body(axes, body, k, alpha=0.7)
            axes.set(xlim=(-1.1, 1.1), ylim=(-0.6, 0.6), zlim=(1.2, -0.3))
            axes.set_box_aspect((2.2, 1.2, 1.5), zoom=1.5)
            axes.set_yticks((-0.5, 0.0, 0.5))
            axes.set_title(f"({'abcd'[place]}) t from {span[0]:g} to {span[1]:g} s", loc="center")
            axes.tick_params(labelsize=6)
            axes.view_init(elev=12, azim=-68)
        assert lines is not None
        figure.colorbar(lines, ax=figure.axes, shrink=0.6, extend="max")
    positions = np.stack([_nodes(run, k) for k in flat])
    data = columns(
        time=("time", run.t[flat], "s", "time"),
        axis=_axis(),
        position=(("time", "node", "axis"), positions, "m", "nodes of the string, pivot first"),
        energy=(("time", "element"), energy[flat], "J", "elastic energy of the elements"),
        attitude=(("time", "axis", "body_axis"), np.asarray(run.g[1])[flat], "1", "attitude"),
    )
    return DataFigure(
        "figure-2",
        "Fig. 2: snapshots of the maneuver",
        "Six snapshots in each of the paper's four spans of time. After about three seconds these "
        "are one of many equally good motions: see the growth of errors.",
        figure,
        data,
    )


def _nodes(run: Trajectory, k: int) -> np.ndarray:
    return np.concatenate([np.zeros((1, 3)), np.asarray(run.g[0])[k]])


def _body(run: Trajectory) -> Body:
    return string_bodies(run, drawing_data(run))[0]


def _draw_body(axes: Any, body: Body, k: int, alpha: float) -> None:
    assert body.rotation is not None and body.position is not None and body.corners is not None
    corners = body.corners @ body.rotation[k].T + body.position[k]
    faces = [corners[list(face)] for face in _FACES]
    box = Poly3DCollection(faces, fc="#CCCCCC", ec="#555555", lw=0.5, alpha=alpha, clip_on=False)
    axes.add_collection3d(box)


def _axis() -> tuple[str, np.ndarray, str, str]:
    return ("axis", labels(["e1", "e2", "e3, down"]), "1", "axis of space")


def figure_3(run: Trajectory) -> DataFigure:
    """Energies, errors, speeds and length along the maneuver, from a run saved at every step."""
    panels = _panels(run)
    named: dict[str, Column] = {}
    with style():
        figure = new_figure(11.0, 7.5, "String pendulum, h = 1e-4 s, 20 elements")
        for k, (title, unit, curves) in enumerate(panels):
            axes = figure.add_subplot(3, 2, k + 1)
            for (name, values), colour in zip(curves.items(), CYCLE[: len(curves)], strict=True):
                kept = extremes(values, _POINTS)
                axes.plot(run.t[kept], values[kept], color=colour, label=name)
                key = identifier(name or title)
                named[f"time_{key}"] = (f"sample_{key}", run.t[kept], "s", "time")
                told = unit.replace("²", "2"), name or title
                named[key] = (f"sample_{key}", values[kept], *told)
            axes.set_title(f"({'abcdef'[k]}) {title}")
            axes.set_ylabel(unit)
            if len(curves) > 1:
                axes.margins(y=0.25)
                axes.legend(fontsize=6, ncols=3, loc="upper center")
            if k >= 4:
                axes.set_xlabel("time (s)")
    return DataFigure(
        "figure-3",
        "Fig. 3: energies, what is kept, speeds and length",
        "The six panels of the paper, with the extremes of every step. The angular momentum stays "
        f"within {np.ptp(run.invariants()['angular momentum e3']):.0e} kg m²/s and the distance "
        f"from SO(3) below {np.max(run.group_defect()):.0e}; the paper has below 2e-13 for the "
        "latter.",
        figure,
        columns(**named),
    )


def _panels(run: Trajectory) -> list[tuple[str, str, dict[str, np.ndarray]]]:
    seen, kept = run.observables(), run.invariants()

    def error(name: str) -> dict[str, np.ndarray]:
        return {"": kept[name] - kept[name][0]}

    def speed(name: str) -> np.ndarray:
        return np.linalg.norm(seen[name][:, 0], axis=1)

    speeds = {name: speed(f"velocity of {name}") for name in ("attachment", "centre of mass")}
    energies = {name: y for name, y in seen.items() if "energy" in name and y.ndim == 1}
    return [
        ("energies", "J", energies),
        ("error of the total energy", "J", error("energy")),
        ("error of the angular momentum about e3", "kg m²/s", error("angular momentum e3")),
        ("distance of R from SO(3)", "1", {"": run.group_defect()}),
        ("speed", "m/s", {f"speed of {name}": y for name, y in speeds.items()}),
        ("stretched length", "m", {"": seen["stretched length"]}),
    ]


def growth(measured: Growth) -> DataFigure:
    """Errors along time."""
    curves = {
        "error of r, h = 1e-4 s": (measured.step, "m", BLUE),
        "error of R": (measured.turn, "1", GREEN),
        "effect of a nudge of 1e-9 on r": (measured.nudge, "m", ORANGE),
    }
    with style():
        figure = new_figure(7.0, 4.2, "Why curves can be compared for two or three seconds only")
        axes = figure.add_subplot(111)
        for name, (y, unit, colour) in curves.items():
            axes.semilogy(measured.t[1:], y[1:], color=colour, label=f"{name} ({unit})")
        axes.legend(loc="lower right")
        axes.set_xlabel("time (s)")
    return DataFigure(
        "growth",
        "Growth of errors",
        "Beyond the paper. Against steps eight times shorter, and against a start nudged by 1e-9 "
        "kg m/s. From 1 s to 5 s the error of r grows by a factor of "
        f"{measured.factor('step'):.0e}, that of R by {measured.factor('turn'):.0e}, the effect of "
        f"the nudge by {measured.factor('nudge'):.0e}.",
        figure,
        along_time(measured.t, {name: (y, unit) for name, (y, unit, _) in curves.items()}),
    )


def long_run(runs: dict[float, Plateau]) -> DataFigure:
    """The energy deviation over a long time, at three step sizes."""
    h = np.array(list(runs))
    levels = np.array([-one.level for one in runs.values()])
    means, end = {}, next(iter(runs.values())).t[-1]
    with style():
        figure = new_figure(8.0, 4.2, "Mean energy deviation over a long time, three steps")
        left, right = figure.add_subplot(121), figure.add_subplot(122)
        for (size, one), colour in zip(runs.items(), CYCLE, strict=False):
            each = max(1, len(one.t) // 100)
            count = len(one.t) // each * each
            mean = one.deviation[:count].reshape(-1, each).mean(axis=1)
            means[f"h = {size:g} s"] = (one.t[:count].reshape(-1, each).mean(axis=1), mean)
            left.plot(*means[f"h = {size:g} s"], color=colour, label=f"h = {size:g} s")
        left.set(xlabel="time (s)", ylabel="mean energy deviation (J)")
        left.legend()
        right.loglog(h, levels, "o-", color=BLUE, label="mean of the last fifth")
        right.loglog(h, levels[-1] * (h / h[-1]) ** 2, "--", color=ORANGE, label="h²")
        right.set_xticks(h, [f"{size:g}" for size in h])
        right.set_xticks([], minor=True)
        right.set(xlabel="h (s)", ylabel="- deviation (J)")
        right.legend()
    words = ("deviation", "J", "energy deviation, averaged over hundredths of the run")
    named = by_name("run", means, ("time", "s", "time"), words)
    named["h"] = ("h", h, "s", "step size")
    named["plateau"] = ("h", -levels, "J", "mean deviation over the last fifth of the run")
    return DataFigure(
        "long-run",
        "Energy over a long time",
        "Beyond the paper. As energy reaches short waves the mean deviation leaves zero. Right: "
        f"over the last fifth of the {end:g} s, where it changes with h to the power "
        f"{' and '.join(f'{p:.1f}' for p in powers(runs))} (dashed: 2).",
        figure,
        columns(**named),
    )


def solver(rates: dict[float, tuple[float, int]], newton: float) -> DataFigure:
    """The paper's fixed-point iteration against the length of the arm."""
    scales = np.array(list(rates))
    rate, count = np.array(list(rates.values())).T
    with style():
        figure = new_figure(8.0, 3.6, "The paper's fixed-point iteration for the turn of the body")
        left, right = figure.subplots(1, 2)
        left.semilogx(scales, rate, "o-", color=BLUE, base=2)
        left.axhline(1.0, color=ORANGE, lw=0.8, ls="--")
        left.set(xlabel="length of the arm / the paper's", ylabel="contraction a sweep")
        right.loglog(scales, count, "o-", color=BLUE, label="fixed point")
        right.set_xscale("log", base=2)
        right.axhline(newton, color=GREEN, label=f"Newton, string eliminated: {newton:.1f}")
        right.set(xlabel="length of the arm / the paper's", ylabel="iterations a step")
        right.legend(loc="upper left")
    data = columns(
        arm=("arm", scales, "1", "length of the arm over the paper's"),
        rate=("arm", rate, "1", "contraction of the fixed point"),
        iterations=("arm", count, "1", "iterations to 1e-14"),
        newton=((), newton, "1", "Newton iterations with the string eliminated"),
    )
    return DataFigure(
        "solver",
        "The fixed-point iteration, and Newton's with the string eliminated",
        "Beyond the paper. Its iteration slows down as the centre of mass moves away from the "
        f"string; eliminating the string leaves three unknowns and {newton:.1f} Newton steps.",
        figure,
        data,
    )
