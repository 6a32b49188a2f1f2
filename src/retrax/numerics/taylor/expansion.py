"""From a function written in JAX to the Taylor series of its results.

The function is traced, and its jaxpr evaluated on curves: what is linear acts on each coefficient,
products and functions have recurrences, choices and comparisons look at the coefficient 0. Nothing
is compiled here; the recurrences become a part of what the caller is tracing.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax
from jax.extend import core as jex
from jaxtyping import Array

from retrax.numerics.host.control import scan_counts
from retrax.numerics.taylor.curve import (
    Curve,
    integral,
    product,
    quotient,
    rate,
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
Variable = jex.Var | jex.Literal

# Powers beyond this are taken by their logarithm.
_MOST_FACTORS = 64
Rule = Callable[["Expansion", Equation, list[Curve]], list[Curve]]

# Longer loops are not written out.
_LONGEST_LOOP = 64


class NoSeries(Exception):
    """A primitive has no recurrence; its name is the argument."""


class Expansion:
    """Evaluates jaxprs on curves. `made` has all curves, in the order they depend on each other."""

    def __init__(self):
        self.made: list[Curve] = []

    def closed(self, closed: jex.ClosedJaxpr, ins: Sequence[Curve]) -> list[Curve]:
        return self.jaxpr(closed.jaxpr, [still(jnp.asarray(c)) for c in closed.consts], ins)

    def jaxpr(self, jaxpr: jex.Jaxpr, consts: Sequence[Curve], ins: Sequence[Curve]) -> list[Curve]:
        known: dict[Any, Curve] = dict(zip(jaxpr.constvars, consts, strict=True))
        known.update(zip(jaxpr.invars, ins, strict=True))

        def read(v: Variable) -> Curve:
            return _literal(v) if isinstance(v, jex.Literal) else known[v]

        for equation in jaxpr.eqns:
            outs = self.equation(equation, [read(v) for v in equation.invars])
            known.update(zip(equation.outvars, outs, strict=True))
        return [read(v) for v in jaxpr.outvars]

    def equation(self, equation: Equation, ins: list[Curve]) -> list[Curve]:
        """Evaluate an equation by the rule of its primitive, or as it is where nothing moves."""
        name = equation.primitive.name
        if not any(x.moves for x in ins):
            outs = [still(x) for x in _bound(equation, [x[0] for x in ins])]
            outs[0].number = _number(name, [x.number for x in ins])
        elif name in _RULES:
            outs = _RULES[name](self, equation, ins)
        else:
            raise NoSeries(name)
        self.made += [x for x in outs if x.moves]
        return outs

    def find(self, k: int) -> None:
        """Find all coefficients k, in the order in which they depend on each other."""
        for curve in self.made:
            curve[k]


def _literal(v: jex.Literal) -> Curve:
    aval: Any = v.aval
    found = still(jnp.asarray(v.val, aval.dtype))
    found.number = float(v.val) if not aval.shape and aval.dtype.kind in "if" else None
    return found


def _number(name: str, ins: list[float | None]) -> float | None:
    """The number that an operation makes of numbers, of the kind that exponents are made by."""
    if None in ins or name not in _ON_NUMBERS:
        return None
    return _ON_NUMBERS[name](*ins)


_ON_NUMBERS: dict[str, Callable[..., float]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "neg": lambda a: -a,
    "convert_element_type": lambda a: a,
    "broadcast_in_dim": lambda a: a,
}


def _bound(equation: Equation, arrays: Sequence[Array]) -> list[Array]:
    """Evaluate an equation on arrays, a call with whatever rules for derivatives it has."""
    primitive: Any = equation.primitive
    given = primitive.get_bind_params(equation.params)
    # Before JAX 0.10 the functions of a call came beside its parameters.
    functions, params = given if isinstance(given, tuple) else ((), given)
    outs = primitive.bind(*functions, *arrays, **params)
    return list(outs) if primitive.multiple_results else [outs]


def _inner(equation: Equation) -> jex.ClosedJaxpr:
    params = equation.params
    inner = next(params[k] for k in ("jaxpr", "call_jaxpr", "fun_jaxpr") if k in params)
    return inner if hasattr(inner, "consts") else jex.ClosedJaxpr(inner, ())


def _linear(on: Expansion, equation: Equation, ins: list[Curve]) -> list[Curve]:
    """The same to every coefficient; what does not move counts as zero beyond the first."""
    found: list[list[Array]] = []

    def term(k: int, i: int) -> Array:
        if k == len(found):
            found.append(_bound(equation, [x[k] for x in ins]))
        return found[k][i]

    return [Curve(partial(term, i=i)) for i in range(len(equation.outvars))]


def _moved(on: Expansion, equation: Equation, ins: list[Curve]) -> list[Curve]:
    """Entries that change their places, and their factors with them."""
    (out,) = _linear(on, equation, ins)
    parts = [x.scaled for x in ins if x.scaled is not None]
    if len(parts) == len(ins):
        (base,) = _linear(on, equation, [curve for _, curve in parts])
        out.scaled = _bound(equation, [factor for factor, _ in parts])[0], base
    return [out]


def _linear_in(*places: int) -> Rule:
    """Linear in some of its arguments; the others must not move, and stay as they are."""

    def rule(on: Expansion, equation: Equation, ins: list[Curve]) -> list[Curve]:
        if any(x.moves for i, x in enumerate(ins) if i not in places):
            raise NoSeries(equation.primitive.name)

        def term(k: int) -> Array:
            return _bound(equation, [x[k if i in places else 0] for i, x in enumerate(ins)])[0]

        return [Curve(term)]

    return rule


def _still(on: Expansion, equation: Equation, ins: list[Curve]) -> list[Curve]:
    """Steps and truths: they stay what they are at the start."""
    return [still(x) for x in _bound(equation, [x[0] for x in ins])]


def _converted(on: Expansion, equation: Equation, ins: list[Curve]) -> list[Curve]:
    floats = jnp.issubdtype(equation.params["new_dtype"], jnp.floating)
    return (_linear if floats else _still)(on, equation, ins)


def _selected(on: Expansion, equation: Equation, ins: list[Curve]) -> list[Curve]:
    which, *cases = ins
    return [Curve(lambda k: lax.select_n(which[0], *(case[k] for case in cases)))]


def _chosen(first: Callable[[Array, Array], Array]) -> Rule:
    """One of two arguments, the one that is chosen at the start."""

    def rule(on: Expansion, equation: Equation, ins: list[Curve]) -> list[Curve]:
        a, b = ins
        return [Curve(lambda k: jnp.where(first(a[0], b[0]), a[k], b[k]))]

    return rule


def _extreme(on: Expansion, equation: Equation, ins: list[Curve]) -> list[Curve]:
    """The largest or smallest entry at the start; the mean of several that are equal."""
    (x,), axes = ins, tuple(equation.params["axes"])

    def term(k: int) -> Array:
        first = _bound(equation, [x[0]])[0]
        if k == 0:
            return first
        here = (x[0] == jnp.expand_dims(first, axes)).astype(x[0].dtype)
        return jnp.sum(here * x[k], axis=axes) / jnp.sum(here, axis=axes)

    return [Curve(term)]


def _clamped(on: Expansion, equation: Equation, ins: list[Curve]) -> list[Curve]:
    low, x, high = ins

    def term(k: int) -> Array:
        from_below = jnp.where(x[0] > low[0], x[k], jnp.broadcast_to(low[k], x[0].shape))
        return jnp.where(x[0] < high[0], from_below, jnp.broadcast_to(high[k], x[0].shape))

    return [Curve(term)]


def _remainder(on: Expansion, equation: Equation, ins: list[Curve]) -> list[Curve]:
    x, y = ins
    if y.moves:
        raise NoSeries("rem")
    return [Curve(lambda k: lax.rem(x[0], y[0]) if k == 0 else x[k])]


def _entrywise(make: Callable[..., Curve]) -> Rule:
    return lambda on, equation, ins: [make(*ins)]


def _function(on: Expansion, equation: Equation, ins: list[Curve]) -> list[Curve]:
    name = equation.primitive.name
    return [function(name, lambda x: _bound(equation, [x])[0], ins[0])]


def _whole_power(on: Expansion, equation: Equation, ins: list[Curve]) -> list[Curve]:
    return [whole_power(ins[0], equation.params["y"])]


def _power(on: Expansion, equation: Equation, ins: list[Curve]) -> list[Curve]:
    """A power; one that is whole is a product, even if it is written as 2.0."""
    x, exponent = ins
    n = exponent.number
    if n is not None and n.is_integer() and abs(n) <= _MOST_FACTORS:
        return [whole_power(x, int(n))]
    return [power(x, exponent)]


def _contraction(on: Expansion, equation: Equation, ins: list[Curve]) -> list[Curve]:
    """A product of arrays, and of stacks of them as one with one more axis to sum over."""
    ((a_sum, b_sum), (a_batch, b_batch)) = equation.params["dimension_numbers"]

    def later(axes: Sequence[int]) -> tuple[int, ...]:
        return tuple(axis + 1 for axis in axes)

    stacked = (((0, *later(a_sum)), (0, *later(b_sum))), (later(a_batch), later(b_batch)))

    def total(a: Array, b: Array) -> Array:
        return lax.dot_general(a, b, stacked)

    return [product(ins[0], ins[1], lambda a, b: _bound(equation, [a, b])[0], total)]


def _multiplied(on: Expansion, equation: Equation, ins: list[Curve]) -> list[Curve]:
    a, b = ins
    out = product(a, b)
    if _alike(equation) and not (a.moves and b.moves):
        out.scaled = (b[0], a) if a.moves else (a[0], b)
    return [out]


def _divided(on: Expansion, equation: Equation, ins: list[Curve]) -> list[Curve]:
    a, b = ins
    out = quotient(a, b)
    if _alike(equation) and not b.moves:
        out.scaled = 1 / b[0], a
    return [out]


def _alike(equation: Equation) -> bool:
    """Whether all arguments have one shape."""
    avals: list[Any] = [v.aval for v in equation.invars]
    return len({aval.shape for aval in avals}) == 1


def _call(on: Expansion, equation: Equation, ins: list[Curve]) -> list[Curve]:
    return on.closed(_inner(equation), ins)


def _differentiable_call(on: Expansion, equation: Equation, ins: list[Curve]) -> list[Curve]:
    """A call with a derivative of its own: inlined or, with a loop inside, by that derivative."""
    inside = Expansion()
    try:
        outs = inside.closed(_inner(equation), ins)
    except NoSeries:
        return _by_derivative(on, equation, ins)
    on.made += inside.made
    return outs


def _by_derivative(on: Expansion, equation: Equation, ins: list[Curve]) -> list[Curve]:
    """The rate of a solution follows from it and its arguments; it is found for coefficient 0."""

    def value(*arrays: Array) -> list[Array]:
        return _bound(equation, arrays)

    starts = tuple(x[0] for x in ins)
    rates: list[Curve] = []
    outs = [integral(x, lambda i=i: rates[i]) for i, x in enumerate(value(*starts))]
    slope = jax.make_jaxpr(lambda a, da: jax.jvp(value, a, da))(starts, starts)
    inside = _Derivative(equation, ins, outs)
    found = inside.closed(slope, [*ins, *map(rate, ins)])[len(outs) :]

    def term(k: int, x: Curve) -> Array:
        inside.find(k)
        return x[k]

    rates += [Curve(partial(term, x=x)) for x in found]
    return outs


class _Derivative(Expansion):
    """Evaluates the derivative of a solution, which asks for the solution that is being found."""

    def __init__(self, asked: Equation, arguments: list[Curve], solution: list[Curve]):
        super().__init__()
        self.asked, self.arguments, self.solution = asked, arguments, solution

    def equation(self, equation: Equation, ins: list[Curve]) -> list[Curve]:
        return self.solution if self._is_asked(equation, ins) else super().equation(equation, ins)

    def _is_asked(self, equation: Equation, ins: list[Curve]) -> bool:
        """Tell whether an equation is the same call, of the same curves."""
        if equation.primitive is not self.asked.primitive or len(ins) != len(self.arguments):
            return False
        pairs = zip(ins, self.arguments, strict=True)
        alike = all(a is b or not (a.moves or b.moves) for a, b in pairs)
        return alike and str(_inner(equation)) == str(_inner(self.asked))


def _solved(on: Expansion, equation: Equation, ins: list[Curve]) -> list[Curve]:
    """A linear system with a solver of its own, which is inlined."""
    counts, solve = equation.params["const_lengths"], equation.params["jaxprs"].solve
    first = counts.matvec + counts.vecmat
    return on.closed(solve, [*ins[first : first + counts.solve], *ins[sum(counts) :]])


def _choice(on: Expansion, equation: Equation, ins: list[Curve]) -> list[Curve]:
    """All branches, of which the one that is chosen at the start counts."""
    which, *given = ins
    branches = equation.params["branches"]
    cases = [on.closed(branch, given) for branch in branches]
    index = jnp.clip(which[0], 0, len(branches) - 1) if which[0].dtype != bool else which[0]

    def chosen(outs: tuple[Curve, ...]) -> Curve:
        return Curve(lambda k: lax.select_n(index, *(x[k] for x in outs)))

    return [chosen(outs) for outs in zip(*cases, strict=True)]


def _loop(on: Expansion, equation: Equation, ins: list[Curve]) -> list[Curve]:
    """A loop of known length, written out."""
    params = equation.params
    consts, carry = scan_counts(params)
    length, body = params["length"], params["jaxpr"]
    if length > _LONGEST_LOOP:
        raise NoSeries(f"scan of {length} rounds")
    fixed, carried, along = ins[:consts], ins[consts : consts + carry], ins[consts + carry :]
    rows = range(length)[:: -1 if params["reverse"] else 1]
    made: dict[int, list[Curve]] = {}
    for i in rows:
        here = [Curve(lambda k, x=x, i=i: x[k][i], x.moves) for x in along]
        outs = on.closed(body, [*fixed, *carried, *here])
        carried, made[i] = outs[:carry], outs[carry:]

    def stacked(column: int) -> Curve:
        return Curve(lambda k: jnp.stack([made[i][column][k] for i in range(length)]))

    return [*carried, *(stacked(c) for c in range(len(equation.outvars) - carry))]


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
_CALLS = (
    "checkpoint", "closed_call", "core_call", "custom_jvp_call", "custom_lin", "custom_vjp_call",
    "eval_jaxpr", "jit", "pjit", "remat", "remat2",
)  # fmt: skip
_RULES: dict[str, Rule] = {
    **dict.fromkeys(_LINEAR, _linear),
    **dict.fromkeys(_MOVES, _moved),
    **dict.fromkeys(_STILL, _still),
    **dict.fromkeys(_CALLS, _call),
    **dict.fromkeys(FUNCTIONS, _function),
    "custom_jvp_call": _differentiable_call,
    "custom_linear_solve": _solved,
    "cond": _choice,
    "scan": _loop,
    "convert_element_type": _converted,
    "select_n": _selected,
    "max": _chosen(jnp.greater_equal),
    "min": _chosen(jnp.less_equal),
    "clamp": _clamped,
    "reduce_max": _extreme,
    "reduce_min": _extreme,
    "abs": _entrywise(absolute),
    "rem": _remainder,
    "mul": _multiplied,
    "dot_general": _contraction,
    "div": _divided,
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
