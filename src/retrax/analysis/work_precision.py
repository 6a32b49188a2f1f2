"""What precision costs: errors and processor time of several methods on several systems."""

import time as clock
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

from retrax.analysis.convergence import distance, entry_distance
from retrax.cases.names import fits
from retrax.errors import BadInput, StepFailed
from retrax.integrators.base import AbstractIntegrator, as_integrator, require_fit
from retrax.integrators.collocation import Collocation
from retrax.mechanics.state import State
from retrax.mechanics.system import AbstractGroupSystem
from retrax.numerics.checks import quote, require_instance, require_number, require_whole
from retrax.numerics.evaluate import evaluate
from retrax.numerics.nodes import gauss
from retrax.run.checks import require_parts
from retrax.run.simulate import simulate

if TYPE_CHECKING:
    import xarray as xr

Start: TypeAlias = tuple[AbstractGroupSystem, State]
Method: TypeAlias = AbstractIntegrator | str
# Steps of the reference are this part of the shortest that is measured.
_FINER = 4


class _Measured(NamedTuple):
    seconds: float
    end: State | None


def work_precision(
    systems: Mapping[str, Start] | Start,
    methods: Mapping[str, Method] | Sequence[Method],
    *,
    time: float,
    h: Sequence[float],
    reference: AbstractIntegrator | None = None,
    repeats: int = 3,
) -> "xr.Dataset":
    """Run every method on every system with every step, and measure errors and processor time.

    `rx.show.work_precision` draws what it returns.

    **Arguments:**

    - `systems`: a system and its start, or several by name.
    - `methods`: integrators or their names; a class of your own is welcome. By name, or in a list.
    - `time`: how long every run is; each `h` is shortened until it divides it.
    - `reference`: the method of the reference, with a quarter of the shortest step; of order 8 by
        default.
    - `repeats`: how often a run is measured; the quickest counts.

    **Returns:** an `xarray.Dataset` with the dimensions `system`, `method` and `run`: `h`, `steps`,
    `error` (the distance of the ends on the group, and of momenta; entry by entry for methods that
    leave the group), `seconds` of processor time without compiling. Both are NaN where a step
    failed. `reference_error`, for each system, says below what errors are not known.

    **Raises:** `BadInput` where a method cannot step a system.
    """
    import xarray as xr

    what = "a pair (system, state), or several such by name"
    given = {"": systems} if isinstance(systems, tuple) else systems
    starts = require_instance("systems", given, Mapping, what)
    named = _name_methods(methods)
    if not isinstance(h, Sequence | np.ndarray):
        raise BadInput(f"h = {quote(h)} must be a list of step sizes.")
    sizes = [require_number("h", size, "> 0", "s") for size in h]
    span, repeats = require_number("time", time, "> 0", "s"), require_whole("repeats", repeats, 1)
    if not (starts and named and sizes):
        raise BadInput("systems, methods and h must each name something.")
    counts = np.array([max(1, int(np.ceil(span / size - 1e-9))) for size in sizes])
    shape = (len(starts), len(named), len(sizes))
    errors, seconds, below = np.full(shape, np.nan), np.full(shape, np.nan), []
    for i, (name, start) in enumerate(starts.items()):
        system, state = _require_start(name, start)
        for method in named.values():
            require_fit(system, method)
        ends = _reference(system, state, span, int(counts.max()), reference)
        below.append(_distance(system, *ends))
        for j, method in enumerate(named.values()):
            for k, steps in enumerate(counts):
                found = _measure(system, method, state, span / steps, int(steps), repeats)
                seconds[i, j, k] = found.seconds
                if found.end is not None:
                    on_group = "group" in method.preserves
                    errors[i, j, k] = _distance(system, found.end, ends[1], on_group)
    axes = ("system", "method", "run")
    return xr.Dataset(
        {
            "error": (axes, errors, {"long_name": "distance from the reference at the end"}),
            "seconds": (axes, seconds, {"units": "s", "long_name": "processor time"}),
            "h": (("run",), span / counts, {"units": "s", "long_name": "step"}),
            "steps": (("run",), counts),
            "reference_error": (("system",), np.array(below)),
        },
        {"system": list(starts), "method": list(named)},
        {"time": span},
    )


def _name_methods(methods: object) -> dict[str, AbstractIntegrator]:
    if isinstance(methods, Mapping):
        return {str(name): as_integrator(method) for name, method in methods.items()}
    if isinstance(methods, str) or not isinstance(methods, Sequence):
        raise BadInput(f"methods = {quote(methods)} must be a list of integrators, or a mapping.")
    made = [as_integrator(method) for method in methods]
    names = [x if isinstance(x, str) else repr(y) for x, y in zip(methods, made, strict=True)]
    if len(set(names)) < len(names):
        raise BadInput("two of the methods have one name: give a mapping from names to methods.")
    return dict(zip(names, made, strict=True))


def _require_start(name: str, start: Any) -> Start:
    if not (isinstance(start, tuple) and len(start) == 2):
        where = f"systems[{name!r}]" if name else "systems"
        raise BadInput(f"{where} = {quote(start)} must be a system and its start.")
    return require_parts(*start)


def _reference(
    system: AbstractGroupSystem,
    state: State,
    span: float,
    most: int,
    reference: AbstractIntegrator | None,
) -> tuple[State, State]:
    """Return the end of the motion twice, the second time with half the steps' length."""
    method = Collocation(gauss(4)) if reference is None else as_integrator(reference, "reference")
    if reference is None and not fits(system, method):
        raise BadInput(f"{method!r} cannot step the {system.name}: give reference=...")
    first, second = (
        simulate(
            system, method, state, h=span / steps, steps=steps, save_every=steps, progress=False
        ).final
        for steps in (_FINER * most // 2 or 1, _FINER * most)
    )
    return first, second


def _measure(
    system: AbstractGroupSystem,
    method: AbstractIntegrator,
    state: State,
    h: float,
    steps: int,
    repeats: int,
) -> _Measured:
    """Return the least processor time of a run that is compiled already, and its end."""

    def run(count: int) -> State:
        return simulate(
            system, method, state, h=h, steps=count, save_every=count, progress=False
        ).final

    try:
        run(1)
        end = run(steps)
        return _Measured(min(_time_call(lambda: run(steps)) for _ in range(repeats)), end)
    except StepFailed:
        return _Measured(np.nan, None)


def _time_call(work: Callable[[], object]) -> float:
    begin = clock.process_time()
    work()
    return clock.process_time() - begin


def _distance(system: AbstractGroupSystem, a: State, b: State, on_group: bool = True) -> float:
    if on_group:
        return float(evaluate(lambda group, a, b: distance(group, a, b), system.group, a, b))
    return float(evaluate(entry_distance, a, b))
