"""Fig. 3 of the string pendulum paper, the growth of errors, the long run, and the solver."""

from typing import TYPE_CHECKING

import numpy as np

from retrax.reproduce.drawings import Column, Drawing, along_time, by_name, columns
from retrax.reproduce.string_findings import powers
from retrax.show.downsample import extremes
from retrax.show.style import BLUE, CYCLE, GREEN, ORANGE, new_figure, style
from retrax.trajectory.dataset import identifier

if TYPE_CHECKING:
    from retrax.reproduce.string_runs import Growth, Plateau
    from retrax.trajectory.trajectory import Trajectory


# Points of a curve that is drawn; its extremes over all steps are among them.
_POINTS = 3000


def figure_3(run: "Trajectory") -> Drawing:
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
    return Drawing(
        "figure-3",
        "Fig. 3: energies, what is kept, speeds and length",
        "The six panels of the paper, with the extremes of every step. The angular momentum stays "
        f"within {np.ptp(run.invariants()['angular momentum e3']):.0e} kg m²/s and the distance "
        f"from SO(3) below {np.max(run.group_defect()):.0e}; the paper has below 2e-13 for the "
        "latter.",
        figure,
        columns(**named),
    )


def _panels(run: "Trajectory") -> list[tuple[str, str, dict[str, np.ndarray]]]:
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


def growth(measured: "Growth") -> Drawing:
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
    return Drawing(
        "growth",
        "Growth of errors",
        "Beyond the paper. Against steps eight times shorter, and against a start nudged by 1e-9 "
        "kg m/s. From 1 s to 5 s the error of r grows by a factor of "
        f"{measured.factor('step'):.0e}, that of R by {measured.factor('turn'):.0e}, the effect of "
        f"the nudge by {measured.factor('nudge'):.0e}.",
        figure,
        along_time(measured.t, {name: (y, unit) for name, (y, unit, _) in curves.items()}),
    )


def long_run(runs: "dict[float, Plateau]") -> Drawing:
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
    return Drawing(
        "long-run",
        "Energy over a long time",
        "Beyond the paper. As energy reaches short waves the mean deviation leaves zero. Right: "
        f"over the last fifth of the {end:g} s, where it changes with h to the power "
        f"{' and '.join(f'{p:.1f}' for p in powers(runs))} (dashed: 2).",
        figure,
        columns(**named),
    )


def solver(rates: dict[float, tuple[float, int]], newton: float) -> Drawing:
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
    return Drawing(
        "solver",
        "The fixed-point iteration, and Newton's with the string eliminated",
        "Beyond the paper. Its iteration slows down as the centre of mass moves away from the "
        f"string; eliminating the string leaves three unknowns and {newton:.1f} Newton steps.",
        figure,
        data,
    )
