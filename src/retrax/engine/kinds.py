"""Types of scalars: which of JAX's a program computes with, and their constants.

Truths, whole numbers of 8 to 64 bits with and without sign, and floats of 64 bits. A program
computes with each as XLA does: whole numbers wrap around, a float that becomes a whole number is
cut off at the ends of its range, and NaN becomes zero. Shorter floats and complex numbers have no
kind: a step that computes with them has no scalar program.
"""

import math
from typing import Any, Literal

import numpy as np

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


def kind_of_dtype(dtype: Any) -> Kind | None:
    """The kind of numbers of a type, or `None` where programs do not compute with them."""
    return _KIND.get(dtype) if isinstance(dtype, np.dtype) else None


def kind_of_constant(x: Any) -> Kind:
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
    """The smallest and the largest whole number of a kind."""
    info = np.iinfo(DTYPE[kind])
    return int(info.min), int(info.max)


def constant(x: Any, kind: Kind) -> Constant:
    """A number as one of a kind, converted as XLA does it."""
    if kind == "float":
        return float(x)
    if kind == "bool":
        return bool(x)
    return _typed(_whole(x, kind), kind)


def _whole(x: Any, kind: Kind) -> int:
    low, high = bounds(kind)
    if isinstance(x, float):
        if math.isnan(x):
            return 0
        return int(min(max(x, low), high)) if math.isfinite(x) else (high if x > 0 else low)
    # Whole numbers and truths keep their last bits.
    return (int(x) - low) % (high - low + 1) + low


def _typed(x: int, kind: Kind) -> Constant:
    return x if kind == "int" else DTYPE[kind].type(x)


def least(kind: Kind) -> Constant:
    """What the maximum of nothing is."""
    return -math.inf if kind == "float" else constant(_ends(kind)[0], kind)


def greatest(kind: Kind) -> Constant:
    """What the minimum of nothing is."""
    return math.inf if kind == "float" else constant(_ends(kind)[1], kind)


def _ends(kind: Kind) -> tuple[int, int]:
    return (0, 1) if kind == "bool" else bounds(kind)
