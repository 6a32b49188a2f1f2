"""The steps of a run, taken again from its saved states to see what contacts do in them.

The machine code of the run takes them, each with the memory of the one before it, so that they are
the steps of the run to the last bit.
"""

import math
from collections.abc import Callable, Iterator
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import numpy as np
from jaxtyping import Float

from retrax.contact.steps.last_touch import LastTouch
from retrax.contact.steps.neighbours import Neighbours
from retrax.engine.backends import make_single
from retrax.engine.progress import Packing
from retrax.errors import BadInput, warn
from retrax.integrators.base import AbstractIntegrator
from retrax.integrators.driven import Driven
from retrax.mechanics.state import State
from retrax.mechanics.system import AbstractGroupSystem
from retrax.numerics.evaluate import Evaluated, evaluate
from retrax.trajectory.reactions import method_of

if TYPE_CHECKING:
    from retrax.trajectory.trajectory import Trajectory

# Steps are looked at in blocks of this many, or of this many numbers.
_BLOCK, _NUMBERS = 8192, 2**23
# A time is that of a step if it misses it by this part of a step.
_NEAR = 1e-9
# Steps that end this far from the next saved state, relative to it, are not those of the run.
_ELSEWHERE = 1e-6
_TINY = float(np.finfo(float).tiny)


class Powers(NamedTuple):
    """The power of all but contacts after each step, at what times, and which states were saved."""

    t: np.ndarray
    power: np.ndarray
    saved: np.ndarray


class ReplayedSteps(NamedTuple):
    """Steps of a run, one after the other, and what contacts did in them.

    **Attributes:** `interval`: which saved states each step lies between; `t`: the time at its end;
    `saved`: whether it ends at a saved state; `record`: what the integrator tells of it, stacked;
    `powers`: of everything but contacts after it, and before the first; `near`: of rods, the saved
    states that it comes to, and how far apart what is near is there.
    """

    interval: np.ndarray
    t: np.ndarray
    saved: np.ndarray
    record: Any
    powers: Powers
    near: tuple[np.ndarray, Any] | None = None


class _Block(NamedTuple):
    """Steps side by side: the rows of both ends and of the memory, sizes, and where they lie."""

    before: np.ndarray
    after: np.ndarray
    memory: np.ndarray
    h: np.ndarray
    interval: np.ndarray


def replay(run: "Trajectory") -> Iterator[ReplayedSteps]:
    """Take all steps of a run again, and tell in blocks what contacts did.

    A warning says where they come to other states than those that were saved.
    """
    system, integrator, method = run.system, run.integrator, method_of(run)
    assert system is not None and integrator is not None and method is not None
    one: Any = jax.tree.map(lambda x: np.asarray(x)[0], run.states)
    packing, memory = Packing(one), Packing(jax.eval_shape(integrator.memory, system, one))
    size = 2 * packing.size + memory.size
    most = max(16, min(_BLOCK, _NUMBERS // size, run.completed + 1))
    ahead, prepared = np.asarray(run.t), {}

    def looked(look: Evaluated, seen: tuple) -> Any:
        kind = look, str(jax.tree.map(np.shape, seen))
        if kind not in prepared:
            prepared[kind] = look.prepare(seen, system, method)
        return prepared[kind](seen, system, method)

    for count, block in enumerate(_blocks(run, one, packing, memory, most)):
        before, after = (_alone(packing.unpack_one(x)) for x in (block.before, block.after))
        handed, t = _cast(memory, block.memory), block.after[:, -1].copy()
        saved = np.abs(t - ahead[block.interval + 1]) <= np.abs(block.h) / 4
        near = None
        if isinstance(handed, LastTouch):
            near = _near(looked, (before, after), handed.near, saved, block.interval, count == 0)
            handed = _pushing(handed, system.contact.kinds)
        # The last block is filled up by repeating its last step: one program for all.
        seen = _fill((before, after, block.h, handed), most)
        record = jax.tree.map(partial(_some, count=len(block.h)), looked(_look, seen))
        idle = isinstance(integrator, Driven)  # inputs are no functions of the state
        powers = _powers(looked, (before, after), t, saved, count == 0, idle)
        yield ReplayedSteps(block.interval.copy(), t, saved, record, powers, near)


def join_powers(parts: list[Powers]) -> Powers:
    """Return the powers of several blocks as one."""
    if not parts:
        return Powers(np.zeros(0), np.zeros(0), np.zeros(0, bool))
    return Powers(*(np.concatenate(x) for x in zip(*parts, strict=True)))


def _powers(
    looked: Callable[[Evaluated, tuple], Any],
    ends: tuple[State, State],
    t: np.ndarray,
    saved: np.ndarray,
    opens: bool,
    idle: bool,
) -> Powers:
    """Return the powers after the steps of a block, and before the first of all."""
    states: Any = ends[1]
    if opens:
        states = jax.tree.map(lambda x, y: np.concatenate([x[:1], y]), *ends)
        t, saved = np.asarray(states.t), np.concatenate([[True], saved])
    if idle:
        return Powers(t, np.zeros(len(t)), saved)
    most = _enough(len(t))
    power = np.asarray(looked(_evaluate_powers, (_fill(states, most),)))[: len(t)]
    return Powers(t, power, saved)


def _near(
    looked: Callable[[Evaluated, tuple], Any],
    ends: tuple[State, State],
    near: Neighbours,
    saved: np.ndarray,
    interval: np.ndarray,
    opens: bool,
) -> tuple[np.ndarray, Any]:
    """Return at which saved states of a block what is how far apart.

    The lists of a step hold at its start as well, so that the first state has those of the first.
    """
    rows, at = np.flatnonzero(saved), interval[saved] + 1
    places, lists = (
        ends[1].g[1][rows],
        jax.tree.map(lambda x: x[rows], near._replace(places=near.number)),
    )
    if opens:
        places = np.concatenate([ends[0].g[1][:1], places])
        first = jax.tree.map(lambda x: x[:1], near._replace(places=near.number))
        lists = jax.tree.map(lambda *x: np.concatenate(x), first, lists)
        at = np.concatenate([[0], at])
    if not len(at):
        return at, None
    most = _enough(len(at))
    found = looked(_closest, _fill((places, _list_pairs(lists)), most))
    return at, jax.tree.map(partial(_some, count=len(at)), found)


def _blocks(
    run: "Trajectory", one: State, packing: Packing, memory: Packing, most: int
) -> Iterator[_Block]:
    """Take the steps again in blocks, and compare where they lead.

    The memory is that which a step hands on, where its record can be told from that; or else that
    which it begins with.
    """
    system, integrator, h = run.system, run.integrator, float(run.h)
    assert system is not None and integrator is not None
    single = make_single(system, integrator, one, h, _backend(run))
    leaves = [np.asarray(x).reshape(len(run.t), -1) for x in jax.tree.leaves(run.states)]
    rows, hands_on = np.concatenate(leaves, axis=1), hasattr(method_of(run), "record")
    first, handed, worst, count = rows[0, -1], None, 0.0, 0
    if not hands_on:
        handed = Packing.rows(evaluate(_memory, integrator, system, one))[:, 0]
    sizes = (packing.size, packing.size, memory.size)
    ends = [np.empty((most, n)) for n in sizes]
    lengths, intervals = np.empty(most), np.empty(most, int)

    def block() -> _Block:
        return _Block(*(x[:count] for x in (*ends, lengths, intervals)))

    for taken, (k, size, opens) in enumerate(_spans(run)):
        here = rows[k] if opens else ends[1][count - 1]
        start = here.copy()
        if size == h:
            start[-1] = first
        found = single.take(start, size, 1, taken=taken if size == h else 0, memory=handed)
        if found is None:
            raise BadInput(
                f"the step from t = {float(here[-1]):.6g} s, which this run has taken, fails when "
                "it is taken again; what contacts did cannot be told."
            )
        if count == most:
            yield block()
            worst, count = max(worst, _miss(block(), rows)), 0
        ends[0][count], ends[1][count] = here, found[0]
        ends[2][count] = found[1] if hands_on else handed
        lengths[count], intervals[count] = size, k
        handed, count = found[1], count + 1
    if count:
        yield block()
        worst = max(worst, _miss(block(), rows))
    if worst > _ELSEWHERE:
        warn(
            f"the steps of this run, taken again, end up to {worst:.1e} beside its saved states, "
            "relative to them: what it tells of contacts may be that of another run. Save states "
            "more often (save_every)."
        )


def _spans(run: "Trajectory") -> Iterator[tuple[int, float, bool]]:
    """Tell the interval of each step, its size, and whether it begins at a saved state."""
    h, t = float(run.h), np.asarray(run.t)
    behind = (t - t[0]) / h
    stopped = run.ended_by is not None
    for k, (first, last) in enumerate(pairwise(behind.tolist())):
        ends = stopped and k == len(t) - 2
        whole = math.floor(last + _NEAR) - round(first) if ends else round(last) - round(first)
        for j in range(whole):
            yield k, h, j == 0
        if ends and last - round(first) - whole > _NEAR:  # an event ended the run within a step
            yield k, (last - round(first) - whole) * h, whole == 0


def _miss(block: _Block, rows: np.ndarray) -> float:
    """Return how far steps end beside the saved states that they lead to, relative to these."""
    saved = rows[block.interval + 1]
    there = np.abs(block.after[:, -1] - saved[:, -1]) <= np.abs(block.h) / 4
    size = np.maximum(np.max(np.abs(saved[there, :-1]), axis=1, initial=0.0), _TINY)
    miss = np.max(np.abs(block.after - saved)[there, :-1], axis=1, initial=0.0)
    return float(np.max(miss / size, initial=0.0))


def _backend(run: "Trajectory") -> str:
    return "xla" if run.provenance.get("backend") == "xla" else "auto"


@Evaluated
def _evaluate_powers(seen: tuple, system: AbstractGroupSystem, method: Any) -> Any:
    return jax.vmap(system.power)(*seen)


@Evaluated
def _closest(seen: tuple, system: AbstractGroupSystem, method: Any) -> Any:
    return jax.vmap(lambda places, near: method.closest(system, places, near))(*seen)


@Evaluated
def _look(seen: tuple, system: AbstractGroupSystem, method: Any) -> Any:
    if hasattr(method, "record"):
        return jax.vmap(lambda a, b, h, m: method.record(system, a, b, h, m))(*seen)
    return jax.vmap(lambda a, b, h, m: method.contact_record(system, a, h, m)[1])(*seen)


def _memory(integrator: AbstractIntegrator, system: AbstractGroupSystem, state: State) -> Any:
    return integrator.memory(system, state)


def _some(x: np.ndarray, count: int) -> np.ndarray:
    return np.asarray(x)[:count]


def _fill(tree: Any, most: int) -> Any:
    """Repeat the last row until there are `most`."""

    def fill(given: Any) -> np.ndarray:
        x = np.asarray(given)
        return x if len(x) == most else x[np.minimum(np.arange(most), len(x) - 1)]

    return jax.tree.map(fill, tree)


def _alone(state: State) -> State:
    return State(state.g, state.momentum, state.t)


def _cast(packing: Packing, rows: np.ndarray) -> Any:
    leaves = jax.tree.leaves(packing.unpack_one(rows))
    typed = [
        leaf.astype(kind, copy=False) for leaf, kind in zip(leaves, packing.dtypes, strict=True)
    ]
    return jax.tree.unflatten(packing.structure, typed)


def _pushing(memory: LastTouch, kinds: int) -> LastTouch:
    """Return memories of the pairs that push alone, as many as do in any of the steps.

    **Arguments:** `kinds`: how many spots a pair has.
    """
    near, room = memory.near, memory.near.first.shape[1]
    first, last, where = (np.asarray(x) for x in (memory.first, memory.last, memory.where))
    pairs = slice(0, kinds * room)
    acts = np.any((first[:, pairs] != 0) | (last[:, pairs] != 0), axis=2)
    acts = np.any(acts.reshape(len(acts), kinds, room), axis=1)
    number = np.sum(acts, axis=1)
    few = min(room, _enough(int(np.max(number, initial=0))))
    order = np.argsort(~acts, axis=1, kind="stable")[:, :few]

    def cut(x: Float[np.ndarray, "steps m k"]) -> Any:
        parts = [x[:, k * room : (k + 1) * room] for k in range(kinds)]
        parts = [np.take_along_axis(part, order[:, :, None], axis=1) for part in parts]
        return np.concatenate([*parts, x[:, kinds * room :]], axis=1)

    one: Any = np.take_along_axis(np.asarray(near.first), order, axis=1)
    other: Any = np.take_along_axis(np.asarray(near.second), order, axis=1)
    count: Any = number.astype(float)
    short = Neighbours(one, other, count, near.places, near.skin)
    return LastTouch(memory.force, short, cut(first), cut(last), cut(where))


def _list_pairs(near: Neighbours) -> Neighbours:
    """Return lists of as many pairs as the longest has."""
    most = _enough(int(np.max(near.number, initial=0.0)))
    return near._replace(first=near.first[:, :most], second=near.second[:, :most])


def _enough(number: int) -> int:
    """Return a power of two that is not below a number, so that few shapes are met."""
    return 1 << max(number - 1, 0).bit_length()
