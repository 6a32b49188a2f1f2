"""The steps of a run, taken again from its saved states to see what contacts do in them.

The machine code of the run takes them, each with the memory of the one before it, so that they are
the steps of the run to the last bit.
"""

import math
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import numpy as np

from retrax.engine.backends import make_single
from retrax.engine.progress import Packing
from retrax.errors import BadInput, warn
from retrax.integrators.base import AbstractIntegrator
from retrax.integrators.driven import Driven
from retrax.mechanics.remembered import RememberedSystem
from retrax.mechanics.state import State
from retrax.mechanics.system import AbstractGroupSystem
from retrax.numerics.evaluate import Evaluated

if TYPE_CHECKING:
    from retrax.trajectory.trajectory import Trajectory

# Steps are looked at in blocks of this many, or of this many numbers.
_BLOCK, _NUMBERS = 8192, 2**21
# A time is that of a step if it misses it by this part of a step.
_NEAR = 1e-9
# Steps that end this far from the next saved state, relative to it, are not those of the run.
_ELSEWHERE = 1e-6


class Retaken(NamedTuple):
    """Steps of a run, one after the other, and what contacts did in them.

    **Attributes:** `interval`: which saved states each step lies between; `t`: the time at its end;
    `record`: what the integrator tells of it, stacked.
    """

    interval: np.ndarray
    t: np.ndarray
    record: Any


class _Step(NamedTuple):
    """A step: the rows of its two ends and of the memory, how long it is, and where it lies."""

    before: np.ndarray
    after: np.ndarray
    memory: np.ndarray
    h: float
    interval: int


def has_contact(run: "Trajectory") -> bool:
    """Tell whether the steps of a run can be asked what contacts did in them."""
    system = run.system
    if system is None or isinstance(system, RememberedSystem) or system.contact is None:
        return False
    return hasattr(_method(run), "contact_record")


def retaken(run: "Trajectory") -> Iterator[Retaken]:
    """Take all steps of a run again, and tell in blocks what contacts did.

    A warning says where they come to other states than those that were saved.
    """
    system, method = run.system, _method(run)
    assert system is not None and method is not None
    one: Any = jax.tree.map(lambda x: np.asarray(x)[0], run.states)
    packing, memory = Packing(one), Packing(jax.eval_shape(run.integrator.memory, system, one))
    size = 2 * packing.size + memory.size
    block = max(16, min(_BLOCK, _NUMBERS // size))
    prepared: Callable | None = None
    waiting: list[_Step] = []

    def told() -> Retaken:
        nonlocal prepared
        # The last block is filled up by repeating its last step: one program for all.
        count = block if prepared is not None or len(waiting) == block else len(waiting)
        steps = [waiting[min(k, len(waiting) - 1)] for k in range(count)]
        before, after = (
            _alone(packing.unpack_one(np.array([getattr(step, name) for step in steps])))
            for name in ("before", "after")
        )
        handed = _cast(memory, np.array([step.memory for step in steps]).reshape(count, -1))
        here = (before, after, np.array([step.h for step in steps]), handed)
        if prepared is None:
            prepared = _look.prepared(here, system, method)
        found = prepared(here, system, method)
        record = jax.tree.map(lambda x: np.asarray(x)[: len(waiting)], found)
        interval = np.array([step.interval for step in waiting])
        return Retaken(interval, np.asarray(after.t)[: len(waiting)], record)

    for step in _steps(run, one, packing, hands_on=hasattr(method, "record")):
        waiting.append(step)
        if len(waiting) == block:
            yield told()
            waiting.clear()
    if waiting:
        yield told()


def _steps(run: "Trajectory", one: State, packing: Packing, hands_on: bool) -> Iterator[_Step]:
    """Take the steps; `hands_on` says whether to keep the memory after each or before it."""
    system, integrator, h = run.system, run.integrator, float(run.h)
    backend = "xla" if run.provenance.get("backend") == "xla" else "auto"
    single = make_single(system, integrator, one, h, backend)
    leaves = [np.asarray(x).reshape(len(run.t), -1) for x in jax.tree.leaves(run.states)]
    rows, first = np.concatenate(leaves, axis=1), float(run.t[0])
    memory: np.ndarray | None = None
    behind, worst = 0, 0.0
    for k, row in enumerate(rows[:-1]):
        span = (float(rows[k + 1, -1]) - float(row[-1])) / h
        whole = math.floor(span + _NEAR)
        sizes = [h] * whole + ([(span - whole) * h] if span - whole > _NEAR else [])
        here = row
        for size in sizes:
            start, taken = (np.append(here[:-1], first), behind) if size == h else (here, 0)
            found = single.take(start, size, 1, taken=taken, memory=memory)
            if found is None:
                raise BadInput(
                    f"the step from t = {float(here[-1]):.6g} s, which this run has taken, fails "
                    "when it is taken again; what contacts did cannot be told."
                )
            after, handed = found
            if not hands_on and memory is None:
                memory = _fresh(integrator, system, packing.unpack_one(here))
            yield _Step(here, after, handed if hands_on else memory, size, k)
            here, memory, behind = after, handed, behind + 1
        miss = np.max(np.abs(here[:-1] - rows[k + 1, :-1]), initial=0.0)
        worst = max(worst, miss / max(np.max(np.abs(rows[k + 1, :-1])), 1e-300))
    if worst > _ELSEWHERE:
        warn(
            f"the steps of this run, taken again, end up to {worst:.1e} beside its saved states, "
            "relative to them: what it tells of contacts may be that of another run. Save states "
            "more often (save_every)."
        )


def _method(run: "Trajectory") -> AbstractIntegrator | None:
    """Return the integrator that knows the contacts."""
    found = run.integrator
    return found.integrator if isinstance(found, Driven) else found


@Evaluated
def _look(seen: tuple, system: AbstractGroupSystem, method: Any) -> Any:
    if hasattr(method, "record"):
        return jax.vmap(lambda a, b, h, m: method.record(system, a, b, h, m))(*seen)
    return jax.vmap(lambda a, b, h, m: method.contact_record(system, a, h, m)[1])(*seen)


def _fresh(integrator: AbstractIntegrator, system: AbstractGroupSystem, state: State) -> np.ndarray:
    return Packing.rows(Evaluated(_memory)(integrator, system, state))[:, 0]


def _memory(integrator: AbstractIntegrator, system: AbstractGroupSystem, state: State) -> Any:
    return integrator.memory(system, state)


def _alone(state: State) -> State:
    return State(state.g, state.momentum, state.t)


def _cast(packing: Packing, rows: np.ndarray) -> Any:
    leaves = jax.tree.leaves(packing.unpack_one(rows))
    typed = [leaf.astype(kind) for leaf, kind in zip(leaves, packing.dtypes, strict=True)]
    return jax.tree.unflatten(packing.structure, typed)
