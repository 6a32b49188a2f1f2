"""Figs. 1 and 2 of the nonholonomic paper, what they do not show, its equations, and orders."""

import numpy as np
from matplotlib.axes import Axes

from retrax.show.style import BLUE, GREY, ORANGE, extremes, new_figure, style
from retrax_papers.drawings import DataFigure, by_name, columns, draw_errors
from retrax_papers.nonholonomic.runs import Measured

_COLOURS = {"exponential": BLUE, "Cayley": ORANGE}
_POINTS, _PARTS = 2000, 300
# The stretch of time that is shown in detail, in seconds.
_CLOSE_UP = 30.0
_TIME, _MOMENTUM = ("s", "time"), ("kg m2/s", "body momentum")


def figure_1(measured: dict[str, Measured]) -> DataFigure:
    """Energy, group and constraint of (18) and (19), as in the paper, and their momentum."""
    drawn = {name: {} for name in ("energy", "group", "constraint")}
    with style():
        figure = new_figure(
            11.0, 6.4, "Suslov's problem: the integrators of Fig. 1 (left), and their momentum"
        )
        grid = figure.add_gridspec(3, 2, width_ratios=[5, 6])
        panels = [figure.add_subplot(grid[k, 0]) for k in range(3)]
        for name in ("(18), exponential", "(19), Cayley"):
            one = measured[name]
            drawn["energy"][name] = _few(one.t, one.energy)
            drawn["group"][name] = _largest(one.t, one.defect)
            drawn["constraint"][name] = _largest(one.t[1:], one.across)
            for axes, curves in zip(panels, drawn.values(), strict=True):
                axes.plot(*curves[name], color=_colour(name), label=name)
        for axes, words in zip(panels, ("energy error (J)", "norm of $R^TR - 1$",
                                        "constraint (rad/s)"), strict=True):  # fmt: skip
            axes.set_ylabel(words)
        panels[2].set_xlabel("time (s)")
        panels[0].legend(loc="best")
        momenta = _momenta(figure.add_subplot(grid[:, 1]), measured)
    units = {"energy": ("J", "energy error"), "group": ("1", "norm of R^T R - 1")}
    units["constraint"] = ("rad/s", "largest third component of the increment of R over h")
    named = {}
    for name, curves in drawn.items():
        named |= by_name("scheme", curves, (f"time_{name}", *_TIME), (name, *units[name]))
    x, y = ("time_momentum", *_TIME), ("momentum", *_MOMENTUM)
    named |= by_name("scheme_momentum", momenta, x, y)
    ends = ", ".join(f"({x:.4f}, {y:.4f})" for x, y in (one.path[-1, :2] for one in (
        measured["(18), exponential"], measured["(17), s = 0, exponential"])))  # fmt: skip
    return DataFigure(
        "figure-1",
        "Fig. 1: the adapted integrators, and their momentum",
        "Left, as in the paper: energy error, distance from SO(3) and constraint of (18) and (19). "
        "Right, beyond the paper: the momentum, which the exact motion leaves at (1, 1). (18) and "
        f"(17) with s = 0 end at {ends}; the inverse of (11) stays. Blue: exponential map, orange: "
        "Cayley map, on both sides.",
        figure,
        columns(**named),
    )


def _colour(name: str) -> str:
    """One colour for each map, in every panel."""
    return _COLOURS["Cayley" if "(19)" in name or "Cayley" in name else "exponential"]


def _momenta(axes: Axes, measured: dict[str, Measured]) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    shown = {
        "(18), exponential": "-",
        "(19), Cayley": (0, (6, 6)),
        "(17), s = 0, exponential": ":",
        "(11) inverted, s = 1/2, exponential": "-.",
    }
    curves = {}
    for name, line in shown.items():
        curves[name] = _path(measured[name])
        t, path = curves[name]
        look = {"color": _colour(name), "ls": line, "lw": 1.6}
        axes.plot(t, path[:, 0], label=name, **look)
        axes.plot(t, path[:, 1], **look)
    above = {"xytext": (-16, 6), "textcoords": "offset points"}
    for name in ("(18), exponential", "(17), s = 0, exponential"):
        t, path = curves[name]
        for k in range(2):
            late = (t[-1], path[-1, k]) if name[:4] == "(17)" else (t[-1] * 0.72, path[-1, k])
            axes.annotate(f"$\\Pi_{k + 1}$ of {name[:4]}", late, ha="right", **above)
    axes.set_title("the momentum; the exact motion stays at (1, 1)")
    axes.set_xlabel("time (s)")
    axes.set_ylabel("body momentum (kg m$^2$/s)")
    axes.legend(loc="center right", bbox_to_anchor=(1.0, 0.6))
    return curves


def figure_2(measured: dict[str, Measured]) -> DataFigure:
    """Energy and third momentum of the free body."""
    named, units = {}, {"energy": ("J", "energy error"), "Pi_3": ("kg m2/s", "third momentum")}
    with style():
        figure = new_figure(
            10.0, 4.8, "The unadapted integrator (10) is the free rigid body (Fig. 2)"
        )
        panels = figure.subplots(2, 2, width_ratios=[3, 4])
        for row, (name, told) in zip(panels, units.items(), strict=True):
            begun, whole = {}, {}
            for kind, colour in _COLOURS.items():
                one = measured[f"(10), {kind}"]
                values = one.energy if name == "energy" else one.path[:, 2]
                begin = one.t <= _CLOSE_UP
                begun[kind] = (one.t[begin], values[begin])
                row[0].plot(*begun[kind], color=colour, label=kind)
                t, above = _largest(one.t, values)
                below = -_largest(one.t, -values)[1]
                whole[kind] = (t, np.stack([below, above], axis=1))
                row[1].plot(t, above, color=colour)
                row[1].plot(t, below, color=colour)
            x = (f"time_{name}", *_TIME)
            named |= by_name("map", begun, x, (name, *told))
            x, y = (f"time_{name}_extremes", *_TIME), f"{name}_extremes"
            named |= by_name("map", whole, x, (y, told[0], f"least and largest {told[1]}"))
        for axes in panels[1]:
            for sign in (-1, 1):
                axes.axhline(sign * np.sqrt(10 / 11), color=GREY, lw=0.8, ls=":")
            axes.set_xlabel("time (s)")
        panels[0, 0].set_ylabel("energy error (J)")
        panels[1, 0].set_ylabel("$\\Pi_3$ (dotted: theory)")
        panels[0, 0].set_title("the beginning")
        panels[0, 1].set_title("the whole run: least and largest values")
        panels[0, 1].legend(*panels[0, 0].get_legend_handles_labels(), loc="center right")
    return DataFigure(
        "figure-2",
        "Fig. 2: the unadapted integrator",
        "As the paper says, it does not preserve the constraint. No reaction is in its equations: "
        "this is the motion of the free rigid body, whose third momentum has the bound sqrt(10/11) "
        "(dotted).",
        figure,
        columns(**named),
    )


def equations(measured: dict[str, Measured]) -> DataFigure:
    """The momenta of (18) and (19): as they follow from (16), and as the damaged copy reads."""
    curves = {name: _path(one) for name, one in measured.items()}
    with style():
        figure = new_figure(9.0, 3.8, "Equations (18) and (19) on the example of Fig. 1")
        panels = figure.subplots(1, 2, sharex=True)
        lines = {"(18), exponential": "-", "(19), Cayley": (0, (6, 6))}
        for name, (t, path) in curves.items():
            for k, axes in enumerate(panels):
                line = lines.get(name, ":")
                axes.plot(t, path[:, k], ls=line, color=_colour(name), lw=1.5, label=name)
        for k, axes in enumerate(panels):
            axes.axhline(1.0, color=GREY, lw=0.8)
            axes.set_title(f"$\\Pi_{k + 1}$; exact: 1 for ever (grey)")
            axes.set_xlabel("time (s)")
        panels[0].set_ylabel("body momentum (kg m$^2$/s)")
        panels[1].legend(loc="center right")
    named = by_name("scheme", curves, ("time", *_TIME), ("momentum", *_MOMENTUM))
    return DataFigure(
        "equations",
        "Equations (18) and (19)",
        "As they follow from (16), with their third components dropped, both are (17) with s = 1: "
        "of first order. Dotted: as the damaged glyphs of the copy at hand can be read, which says "
        "nothing about the paper.",
        figure,
        columns(**named),
    )


def orders(errors: dict[str, list[tuple[float, float]]]) -> DataFigure:
    """The error of the velocity against the step."""
    curves = {name: tuple(np.array(rows).T) for name, rows in errors.items()}
    with style():
        figure = new_figure(
            9.0, 4.6, "Suslov's problem with a full inertia: error of the velocity at 2 s"
        )
        axes = figure.add_subplot(111)
        draw_errors(axes, curves)
        axes.set_ylabel("largest error (rad/s)")
        axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))
    error = ("error", "rad/s", "largest error of the velocity at 2 s")
    return DataFigure(
        "orders",
        "Errors against the step, with a full inertia",
        "Beyond the paper. A diagonal inertia does not show signs; with a full one (17) with s = 0 "
        "is of order 1, (11) inverted of order 2 (with s = 1/4 too), and compositions are of order "
        "4 and 6.",
        figure,
        columns(**by_name("scheme", curves, ("h", "s", "step size"), error)),
    )


def _path(one: Measured) -> tuple[np.ndarray, np.ndarray]:
    """The two momenta in the plane of the constraint, with fewer points."""
    chosen = np.unique(np.linspace(0, len(one.t) - 1, _POINTS).astype(int))
    return one.t[chosen], one.path[chosen, :2]


def _few(t: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """A curve with fewer points and the same extremes."""
    kept = extremes(y, _POINTS)
    return t[kept], y[kept]


def _largest(t: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The largest value in each of many equal parts of the run."""
    parts = min(_PARTS, len(y))
    length = len(y) // parts
    blocks = y[: parts * length].reshape(parts, length)
    return t[: parts * length : length], np.max(blocks, axis=1)
