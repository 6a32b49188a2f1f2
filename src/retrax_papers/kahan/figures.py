"""Kahan's map: one step, long runs, orbits on the sphere, orders, predators and prey, poles."""

import numpy as np
from matplotlib.colors import LogNorm
from mpl_toolkits.mplot3d import Axes3D

from retrax.show.sphere import draw_path, draw_sphere
from retrax.show.style import CYCLE, GREY, ORANGE, new_figure, style
from retrax_papers.drawings import DataFigure, by_name, columns, draw_errors, labels
from retrax_papers.kahan.runs import ORBITS, PREY, SIZES, Boundary, LongRun, Structure

# The copy at hand ends with the statement of Theorem 3.1.
_BEYOND = "Beyond what survives of the paper. "
_WORDS = {"bracket": "Lie-Poisson bracket", "energy": "energy H", "casimir": "Casimir function C"}


def theorem(structure: dict[str, Structure]) -> DataFigure:
    """By how much one step misses three laws, against its size."""
    with style():
        figure = new_figure(9.6, 3.6, "One step from m = (1, 1/2, 2): is the map Poisson?")
        panels = figure.subplots(1, 3, sharey=True)
        for axes, (top, one) in zip(panels, structure.items(), strict=True):
            for (name, words), colour in zip(_WORDS.items(), CYCLE, strict=False):
                defects = np.maximum(getattr(one, name), 1e-17)
                axes.loglog(SIZES, defects, "o-", color=colour, ms=3, label=words)
            axes.set_xticks(SIZES, [f"{h:g}" for h in SIZES])
            axes.minorticks_off()
            axes.set_title(f"I = ({top})")
            axes.set_xlabel("h (s)")
        panels[0].set_ylabel("defect of one step")
        panels[0].legend(loc="center right")
    defects = [[getattr(one, name) for name in _WORDS] for one in structure.values()]
    data = columns(
        moments=("moments", labels(structure), "kg m2", "moments of inertia"),
        law=("law", labels(_WORDS.values()), "1", "law"),
        h=("h", SIZES, "s", "step size"),
        defect=(("moments", "law", "h"), defects, "1", "defect of one step"),
    )
    return DataFigure(
        "theorem",
        "Theorem 3.1: both sides, for three tops",
        "With three different moments (left) the map is not Poisson and keeps neither energy nor "
        "momentum: all three defects fall as h³. With two equal moments all are at round-off.",
        figure,
        data,
    )


def long_runs(measured: dict[float, LongRun]) -> DataFigure:
    """Energy and the integrals of the map along a long run."""
    names = ("energy", "H/C", "C/B2")
    titles = ("energy error, relative", "change of H/C, relative", "change of C/B$_2$, relative")
    named = {}
    with style():
        figure = new_figure(11.0, 3.6, "Euler's top by Kahan's method, from m = (1, 1, 1)")
        panels = figure.subplots(1, 3)
        for axes, name, title in zip(panels, names, titles, strict=True):
            curves = {}
            for (h, one), colour in zip(measured.items(), CYCLE, strict=False):
                t, y = one.curves[name]
                axes.plot(t / h, y / y[0] - 1, ".", ms=0.8, color=colour, label=f"h = {h:g} s")
                curves[f"h = {h:g}"] = (t, y)
            axes.set_title(title)
            axes.set_xlabel("step")
            key = name.replace("/", "_over_")
            x = (f"time_{key}", "s", "time")
            named |= by_name("run", curves, x, (key, "J" if name == "energy" else "1", name))
        panels[0].legend(loc="center right", bbox_to_anchor=(1.0, 0.3), markerscale=8)
    return DataFigure(
        "long-run",
        "Long runs: energy within bounds, H/C and C/B2 to round-off",
        _BEYOND + "The energy moves with m2 alone, by an exact formula, and does not "
        "drift; H/C and C/B2 are integrals of the map. Of each small part of a run its extremes "
        "are drawn.",
        figure,
        columns(**named),
    )


def orbits(paths: dict[str, list[np.ndarray]]) -> DataFigure:
    """Four orbits on the momentum sphere, by four methods."""
    named = {}
    with style():
        figure = new_figure(12.0, 3.6, "Momenta of a free rigid body, I = (3, 2, 1)")
        for k, (name, starts) in enumerate(paths.items()):
            axes = figure.add_subplot(1, 4, k + 1, projection="3d")
            assert isinstance(axes, Axes3D)
            draw_sphere(axes)
            for path, colour in zip(starts, CYCLE, strict=False):
                draw_path(axes, path, colour, "")
            _, h, n = ORBITS.get(name, (None, 0.03, 2000))
            axes.set_title(f"{name}, h = {h:g}, {n} steps" if k else "exact", loc="center")
            key = name.replace(" ", "_").replace("-", "_")
            named[f"momentum_{key}"] = (
                ("start", f"sample_{key}", "axis"), np.stack(starts), "kg m2/s", f"momentum, {name}"
            )  # fmt: skip
            named[f"time_{key}"] = (f"sample_{key}", h * np.arange(len(starts[0])), "s", "time")
    return DataFigure(
        "orbits",
        "Momenta on the sphere",
        _BEYOND + "Kahan's orbits are closed curves close to the exact ones at a step of "
        "half a second; explicit Euler leaves the sphere, Runge-Kutta 4 at a coarse step sinks.",
        figure,
        columns(**named),
    )


def orders(errors: dict[str, list[tuple[float, float]]]) -> DataFigure:
    """The error at t = 100 against the step."""
    curves = {name: tuple(np.array(rows).T) for name, rows in errors.items()}
    with style():
        figure = new_figure(6.4, 4.6, "Euler's top: error of the momentum at t = 100")
        axes = figure.add_subplot(111)
        draw_errors(axes, curves)
        axes.set_ylabel("largest error")
        axes.legend(loc="lower right", fontsize=7)
    error = ("error", "kg m2/s", "largest error of the momentum at t = 100")
    return DataFigure(
        "orders",
        "Errors against the step",
        _BEYOND + "Kahan's method is of order 2; its compositions, with the length of the "
        "momentum restored, are of order 4 and 6, explicit, and exact in energy and momentum.",
        figure,
        columns(**by_name("integrator", curves, ("h", "s", "step size"), error)),
    )


def predators(prey: dict[str, np.ndarray]) -> DataFigure:
    """Predators and prey from (2, 1)."""
    with style():
        figure = new_figure(9.6, 3.6, "Predators and prey from (2, 1): closed orbits, or spirals")
        for k, ((name, y), colour) in enumerate(zip(prey.items(), CYCLE, strict=False)):
            axes = figure.add_subplot(1, 3, k + 1)
            joined = name == "explicit Euler"
            axes.plot(y[:, 0], y[:, 1], "-" if joined else ".", color=colour, ms=2.0)
            axes.plot(*y[0], "o", color=GREY, ms=4)
            axes.set_title(f"{name}, h = {PREY[name][1]:g}, {PREY[name][2]} steps")
            axes.set_xlabel("prey")
        figure.axes[0].set_ylabel("predators")
    times = {name: (PREY[name][1] * np.arange(len(y)), y) for name, y in prey.items()}
    count = ("population", "1", "prey and predators")
    return DataFigure(
        "predators",
        "The system that is symplectic under Kahan's method",
        "Sanz-Serna's theorem, which the paper cites, is about this system and the form "
        "dx dy/(xy): orbits close, where explicit methods spiral.",
        figure,
        columns(**by_name("integrator", times, ("time", "s", "time"), count)),
    )


def poles(edge: Boundary) -> DataFigure:
    """The step at which starts meet a pole."""
    with style():
        figure = new_figure(
            6.4, 4.6, "Where Kahan's map of Euler's top meets a pole, I = (3, 2, 1)"
        )
        axes = figure.add_subplot(111)
        shown = np.where(edge.failed_step > 0, edge.failed_step, np.nan).astype(float)
        mesh = axes.pcolormesh(
            edge.second, edge.first, shown, norm=LogNorm(), cmap="viridis", rasterized=True
        )
        axes.axvline(edge.bound, color=ORANGE, lw=1.4, label="$h\\,m_2\\sqrt{a_1a_3} = 2$")
        axes.set_xlabel("$h\\,m_2(0)$")
        axes.set_ylabel("$h\\,m_1(0)$, with $h\\,m_3(0) = 1$")
        axes.legend(loc="upper left")
        bar = figure.colorbar(mesh, label="step that crosses a pole (white: none in 2000)")
        latest = max(2, int(np.nanmax(shown)))
        bar.set_ticks(range(1, latest + 1), labels=[f"{k}" for k in range(1, latest + 1)])
        bar.minorticks_off()
    left, right = (edge.failed_step[:, side] for side in (edge.second < edge.bound,
                                                          edge.second >= edge.bound))  # fmt: skip
    below, above = int(np.sum(left > 0)), int(np.sum(right > 0))
    data = columns(
        second=("second", edge.second, "1", "h m2(0)"),
        first=("first", edge.first, "1", "h m1(0), with h m3(0) = 1"),
        failed_step=(("first", "second"), edge.failed_step, "1", "step at a pole; none where < 1"),
        bound=((), edge.bound, "1", "sharp bound of h m2(0)"),
    )
    return DataFigure(
        "poles",
        "Starts that meet a pole of the map",
        _BEYOND + f"In 2000 steps {below} of {left.size} starts left of the line h m2(0) "
        f"sqrt(a1 a3) = 2 met a pole, and {above} of {right.size} right of it, at step {latest} at "
        "the latest.",
        figure,
        data,
    )
