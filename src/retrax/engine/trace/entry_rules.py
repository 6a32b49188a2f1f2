"""Primitives that become a few operations for each entry, and those that go along an axis."""

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from retrax.engine.axes.loops import Operands, Unscalarisable
from retrax.engine.kinds import (
    Kind,
    constant,
    greatest,
    is_unsigned,
    is_whole,
    kind_of_dtype,
    least,
)
from retrax.engine.program import Operand, Value, kind_of

# A place that is found at run time is searched among so many entries.
_SEARCHED = 512
_ALONG = {"cumsum": "add", "cumprod": "mul", "cummax": "max", "cummin": "min"}


def kind_of_aval(aval: Any) -> Kind:
    kind = kind_of_dtype(aval.dtype)
    if kind is None:
        raise Unscalarisable(f"it computes with numbers of type {aval.dtype}")
    return kind


def neutral(operation: str, kind: Kind) -> Operand:
    """What an operation makes of nothing: the sum, the product, the maximum of no numbers."""
    if operation in ("max", "min"):
        return least(kind) if operation == "max" else greatest(kind)
    if operation == "and":
        return constant(True if kind == "bool" else -1, kind)
    return constant(1 if operation == "mul" else 0, kind)


def fill_value(kind: Kind, given: Any) -> Operand:
    """What JAX returns for an entry that is out of bounds, where it is not `given`."""
    if given is not None:
        return constant(given, kind)
    if kind == "float":
        return math.nan
    return greatest(kind) if kind == "bool" or is_unsigned(kind) else least(kind)


class EntryRules:
    """Rules of the evaluator that emit the same operations for every entry."""

    emit: Callable[..., Operand]

    def entrywise(self, operation: str, *ins: Operands) -> Operands:
        ins = np.broadcast_arrays(*ins)
        out = np.empty(ins[0].shape, object)
        for index in np.ndindex(*out.shape):
            out[index] = self.emit(operation, *(x[index] for x in ins))
        return out

    def reduce(self, operation: str, x: Operands, axes: Sequence[int], kind: Kind) -> Operands:
        kept = [axis for axis in range(x.ndim) if axis not in axes]
        shape = tuple(x.shape[axis] for axis in kept)
        length = int(np.prod([x.shape[axis] for axis in axes], dtype=int))
        rows = x.transpose(*kept, *axes).reshape(*shape, length)
        out = np.empty(shape, object)
        for index in np.ndindex(*shape):
            total, *rest = rows[index] if length else [neutral(operation, kind)]
            for entry in rest:
                total = self.emit(operation, total, entry)
            out[index] = total
        return out

    def rule_convert_element_type(self, equation, ins):
        return self.entrywise(kind_of_aval(equation.outvars[0].aval), ins[0])

    def rule_reduce_precision(self, equation, ins):
        p = equation.params
        if (p["exponent_bits"], p["mantissa_bits"]) != (11, 52):
            raise Unscalarisable("it rounds numbers to fewer digits with 'reduce_precision'")
        return ins[0]

    def rule_select_n(self, equation, ins):
        which, *cases = ins
        which = np.broadcast_to(which, cases[0].shape)
        if equation.invars[0].aval.dtype == bool:
            return self.entrywise("select", which, *cases) if cases[1:] else cases[0]
        kind, chosen = kind_of_aval(equation.invars[0].aval), cases[-1]
        for k, case in reversed(list(enumerate(cases[:-1]))):
            here = self.entrywise("lt", which, _single(constant(k + 1, kind)))
            chosen = self.entrywise("select", here, chosen, case)
        return chosen

    def rule_pow(self, equation, ins):
        x, y = ins
        if kind_of_aval(equation.invars[0].aval) != "float":
            raise Unscalarisable("'pow' raises whole numbers to a power")
        return self.entrywise("power", x, self.entrywise("float", y))

    def rule_integer_pow(self, equation, ins):
        n = equation.params["y"]
        kind = kind_of_aval(equation.outvars[0].aval)
        out = np.empty(ins[0].shape, object)
        for index in np.ndindex(*out.shape):
            out[index] = self.power(ins[0][index], n, constant(1, kind))
        return out

    def power(self, x: Operand, n: int, one: Operand) -> Operand:
        """x^n by repeated squaring."""
        if n < 0:
            return self.emit("div", one, self.power(x, -n, one))
        result = one
        while n:
            if n & 1:
                result = self.emit("mul", result, x)
            n >>= 1
            x = self.emit("mul", x, x) if n else x
        return result

    def rule_square(self, equation, ins):
        return self.entrywise("mul", ins[0], ins[0])

    def rule_rsqrt(self, equation, ins):
        return self.entrywise("div", _single(1.0), self.entrywise("sqrt", ins[0]))

    def rule_logistic(self, equation, ins):
        decay = self.entrywise("exp", self.entrywise("neg", ins[0]))
        return self.entrywise("div", _single(1.0), self.entrywise("add", decay, _single(1.0)))

    def rule_round(self, equation, ins):
        to_even = int(equation.params["rounding_method"]) == 1
        return self.entrywise("roundeven" if to_even else "round", ins[0])

    def rule_clamp(self, equation, ins):
        low, x, high = ins
        return self.entrywise("min", self.entrywise("max", x, low), high)

    def rule_iota(self, equation, ins):
        shape, axis = equation.params["shape"], equation.params["dimension"]
        along = [1] * len(shape)
        along[axis] = shape[axis]
        values = np.broadcast_to(np.arange(shape[axis]).reshape(along), shape)
        return self.entrywise(kind_of_aval(equation.outvars[0].aval), values.astype(object))

    def _along(self, equation, ins):
        """Sums, products, maxima of all entries up to each one."""
        operation, axis = _ALONG[equation.primitive.name], equation.params["axis"]
        x = np.moveaxis(ins[0], axis, 0)
        x = x[::-1] if equation.params["reverse"] else x
        parts = [x[:1]]
        for k in range(1, len(x)):
            parts.append(self.entrywise(operation, parts[-1], x[k : k + 1]))
        out = np.concatenate(parts)
        return np.moveaxis(out[::-1] if equation.params["reverse"] else out, 0, axis)

    rule_cumsum = rule_cumprod = rule_cummax = rule_cummin = _along

    def _place(self, equation, ins, better: str):
        """Where the first of the largest or smallest entries is; a NaN is larger and smaller."""
        (axis,) = equation.params["axes"]
        x = np.moveaxis(ins[0], axis, 0)
        if not len(x):
            raise Unscalarisable(f"'{equation.primitive.name}' looks for an entry among none")
        kind = kind_of_aval(equation.outvars[0].aval)
        out = np.empty(x.shape[1:], object)
        for index in np.ndindex(*out.shape):
            best, place = x[(0, *index)], constant(0, kind)
            for k in range(1, len(x)):
                entry = x[(k, *index)]
                wins = self.emit(better, entry, best)
                if not is_whole(kind_of(entry)) and kind_of(entry) != "bool":
                    unknown = self.emit("ne", entry, entry)
                    wins = self.emit("or", wins, unknown)
                    wins = self.emit("and", wins, self.emit("eq", best, best))
                best = self.emit("select", wins, best, entry)
                place = self.emit("select", wins, place, constant(k, kind))
            out[index] = place
        return out

    def rule_argmax(self, equation, ins):
        return self._place(equation, ins, "gt")

    def rule_argmin(self, equation, ins):
        return self._place(equation, ins, "lt")

    def rule_dynamic_slice(self, equation, ins):
        x, *starts = ins
        sizes = equation.params["slice_sizes"]
        for axis, (start, size) in enumerate(zip(starts, sizes, strict=True)):
            windows = [_window(x, axis, k, size) for k in range(x.shape[axis] - size + 1)]
            x = self.chosen(windows, start[()], equation)
        return x

    def rule_dynamic_update_slice(self, equation, ins):
        x, update, *starts = ins
        return self.updated(x, update, [s[()] for s in starts], equation)

    def updated(self, x: Operands, update: Operands, starts: Sequence, equation) -> Operands:
        """An array with a part of it replaced, from `starts` on, one axis after the other."""
        if not starts:
            return update
        start, *others = starts
        size = len(update)
        cases = []
        for k in range(len(x) - size + 1):
            if not isinstance(start, Value) and k != min(max(int(start), 0), len(x) - size):
                cases.append(x)
                continue
            new = np.array(x, object)
            for i in range(size):
                new[k + i, ...] = self.updated(
                    np.asarray(x[k + i], object), np.asarray(update[i], object), others, equation
                )
            cases.append(new)
        return self.chosen(cases, start, equation)

    def chosen(self, cases: Sequence[Operands], place: Operand, equation) -> Operands:
        """The case at a place; the first or the last one where it is outside."""
        last = len(cases) - 1
        if not isinstance(place, Value):
            return cases[min(max(int(place), 0), last)]
        if len(cases) * cases[0].size > _SEARCHED:
            name = equation.primitive.name
            raise Unscalarisable(f"'{name}' has a place in a large array that depends on the state")
        out = cases[-1]
        for k, case in reversed(list(enumerate(cases[:-1]))):
            here = self.emit("lt", place, constant(k + 1, kind_of(place)))
            out = self.entrywise("select", _single(here), out, case)
        return out


def _single(x: Operand) -> Operands:
    out = np.empty((), object)
    out[()] = x
    return out


def _window(x: Operands, axis: int, first: int, size: int) -> Operands:
    where = [slice(None)] * x.ndim
    where[axis] = slice(first, first + size)
    return x[tuple(where)]


# Each takes the equation's parameters and object arrays, and returns one array or several.
Rule = Callable[..., Any]


def _broadcast_in_dim(x, *, shape, broadcast_dimensions, **_):
    expanded = [1] * len(shape)
    for source, target in enumerate(broadcast_dimensions):
        expanded[target] = x.shape[source]
    return np.broadcast_to(x.reshape(expanded), shape)


def _slice(x, *, start_indices, limit_indices, strides, **_):
    steps = strides or (1,) * x.ndim
    return x[
        tuple(slice(a, b, s) for a, b, s in zip(start_indices, limit_indices, steps, strict=True))
    ]


def _pad(x, value, *, padding_config, **_):
    shape = [
        lo + hi + n + max(n - 1, 0) * mid
        for n, (lo, hi, mid) in zip(x.shape, padding_config, strict=True)
    ]
    out = np.empty(shape, object)
    out[...] = value[()]
    # Negative padding cuts: entries that fall outside are left out.
    for index in np.ndindex(*x.shape):
        place = tuple(
            lo + i * (mid + 1) for i, (lo, _, mid) in zip(index, padding_config, strict=True)
        )
        if all(0 <= p < n for p, n in zip(place, shape, strict=True)):
            out[place] = x[index]
    return out


def _split(x, *, sizes, axis, **_):
    return np.split(x, np.cumsum(sizes)[:-1], axis=axis)


def _stack(*arrays, axis=0, **_):
    return np.stack(arrays, axis=axis)


def _unstack(x, *, axis=0, **_):
    parts = np.moveaxis(x, axis, 0)
    return [parts[i, ...] for i in range(len(parts))]


def _reshape(x, *, new_sizes, dimensions=None, **_):
    moved = x if dimensions is None else x.transpose(dimensions)
    return moved.reshape(new_sizes)


STRUCTURAL: dict[str, Rule] = {
    "broadcast_in_dim": _broadcast_in_dim,
    "concatenate": lambda *arrays, dimension, **_: np.concatenate(arrays, axis=dimension),
    "expand_dims": lambda x, *, dimensions, **_: np.expand_dims(x, dimensions),
    "pad": _pad,
    "reshape": _reshape,
    "rev": lambda x, *, dimensions, **_: np.flip(x, dimensions),
    "slice": _slice,
    "split": _split,
    "squeeze": lambda x, *, dimensions, **_: np.squeeze(x, axis=tuple(dimensions)),
    "stack": _stack,
    "transpose": lambda x, *, permutation, **_: x.transpose(permutation),
    "unstack": _unstack,
}
