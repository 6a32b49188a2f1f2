"""Figs. 1 and 2 of the string pendulum paper: the pendulum with its names, and snapshots."""

from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.colors import Normalize
from mpl_toolkits.mplot3d.art3d import Line3DCollection, Poly3DCollection

from retrax.reproduce.drawings import Drawing, columns
from retrax.show.strings import drawing, string_bodies
from retrax.show.style import BLUE, GREEN, GREY, ORANGE, new_figure, style

if TYPE_CHECKING:
    from retrax.show.bodies import Body
    from retrax.trajectory.trajectory import Trajectory

_SPANS = ((0.0, 1.25), (1.25, 2.5), (2.5, 3.75), (3.75, 5.0))
_SHOWN = 6  # snapshots in each span
_SKETCHED = 0.45  # the time of the sketch, in seconds
_FACES = ((0, 1, 3, 2), (4, 6, 7, 5), (0, 4, 5, 1), (2, 3, 7, 6), (0, 2, 6, 4), (1, 5, 7, 3))


def figure_1(run: "Trajectory") -> Drawing:
    """The pendulum at one moment, with what the paper calls its parts."""
    k = int(np.argmin(np.abs(run.t - _SKETCHED)))
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
    return Drawing(
        "figure-1",
        "Fig. 1: the pendulum, drawn from a run",
        "A string of 20 elements from the pivot to the body; the origin of the body frame is where "
        "the string ends, its centre of mass is R rho_c away.",
        figure,
        data,
    )


def figure_2(run: "Trajectory") -> Drawing:
    """Snapshots in four spans of time, coloured by elastic energy."""
    energy, body = run.observables()["elastic energy of elements"], _body(run)
    spans = [np.linspace(a, b, _SHOWN) for a, b in _SPANS]
    chosen = [[int(np.argmin(np.abs(run.t - t))) for t in span] for span in spans]
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
    return Drawing(
        "figure-2",
        "Fig. 2: snapshots of the maneuver",
        "Six snapshots in each of the paper's four spans of time. After about three seconds these "
        "are one of many equally good motions: see the growth of errors.",
        figure,
        data,
    )


def _nodes(run: "Trajectory", k: int) -> np.ndarray:
    return np.concatenate([np.zeros((1, 3)), np.asarray(run.g[0])[k]])


def _body(run: "Trajectory") -> "Body":
    told = drawing(run)
    assert told is not None
    return string_bodies(run, told)[0]


def _draw_body(axes: Any, body: "Body", k: int, alpha: float) -> None:
    assert body.rotation is not None and body.position is not None and body.corners is not None
    corners = body.corners @ body.rotation[k].T + body.position[k]
    faces = [corners[list(face)] for face in _FACES]
    box = Poly3DCollection(faces, fc="#CCCCCC", ec="#555555", lw=0.5, alpha=alpha, clip_on=False)
    axes.add_collection3d(box)


def _axis() -> tuple[str, np.ndarray, str, str]:
    return ("axis", np.array(["e1", "e2", "e3, down"], dtype=object), "1", "axis of space")
