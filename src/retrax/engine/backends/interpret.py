"""A scalar program on arrays: every scalar of the program is an array with one entry a body."""

from collections.abc import Callable, Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array

from retrax.engine.kinds import DTYPE, Kind
from retrax.engine.program import (
    Choose,
    CodeBlock,
    Instruction,
    LoadAt,
    Operand,
    Operation,
    Program,
    Repeat,
    Value,
    While,
    kind_of,
    numbers,
)

_OPERATIONS: dict[str, Callable] = {
    "add": lax.add, "sub": lax.sub, "mul": lax.mul, "div": lax.div, "neg": lax.neg,
    "max": lax.max, "min": lax.min, "abs": lax.abs, "sign": lax.sign, "floor": lax.floor,
    "ceil": lax.ceil, "sqrt": lax.sqrt, "cbrt": lax.cbrt, "sin": lax.sin, "cos": lax.cos,
    "tan": lax.tan, "sinh": lax.sinh, "cosh": lax.cosh, "tanh": lax.tanh, "exp": lax.exp,
    "exp2": lax.exp2, "expm1": lax.expm1, "log": lax.log, "log1p": lax.log1p, "power": lax.pow,
    "arcsin": lax.asin, "arccos": lax.acos, "arctan": lax.atan, "arctan2": lax.atan2,
    "lt": lax.lt, "le": lax.le, "gt": lax.gt, "ge": lax.ge, "eq": lax.eq, "ne": lax.ne,
    "and": lax.bitwise_and, "or": lax.bitwise_or, "xor": lax.bitwise_xor, "not": lax.bitwise_not,
    "shl": lax.shift_left, "shr": lax.shift_right_logical, "sar": lax.shift_right_arithmetic,
    "rem": lax.rem, "popcount": lax.population_count, "clz": lax.clz,
    "round": lambda x: lax.round(x, lax.RoundingMethod.AWAY_FROM_ZERO),
    "roundeven": lambda x: lax.round(x, lax.RoundingMethod.TO_NEAREST_EVEN),
    "arcsinh": lax.asinh, "arccosh": lax.acosh, "arctanh": lax.atanh, "erf": lax.erf,
    "erfc": lax.erfc, "nextafter": lax.nextafter,
    "isfinite": lambda x: lax.eq(lax.sub(x, x), jnp.zeros_like(x)),
    "select": lambda p, x, y: lax.select(p, y, x),
    "float_of_bits": lambda x: lax.bitcast_convert_type(x, jnp.float64),
    "bits_of_float": lambda x: lax.bitcast_convert_type(x, jnp.uint64),
}  # fmt: skip


def interpret(
    program: Program, inputs: Sequence[Array], active: Array, memory: Sequence[Array] = ()
) -> tuple[list[Array], list[Array]]:
    """Return the outputs of the program for many bodies at once, and its memory for the next time.

    There is one array for each input, and for each number of the memory. No loop waits for a body
    that is not `active`.
    """
    run = _Interpreter(active)
    run.known.update(zip(numbers(program.inputs), inputs, strict=True))
    run.known.update(zip(numbers(program.memory.items), memory, strict=True))
    run.block(program.block)
    new = [run.read(x, "float") for x in numbers(program.memory.last)]
    return [run.read(x) for x in numbers(program.outputs)], new


def interpret_opening(program: Program, inputs: Sequence[Array], active: Array) -> list[Array]:
    """Return the memory of the program before it runs for the first time."""
    run = _Interpreter(active)
    run.known.update(zip(numbers(program.inputs), inputs, strict=True))
    run.block(program.memory.opening)
    return [run.read(x, "float") for x in numbers(program.memory.first)]


class _Interpreter:
    def __init__(self, active: Array):
        self.active = active
        self.shape = active.shape
        self.known: dict[Value, Array] = {}

    def read(self, operand: Operand, kind: Kind | None = None) -> Array:
        if isinstance(operand, Value):
            return self.known[operand]
        return jnp.full(self.shape, operand, DTYPE[kind or kind_of(operand)])

    def block(self, block: CodeBlock) -> None:
        for instruction in block.instructions:
            self.instruction(instruction)

    def instruction(self, instruction: Instruction) -> None:
        match instruction:
            case Operation(name, operands, out):
                arrays = [self.read(x) for x in operands]
                if name in DTYPE:
                    self.known[out] = lax.convert_element_type(arrays[0], DTYPE[name])
                else:
                    self.known[out] = _OPERATIONS[name](*arrays)
            case LoadAt(out, view, index) if view.buffer.table is not None:
                places = view.offset + view.stride * np.arange(view.length)
                table = jnp.asarray(np.asarray(view.buffer.table)[places])
                self.known[out] = jnp.take(table, self.read(index), mode="clip")
            case While():
                self._while(instruction)
            case Repeat():
                self._repeat(instruction)
            case Choose():
                self._choose(instruction)

    def initial(self, loop: While | Repeat) -> tuple[Array, ...]:
        pairs = zip(loop.initial, loop.carried, strict=True)
        return tuple(self.read(x, v.kind) for x, v in pairs)

    def update(self, loop: While | Repeat) -> tuple[Array, ...]:
        self.block(loop.body)
        pairs = zip(loop.updated, loop.carried, strict=True)
        return tuple(self.read(x, v.kind) for x, v in pairs)

    def _while(self, loop: While) -> None:
        """Repeat rounds while some body needs them; the others stay as they are."""

        def test(carried):
            self.known.update(zip(loop.carried, carried, strict=True))
            self.block(loop.condition)
            return self.read(loop.test, "bool") & self.active

        def improve(carry):
            going, carried = carry
            self.known.update(zip(loop.carried, carried, strict=True))
            new = self.update(loop)
            kept = tuple(lax.select(going, n, o) for n, o in zip(new, carried, strict=True))
            return test(kept), kept

        first = self.initial(loop)
        _, end = lax.while_loop(lambda carry: _any(carry[0]), improve, (test(first), first))
        self.known.update(zip(loop.carried, end, strict=True))

    def _repeat(self, loop: Repeat) -> None:
        columns = list(zip(*loop.tables, strict=True))

        def turn(k, carried):
            self.known.update(zip(loop.carried, carried, strict=True))
            for value, table in zip(loop.columns, columns, strict=True):
                self.known[value] = jnp.full(self.shape, _entry(table, k, DTYPE[value.kind]))
            return self.update(loop)

        end = lax.fori_loop(0, len(loop.tables), turn, self.initial(loop))
        self.known.update(zip(loop.carried, end, strict=True))

    def _choose(self, choice: Choose) -> None:
        index, outside = self.read(choice.index), self.active
        here = [
            lax.eq(index, jnp.full(self.shape, k, index.dtype)) for k in range(len(choice.blocks))
        ]
        for block, chosen in zip(choice.blocks, here, strict=True):
            # A loop inside does not wait for bodies that have chosen otherwise.
            self.active = outside & chosen
            self.block(block)
        self.active = outside
        for j, out in enumerate(choice.outs):
            result = self.read(choice.results[-1][j], out.kind)
            for k in reversed(range(len(choice.blocks) - 1)):
                result = lax.select(here[k], self.read(choice.results[k][j], out.kind), result)
            self.known[out] = result


def _any(truths: Array) -> Array:
    """Return whether one is true; as a maximum, which GPU kernels know."""
    return jnp.max(truths.astype(jnp.int32)) > 0


def _entry(table: Sequence[Any], k: Array, dtype: Any) -> Array:
    """Look up `table[k]` by comparing: a kernel on a GPU cannot hold a table of constants."""
    result = jnp.asarray(table[-1], dtype)
    for i, x in enumerate(table[:-1]):
        result = jnp.where(k == i, jnp.asarray(x, dtype), result)
    return result
