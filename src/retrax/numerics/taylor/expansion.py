"""From a function written in JAX to the Taylor series of its results.

The function is traced, and its jaxpr evaluated on curves by the `rules` of its primitives; calls
and loops are written out here. Nothing is compiled: the recurrences become a part of what the
caller is tracing.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
from jax import lax
from jax.extend import core as jex
from jaxtyping import Array, Float

from retrax.numerics.host.control import scan_counts
from retrax.numerics.taylor.curve import Curve, integral, rate, still
from retrax.numerics.taylor.rules import RULES, Equation, NoSeries, bind

Variable = jex.Var | jex.Literal
X = TypeVar("X")

# Longer loops are not written out.
_LONGEST_LOOP = 64


def solution(field: Callable[[X], X], start: X, h: Float[Array, ""], order: int) -> list[X]:
    r"""Return the coefficients $x_0, \dots, x_p$ of $x(t + \theta h) = \sum_k x_k\theta^k$.

    $$ x_{k+1} = \frac h{k+1}\,\bigl(f(x(\cdot))\bigr)_k, \qquad \dot x = f(x), $$

    and the coefficient $k$ of $f$ along the solution follows from $x_0, \dots, x_k$. Where
    some of the numbers of the last coefficients are not used, what leads only to them drops out of
    the compiled step.

    **Raises:** `NoSeries`, with the name of a primitive of `field` that has no recurrence.
    """
    leaves, tree = jax.tree.flatten(start)

    def rates(*leaves: Array) -> list[Array]:
        return jax.tree.leaves(field(jax.tree.unflatten(tree, leaves)))

    found: list[Curve] = []

    def term(k: int, i: int) -> Array:
        return leaves[i] if k == 0 else h * (1 / k) * found[i][k - 1]

    curves = [Curve(partial(term, i=i)) for i in range(len(leaves))]
    expansion = Expansion()
    found += expansion.evaluate_closed(jax.make_jaxpr(rates)(*leaves), curves)
    for k in range(order):
        expansion.find(k)
    return [jax.tree.unflatten(tree, [x[k] for x in curves]) for k in range(order + 1)]


class Expansion:
    """Evaluates jaxprs on curves. `made` has all curves, in the order they depend on each other."""

    def __init__(self):
        self.made: list[Curve] = []

    def evaluate_closed(self, closed: jex.ClosedJaxpr, ins: Sequence[Curve]) -> list[Curve]:
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
            outs = [still(x) for x in bind(equation, [x[0] for x in ins])]
            outs[0].number = _number(name, [x.number for x in ins])
        elif name in _CALLS:
            outs = _CALLS[name](self, equation, ins)
        elif name in RULES:
            outs = RULES[name](equation, ins)
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
    """Return the number that an operation makes of numbers, of the kind that makes exponents."""
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


def _inner(equation: Equation) -> jex.ClosedJaxpr:
    params = equation.params
    inner = next(params[k] for k in ("jaxpr", "call_jaxpr", "fun_jaxpr") if k in params)
    return inner if hasattr(inner, "consts") else jex.ClosedJaxpr(inner, ())


def _call(on: Expansion, equation: Equation, ins: list[Curve]) -> list[Curve]:
    return on.evaluate_closed(_inner(equation), ins)


def _differentiable_call(on: Expansion, equation: Equation, ins: list[Curve]) -> list[Curve]:
    """Expand a call with its own derivative: inlined or, with a loop inside, by that."""
    inside = Expansion()
    try:
        outs = inside.evaluate_closed(_inner(equation), ins)
    except NoSeries:
        return _by_derivative(on, equation, ins)
    on.made += inside.made
    return outs


def _by_derivative(on: Expansion, equation: Equation, ins: list[Curve]) -> list[Curve]:
    """Expand a solution by its rate, which follows from it and its arguments."""

    def value(*arrays: Array) -> list[Array]:
        return bind(equation, arrays)

    starts = tuple(x[0] for x in ins)
    rates: list[Curve] = []
    outs = [integral(x, lambda i=i: rates[i]) for i, x in enumerate(value(*starts))]
    slope = jax.make_jaxpr(lambda a, da: jax.jvp(value, a, da))(starts, starts)
    inside = _Derivative(equation, ins, outs)
    found = inside.evaluate_closed(slope, [*ins, *map(rate, ins)])[len(outs) :]

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


def _inline_solver(on: Expansion, equation: Equation, ins: list[Curve]) -> list[Curve]:
    """Inline a linear system that has a solver of its own."""
    counts, solve = equation.params["const_lengths"], equation.params["jaxprs"].solve
    first = counts.matvec + counts.vecmat
    return on.evaluate_closed(solve, [*ins[first : first + counts.solve], *ins[sum(counts) :]])


def _choice(on: Expansion, equation: Equation, ins: list[Curve]) -> list[Curve]:
    """Expand all branches, of which the one that is chosen at the start counts."""
    which, *given = ins
    branches = equation.params["branches"]
    cases = [on.evaluate_closed(branch, given) for branch in branches]
    index = jnp.clip(which[0], 0, len(branches) - 1) if which[0].dtype != bool else which[0]

    def choose(outs: tuple[Curve, ...]) -> Curve:
        return Curve(lambda k: lax.select_n(index, *(x[k] for x in outs)))

    return [choose(outs) for outs in zip(*cases, strict=True)]


def _loop(on: Expansion, equation: Equation, ins: list[Curve]) -> list[Curve]:
    """Write out a loop of known length."""
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
        outs = on.evaluate_closed(body, [*fixed, *carried, *here])
        carried, made[i] = outs[:carry], outs[carry:]

    def stack(column: int) -> Curve:
        return Curve(lambda k: jnp.stack([made[i][column][k] for i in range(length)]))

    return [*carried, *(stack(c) for c in range(len(equation.outvars) - carry))]


_INLINED = (
    "checkpoint", "closed_call", "core_call", "custom_jvp_call", "custom_lin", "custom_vjp_call",
    "eval_jaxpr", "jit", "pjit", "remat", "remat2",
)  # fmt: skip
_CALLS: dict[str, Callable[[Expansion, Equation, list[Curve]], list[Curve]]] = {
    **dict.fromkeys(_INLINED, _call),
    "custom_jvp_call": _differentiable_call,
    "custom_linear_solve": _inline_solver,
    "cond": _choice,
    "scan": _loop,
}
