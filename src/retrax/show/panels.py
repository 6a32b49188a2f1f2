"""What a figure is made of: each function draws one thing on the axes it is given."""

from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float
from matplotlib.axes import Axes

from retrax.show.downsample import extremes
from retrax.show.style import POINTS, literal, look
from retrax.show.units import unit
from retrax.trajectory.observe import deviations, drift

if TYPE_CHECKING:
    from retrax.trajectory.trajectory import Trajectory

_SHOWN_COMPONENTS = 6


def draw_error(axes: Axes, run: "Trajectory", names: list[str]) -> None:
    """The errors of some invariants, all on one scale."""
    values = {name: run.invariants()[name] for name in names}
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


def draw_balance(axes: Axes, run: "Trajectory") -> None:
    """The change of an energy that is not conserved, and the work done on the system."""
    balance = run.energy_balance()
    assert balance is not None
    _curve(axes, run.t, balance.change, "change of energy")
    _curve(axes, run.t, balance.work, "work done")
    axes.set_title(f"energy ({run.energy()[0]:.6g} J at the start)")
    axes.set_ylabel("energy (J)")
    _legend(axes)


def annotate_error(axes: Axes, run: "Trajectory", name: str) -> None:
    """The largest error and the drift of an invariant, as text above its curve."""
    values = run.invariants()[name]
    worst = np.max(np.abs(deviations(values)))
    text = f"largest {worst:.2e}, drift {drift(run.t, values):+.1e} per second"
    axes.set_title(text, loc="right", fontsize=8, color="#555555")


def draw_defect(axes: Axes, run: "Trajectory") -> None:
    """The distance from the group, on a logarithmic axis where it is not zero throughout."""
    defect = run.group_defect()
    _curve(axes, run.t, defect, "")
    axes.set_title(f"distance from {literal(run.provenance['group'])}")
    axes.set_ylabel("defect (1)")
    if np.any(defect > 0):
        axes.set_yscale("log", nonpositive="mask")
    else:
        axes.set_ylim(-1e-16, 1e-16)


def draw_velocity(axes: Axes, run: "Trajectory") -> None:
    """The components of the body velocity, six of them at most."""
    velocity = np.asarray(run.velocity)
    for k in range(min(velocity.shape[1], _SHOWN_COMPONENTS)):
        _curve(axes, run.t, velocity[:, k], f"$\\xi_{k + 1}$")
    more = velocity.shape[1] > _SHOWN_COMPONENTS
    which = f", {_SHOWN_COMPONENTS} of {velocity.shape[1]} components" if more else ""
    axes.set_title(f"body velocity{which}")
    axes.set_ylabel(f"velocity ({unit(run, 'velocity')})")
    _legend(axes)


def _curve(axes: Axes, t: np.ndarray, values: np.ndarray, label: str) -> None:
    kept = extremes(np.asarray(values, dtype=float), POINTS)
    axes.plot(t[kept], values[kept], label=label, **look(len(axes.lines)))


def _legend(axes: Axes) -> None:
    """Names of the curves above the axes, where no curve runs."""
    axes.legend(
        loc="lower right",
        bbox_to_anchor=(1.0, 0.98),
        borderaxespad=0.0,
        ncols=len(axes.lines),
        columnspacing=1.0,
        handlelength=1.0,
    )


def direction(vectors: Float[np.ndarray, "time 3"]) -> Float[np.ndarray, "time 3"]:
    """Unit vectors; a zero vector has no direction and is left out of the picture."""
    length = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.divide(vectors, length, out=np.full_like(vectors, np.nan), where=length > 0)
