"""Everything that `retrax bench` measures."""

from collections.abc import Callable
from typing import Any

from retrax.bench import ensembles, kernels, quadratic, single
from retrax.bench.machine import record

NO_COMPILER = (
    "There is no C compiler, so retrax is timed by itself: install gcc, or name a compiler in CC, "
    "to compare it with C."
)


def measure(report: Callable[[str], object]) -> dict[str, Any]:
    """One trajectory, Kahan's method, then ensembles; `report` is told what is being measured."""
    missing = [] if kernels.compiler() else [NO_COMPILER]
    report("One trajectory against C")
    one = single.measure()
    report("Kahan's method against C")
    kahan = quadratic.measure()
    report("Ensembles against C and vmap")
    many = ensembles.measure()
    return record({"single": one, "kahan": kahan, "ensemble": many, "missing": missing})
