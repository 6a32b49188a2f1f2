"""A quantity along a run, by its name: what goes on the axes of a figure."""

import re
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import numpy as np
from jaxtyping import Float

from retrax.cases.choices import did_you_mean
from retrax.errors import BadInput
from retrax.show.style import literal
from retrax.show.units import unit

if TYPE_CHECKING:
    from retrax.trajectory.trajectory import Trajectory

_COMPONENT = re.compile(r"(momentum|velocity|position) (\d+)")


class Quantity(NamedTuple):
    """Values along a run, and what to write beside their axis."""

    values: Float[np.ndarray, " time"]
    label: str


def quantity(run: "Trajectory", what: Any, label: str = "") -> Quantity:
    """A quantity of a run at every saved state.

    **Arguments:** `what`: `"time"`; a component, `"momentum 1"`, `"velocity 2"`, or `"position 1"`
    where configurations are vectors; the name of an invariant or of an observable; a function of
    the state; or the values themselves. `label`: what to call it, needed for the last two.
    """
    if isinstance(what, str):
        values, found = _named(run, what)
        return Quantity(_series(run, what, values), label or found)
    values = run.along(what) if callable(what) else np.asarray(what, dtype=float)
    return Quantity(_series(run, label or "the quantity", values), label)


def names(run: "Trajectory") -> list[str]:
    """The names that `quantity` knows in this run."""
    count = np.asarray(run.momentum).shape[1]
    vectors = _positions(run)
    return [
        "time",
        *(f"position {k + 1}" for k in range(0 if vectors is None else vectors.shape[1])),
        *(f"momentum {k + 1}" for k in range(count)),
        *(f"velocity {k + 1}" for k in range(count)),
        *run.invariants(),
        *(["energy"] if run.energy_balance() is not None else []),
        *(key for key, values in run.observables().items() if np.ndim(values) == 1),
    ]


def _named(run: "Trajectory", what: str) -> tuple[np.ndarray, str]:
    known = names(run)
    if what not in known:
        listed = ", ".join(known[:12]) + (", ..." if len(known) > 12 else "")
        raise BadInput(
            f"{what!r} is no quantity of the {run.provenance['system']}.{did_you_mean(what, known)}"
            f" There are {listed}."
        )
    if what == "time":
        return np.asarray(run.t), "time (s)"
    component = _COMPONENT.fullmatch(what)
    if component is None:
        values = {**run.observables(), **run.invariants()}
        series = values[what] if what in values else run.energy()
        return series, f"{literal(what)} ({unit(run, what)})"
    kind, k = component[1], int(component[2]) - 1
    if kind == "position":
        return np.asarray(_positions(run))[:, k], f"$x_{k + 1}$"
    array = run.momentum if kind == "momentum" else run.velocity
    symbol = "\\mu" if kind == "momentum" else "\\xi"
    return np.asarray(array)[:, k], f"${symbol}_{{{k + 1}}}$ ({unit(run, kind)})"


def _positions(run: "Trajectory") -> np.ndarray | None:
    """Configurations that are vectors, one row each; `None` where they are something else."""
    leaves = jax.tree.leaves(run.g)
    flat = len(leaves) == 1 and np.ndim(leaves[0]) == 2
    return np.asarray(leaves[0]) if flat else None


def _series(run: "Trajectory", name: str, values: np.ndarray) -> np.ndarray:
    if values.shape != (len(run.t),):
        raise BadInput(
            f"{name} has values of shape {values.shape}, but a figure needs one number at each of "
            f"the {len(run.t)} saved states."
        )
    return values
