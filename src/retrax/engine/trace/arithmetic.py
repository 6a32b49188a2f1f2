"""Arithmetic on arrays of operands: the same operations for every entry, sums and products."""

import math
from collections.abc import Sequence

import numpy as np
from jax.extend.core import JaxprEqn as Equation

from retrax.engine.axes.loops import Operands, entry
from retrax.engine.builder import Builder
from retrax.engine.kinds import (
    Kind,
    Unscalarisable,
    constant,
    greatest,
    is_whole,
    kind_of_variable,
    least,
)
from retrax.engine.program import Operand, Value, kind_of

# The axes that a product sums over, and those that it goes along, in both factors.
Axes = Sequence[int]
DimensionNumbers = tuple[tuple[Axes, Axes], tuple[Axes, Axes]]

# Sums of products that are found side by side: how long each is at least, and how many at most.
_LONG_SUM, _FEW_SUMS = 6, 12

_CUMULATIVE = {"cumsum": "add", "cumprod": "mul", "cummax": "max", "cummin": "min"}


def neutral(operation: str, kind: Kind) -> Operand:
    """Return the sum, the product, the maximum ... of no numbers."""
    if operation in ("max", "min"):
        return least(kind) if operation == "max" else greatest(kind)
    if operation == "and":
        return constant(True if kind == "bool" else -1, kind)
    return constant(1 if operation == "mul" else 0, kind)


def single(x: Operand) -> Operands:
    """Make an array without axes."""
    out = np.empty((), object)
    out[()] = x
    return out


class Arithmetic:
    """Emits operations for the entries of arrays. A rule takes an equation and its inputs."""

    def __init__(self, build: Builder):
        self.build, self.emit = build, build.emit

    def entrywise(self, operation: str, *ins: Operands) -> Operands:
        """Emit one operation for each entry."""
        ins = np.broadcast_arrays(*ins)
        out = np.empty(ins[0].shape, object)
        for index in np.ndindex(*out.shape):
            out[index] = self.emit(operation, *(entry(x, index) for x in ins))
        return out

    def total_order(self, equation: Equation, ins: list[Operands]) -> Operands:
        """Compare in the order of `sort` and `searchsorted`: NaN comes after all other numbers."""
        strict, kind = equation.primitive.name == "lt_to", kind_of_variable(equation.invars[0])
        x, y = ins if strict else ins[::-1]
        less = self.total_less(x, y, kind)
        return less if strict else self.entrywise("not", less)

    def total_less(self, x: Operands, y: Operands, kind: Kind) -> Operands:
        """Tell where x comes before y in that order."""
        less = self.entrywise("lt", x, y)
        if kind != "float":
            return less
        last = self.entrywise("and", self.entrywise("ne", y, y), self.entrywise("eq", x, x))
        return self.entrywise("or", less, last)

    def guard(self, operation: str, *ins: Operands) -> Operands:
        """Emit one operation for each entry; keep products of zero with what may be infinite.

        They are NaN there. Zeros among other numbers are those of matrices and directions, and
        drop out.
        """
        zero = operation in ("mul", "div") and any(
            x.size and all(e == 0 and isinstance(e, float) for e in x.ravel())
            for x in (ins if operation == "mul" else ins[:1])
        )
        if not zero:
            return self.entrywise(operation, *ins)
        left, right = np.broadcast_arrays(*ins)
        out = np.empty(left.shape, object)
        for index in np.ndindex(*out.shape):
            x, y = entry(left, index), entry(right, index)
            singular = self.build.is_singular(x) or self.build.is_singular(y)
            if operation == "div":
                singular = isinstance(y, Value)
            out[index] = (self.build.emit_as_is if singular else self.emit)(operation, x, y)
        return out

    def reduce(self, operation: str, x: Operands, axes: Axes, kind: Kind) -> Operands:
        """Combine all entries along some axes."""
        others = [axis for axis in range(x.ndim) if axis not in axes]
        shape = tuple(x.shape[axis] for axis in others)
        length = int(np.prod([x.shape[axis] for axis in axes], dtype=int))
        rows = x.transpose(*others, *axes).reshape(*shape, length)
        out = np.empty(shape, object)
        for index in np.ndindex(*shape):
            total, *rest = rows[index] if length else [neutral(operation, kind)]
            for term in rest:
                total = self.emit(operation, total, term)
            out[index] = total
        return out

    def product(self, a: Operands, b: Operands, numbers: DimensionNumbers, kind: Kind) -> Operands:
        """Multiply two arrays along some axes of both, and sum over others."""
        (a_sum, b_sum), (a_batch, b_batch) = numbers
        a_free = [i for i in range(a.ndim) if i not in (*a_sum, *a_batch)]
        b_free = [i for i in range(b.ndim) if i not in (*b_sum, *b_batch)]
        a, b = a.transpose(*a_batch, *a_free, *a_sum), b.transpose(*b_batch, *b_free, *b_sum)
        batch, left = a.shape[: len(a_batch)], a.shape[len(a_batch) : a.ndim - len(a_sum)]
        right = b.shape[len(b_batch) : b.ndim - len(b_sum)]
        length = math.prod(a.shape[-len(a_sum) :] if a_sum else ())
        rows = a.reshape((*batch, math.prod(left), length))
        columns = b.reshape((*batch, math.prod(right), length))
        out = np.full((*batch, rows.shape[-2], columns.shape[-2]), constant(0, kind), object)
        places = list(np.ndindex(*out.shape))
        # A few long sums side by side: their terms share factors while these are in registers.
        together = length >= _LONG_SUM and len(places) <= _FEW_SUMS
        for group in [places] if together else [[place] for place in places]:
            for n in range(length):
                for *k, i, j in group:
                    factors = entry(rows, (*k, i, n)), entry(columns, (*k, j, n))
                    term = self.emit("mul", *factors)
                    out[(*k, i, j)] = self.emit("add", entry(out, (*k, i, j)), term)
        return out.reshape((*batch, *left, *right))

    def dot_general(self, equation: Equation, ins: list[Operands]) -> Operands:
        kind = kind_of_variable(equation.outvars[0])
        a, b = (self.entrywise(kind, x) for x in ins)
        return self.product(a, b, equation.params["dimension_numbers"], kind)

    def convert(self, equation: Equation, ins: list[Operands]) -> Operands:
        return self.entrywise(kind_of_variable(equation.outvars[0]), ins[0])

    def reduce_precision(self, equation: Equation, ins: list[Operands]) -> Operands:
        p = equation.params
        if (p["exponent_bits"], p["mantissa_bits"]) != (11, 52):
            raise Unscalarisable("it rounds numbers to fewer digits with 'reduce_precision'")
        return ins[0]

    def select(self, equation: Equation, ins: list[Operands]) -> Operands:
        which, *cases = ins
        which = np.broadcast_to(which, cases[0].shape)
        if kind_of_variable(equation.invars[0]) == "bool":
            return self.entrywise("select", which, *cases) if cases[1:] else cases[0]
        kind, chosen = kind_of_variable(equation.invars[0]), cases[-1]
        for k, case in reversed(list(enumerate(cases[:-1]))):
            here = self.entrywise("lt", which, single(constant(k + 1, kind)))
            chosen = self.entrywise("select", here, chosen, case)
        return chosen

    def pow(self, equation: Equation, ins: list[Operands]) -> Operands:
        x, y = ins
        if kind_of_variable(equation.invars[0]) != "float":
            raise Unscalarisable("'pow' raises whole numbers to a power")
        return self.entrywise("power", x, self.entrywise("float", y))

    def integer_pow(self, equation: Equation, ins: list[Operands]) -> Operands:
        n = equation.params["y"]
        kind = kind_of_variable(equation.outvars[0])
        out = np.empty(ins[0].shape, object)
        for index in np.ndindex(*out.shape):
            out[index] = self._power(entry(ins[0], index), n, constant(1, kind))
        return out

    def _power(self, x: Operand, n: int, one: Operand) -> Operand:
        """Emit x^n by repeated squaring."""
        if n < 0:
            return self.emit("div", one, self._power(x, -n, one))
        result = one
        while n:
            if n & 1:
                result = self.emit("mul", result, x)
            n >>= 1
            x = self.emit("mul", x, x) if n else x
        return result

    def square(self, equation: Equation, ins: list[Operands]) -> Operands:
        return self.entrywise("mul", ins[0], ins[0])

    def rsqrt(self, equation: Equation, ins: list[Operands]) -> Operands:
        return self.entrywise("div", single(1.0), self.entrywise("sqrt", ins[0]))

    def logistic(self, equation: Equation, ins: list[Operands]) -> Operands:
        decay = self.entrywise("exp", self.entrywise("neg", ins[0]))
        return self.entrywise("div", single(1.0), self.entrywise("add", decay, single(1.0)))

    def round(self, equation: Equation, ins: list[Operands]) -> Operands:
        to_even = int(equation.params["rounding_method"]) == 1
        return self.entrywise("roundeven" if to_even else "round", ins[0])

    def clamp(self, equation: Equation, ins: list[Operands]) -> Operands:
        low, x, high = ins
        return self.entrywise("min", self.entrywise("max", x, low), high)

    def iota(self, equation: Equation, ins: list[Operands]) -> Operands:
        shape, axis = equation.params["shape"], equation.params["dimension"]
        along = [1] * len(shape)
        along[axis] = shape[axis]
        values = np.broadcast_to(np.arange(shape[axis]).reshape(along), shape)
        return self.entrywise(kind_of_variable(equation.outvars[0]), values.astype(object))

    def cumulative(self, equation: Equation, ins: list[Operands]) -> Operands:
        """Add, multiply or compare all entries up to each one."""
        operation, axis = _CUMULATIVE[equation.primitive.name], equation.params["axis"]
        x = np.moveaxis(ins[0], axis, 0)
        x = x[::-1] if equation.params["reverse"] else x
        parts = [x[:1]]
        for k in range(1, len(x)):
            parts.append(self.entrywise(operation, parts[-1], x[k : k + 1]))
        out = np.concatenate(parts)
        return np.moveaxis(out[::-1] if equation.params["reverse"] else out, 0, axis)

    def argmax(self, equation: Equation, ins: list[Operands]) -> Operands:
        return self._extreme(equation, ins, "gt")

    def argmin(self, equation: Equation, ins: list[Operands]) -> Operands:
        return self._extreme(equation, ins, "lt")

    def _extreme(self, equation: Equation, ins: list[Operands], better: str) -> Operands:
        """Find the first of the largest or smallest entries; a NaN is larger and smaller."""
        (axis,) = equation.params["axes"]
        x = np.moveaxis(ins[0], axis, 0)
        if not len(x):
            raise Unscalarisable(f"'{equation.primitive.name}' looks for an entry among none")
        kind = kind_of_variable(equation.outvars[0])
        out = np.empty(x.shape[1:], object)
        for index in np.ndindex(*out.shape):
            best, place = entry(x, (0, *index)), constant(0, kind)
            for k in range(1, len(x)):
                other = entry(x, (k, *index))
                wins = self.emit(better, other, best)
                if not is_whole(kind_of(other)) and kind_of(other) != "bool":
                    unknown = self.emit("ne", other, other)
                    wins = self.emit("or", wins, unknown)
                    wins = self.emit("and", wins, self.emit("eq", best, best))
                best = self.emit("select", wins, best, other)
                place = self.emit("select", wins, place, constant(k, kind))
            out[index] = place
        return out
