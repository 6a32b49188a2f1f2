"""From a JAX function of small arrays to a scalar program.

The function is traced to a jaxpr, and the jaxpr is evaluated with every array replaced by an array
of operands (`program.Operand`): moving entries about costs nothing, arithmetic emits scalar
instructions, calls are inlined, loops and choices are kept. A primitive without a rule raises
`Unscalarisable`, which names it.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import jax
import numpy as np
from jax.extend import core as jex

from retrax.engine.axes.loops import AxisLoops, FlatArray, KeptArray, Operands
from retrax.engine.builder import Builder
from retrax.engine.kinds import Unscalarisable, kind_of_aval
from retrax.engine.program import Memory, Operand, Program, View
from retrax.engine.trace.evaluator import LARGEST, Evaluator
from retrax.engine.trace.scatters import inner_jaxprs

# A first axis of this length or more is kept as a loop: see `kept`.
_KEPT = 16


def scalarise(
    function: Callable, *examples: Any, invariant: int = 0, unroll: bool = False
) -> Program:
    """Return the scalar program of `function` at the shapes of `examples`, all leaves in order.

    The first `invariant` leaves are the same whenever the program is run again. With `unroll` axes
    that `keep_axis` marks are taken apart like all short ones.
    """
    closed = jax.make_jaxpr(function)(*examples)
    build = Builder()
    evaluator = Evaluator(build, unroll)
    arguments = _arguments(build, closed.in_avals, invariant)
    results = evaluator.inline(closed, [kept for kept, _ in arguments])
    outputs = [_outputs(evaluator.loops, r) for r in results]
    evaluator.loops.flush()
    return Program(_join(items for _, items in arguments), _join(outputs), build.close())


def scalarise_in_turn(
    opening: Callable,
    function: Callable,
    *examples: Any,
    invariant: int = 0,
    unroll: bool = False,
    keep: int = _KEPT,
) -> Program:
    """Return the program of a function that is repeated and has a memory from one time to the next.

    `function` takes what `opening` returns of the same examples, and gives it back renewed as the
    last of its results. First axes from the length `keep` on are kept.

    **Raises:** `Unscalarisable`, with the number of `equations`.
    """
    first, remembered = jax.make_jaxpr(opening, return_shape=True)(*examples)
    closed = jax.make_jaxpr(function)(*examples, remembered)
    try:
        return _in_turn(first, closed, invariant, unroll, keep)
    except Unscalarisable as reason:
        reason.equations = _equations(closed.jaxpr)
        raise


def _equations(jaxpr: jex.Jaxpr) -> int:
    """Count the equations, those of branches and loops too."""
    inner = (each for equation in jaxpr.eqns for each in inner_jaxprs(equation))
    return len(jaxpr.eqns) + sum(map(_equations, inner))


def _in_turn(
    first: jex.ClosedJaxpr, closed: jex.ClosedJaxpr, invariant: int, unroll: bool, keep: int
) -> Program:
    build = Builder()
    evaluator = Evaluator(build, unroll)
    count = len(first.out_avals)
    arguments = _arguments(build, closed.in_avals, invariant, keep)
    given, memory = arguments[: len(arguments) - count], arguments[len(arguments) - count :]
    build.open()
    opened = [
        _outputs(evaluator.loops, r, keep)
        for r in evaluator.inline(first, [kept for kept, _ in given])
    ]
    evaluator.loops.flush()
    block = build.close()
    results = evaluator.inline(closed, [kept for kept, _ in (*given, *memory)])
    outputs = [_outputs(evaluator.loops, r, keep) for r in results]
    evaluator.loops.flush()
    new, last = outputs[: len(outputs) - count], outputs[len(outputs) - count :]
    return Program(
        _join(items for _, items in given),
        _join(new),
        build.close(),
        Memory(_join(items for _, items in memory), block, _join(opened), _join(last)),
    )


def _join(parts: Iterable[Sequence]) -> tuple:
    return tuple(x for items in parts for x in items)


def _arguments(
    build: Builder, avals: Sequence, invariant: int, keep: int = _KEPT
) -> list[tuple[Any, Sequence]]:
    """Return arguments as the evaluator sees them, each with the inputs that it is made of.

    One long axis that is a few times as long as that of another argument is taken as flat.
    """
    counts = {a.shape[0] for a in avals if len(a.shape) > 1 and a.shape[0] >= keep}

    def things(aval) -> int | None:
        if len(aval.shape) != 1:
            return None
        few = [n for n in counts if aval.size % n == 0 and 1 < aval.size // n <= _KEPT]
        return max(few, default=None)

    return [_inputs(build, a, k < invariant, things(a), keep) for k, a in enumerate(avals)]


def _inputs(
    build: Builder, aval: Any, invariant: bool, things: int | None, keep: int
) -> tuple[Operands | KeptArray | FlatArray, Sequence]:
    kind = kind_of_aval(aval)
    if aval.shape and aval.shape[0] >= keep:
        buffer, length = build.buffer(aval.size, kind), things or aval.shape[0]
        width = aval.size // length
        cells = np.empty(width, object)
        cells[:] = [View(buffer, c, width, length) for c in range(width)]
        if things:
            return FlatArray(KeptArray(cells, 0, length), (buffer, build.block)), (buffer,)
        return KeptArray(cells.reshape(aval.shape[1:]), 0, length), (buffer,)
    if aval.size > LARGEST:
        raise Unscalarisable(f"it has an array of {aval.size} numbers")
    values = _fill(aval.shape, lambda: build.value(kind, invariant=invariant))
    return values, tuple(values.ravel())


def _outputs(
    loops: AxisLoops, result: Operands | KeptArray | FlatArray, keep: int = _KEPT
) -> tuple:
    """Return a result as an argument of its shape would come in, so that a step can be repeated."""
    if isinstance(result, FlatArray):
        return (loops.pack(result.things),)
    if len(result.shape) > 0 and result.shape[0] >= keep:
        if not isinstance(result, KeptArray):
            result = loops.keep(result, 0)
        return (loops.pack(result),)
    return tuple((loops.scalars(result) if isinstance(result, KeptArray) else result).ravel())


def _fill(shape: tuple[int, ...], make: Callable[[], Operand]) -> Operands:
    out = np.empty(shape, object)
    for index in np.ndindex(*shape):
        out[index] = make()
    return out
