"""A quantity along a run, by its name: alone, against another, or as a spectrum."""

import re
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np
from jaxtyping import Array, Float
from matplotlib.figure import Figure

from retrax.analysis.spectrum import Spectrum
from retrax.analysis.spectrum import spectrum as analyse
from retrax.cases.makers import did_you_mean
from retrax.errors import BadInput
from retrax.mechanics.state import State
from retrax.numerics.checks import host_float64, quote, require_number
from retrax.show.bodies import unit
from retrax.show.drawn import require_run
from retrax.show.style import ORANGE, POINTS, extremes, literal, look, new_figure, style
from retrax.trajectory.energy_balance import balance_of
from retrax.trajectory.trajectory import Trajectory

QuantityLike = str | Callable[[State], Array] | np.ndarray | Sequence[float]
"""The name of a quantity, a function of the state, or values at the saved states."""

_COMPONENT = re.compile(r"(momentum|velocity|position|input) (\d+)")

# A path is drawn with this many points at most.
_POINTS = 20_000
_NAMED_LINES = 8


class Quantity(NamedTuple):
    """Values along a run, and what to write beside their axis."""

    values: Float[np.ndarray, " time"]
    label: str


def quantity(run: Trajectory, what: QuantityLike, label: str = "") -> Quantity:
    """Evaluate a quantity of a run at every saved state.

    **Arguments:** `what`: `"time"`; a component, `"momentum 1"`, `"velocity 2"`, `"input 1"`, or
    `"position 1"` if configurations are vectors; the name of an invariant or of an observable; a
    function of the state; or the values themselves. `label`: what to call it, needed for the last
    two.
    """
    require_run(run)
    if isinstance(what, str):
        values, found = _find_named(run, what)
        return Quantity(_series(run, what, values), label or found)
    values = run.along(what) if callable(what) else host_float64("the quantity", what)
    return Quantity(_series(run, label or "the quantity", values), label)


def names(run: Trajectory) -> list[str]:
    """Return the names that `quantity` knows in this run."""
    count = np.asarray(run.momentum).shape[1]
    vectors = _positions(run)
    return [
        "time",
        *(f"position {k + 1}" for k in range(0 if vectors is None else vectors.shape[1])),
        *(f"momentum {k + 1}" for k in range(count)),
        *(f"velocity {k + 1}" for k in range(count)),
        *(f"input {k + 1}" for k in range(run.inputs.shape[1])),
        *run.observations.invariants,
        *(["energy"] if balance_of(run) is not None else []),
        *(key for key, values in run.observations.observables.items() if np.ndim(values) == 1),
    ]


def _find_named(run: Trajectory, what: str) -> tuple[np.ndarray, str]:
    known = names(run)
    if what not in known:
        listed = ", ".join(known[:12]) + (", ..." if len(known) > 12 else "")
        raise BadInput(
            f"the {run.provenance['system']} has no quantity {what!r}."
            f"{did_you_mean(what, known)} It has {listed}."
        )
    if what == "time":
        return np.asarray(run.t), "time (s)"
    component = _COMPONENT.fullmatch(what)
    if component is None:
        values = {**run.observations.observables, **run.observations.invariants}
        series = values[what] if what in values else run.energy()
        return series, f"{literal(what)} ({unit(run, what)})"
    kind, k = component[1], int(component[2]) - 1
    if kind == "position":
        return np.asarray(_positions(run))[:, k], f"$x_{k + 1}$"
    if kind == "input":
        return np.asarray(run.inputs)[:, k], f"$u_{{{k + 1}}}$"
    array = run.momentum if kind == "momentum" else run.velocity
    symbol = "\\mu" if kind == "momentum" else "\\xi"
    return np.asarray(array)[:, k], f"${symbol}_{{{k + 1}}}$ ({unit(run, kind)})"


def _positions(run: Trajectory) -> np.ndarray | None:
    """Return configurations that are vectors, one row each; `None` if they are something else."""
    leaves = jax.tree.leaves(run.g)
    flat = len(leaves) == 1 and np.ndim(leaves[0]) == 2
    return np.asarray(leaves[0]) if flat else None


def _series(run: Trajectory, name: str, values: np.ndarray) -> np.ndarray:
    if values.shape != (len(run.t),):
        raise BadInput(
            f"{name} has values of shape {values.shape}, but a figure needs one number at each of "
            f"the {len(run.t)} saved states."
        )
    return values


def phase_portrait(
    runs: Trajectory | Sequence[Trajectory],
    x: QuantityLike | None = None,
    y: QuantityLike | None = None,
    *,
    labels: Sequence[str] = (),
    joined: bool = True,
) -> Figure:
    """Draw the paths of one or several runs in the plane of two quantities, a dot at each start.

    **Arguments:**

    - `runs`: a run, or runs of one system from several starts.
    - `x`, `y`: quantities, as `quantity` takes them: `"momentum 1"`, an invariant, a function of
        the state. Left out, a position against its momentum if there are such, else the first
        two positions or momenta.
    - `labels`: what to call the runs in a legend.
    - `joined`: whether saved states are joined by a line; `False` draws dots, for sections and for
        runs that were saved seldom.
    """
    several = runs if isinstance(runs, list | tuple) else (runs,)
    every_run = [require_run(run) for run in several]
    labels = [labels] if isinstance(labels, str) else labels
    if not isinstance(labels, list | tuple):
        raise BadInput(f"labels = {quote(labels)} must be a list of names.")
    if not every_run:
        raise BadInput("runs is empty: a phase portrait needs at least one run.")
    default = _axes_of(every_run[0])
    x, y = default[0] if x is None else x, default[1] if y is None else y
    if labels and len(labels) != len(every_run):
        raise BadInput(f"labels has {len(labels)} names for {len(every_run)} runs.")
    made = every_run[0].provenance
    with style():
        figure = new_figure(5.6, 5.2, f"{made['system']} by {made['integrator']}")
        axes = figure.add_subplot()
        for k, run in enumerate(every_run):
            across, up = quantity(run, x), quantity(run, y)
            every = -(-len(run.t) // _POINTS)
            how: dict[str, Any] = look(k)
            if not joined:
                how |= {"linestyle": "none", "marker": ".", "markersize": 2.0}
            axes.plot(across.values[::every], up.values[::every], **how)
            name = labels[k] if labels else None
            axes.plot(across.values[0], up.values[0], "o", markersize=4, color=how["color"],
                      label=name)  # fmt: skip
        axes.set_xlabel(across.label)
        axes.set_ylabel(up.label)
        if labels:
            axes.legend()
    return figure


def _axes_of(run: Trajectory) -> tuple[str, str]:
    known = set(names(run))
    moving = bool(np.any(np.asarray(run.momentum)))
    vector = "momentum" if moving else "velocity"
    for pair in (
        ("position 1", "momentum 1") if moving else ("position 1", "position 2"),
        (f"{vector} 1", f"{vector} 2"),
    ):
        if known.issuperset(pair):
            return pair
    return "time", f"{vector} 1"


def spectrum(
    run: Trajectory | Spectrum,
    what: QuantityLike = "velocity 1",
    *,
    up_to: float | None = None,
    above: float = -60.0,
    label: str = "",
) -> Figure:
    """Draw the power spectrum of a quantity in decibels below its highest line, and mark its lines.

    **Arguments:**

    - `run`: a run, or what `retrax.analysis.spectrum` found.
    - `what`: a quantity, as `quantity` takes it.
    - `up_to`: the highest angular frequency shown (rad/s); left out, all of them.
    - `above`: how high a line must be to be marked (dB); the highest eight carry their frequency.
    """
    if isinstance(run, Spectrum):
        found, title = run, label or "Spectrum"
    else:
        series = quantity(run, what, label)
        found = analyse(run.t, series.values)
        shown_as = label or (what if isinstance(what, str) else "")
        title = f"{literal(run.provenance['system'])}: {shown_as}"
    end = float(found.omega[-1]) if up_to is None else require_number("up_to", up_to, unit="rad/s")
    here = found.omega <= end
    if here.sum() < 2:
        raise BadInput(f"up_to = {up_to!r} rad/s leaves nothing of a spectrum to {end:.3g} rad/s.")
    omega, power = found.omega[here], found.decibels[here]
    lines = [
        line for line in found.peaks(require_number("above", above, unit="dB")) if line[0] <= end
    ]
    with style():
        figure = new_figure(7.2, 3.8, title.rstrip(": "))
        axes = figure.add_subplot()
        kept = extremes(power, POINTS)
        axes.plot(omega[kept], power[kept], **look(0))
        for rank, (at, height) in enumerate(sorted(lines, key=lambda line: -line[1])):
            axes.plot(at, height, marker="v", markersize=4, color=ORANGE)
            if rank < _NAMED_LINES:
                axes.annotate(f"{at:.4g}", (at, height), fontsize=7, color="#333333",
                              xytext=(3, 3), textcoords="offset points")  # fmt: skip
        axes.set_xlim(0, end)
        axes.set_ylim(max(float(power.min()), -160.0), 8)
        axes.set_xlabel("angular frequency (rad/s)")
        axes.set_ylabel("power (dB)")
    return figure
