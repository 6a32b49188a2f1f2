"""Bounds of what a function computes, whatever it is given: they show what is never a number.

Entries that are numbers lie within the bounds $[a, b]$ of their array; where $a > b$ none is one.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

Bounds = tuple[float, float]
_ANY, _NONE, _POSITIVE = (-math.inf, math.inf), (math.inf, -math.inf), (0.0, math.inf)
# These move numbers about and change none.
_MOVES = {
    "broadcast_in_dim", "copy", "convert_element_type", "dynamic_slice", "expand_dims", "gather",
    "reduce_max", "reduce_min", "reshape", "rev", "slice", "squeeze", "transpose",
}  # fmt: skip
# Below which argument these are no numbers, and within which bounds they are otherwise.
_FROM: dict[str, tuple[float, Bounds]] = {
    "abs": (-math.inf, _POSITIVE),
    "cos": (-math.inf, (-1.0, 1.0)),
    "exp": (-math.inf, _POSITIVE),
    "log": (0.0, _ANY),
    "log1p": (-1.0, _ANY),
    "rsqrt": (0.0, _POSITIVE),
    "sin": (-math.inf, (-1.0, 1.0)),
    "sqrt": (0.0, _POSITIVE),
    "square": (-math.inf, _POSITIVE),
}
_JOINS: dict[str, Callable[[float, float], float]] = {
    "add": lambda x, y: x + y,
    "mul": lambda x, y: x * y,
    "sub": lambda x, y: x - y,
}


def is_never_a_number(program: Any) -> bool:
    """Tell whether the results of a jaxpr are seen to be NaN for all arguments."""
    return any(low > high for low, high in _bounds(program, [_ANY] * len(program.in_avals)))


def _bounds(program: Any, given: Sequence[Bounds]) -> list[Bounds]:
    """Return the bounds of the results of a jaxpr."""
    known = dict(zip(program.jaxpr.invars, given, strict=True))
    known |= zip(program.jaxpr.constvars, map(_of_numbers, program.consts), strict=True)

    def read(x: Any) -> Bounds:
        return _of_numbers(x.val) if hasattr(x, "val") else known.get(x, _ANY)

    for equation in program.eqns:
        inner = equation.params.get("jaxpr", equation.params.get("call_jaxpr"))
        arguments = [read(x) for x in equation.invars]
        if equation.primitive.name in ("jit", "pjit", "custom_jvp_call"):
            found = _bounds(inner, arguments)
        else:
            found = [_of(equation, arguments)] * len(equation.outvars)
        known |= zip(equation.outvars, found, strict=True)
    return [read(x) for x in program.jaxpr.outvars]


def _of_numbers(value: Any) -> Bounds:
    known = isinstance(value, float | np.ndarray | np.floating | jax.Array)
    known = known and not isinstance(value, Tracer)
    if not known or not jnp.issubdtype(jnp.result_type(value), jnp.floating) or not np.size(value):
        return _ANY
    numbers = np.asarray(value, float)[~np.isnan(value)]
    return (float(np.min(numbers)), float(np.max(numbers))) if numbers.size else _NONE


def _of(equation: Any, given: list[Bounds]) -> Bounds:
    """Return the bounds of what an operation makes; `_ANY` where nothing is known."""
    if not equation.outvars:
        return _ANY
    name, out = equation.primitive.name, equation.outvars[0].aval
    low, high = given[0] if given else _ANY
    same = len(equation.invars) == 2 and equation.invars[0] is equation.invars[1]
    if not jnp.issubdtype(out.dtype, jnp.floating):
        return _ANY
    if name in _FROM:
        least, found = _FROM[name]
        return found if low <= high and high >= least else _NONE
    if name in _JOINS:
        if any(a > b for a, b in given):
            return _NONE
        if name == "mul" and same:
            return _POSITIVE
        ends = [_JOINS[name](x, y) for x in given[0] for y in given[1]]
        return _ANY if any(map(math.isnan, ends)) else (min(ends), max(ends))
    if name == "neg":
        return -high, -low
    if name == "reduce_sum" and out.size > 0:
        count = equation.invars[0].aval.size / out.size
        return (low * count, high * count) if count else _ANY
    if (name == "integer_pow" and equation.params["y"] % 2 == 0 and low <= high) or (
        name == "dot_general" and same and out.shape == ()
    ):
        return _POSITIVE
    return given[0] if name in _MOVES else _ANY
