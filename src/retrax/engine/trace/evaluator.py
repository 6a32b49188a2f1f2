"""Evaluate jaxprs on arrays of operands: moving entries is free, arithmetic is emitted."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jax.extend import core as jex

from retrax.engine.axes.flat import FlatRules
from retrax.engine.axes.loops import AxisLoops, FlatArray, KeptArray, Operands, ProgramArray
from retrax.engine.axes.rules import KeptRules
from retrax.engine.builder import Builder
from retrax.engine.kinds import (
    Unscalarisable,
    Variable,
    dtype_of,
    is_key,
    kind_of_dtype,
    kind_of_variable,
)
from retrax.engine.program import Value
from retrax.engine.trace.arithmetic import Arithmetic
from retrax.engine.trace.control import ControlRules
from retrax.engine.trace.indexing import Indexing
from retrax.engine.trace.linear_algebra import LinearAlgebra
from retrax.engine.trace.primitives import BY_JAX, CALLS, NO_RULE, RULES
from retrax.engine.trace.scatters import Scatters
from retrax.engine.trace.tables import Tables
from retrax.errors import BadInput
from retrax.numerics.bits import words_of
from retrax.numerics.host.program import pack_keys, unpack_keys
from retrax.numerics.jax_hints import KEPT_AXIS
from retrax.numerics.known import LEAKED

# Arrays larger than this are not small: unrolling them would make a program of millions of lines.
LARGEST = 4096
# Values of a program that is worth finishing: LLVM would take an hour for it.
MOST_VALUES = 100_000
# The shortest axis that is kept where it is asked for with `keep_axis`.
_SHORTEST_KEPT = 4


class Opaque:
    """A constant array without numbers: keys of random numbers other than Threefry's."""

    def __init__(self, array: jax.Array):
        self.array, self.shape = array, array.shape


# What the evaluator knows of a variable.
Known = ProgramArray | Opaque


def _constant(x: Any, dtype: np.dtype | None = None) -> Operands | Opaque:
    """Turn a constant array into one of operands."""
    if isinstance(x, jax.Array) and jnp.issubdtype(x.dtype, jax.dtypes.extended):
        if isinstance(x, Tracer):
            raise BadInput(LEAKED)
        if not is_key(x.dtype):
            return Opaque(x)
        with jax.ensure_compile_time_eval():
            x = pack_keys(words_of(x))
    if isinstance(x, Tracer):
        raise BadInput(LEAKED)
    x = np.asarray(x, dtype)
    if x.size > LARGEST:
        raise Unscalarisable(f"it has a constant of {x.size} numbers")
    if kind_of_dtype(x.dtype) in ("float", "int", "bool"):
        return x.astype(object)
    # Numbers of NumPy's know their type.
    out = np.empty(x.shape, object)
    for index in np.ndindex(*x.shape):
        out[index] = x[index]
    return out


def _array(x: Any, dtype: np.dtype) -> Any:
    """Turn operands that are all constants into an array."""
    if isinstance(x, Opaque):
        return x.array
    if is_key(dtype):
        words: Any = unpack_keys(x.astype(np.uint64))
        return jax.random.wrap_key_data(words, impl="threefry2x32")
    return np.array(x, dtype)


def is_constant(x: Known) -> bool:
    """Return whether all entries are known while the program is built."""
    if isinstance(x, KeptArray | FlatArray):
        return False
    return isinstance(x, Opaque) or not any(isinstance(entry, Value) for entry in x.ravel())


class Evaluator:
    """Evaluates jaxprs on object arrays of operands, and on arrays with a kept axis."""

    def __init__(self, build: Builder, unroll: bool):
        self.build, self.unroll = build, unroll
        self.loops = AxisLoops(build)
        self.arithmetic = Arithmetic(build)
        self.indexing = Indexing(self.arithmetic)
        self.kept = KeptRules(build, self.loops, self.arithmetic, self.equation)
        self.flat = FlatRules(self.kept)
        self.matrices = LinearAlgebra(self.arithmetic)
        self.tables = Tables(self.arithmetic, self.kept)
        self.scatters = Scatters(self.arithmetic, self.kept)
        self.control = ControlRules(
            build, self.loops, self.arithmetic, self.kept, self.evaluate_closed
        )

    def evaluate_closed(
        self, closed: jex.ClosedJaxpr, arguments: Sequence[Known]
    ) -> list[Operands | KeptArray]:
        """Evaluate a closed jaxpr; return kept arrays and operands, none of them flat."""
        return [self.loops.plain(x) for x in self.inline(closed, arguments)]

    def inline(self, closed: jex.ClosedJaxpr, arguments: Sequence[Known]) -> list[ProgramArray]:
        return self.jaxpr(closed.jaxpr, [_constant(c) for c in closed.consts], arguments)

    def jaxpr(
        self, jaxpr: jex.Jaxpr, consts: Sequence[Known], arguments: Sequence[Known]
    ) -> list[Any]:
        known: dict[Variable, Known] = dict(zip(jaxpr.constvars, consts, strict=True))
        known.update(zip(jaxpr.invars, arguments, strict=True))

        def read(v: Variable) -> Known:
            return _constant(v.val, dtype_of(v)) if isinstance(v, jex.Literal) else known[v]

        for equation in jaxpr.eqns:
            if self.build.count > MOST_VALUES:
                raise Unscalarisable(
                    f"it has more than {MOST_VALUES} values, which take an hour to compile"
                )
            outs = self.equation(equation, [read(v) for v in equation.invars])
            known.update(zip(equation.outvars, outs, strict=True))
        return [read(v) for v in jaxpr.outvars]

    def equation(self, equation: jex.JaxprEqn, ins: Sequence[Known]) -> list[Any]:
        """Evaluate an equation by the rule of its primitive."""
        name, given = equation.primitive.name, list(ins)
        if self.build.origins is not None:
            self.build.origins.enter(equation)
        if name in CALLS:
            return self.call(equation.params, given)
        variables = (*equation.invars, *equation.outvars)
        rule = RULES.get(name, NO_RULE)
        typed = all(kind_of_dtype(dtype_of(v)) for v in variables)
        if rule is NO_RULE or name in BY_JAX or not typed:
            if all(is_constant(x) for x in given):
                return self.by_jax(equation, given)
            for v in variables:
                kind_of_variable(v)
        if any(isinstance(x, FlatArray) for x in given):
            return list(rule.flat(self, equation, given))
        if any(isinstance(x, KeptArray) for x in given):
            return list(rule.kept(self, equation, given))
        return list(rule.entries(self, equation, given))

    def by_jax(self, equation: jex.JaxprEqn, ins: Sequence[Known]) -> list[Known]:
        """Have JAX itself evaluate an equation between constants."""
        name = equation.primitive.name
        if equation.effects or "callback" in name:
            raise Unscalarisable(f"the primitive '{name}' has no scalar form")
        with jax.ensure_compile_time_eval():
            given = [_array(x, dtype_of(v)) for x, v in zip(ins, equation.invars, strict=True)]
            outs: Any = equation.primitive.bind(*given, **equation.params)
        return [_constant(x) for x in (outs if equation.primitive.multiple_results else [outs])]

    def call(self, params: Mapping[str, Any], ins: Sequence[Known]) -> list[Any]:
        inner = next(params[k] for k in ("jaxpr", "call_jaxpr", "fun_jaxpr") if k in params)
        if hasattr(inner, "consts"):
            return self.inline(inner, ins)
        return self.jaxpr(inner, [], ins)

    def keep_named(self, equation: jex.JaxprEqn, x: Operands | KeptArray) -> Operands | KeptArray:
        """Keep an axis if its name asks for it; other names do nothing."""
        asked = equation.params["name"] == KEPT_AXIS and not self.unroll
        if isinstance(x, KeptArray) or not asked or self.loops.inside or len(x) < _SHORTEST_KEPT:
            return x
        return self.loops.keep(x, 0)

    def expand(self, equation: jex.JaxprEqn, ins: Sequence[Known]) -> list[ProgramArray]:
        """Expand a call of JAX 0.11 with derivative rules of its own."""
        called = equation.params["_prim"]

        def results(*arguments: Any) -> list[jax.Array]:
            return jax.tree.leaves(called.expand(*jax.tree.unflatten(called.in_tree, arguments)))

        return self.write_out(results, equation, ins)

    def write_out(
        self, function: Callable[..., Any], equation: jex.JaxprEqn, ins: Sequence[Known]
    ) -> list[ProgramArray]:
        """Evaluate a function of JAX's in place of an equation."""
        avals: list[Any] = [v.aval for v in equation.invars]
        shapes = [jax.ShapeDtypeStruct(aval.shape, aval.dtype) for aval in avals]
        return [*self.evaluate_closed(jax.make_jaxpr(function)(*shapes), ins)]
