"""Rules for arithmetic: the same to every entry, sums, products."""

import math
from functools import reduce
from typing import Any, TypeVar

import numpy as np

from retrax.numerics.host.program import (
    Axes,
    Call,
    Equation,
    NoRule,
    Rule,
    Rules,
    dtype_of,
    shape_of,
)

# Products that sum over at most this many entries, of at most this many times as many results,
# are written out: NumPy calls BLAS for each small matrix of a stack, which takes longer.
_SHORT, _FEW = 12, 64

T = TypeVar("T")


def is_float(dtype: np.dtype) -> bool:
    return np.issubdtype(dtype, np.floating)


def _plain(function: Call) -> Rule:
    return lambda equation: function


def _by_kind(floating: Call, whole: Call) -> Rule:
    """Make a rule of one function for real and complex numbers and another for whole ones."""

    def rule(equation: Equation) -> Call:
        return floating if np.issubdtype(dtype_of(equation.invars[0]), np.inexact) else whole

    return rule


def _quotient(x: Any, y: Any) -> Any:
    """Divide whole numbers towards zero; by zero all bits are set, as in XLA."""
    toward = _truncate(x, np.where(y == 0, np.ones_like(y), y))
    return np.where(y == 0, np.asarray(-1).astype(toward.dtype), toward)


def _truncate(x: Any, y: Any) -> np.ndarray:
    down = np.floor_divide(x, y)
    inexact = (down * y != x) & ((x < 0) != (y < 0))
    return np.asarray(down + inexact.astype(down.dtype))


def _remainder(x: Any, y: Any) -> Any:
    """Return the remainder of whole numbers, with the sign of the dividend; of zero, that."""
    safe = np.where(y == 0, np.ones_like(y), y)
    return np.where(y == 0, x, np.fmod(x, safe))


def _integer_pow(equation: Equation) -> Call:
    n = equation.params["y"]

    def power(x: Any) -> Any:
        if n == 0:
            return np.ones_like(x)
        return 1.0 / multiply(x, -n) if n < 0 else multiply(x, n)

    return power


def multiply(x: T, n: int) -> T:
    """Return the product of `n` factors `x`, one at least, by repeated squaring."""
    square: Any = x
    result: Any = None
    while n:
        if n & 1:
            result = square if result is None else result * square
        n >>= 1
        square = square * square if n else square
    return result


def _convert(equation: Equation) -> Call:
    new = np.dtype(equation.params["new_dtype"])
    old = dtype_of(equation.invars[0])
    if is_float(old) and np.issubdtype(new, np.integer):
        info = np.iinfo(new)
        # The largest number of 64 bits is no float: the next smaller one is cut off to it.
        low, high = float(info.min), float(info.max)

        def cut(x: Any) -> Any:
            whole = np.nan_to_num(np.trunc(x), nan=0.0, posinf=high, neginf=low)
            inside = np.clip(whole, low, np.nextafter(high, 0.0))
            return np.where(whole >= high, new.type(info.max), inside.astype(new))

        return cut
    return lambda x: np.asarray(x).astype(new)


def _select(which: Any, *cases: Any) -> Any:
    if np.ndim(which) == 0:
        return cases[int(which)]
    if which.dtype == bool:
        return np.where(which, cases[1], cases[0]) if cases[1:] else cases[0]
    return reduce(
        lambda rest, k: np.where(which <= k, cases[k], rest),
        reversed(range(len(cases) - 1)),
        cases[-1],
    )


def _round(equation: Equation) -> Call:
    if int(equation.params["rounding_method"]) == 1:
        return np.rint
    return lambda x: np.copysign(np.floor(np.abs(x) + 0.5), x)


def _reduce_precision(equation: Equation) -> Call:
    if (equation.params["exponent_bits"], equation.params["mantissa_bits"]) != (11, 52):
        raise NoRule("reduce_precision")
    return lambda x: x


def _logistic(x: Any) -> Any:
    return 1.0 / (1.0 + np.exp(-x))


def _shift(function: Call, arithmetic: bool = False) -> Rule:
    """Shift bits; by the width or more everything goes, or the sign fills up."""

    def rule(equation: Equation) -> Call:
        dtype = dtype_of(equation.invars[0])
        width = dtype.itemsize * 8
        unsigned = np.dtype(f"u{dtype.itemsize}")

        def shift(x: Any, by: Any) -> Any:
            if arithmetic:
                return function(x, np.minimum(by, width - 1).astype(dtype))
            small = np.asarray(by).astype(unsigned) < width
            count = np.where(small, by, 0).astype(unsigned)
            moved = function(np.asarray(x).astype(unsigned), count)
            return np.where(small, moved, unsigned.type(0)).astype(dtype)

        return shift

    return rule


def _population_count(equation: Equation) -> Call:
    dtype = dtype_of(equation.outvars[0])
    unsigned = np.dtype(f"u{dtype.itemsize}")
    return lambda x: np.bitwise_count(np.asarray(x).astype(unsigned)).astype(dtype)


def _order(compare: Call) -> Rule:
    """Compare in the total order of floats, where -0 is below 0 and NaN above all numbers."""

    def rule(equation: Equation) -> Call:
        dtype = dtype_of(equation.invars[0])
        if not is_float(dtype):
            return compare
        whole = np.dtype(f"i{dtype.itemsize}")

        def place(x: Any) -> Any:
            bits = np.asarray(x).view(whole)
            return np.where(bits < 0, bits ^ np.iinfo(whole).max, bits)

        return lambda x, y: compare(place(x), place(y))

    return rule


def _clz(equation: Equation) -> Call:
    width = dtype_of(equation.invars[0]).itemsize * 8
    unsigned = np.dtype(f"u{width // 8}")

    def count(x: Any) -> Any:
        x = np.asarray(x)
        bits, left = x.astype(unsigned), np.full(x.shape, width)
        for k in range(width):
            left = np.where(bits >> unsigned.type(k) & unsigned.type(1) > 0, width - 1 - k, left)
        return left.astype(x.dtype)

    return count


def _elsewhere(function: Any) -> Call:
    """Apply a function of the standard library to every entry."""
    each = np.frompyfunc(function, 1, 1)
    return lambda x: np.asarray(each(x), float)


def _erf_inv(x: Any) -> Any:
    """Return the inverse of the error function, by Halley's method on erf or, far out, on erfc."""
    x = np.asarray(x, float)
    size = np.abs(x)
    log = np.log1p(-size * size)
    a = 2 / (math.pi * 0.147) + log / 2
    y = np.sqrt(np.sqrt(a * a - log / 0.147) - a)  # wrong by two thousandths at the most
    inside = size < 1
    for _ in range(3):
        y = np.where(inside, y, 0.0)
        slope = 2 / math.sqrt(math.pi) * np.exp(-y * y)
        off = np.where(size < 0.5, _ERF(y) - size, (1 - size) - _ERFC(y)) / slope
        y = y - off / (1 + y * off)
    y = np.where(size == 1, np.inf, np.where(inside, y, np.nan))
    return np.copysign(y, x)


_ERF, _ERFC = _elsewhere(math.erf), _elsewhere(math.erfc)


def _reduction(function: Call, start: Any = None) -> Rule:
    """Make a rule that reduces all entries along some axes to one."""

    def rule(equation: Equation) -> Call:
        axes, dtype = tuple(equation.params["axes"]), dtype_of(equation.outvars[0])
        if not axes:
            return lambda x: x
        initial = {} if start is None else {"initial": start(dtype)}
        return lambda x: function(x, axis=axes, **initial)

    return rule


def _least(dtype: np.dtype) -> Any:
    if dtype.kind == "b":
        return False
    return -np.inf if is_float(dtype) else np.iinfo(dtype).min


def _greatest(dtype: np.dtype) -> Any:
    if dtype.kind == "b":
        return True
    return np.inf if is_float(dtype) else np.iinfo(dtype).max


def _sum(equation: Equation) -> Call:
    axes, dtype = tuple(equation.params["axes"]), dtype_of(equation.outvars[0])
    return (lambda x: np.add.reduce(x, axis=axes, dtype=dtype)) if axes else (lambda x: x)


def _product(equation: Equation) -> Call:
    axes, dtype = tuple(equation.params["axes"]), dtype_of(equation.outvars[0])
    return (lambda x: np.multiply.reduce(x, axis=axes, dtype=dtype)) if axes else (lambda x: x)


def _extreme_place(function: Call) -> Rule:
    def rule(equation: Equation) -> Call:
        (axis,), dtype = equation.params["axes"], np.dtype(equation.params["index_dtype"])
        return lambda x: np.asarray(function(x, axis=axis)).astype(dtype)

    return rule


def _cumulative(function: Any) -> Rule:
    def rule(equation: Equation) -> Call:
        axis, reverse = equation.params["axis"], equation.params["reverse"]
        dtype = dtype_of(equation.outvars[0])

        def accumulate(x: Any) -> Any:
            if reverse:
                return np.flip(function.accumulate(np.flip(x, axis), axis=axis, dtype=dtype), axis)
            return function.accumulate(x, axis=axis, dtype=dtype)

        return accumulate

    return rule


def _dot_general(equation: Equation) -> Call:
    """Multiply two arrays along some axes of both, and sum over others."""
    (a_sum, b_sum), (a_batch, b_batch) = equation.params["dimension_numbers"]
    a_shape, b_shape = (shape_of(v) for v in equation.invars)
    dtype = dtype_of(equation.outvars[0])
    a_free = _rest(len(a_shape), a_sum, a_batch)
    b_free = _rest(len(b_shape), b_sum, b_batch)
    a_order, b_order = (*a_batch, *a_free, *a_sum), (*b_batch, *b_sum, *b_free)
    batch = tuple(a_shape[i] for i in a_batch)
    left, right = (tuple(a_shape[i] for i in a_free), tuple(b_shape[i] for i in b_free))
    length = math.prod(a_shape[i] for i in a_sum)
    rows, columns = math.prod(left), math.prod(right)
    out = (*batch, *left, *right)
    written_out = 0 < length <= _SHORT and rows * columns <= _FEW and math.prod(batch) > 1

    def multiply(a: Any, b: Any) -> Any:
        a = np.transpose(a, a_order).reshape((*batch, rows, length))
        b = np.transpose(b, b_order).reshape((*batch, length, columns))
        if a.dtype != dtype or b.dtype != dtype:
            a, b = a.astype(dtype), b.astype(dtype)
        if not written_out:
            return np.matmul(a, b).reshape(out)
        total = a[..., :, 0, None] * b[..., 0, None, :]
        for k in range(1, length):
            total = total + a[..., :, k, None] * b[..., k, None, :]
        return total.reshape(out)

    return multiply


def _rest(count: int, *others: Axes) -> list[int]:
    taken = {int(i) for axes in others for i in axes}
    return [i for i in range(count) if i not in taken]


RULES: Rules = {
    **{
        name: _plain(function)
        for name, function in {
            "add": np.add, "add_any": np.add, "sub": np.subtract, "mul": np.multiply,
            "neg": np.negative, "max": np.maximum, "min": np.minimum, "abs": np.abs,
            "sign": np.sign, "floor": np.floor, "ceil": np.ceil, "sqrt": np.sqrt,
            "cbrt": np.cbrt, "sin": np.sin, "cos": np.cos, "tan": np.tan, "sinh": np.sinh,
            "cosh": np.cosh, "tanh": np.tanh, "asin": np.arcsin, "acos": np.arccos,
            "atan": np.arctan, "atan2": np.arctan2, "asinh": np.arcsinh, "acosh": np.arccosh,
            "atanh": np.arctanh, "exp": np.exp, "exp2": np.exp2, "expm1": np.expm1,
            "log": np.log, "log1p": np.log1p, "nextafter": np.nextafter, "lt": np.less,
            "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal, "eq": np.equal,
            "ne": np.not_equal, "and": np.bitwise_and, "or": np.bitwise_or,
            "xor": np.bitwise_xor, "not": np.bitwise_not, "is_finite": np.isfinite,
            "square": np.square, "erf": _ERF, "erfc": _ERFC, "erf_inv": _erf_inv,
            "logistic": _logistic, "rsqrt": lambda x: 1.0 / np.sqrt(x),
            "clamp": lambda low, x, high: np.minimum(np.maximum(x, low), high),
            "select_n": _select, "real": np.real, "imag": np.imag, "conj": np.conj,
            "complex": lambda x, y: x + 1j * y,
        }.items()
    },
    "div": _by_kind(np.true_divide, _quotient),
    "rem": _by_kind(np.fmod, _remainder),
    "pow": _plain(lambda x, y: np.power(x, y)),
    "integer_pow": _integer_pow,
    "convert_element_type": _convert,
    "round": _round,
    "reduce_precision": _reduce_precision,
    "shift_left": _shift(np.left_shift),
    "shift_right_logical": _shift(np.right_shift),
    "shift_right_arithmetic": _shift(np.right_shift, arithmetic=True),
    "population_count": _population_count,
    "clz": _clz,
    "eq_to": _order(np.equal),
    "le_to": _order(np.less_equal),
    "lt_to": _order(np.less),
    "reduce_sum": _sum,
    "reduce_prod": _product,
    "reduce_max": _reduction(np.max, _least),
    "reduce_min": _reduction(np.min, _greatest),
    "reduce_and": _reduction(np.bitwise_and.reduce),
    "reduce_or": _reduction(np.bitwise_or.reduce),
    "reduce_xor": _reduction(np.bitwise_xor.reduce),
    "argmax": _extreme_place(np.argmax),
    "argmin": _extreme_place(np.argmin),
    "cumsum": _cumulative(np.add),
    "cumprod": _cumulative(np.multiply),
    "cummax": _cumulative(np.maximum),
    "cummin": _cumulative(np.minimum),
    "dot_general": _dot_general,
}  # fmt: skip
