"""Which primitive of JAX acts how on Taylor series: one table from its name to its rule.

What is linear acts on each coefficient, products and functions have recurrences, choices and
comparisons look at the coefficient 0.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import jax.numpy as jnp
from jax import lax
from jax.extend import core as jex
from jaxtyping import Array

from retrax.numerics.taylor.curve import (
    Curve,
    product,
    quotient,
    square_root,
    still,
)
from retrax.numerics.taylor.functions import (
    FUNCTIONS,
    absolute,
    angle,
    cube_root,
    function,
    power,
    whole_power,
)

Equation = jex.JaxprEqn
Rule = Callable[[Equation, list[Curve]], list[Curve]]

# Powers beyond this are taken by their logarithm.
_MOST_FACTORS = 64


class NoSeries(Exception):
    """A primitive has no recurrence; its name is the argument."""


def bind(equation: Equation, arrays: Sequence[Array]) -> list[Array]:
    """Evaluate an equation on arrays, a call with whatever rules for derivatives it has."""
    primitive: Any = equation.primitive
    given = primitive.get_bind_params(equation.params)
    # Before JAX 0.10 the functions of a call came beside its parameters.
    functions, params = given if isinstance(given, tuple) else ((), given)
    outs = primitive.bind(*functions, *arrays, **params)
    return list(outs) if primitive.multiple_results else [outs]


def _linear(equation: Equation, ins: list[Curve]) -> list[Curve]:
    """Do the same to every coefficient; what does not move counts as zero beyond the first."""
    found: list[list[Array]] = []

    def term(k: int, i: int) -> Array:
        if k == len(found):
            found.append(bind(equation, [x[k] for x in ins]))
        return found[k][i]

    return [Curve(partial(term, i=i)) for i in range(len(equation.outvars))]


def _move(equation: Equation, ins: list[Curve]) -> list[Curve]:
    """Move entries, and their factors with them."""
    (out,) = _linear(equation, ins)
    parts = [x.scaled for x in ins if x.scaled is not None]
    if len(parts) == len(ins):
        (base,) = _linear(equation, [curve for _, curve in parts])
        out.scaled = bind(equation, [factor for factor, _ in parts])[0], base
    return [out]


def _linear_in(*places: int) -> Rule:
    """Make a rule linear in some arguments; the others must not move, and stay as they are."""

    def rule(equation: Equation, ins: list[Curve]) -> list[Curve]:
        if any(x.moves for i, x in enumerate(ins) if i not in places):
            raise NoSeries(equation.primitive.name)

        def term(k: int) -> Array:
            return bind(equation, [x[k if i in places else 0] for i, x in enumerate(ins)])[0]

        return [Curve(term)]

    return rule


def _still(equation: Equation, ins: list[Curve]) -> list[Curve]:
    """Keep steps and truths as they are at the start."""
    return [still(x) for x in bind(equation, [x[0] for x in ins])]


def _convert(equation: Equation, ins: list[Curve]) -> list[Curve]:
    floats = jnp.issubdtype(equation.params["new_dtype"], jnp.floating)
    return (_linear if floats else _still)(equation, ins)


def _select(equation: Equation, ins: list[Curve]) -> list[Curve]:
    which, *cases = ins
    return [Curve(lambda k: lax.select_n(which[0], *(case[k] for case in cases)))]


def _choose(first: Callable[[Array, Array], Array]) -> Rule:
    """Make a rule for one of two arguments, the one that is chosen at the start."""

    def rule(equation: Equation, ins: list[Curve]) -> list[Curve]:
        a, b = ins
        return [Curve(lambda k: jnp.where(first(a[0], b[0]), a[k], b[k]))]

    return rule


def _extreme(equation: Equation, ins: list[Curve]) -> list[Curve]:
    """Return the largest or smallest entry at the start; the mean of several that are equal."""
    (x,), axes = ins, tuple(equation.params["axes"])

    def term(k: int) -> Array:
        first = bind(equation, [x[0]])[0]
        if k == 0:
            return first
        here = (x[0] == jnp.expand_dims(first, axes)).astype(x[0].dtype)
        return jnp.sum(here * x[k], axis=axes) / jnp.sum(here, axis=axes)

    return [Curve(term)]


def _clamp(equation: Equation, ins: list[Curve]) -> list[Curve]:
    low, x, high = ins

    def term(k: int) -> Array:
        from_below = jnp.where(x[0] > low[0], x[k], jnp.broadcast_to(low[k], x[0].shape))
        return jnp.where(x[0] < high[0], from_below, jnp.broadcast_to(high[k], x[0].shape))

    return [Curve(term)]


def _remainder(equation: Equation, ins: list[Curve]) -> list[Curve]:
    x, y = ins
    if y.moves:
        raise NoSeries("rem")
    return [Curve(lambda k: lax.rem(x[0], y[0]) if k == 0 else x[k])]


def _entrywise(make: Callable[..., Curve]) -> Rule:
    return lambda equation, ins: [make(*ins)]


def _function(equation: Equation, ins: list[Curve]) -> list[Curve]:
    name = equation.primitive.name
    return [function(name, lambda x: bind(equation, [x])[0], ins[0])]


def _whole_power(equation: Equation, ins: list[Curve]) -> list[Curve]:
    return [whole_power(ins[0], equation.params["y"])]


def _power(equation: Equation, ins: list[Curve]) -> list[Curve]:
    """Raise to a power; a whole one is a product, even if it is written as 2.0."""
    x, exponent = ins
    n = exponent.number
    if n is not None and n.is_integer() and abs(n) <= _MOST_FACTORS:
        return [whole_power(x, int(n))]
    return [power(x, exponent)]


def _contraction(equation: Equation, ins: list[Curve]) -> list[Curve]:
    """Multiply arrays, and stacks of them as arrays with one more axis to sum over."""
    ((a_sum, b_sum), (a_batch, b_batch)) = equation.params["dimension_numbers"]

    def later(axes: Sequence[int]) -> tuple[int, ...]:
        return tuple(axis + 1 for axis in axes)

    stacked = (((0, *later(a_sum)), (0, *later(b_sum))), (later(a_batch), later(b_batch)))

    def total(a: Array, b: Array) -> Array:
        return lax.dot_general(a, b, stacked)

    return [product(ins[0], ins[1], lambda a, b: bind(equation, [a, b])[0], total)]


def _multiply(equation: Equation, ins: list[Curve]) -> list[Curve]:
    a, b = ins
    out = product(a, b)
    if _alike(equation) and not (a.moves and b.moves):
        out.scaled = (b[0], a) if a.moves else (a[0], b)
    return [out]


def _divide(equation: Equation, ins: list[Curve]) -> list[Curve]:
    a, b = ins
    out = quotient(a, b)
    if _alike(equation) and not b.moves:
        out.scaled = 1 / b[0], a
    return [out]


def _alike(equation: Equation) -> bool:
    """Return whether all arguments have one shape."""
    avals: list[Any] = [v.aval for v in equation.invars]
    return len({aval.shape for aval in avals}) == 1


_LINEAR = (
    "add", "add_any", "copy", "copy_p", "cumsum", "name", "neg", "optimization_barrier", "pad",
    "reduce_sum", "split", "stop_gradient", "sub", "tile", "unstack",
)  # fmt: skip
_MOVES = (
    "broadcast_in_dim", "concatenate", "expand_dims", "reshape", "rev", "slice", "squeeze",
    "stack", "transpose",
)  # fmt: skip
_STILL = (
    "and", "argmax", "argmin", "ceil", "eq", "floor", "ge", "gt", "is_finite", "le", "le_to", "lt",
    "lt_to", "ne", "not", "or", "round", "sign", "xor",
)  # fmt: skip
RULES: dict[str, Rule] = {
    **dict.fromkeys(_LINEAR, _linear),
    **dict.fromkeys(_MOVES, _move),
    **dict.fromkeys(_STILL, _still),
    **dict.fromkeys(FUNCTIONS, _function),
    "convert_element_type": _convert,
    "select_n": _select,
    "max": _choose(jnp.greater_equal),
    "min": _choose(jnp.less_equal),
    "clamp": _clamp,
    "reduce_max": _extreme,
    "reduce_min": _extreme,
    "abs": _entrywise(absolute),
    "rem": _remainder,
    "mul": _multiply,
    "dot_general": _contraction,
    "div": _divide,
    "sqrt": _entrywise(square_root),
    "square": _entrywise(lambda x: product(x, x)),
    "rsqrt": _entrywise(lambda x: square_root(x).over(1.0)),
    "atan2": _entrywise(angle),
    "cbrt": _entrywise(cube_root),
    "pow": _power,
    "integer_pow": _whole_power,
    "dynamic_slice": _linear_in(0),
    "dynamic_update_slice": _linear_in(0, 1),
    "gather": _linear_in(0),
    "scatter": _linear_in(0, 2),
    "scatter-add": _linear_in(0, 2),
    "triangular_solve": _linear_in(1),
}
