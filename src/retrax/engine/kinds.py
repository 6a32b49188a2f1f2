"""Types of scalars that a program computes with, their constants, and arithmetic on constants.

A scalar is a truth, a whole number of 8 to 64 bits with or without sign, or a float of 64 bits. A
program computes with each as XLA does: whole numbers wrap around, a float that becomes a whole
number is cut off at the ends of its range, and NaN becomes zero. A key of random numbers is its two
words in one, so that it moves as numbers do. Shorter floats and complex numbers have no kind: a
step that computes with them has no scalar program.

`fold` does an operation on constants while a program is built, with the result of XLA.
"""

import math
import struct
from collections.abc import Callable, Sequence
from typing import Any, Literal

import numpy as np
from jax.extend import core as jex

Kind = Literal["float", "int", "bool", "i32", "i16", "i8", "u64", "u32", "u16", "u8"]

DTYPE: dict[Kind, np.dtype] = {
    "float": np.dtype("float64"), "int": np.dtype("int64"), "bool": np.dtype("bool"),
    "i32": np.dtype("int32"), "i16": np.dtype("int16"), "i8": np.dtype("int8"),
    "u64": np.dtype("uint64"), "u32": np.dtype("uint32"), "u16": np.dtype("uint16"),
    "u8": np.dtype("uint8"),
}  # fmt: skip
_KIND: dict[np.dtype, Kind] = {dtype: kind for kind, dtype in DTYPE.items()}
# A constant in a program: a number of Python's for a float, a whole number of 64 bits or a truth,
# and one of NumPy's, which carries its type, for other whole numbers.
Constant = float | int | bool | np.integer
# What can be turned into a constant.
Number = Constant | np.generic
# What an equation of a jaxpr reads and makes.
Variable = jex.Var | jex.Literal


class Unscalarisable(Exception):
    """A function that cannot be turned into a scalar program; the message says why.

    `equations`: how many its jaxpr has, where that is known.
    """

    equations = 0


def kind_of_dtype(dtype: object) -> Kind | None:
    """Return the kind of a type, or `None` if programs do not compute with it."""
    if isinstance(dtype, np.dtype):
        return _KIND.get(dtype)
    return "u64" if is_key(dtype) else None


def is_key(dtype: object) -> bool:
    """Tell whether this is the type of a key of Threefry's."""
    return getattr(dtype, "name", None) == "key<fry>"


def dtype_of(variable: Variable) -> np.dtype:
    """Return the type of a variable of a jaxpr."""
    aval: Any = variable.aval
    return aval.dtype


def kind_of_variable(variable: Variable) -> Kind:
    """Return the kind of a variable of a jaxpr."""
    return kind_of_aval(variable.aval)


def kind_of_aval(aval: Any) -> Kind:
    """Return the kind of an abstract array of JAX; reject types without one."""
    kind = kind_of_dtype(aval.dtype)
    if kind is None:
        raise Unscalarisable(f"it computes with numbers of type {aval.dtype}")
    return kind


def kind_of_constant(x: Constant) -> Kind:
    if isinstance(x, bool | np.bool_):
        return "bool"
    if isinstance(x, np.integer):
        return _KIND[x.dtype]
    return "int" if isinstance(x, int) else "float"


def is_whole(kind: Kind) -> bool:
    return kind not in ("float", "bool")


def is_unsigned(kind: Kind) -> bool:
    return kind[0] == "u"


def bits(kind: Kind) -> int:
    return 1 if kind == "bool" else 8 * DTYPE[kind].itemsize


def bounds(kind: Kind) -> tuple[int, int]:
    """Return the smallest and the largest whole number of a kind."""
    info = np.iinfo(DTYPE[kind])
    return int(info.min), int(info.max)


def constant(x: Number, kind: Kind) -> Constant:
    """Convert a number to a kind, as XLA does it."""
    if kind == "float":
        return float(x)
    if kind == "bool":
        return bool(x)
    return _convert(_whole(x, kind), kind)


def _whole(x: Number, kind: Kind) -> int:
    low, high = bounds(kind)
    if isinstance(x, float):
        if math.isnan(x):
            return 0
        return int(min(max(x, low), high)) if math.isfinite(x) else (high if x > 0 else low)
    # Whole numbers and truths keep their last bits.
    return (int(x) - low) % (high - low + 1) + low


def _convert(x: int, kind: Kind) -> Constant:
    return x if kind == "int" else DTYPE[kind].type(x)


def least(kind: Kind) -> Constant:
    """Return the maximum of no numbers."""
    return -math.inf if kind == "float" else constant(_ends(kind)[0], kind)


def greatest(kind: Kind) -> Constant:
    """Return the minimum of no numbers."""
    return math.inf if kind == "float" else constant(_ends(kind)[1], kind)


def _ends(kind: Kind) -> tuple[int, int]:
    return (0, 1) if kind == "bool" else bounds(kind)


_COMPARE: dict[str, Callable] = {
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
}
# Operations on floats that NumPy knows by the same name.
_NUMPY = (
    "sqrt sin cos tan sinh cosh tanh exp exp2 expm1 log log1p floor ceil sign arcsin arccos "
    "arctan arctan2 power cbrt arcsinh arccosh arctanh nextafter"
).split()
_FLOAT: dict[str, Callable] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "div": np.divide,
    "rem": np.fmod,
    "neg": lambda a: -a,
    "abs": abs,
    "max": lambda a, b: a if a != a or a > b else b,
    "min": lambda a, b: a if a != a or a < b else b,
    "isfinite": math.isfinite,
    "round": lambda a: _rounded_away(a),
    "roundeven": np.rint,
    "erf": math.erf,
    "erfc": math.erfc,
    **{name: getattr(np, name) for name in _NUMPY},
}
_TRUTH: dict[str, Callable] = {
    "and": lambda a, b: a and b,
    "or": lambda a, b: a or b,
    "xor": lambda a, b: a != b,
    "max": lambda a, b: a or b,
    "min": lambda a, b: a and b,
    "not": lambda a: not a,
}
# The same bits read as another kind.
_REINTERPRETED: dict[str, Callable[[Any], Constant]] = {
    "float_of_bits": lambda a: struct.unpack("<d", struct.pack("<Q", int(a)))[0],
    "bits_of_float": lambda a: np.uint64(struct.unpack("<Q", struct.pack("<d", a))[0]),
}


def fold(name: str, constants: Sequence[Constant]) -> Constant | None:
    """Do an operation on constants of one kind; return `None` if it is not known here."""
    if name == "select":
        which, otherwise, chosen = constants
        return chosen if which else otherwise
    kind = kind_of_constant(constants[0])
    if name in DTYPE:
        return constant(constants[0], name)
    if name in _REINTERPRETED:
        return _REINTERPRETED[name](constants[0])
    if name in _COMPARE:
        return bool(_COMPARE[name](*constants))
    if is_whole(kind):
        operation = _WHOLE.get(name)
        return None if operation is None else operation(kind, *(int(x) for x in constants))
    table = _FLOAT if kind == "float" else _TRUTH
    if name not in table:
        return None
    with np.errstate(all="ignore"):
        result = table[name](*constants)
    return bool(result) if name == "isfinite" or kind == "bool" else float(result)


def _rounded_away(a: float) -> float:
    """Round to the nearest whole number, and away from zero if two are equally near."""
    if not math.isfinite(a):
        return a
    whole = float(math.trunc(a))
    return math.copysign(whole + math.copysign(float(abs(a - whole) >= 0.5), a), a)


def _quotient(kind: Kind, a: int, b: int) -> Constant:
    """Divide and cut off towards zero; a quotient by zero has all bits set."""
    if b == 0:
        return constant(-1, kind)
    quotient = abs(a) // abs(b)
    return constant(quotient if (a < 0) == (b < 0) else -quotient, kind)


def _remainder(kind: Kind, a: int, b: int) -> Constant:
    """Return what is left of a, with its sign; by zero, all of it."""
    left = abs(a) % abs(b) if b else abs(a)
    return constant(-left if a < 0 else left, kind)


def _pattern(kind: Kind, a: int) -> int:
    """Read the bits of a number as one without sign."""
    return a % 2 ** bits(kind)


def _to_signed(kind: Kind, a: int) -> int:
    """Read the bits of a number as one whose first bit is a sign."""
    half = 2 ** (bits(kind) - 1)
    return (a + half) % (2 * half) - half


def _shift(kind: Kind, a: int, b: int, turn: Callable[[int, int], int], beyond: int) -> Constant:
    """Shift by b bits, taken without sign; `beyond` is left if b is too large."""
    places = _pattern(kind, b)
    return constant(turn(a, places) if places < bits(kind) else beyond, kind)


def _of_kind(operation: Callable[..., int]) -> Callable[..., Constant]:
    return lambda kind, *xs: constant(operation(*xs), kind)


_WHOLE: dict[str, Callable[..., Constant]] = {
    "add": _of_kind(lambda a, b: a + b),
    "sub": _of_kind(lambda a, b: a - b),
    "mul": _of_kind(lambda a, b: a * b),
    "div": _quotient,
    "rem": _remainder,
    "neg": _of_kind(lambda a: -a),
    "abs": _of_kind(lambda a: abs(a)),
    "sign": _of_kind(lambda a: (a > 0) - (a < 0)),
    "max": _of_kind(max),
    "min": _of_kind(min),
    "and": _of_kind(lambda a, b: a & b),
    "or": _of_kind(lambda a, b: a | b),
    "xor": _of_kind(lambda a, b: a ^ b),
    "not": _of_kind(lambda a: ~a),
    "shl": lambda kind, a, b: _shift(kind, a, b, lambda x, n: x << n, 0),
    "shr": lambda kind, a, b: _shift(kind, _pattern(kind, a), b, lambda x, n: x >> n, 0),
    # As in XLA, the first bit counts as a sign for numbers without one too.
    "sar": lambda kind, a, b: _shift(
        kind, _to_signed(kind, a), b, lambda x, n: x >> n, -1 if _to_signed(kind, a) < 0 else 0
    ),
    "popcount": lambda kind, a: constant(_pattern(kind, a).bit_count(), kind),
    "clz": lambda kind, a: constant(bits(kind) - _pattern(kind, a).bit_length(), kind),
}
