"""Random numbers: keys are split, counted with and turned into bits by Threefry, as JAX does it.

A key is one whole number of 64 bits, the first of its two words in front.
"""

import math
from typing import Any

import jax
import numpy as np
from jax.extend.core import JaxprEqn as Equation

from retrax.engine.axes.loops import Operands
from retrax.engine.kinds import Kind, Unscalarisable, constant, dtype_of, kind_of_variable
from retrax.engine.program import Operand
from retrax.engine.trace.arithmetic import Arithmetic
from retrax.numerics.host.random_numbers import threefry

# Each draw is some hundred operations: more at once would take minutes to compile.
_MOST_DRAWS = 512


class _Word:
    """A whole number of 32 bits that is computed with by the signs of Python."""

    def __init__(self, on: Arithmetic, operand: Operand):
        self.on, self.operand = on, operand

    def _with(self, operation: str, other: "_Word | int") -> "_Word":
        known = isinstance(other, _Word)
        second = other.operand if known else constant(other, "u32")
        return _Word(self.on, self.on.emit(operation, self.operand, second))

    def __add__(self, other: "_Word | int") -> "_Word":
        return self._with("add", other)

    def __xor__(self, other: "_Word | int") -> "_Word":
        return self._with("xor", other)

    def __or__(self, other: "_Word | int") -> "_Word":
        return self._with("or", other)

    def __lshift__(self, places: int) -> "_Word":
        return self._with("shl", places)

    def __rshift__(self, places: int) -> "_Word":
        return self._with("shr", places)


def _words(on: Arithmetic, x: Operands) -> Operands:
    """Return whole numbers of 32 bits as words."""
    return _each(lambda operand: _Word(on, on.emit("u32", operand)), x)


def _operands(x: Operands) -> Operands:
    return _each(lambda word: word.operand, np.asarray(x, object))


def _each(function: Any, x: Operands) -> Operands:
    out = np.empty(x.shape, object)
    for index in np.ndindex(*x.shape):
        out[index] = function(x[index])
    return out


def wrap(on: Arithmetic, equation: Equation, ins: list[Operands]) -> Operands:
    """Make keys of pairs of words."""
    return _join(on, ins[0][..., 0], ins[0][..., 1])


def unwrap(on: Arithmetic, equation: Equation, ins: list[Operands]) -> Operands:
    """Take keys apart into pairs of words."""
    return np.stack(_halves(on, ins[0]), -1)


def _join(on: Arithmetic, high: Operands, low: Operands) -> Operands:
    half = _constants(32, "u64")
    front = on.entrywise("shl", on.entrywise("u64", np.asarray(high, object)), half)
    return on.entrywise("or", front, on.entrywise("u64", np.asarray(low, object)))


def _halves(on: Arithmetic, x: Operands) -> tuple[Operands, Operands]:
    """Return the first and the second 32 bits of numbers of 64."""
    front = on.entrywise("shr", x, _constants(32, "u64"))
    return on.entrywise("u32", front), on.entrywise("u32", x)


def _constants(x: Any, kind: Kind) -> Operands:
    return _each(lambda one: constant(one, kind), np.asarray(x, object))


def seed(on: Arithmetic, equation: Equation, ins: list[Operands]) -> Operands:
    """Make a key of a whole number: its bits, with zeros in front."""
    kind: Kind = "u64" if dtype_of(equation.invars[0]).itemsize > 4 else "u32"
    return on.entrywise("u64", on.entrywise(kind, ins[0]))


def bits(on: Arithmetic, equation: Equation, ins: list[Operands]) -> Operands:
    """Draw whole numbers."""
    width = equation.params["bit_width"]
    high, low = _scramble(on, ins[0], tuple(equation.params["shape"]))
    if width == 64:
        return _join(on, high, low)
    return on.entrywise(kind_of_variable(equation.outvars[0]), on.entrywise("xor", high, low))


def split(on: Arithmetic, equation: Equation, ins: list[Operands]) -> Operands:
    """Make new keys of each."""
    return _join(on, *_scramble(on, ins[0], tuple(equation.params["shape"])))


def _scramble(on: Arithmetic, keys: Operands, shape: tuple[int, ...]) -> tuple[Operands, Operands]:
    """Scramble the numbers 0, 1, ... of an array of this shape with each of the keys."""
    config: Any = jax.config
    if not config.jax_threefry_partitionable:
        raise Unscalarisable("it draws random numbers without jax_threefry_partitionable")
    count = math.prod(shape)
    if count * keys.size > _MOST_DRAWS:
        raise Unscalarisable(f"it draws {count * keys.size} random numbers at once")
    low = _constants(np.arange(count).reshape(shape), "u32")
    keys = keys.reshape((*keys.shape, *[1] * len(shape)))
    return _mix(on, keys, np.full(shape, np.uint32(0), object), low)


def fold_in(on: Arithmetic, equation: Equation, ins: list[Operands]) -> Operands:
    """Make a new key of each and a number."""
    keys, data = ins
    return _join(on, *_mix(on, keys, _constants(0, "u32"), on.entrywise("u32", data)))


def _mix(
    on: Arithmetic, keys: Operands, high: Operands, low: Operands
) -> tuple[Operands, Operands]:
    """Scramble pairs of words with keys."""
    key = np.stack([_words(on, half) for half in _halves(on, keys)], -1)
    # With one more axis, so that NumPy leaves an array of a single word an array.
    x, y = np.broadcast_arrays(*threefry(key[None], _words(on, high), _words(on, low)))
    return _operands(x[0, ...]), _operands(y[0, ...])


def reinterpret(on: Arithmetic, equation: Equation, ins: list[Operands]) -> Operands:
    """Read the same bits as numbers of another type."""
    old, new = kind_of_variable(equation.invars[0]), kind_of_variable(equation.outvars[0])
    if dtype_of(equation.invars[0]).itemsize != dtype_of(equation.outvars[0]).itemsize:
        raise Unscalarisable("it cuts numbers into shorter ones with 'bitcast_convert_type'")
    if old == new:
        return ins[0]
    if old == "float":
        return on.entrywise(new, on.entrywise("bits_of_float", ins[0]))
    if new == "float":
        return on.entrywise("float_of_bits", on.entrywise("u64", ins[0]))
    return on.entrywise(new, ins[0])
