"""Everything that `retrax bench` measures."""

from collections.abc import Callable
from typing import Any

from retrax.bench import ensembles, kernels, quadratic, single, stages, strings
from retrax.bench.machine import record

NO_COMPILER = (
    "There is no C compiler, so retrax is timed by itself: install gcc, or name a compiler in CC, "
    "to compare it with C."
)


def measure(report: Callable[[str], object]) -> dict[str, Any]:
    """One trajectory by several methods, strings, ensembles; `report` is told what comes next."""
    missing = [] if kernels.compiler() else [NO_COMPILER]
    report("One trajectory against C")
    one = single.measure()
    report("Kahan's method against C")
    kahan = quadratic.measure()
    report("Collocation against C")
    collocation = stages.measure()
    report("Strings of 4 to 2000 elements against C")
    string = strings.measure(pairs=3)
    report("Ensembles against C and vmap")
    many = ensembles.measure()
    measured = {"single": one, "kahan": kahan, "collocation": collocation, "string": string}
    return record({**measured, "ensemble": many, "missing": missing})
