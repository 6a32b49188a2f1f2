"""Fig. 6 of the pseudospectral paper, the errors of its algorithm, and energy over long times."""

from typing import TYPE_CHECKING

import numpy as np

from retrax.reproduce.drawings import Column, Drawing, by_name, columns
from retrax.reproduce.pseudospectral_runs import GROWING
from retrax.show.style import CYCLE, new_figure, style

if TYPE_CHECKING:
    from retrax.reproduce.pseudospectral_runs import Long, Short

_FAMILIES = ("Gauss", "Radau", "Lobatto")
_FLOOR = 1e-17
_PANELS = {
    "defects": ("distance from SO(3)", "1"),
    "energies": ("energy error (J)", "J"),
    "momenta": ("error of the vertical momentum (kg m$^2$/s)", "kg m2/s"),
}


def figure_6(short: "dict[str, Short]") -> Drawing:
    """Angular velocity, distance from SO(3), energy and vertical momentum."""
    with style():
        figure = new_figure(10.0, 6.4, "The 3D pendulum for 30 s, h = 0.05 s")
        axes = [figure.add_subplot(2, 2, k + 1) for k in range(4)]
        run, plain = short["geometric Gauss"], short["plain Gauss"]
        for i, colour in enumerate(CYCLE[:3]):
            axes[0].plot(run.t, run.velocity[:, i], color=colour, label=f"$\\omega_{i + 1}$")
        axes[0].set_title("angular velocity (rad/s)")
        for panel, (what, (title, _)) in zip(axes[1:], _PANELS.items(), strict=True):
            for family, colour in zip(_FAMILIES, CYCLE, strict=False):
                for kind, line in (("geometric", "-"), ("plain", "--")):
                    one = short[f"{kind} {family}"]
                    size = np.maximum(np.abs(getattr(one, what)), _FLOOR)
                    panel.semilogy(one.t, size, line, color=colour, label=f"{kind} {family}")
            growing = np.maximum(np.abs(getattr(short[GROWING], what)), _FLOOR)
            panel.semilogy(run.t, growing, color="black", lw=1.2, label=GROWING)
            panel.set_title(title)
        axes[0].set_ylim(bottom=-1.0)
        axes[0].legend(loc="lower center", ncols=3)
        axes[1].legend(loc="center", bbox_to_anchor=(0.55, 0.475), ncols=2, fontsize=6)
        for panel in axes[2:]:
            panel.set_xlabel("t (s)")
    names = list(short)
    named: dict[str, Column] = {
        "time": ("time", run.t, "s", "time"),
        "integrator": (
            "integrator",
            np.array(names, dtype=object),
            "1",
            "integrator, two or three nodes",
        ),
        "velocity": (
            ("integrator", "time", "axis"),
            np.stack([short[name].velocity for name in names]),
            "rad/s",
            "body angular velocity",
        ),
    }
    words = ("distance from SO(3)", "energy error", "error of the vertical momentum")
    for (what, (_, units)), said in zip(_PANELS.items(), words, strict=True):
        values = np.stack([getattr(short[name], what) for name in names])
        named[what] = (("integrator", "time"), values, units, said)
    return Drawing(
        "figure-6",
        "Fig. 6: angular velocity, SO(3), energy and momentum for 30 s",
        "The paper compares geometric and plain collocation. Iterated to convergence, plain Gauss "
        f"(dashed blue) misses SO(3) by {plain.group:.0e}, energy by {plain.energy:.0e} J and "
        f"momentum by {plain.momentum:.0e} kg m²/s; geometric Gauss (blue) by {run.group:.0e}, "
        f"{run.energy:.0e} and {run.momentum:.0e}. Black: plain Gauss whose iteration stops at "
        f"3.2e-11 leaves SO(3) by {short[GROWING].group:.0e} after 30 s, and grows, as the curve "
        "of about 1e-13 that the paper describes.",
        figure,
        columns(**named),
    )


def energy(regular: "dict[str, Long]", chaotic: "dict[str, Long]") -> Drawing:
    """The energy error along long runs."""
    titles = {
        "the paper's orbit, regular, h = 0.1 s": ("regular", regular),
        "chaotic, $\\omega_0 = (2, -3, 1)$, h = 0.05 s": ("chaotic", chaotic),
    }
    named: dict[str, Column] = {}
    with style():
        figure = new_figure(10.0, 3.8, "Energy error over long times, two Gauss nodes")
        for k, (title, (kind, runs)) in enumerate(titles.items()):
            axes = figure.add_subplot(1, 2, k + 1)
            for (name, run), colour in zip(runs.items(), CYCLE, strict=False):
                size = np.maximum(np.abs(run.errors), _FLOOR)
                axes.semilogy(run.t, size, ".", ms=1.2, color=colour, label=name, rasterized=True)
            axes.set_title(title)
            axes.set_xlabel("t (s)")
            x, y = (f"time_{kind}", "s", "time"), (f"energy_{kind}", "J", f"energy error, {kind}")
            named |= by_name(
                "integrator", {n: (run.t, run.errors) for n, run in runs.items()}, x, y
            )
        figure.axes[0].set_ylabel("energy error (J)")
        figure.axes[0].legend(loc="center", bbox_to_anchor=(0.5, 0.4), ncols=2, markerscale=6)
    return Drawing(
        "energy",
        "Energy over long times, regular and chaotic",
        "Beyond the paper. Largest errors on the regular and on the chaotic orbit: "
        + "; ".join(
            f"{name} {regular[name].largest:.0e} and {chaotic[name].largest:.0e} J"
            for name in regular
        )
        + f". Slope of geometric Gauss on the left: {regular['geometric Gauss'].slope:.1e} J/s.",
        figure,
        columns(**named),
    )


def convergence(
    printed: dict[str, list[float]],
    errors: dict[int, list[tuple[float, float]]],
    nodes: list[tuple[int, float]],
) -> Drawing:
    """Errors against the step, and against the number of nodes."""
    curves = {f"geometric Gauss, s = {s}": tuple(np.array(rows).T) for s, rows in errors.items()}
    sizes = next(iter(curves.values()))[0]
    curves |= {f"Algorithm 1, {name}": (sizes, np.array(e)) for name, e in printed.items()}
    with style():
        figure = new_figure(9.6, 3.8, "Error of (R, $\\omega$) at t = 10 s")
        left, right = (figure.add_subplot(1, 2, k + 1) for k in range(2))
        looks = [("o-", colour) for colour in CYCLE[: len(errors)]]
        looks += [(line, "black") for line in (":", "--", "-.")]
        for (name, (h, error)), (line, colour) in zip(curves.items(), looks, strict=True):
            left.loglog(h, error, line, color=colour, ms=3, label=name)
        left.set_xlabel("h (s)")
        left.set_xticks(sizes, [f"{h:g}" for h in sizes])
        left.minorticks_off()
        left.set_ylim(top=1e6)
        left.legend(fontsize=6, loc="upper left", ncols=2)
        s, error = np.array(nodes).T
        right.semilogy(s, error, "o-", color=CYCLE[0], ms=3)
        right.set_title("h = 1 s")
        right.set_xticks(s)
        right.set_xlabel("nodes s")
    slopes = {name: np.log2(e[-2] / e[-1]) for name, e in printed.items()}
    words = ("error", "1", "largest error of (R, omega) at t = 10 s")
    named = by_name("integrator", curves, ("h", "s", "step size"), words)
    named["nodes"] = ("nodes", [s for s, _ in nodes], "1", "Gauss nodes")
    named["error_h_1"] = ("nodes", [e for _, e in nodes], "1", "the same with h = 1 s")
    return Drawing(
        "convergence",
        "Fig. 5, the algorithm: as printed, corrected, and solved together",
        "As printed (dotted) it does not converge; with the velocity corrected its order is "
        f"{slopes['velocity corrected']:.1f}, with the sign of the bracket "
        f"{slopes['both corrected']:.1f} (at the shortest steps). With all stages solved together "
        f"the orders are 2s. Right, h = 1 s: error {error[0]:.0e} with {s[0]:.0f} nodes, "
        f"{error[-1]:.0e} with {s[-1]:.0f}.",
        figure,
        columns(**named),
    )
