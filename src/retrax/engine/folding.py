"""Operations on constants, done while a program is built, with the numbers that XLA would find."""

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from retrax.engine.kinds import (
    DTYPE,
    Constant,
    Kind,
    bits,
    constant,
    is_whole,
    kind_of_constant,
)

_COMPARE: dict[str, Callable] = {
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
}
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
}
# Operations on floats that NumPy knows by the same name.
NAMES = (
    "sqrt sin cos tan sinh cosh tanh exp exp2 expm1 log log1p floor ceil sign arcsin arccos "
    "arctan arctan2 power cbrt arcsinh arccosh arctanh nextafter"
).split()
_FLOAT |= {name: getattr(np, name) for name in NAMES}
_TRUTH: dict[str, Callable] = {
    "and": lambda a, b: a and b,
    "or": lambda a, b: a or b,
    "xor": lambda a, b: a != b,
    "max": lambda a, b: a or b,
    "min": lambda a, b: a and b,
    "not": lambda a: not a,
}


def folded(name: str, constants: Sequence[Constant]) -> Constant | None:
    """The result of an operation on constants of one kind, or `None` where it is not known."""
    if name == "select":
        which, otherwise, chosen = constants
        return chosen if which else otherwise
    kind = kind_of_constant(constants[0])
    if name in DTYPE:
        return constant(constants[0], name)
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
    """The nearest whole number; of two that are equally near, the one further from zero."""
    if not math.isfinite(a):
        return a
    whole = float(math.trunc(a))
    return math.copysign(whole + math.copysign(float(abs(a - whole) >= 0.5), a), a)


def _quotient(kind: Kind, a: int, b: int) -> Constant:
    """Cut off towards zero; a quotient by zero has all bits set."""
    if b == 0:
        return constant(-1, kind)
    quotient = abs(a) // abs(b)
    return constant(quotient if (a < 0) == (b < 0) else -quotient, kind)


def _remainder(kind: Kind, a: int, b: int) -> Constant:
    """What is left of a, with its sign; of a quotient by zero, all of it."""
    left = abs(a) % abs(b) if b else abs(a)
    return constant(-left if a < 0 else left, kind)


def _pattern(kind: Kind, a: int) -> int:
    """The bits of a number, as one without sign."""
    return a % 2 ** bits(kind)


def _signed(kind: Kind, a: int) -> int:
    """The number that the bits of another one are if the first of them is a sign."""
    half = 2 ** (bits(kind) - 1)
    return (a + half) % (2 * half) - half


def _shift(kind: Kind, a: int, b: int, turn: Callable[[int, int], int], beyond: int) -> Constant:
    """By as many bits as b, taken without sign; further than there are bits, what is `beyond`."""
    places = _pattern(kind, b)
    return constant(turn(a, places) if places < bits(kind) else beyond, kind)


def _typed(operation: Callable[..., int]) -> Callable[..., Constant]:
    return lambda kind, *xs: constant(operation(*xs), kind)


_WHOLE: dict[str, Callable[..., Any]] = {
    "add": _typed(lambda a, b: a + b),
    "sub": _typed(lambda a, b: a - b),
    "mul": _typed(lambda a, b: a * b),
    "div": _quotient,
    "rem": _remainder,
    "neg": _typed(lambda a: -a),
    "abs": _typed(lambda a: abs(a)),
    "sign": _typed(lambda a: (a > 0) - (a < 0)),
    "max": _typed(max),
    "min": _typed(min),
    "and": _typed(lambda a, b: a & b),
    "or": _typed(lambda a, b: a | b),
    "xor": _typed(lambda a, b: a ^ b),
    "not": _typed(lambda a: ~a),
    "shl": lambda kind, a, b: _shift(kind, a, b, lambda x, n: x << n, 0),
    "shr": lambda kind, a, b: _shift(kind, _pattern(kind, a), b, lambda x, n: x >> n, 0),
    # As in XLA, the first bit counts as a sign for numbers without one too.
    "sar": lambda kind, a, b: _shift(
        kind, _signed(kind, a), b, lambda x, n: x >> n, -1 if _signed(kind, a) < 0 else 0
    ),
    "popcount": lambda kind, a: constant(_pattern(kind, a).bit_count(), kind),
    "clz": lambda kind, a: constant(bits(kind) - _pattern(kind, a).bit_length(), kind),
}
