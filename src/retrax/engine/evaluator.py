"""Jaxprs evaluated on arrays of operands: moving entries is free, arithmetic is emitted."""

import math
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jax.extend import core as jex

from retrax.engine.builder import Builder
from retrax.engine.control import ControlRules
from retrax.engine.entry_rules import EntryRules, fill_value, kind_of_aval
from retrax.engine.flat import dispatch_flat
from retrax.engine.kept import Flat, Kept, Loops, Operands, Unscalarisable
from retrax.engine.kept_rules import dispatch
from retrax.engine.kinds import Kind, bits, constant, kind_of_dtype
from retrax.engine.program import Operand, Value
from retrax.engine.structural import RULES as STRUCTURAL
from retrax.errors import BadInput
from retrax.numerics.jax_hints import KEPT_AXIS
from retrax.numerics.known import LEAKED

# Arrays larger than this are not small: unrolling them would make a program of millions of lines.
LARGEST = 4096
# Values of a program that is worth finishing: LLVM would take an hour for it.
MOST_VALUES = 100_000
# The shortest axis that is kept where it is asked for with `keep_axis`.
_SHORTEST_KEPT = 4


class Opaque:
    """A constant that is no array of numbers: keys of random numbers."""

    def __init__(self, array: Any):
        self.array, self.shape = array, array.shape


def _constant(x: Any, dtype: Any = None) -> Any:
    """A constant array as one of operands."""
    if isinstance(x, jax.Array) and jnp.issubdtype(x.dtype, jax.dtypes.extended):
        return Opaque(x)
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


def is_constant(x: Any) -> bool:
    """Whether all entries are known while the program is built."""
    if isinstance(x, Kept | Flat):
        return False
    return isinstance(x, Opaque) or not any(isinstance(entry, Value) for entry in x.ravel())


# Primitives that act entry by entry, and the operation each becomes.
_ENTRYWISE = {
    "add": "add", "add_any": "add", "sub": "sub", "mul": "mul", "div": "div", "rem": "rem",
    "neg": "neg", "max": "max", "min": "min", "abs": "abs", "sign": "sign", "floor": "floor",
    "ceil": "ceil", "sqrt": "sqrt", "cbrt": "cbrt", "sin": "sin", "cos": "cos", "tan": "tan",
    "sinh": "sinh", "cosh": "cosh", "tanh": "tanh", "asin": "arcsin", "acos": "arccos",
    "atan": "arctan", "atan2": "arctan2", "asinh": "arcsinh", "acosh": "arccosh",
    "atanh": "arctanh", "exp": "exp", "exp2": "exp2", "expm1": "expm1", "log": "log",
    "log1p": "log1p", "erf": "erf", "erfc": "erfc", "nextafter": "nextafter", "lt": "lt",
    "le": "le", "gt": "gt", "ge": "ge", "eq": "eq", "ne": "ne", "and": "and", "or": "or",
    "xor": "xor", "not": "not", "shift_left": "shl", "shift_right_logical": "shr",
    "shift_right_arithmetic": "sar", "population_count": "popcount", "clz": "clz",
    "is_finite": "isfinite",
}  # fmt: skip
_REDUCTIONS = {
    "reduce_sum": "add", "reduce_prod": "mul", "reduce_max": "max", "reduce_min": "min",
    "reduce_and": "and", "reduce_or": "or", "reduce_xor": "xor",
}  # fmt: skip
_SAME = {"stop_gradient", "copy", "copy_p", "optimization_barrier"}
_CALLS = {"jit", "pjit", "closed_call", "core_call", "custom_jvp_call", "custom_vjp_call", "remat2"}
_CONTROL = {"while", "scan", "cond", "call_hi_primitive", "name"}
_CALLS |= {"checkpoint", "custom_lin", "remat", "eval_jaxpr"}


class Evaluator(ControlRules, EntryRules):
    """Evaluates jaxprs on object arrays of operands, and on arrays with a kept axis."""

    entrywise_names, reductions, same_names = _ENTRYWISE, _REDUCTIONS, _SAME

    def __init__(self, build: Builder, unroll: bool):
        self.build = build
        self.unroll = unroll
        self.emit = build.emit
        self.loops = Loops(build)

    def closed(self, closed: Any, arguments: Sequence[Operands]) -> list[Operands]:
        """The results as rows and operands, none of them flat."""
        return [self.plain(x) for x in self.inlined(closed, arguments)]

    def inlined(self, closed: Any, arguments: Sequence[Operands]) -> list[Operands]:
        return self.jaxpr(closed.jaxpr, [_constant(c) for c in closed.consts], arguments)

    def plain(self, x: Any) -> Any:
        return self.loops.plain(x) if isinstance(x, Flat) else x

    def jaxpr(self, jaxpr: Any, consts: Sequence, arguments: Sequence) -> list[Operands]:
        known: dict[Any, Operands] = dict(zip(jaxpr.constvars, consts, strict=True))
        known.update(zip(jaxpr.invars, arguments, strict=True))

        def read(v):
            if not isinstance(v, jex.Literal):
                return known[v]
            aval: Any = v.aval
            return _constant(v.val, aval.dtype)

        for equation in jaxpr.eqns:
            if self.build.count > MOST_VALUES:
                raise Unscalarisable(
                    f"it has more than {MOST_VALUES} values, which take an hour to compile"
                )
            outs = self.equation(equation, [read(v) for v in equation.invars])
            known.update(zip(equation.outvars, outs, strict=True))
        return [read(v) for v in jaxpr.outvars]

    def equation(self, equation: Any, ins: list[Operands]) -> list[Operands]:
        name, params = equation.primitive.name, equation.params
        if name in _CALLS:
            return self.call(params, ins)
        typed = all(kind_of_dtype(v.aval.dtype) for v in (*equation.invars, *equation.outvars))
        if not typed or not self.has_rule(name):
            if all(is_constant(x) for x in ins):
                return self.by_jax(equation, ins)
            for v in (*equation.invars, *equation.outvars):
                kind_of_aval(v.aval)
        if any(isinstance(x, Flat) for x in ins):
            return dispatch_flat(self, equation, ins)
        if name not in _CONTROL and any(isinstance(x, Kept) for x in ins):
            return dispatch(self, equation, ins)
        if name in _ENTRYWISE:
            return [self.arithmetic(_ENTRYWISE[name], *ins)]
        if name in STRUCTURAL:
            out = STRUCTURAL[name](*ins, **params)
            return list(out) if equation.primitive.multiple_results else [np.asarray(out, object)]
        if name in _REDUCTIONS:
            kind = kind_of_aval(equation.outvars[0].aval)
            return [self.reduce(_REDUCTIONS[name], ins[0], params["axes"], kind)]
        if name in _SAME:
            return ins
        rule = getattr(self, _rule(name), None)
        if rule is None:
            raise Unscalarisable(f"the primitive '{name}' has no scalar form")
        outs = rule(equation, ins)
        return outs if equation.primitive.multiple_results else [outs]

    def has_rule(self, name: str) -> bool:
        known = (_ENTRYWISE, STRUCTURAL, _REDUCTIONS, _SAME, _CONTROL)
        return any(name in names for names in known) or hasattr(self, _rule(name))

    def by_jax(self, equation: Any, ins: list) -> list:
        """The results of an equation between constants, found by JAX itself."""
        name = equation.primitive.name
        if equation.effects or "callback" in name:
            raise Unscalarisable(f"the primitive '{name}' has no scalar form")
        with jax.ensure_compile_time_eval():
            given = [
                x.array if isinstance(x, Opaque) else np.array(x, v.aval.dtype)
                for x, v in zip(ins, equation.invars, strict=True)
            ]
            outs = equation.primitive.bind(*given, **equation.params)
        return [_constant(x) for x in (outs if equation.primitive.multiple_results else [outs])]

    def arithmetic(self, operation: str, *ins: Operands) -> Operands:
        """Entry by entry. A product with zero is NaN where the other factor is infinite.

        Zeros among other numbers are those of matrices and directions, and drop out.
        """
        zero = operation in ("mul", "div") and any(
            x.size and all(e == 0 and isinstance(e, float) for e in x.ravel())
            for x in (ins if operation == "mul" else ins[:1])
        )
        if not zero:
            return self.entrywise(operation, *ins)
        pairs: list[Any] = list(np.broadcast_arrays(*ins))
        out = np.empty(pairs[0].shape, object)
        for index in np.ndindex(*out.shape):
            x, y = (a[index] for a in pairs)
            singular = self.build.is_singular(x) or self.build.is_singular(y)
            if operation == "div":
                singular = isinstance(y, Value)
            out[index] = (self.build.emit_as_is if singular else self.emit)(operation, x, y)
        return out

    def call(self, params: dict, ins: list[Operands]) -> list[Operands]:
        inner = next(params[k] for k in ("jaxpr", "call_jaxpr", "fun_jaxpr") if k in params)
        if hasattr(inner, "consts"):
            return self.inlined(inner, ins)
        return self.jaxpr(inner, [], ins)

    def rule_name(self, equation, ins):
        """A name does nothing, except one: that of an axis that is to be kept."""
        (x,) = ins
        asked = equation.params["name"] == KEPT_AXIS and not self.unroll
        if isinstance(x, Kept) or not asked or self.loops.inside or len(x) < _SHORTEST_KEPT:
            return x
        return self.loops.keep(x, 0)

    def rule_call_hi_primitive(self, equation, ins):
        """A call of JAX 0.11 with derivative rules of its own: what it expands to."""
        called = equation.params["_prim"]

        def expanded(*arguments):
            return jax.tree.leaves(called.expand(*jax.tree.unflatten(called.in_tree, arguments)))

        shapes = [jax.ShapeDtypeStruct(v.aval.shape, v.aval.dtype) for v in equation.invars]
        return self.closed(jax.make_jaxpr(expanded)(*shapes), ins)

    def rule_gather(self, equation, ins):
        """Indexing with constant indices: which entry goes where is found on a numbered array."""
        operand, indices = ins
        if any(isinstance(x, Value) for x in indices.ravel()):
            raise Unscalarisable("'gather' has indices that depend on the state")
        numbered = np.arange(operand.size).reshape(operand.shape)
        params = equation.params
        filled = params["mode"] == jax.lax.GatherScatterMode.FILL_OR_DROP
        with jax.ensure_compile_time_eval():
            constant = indices.astype(equation.invars[1].aval.dtype)
            how = {**params, "fill_value": -1} if filled else params
            places = np.asarray(equation.primitive.bind(numbered, constant, **how))
        if np.any((places < -filled) | (places >= operand.size)):
            raise Unscalarisable("'gather' has indices that are out of bounds")
        beyond = np.empty(1, object)
        beyond[0] = fill_value(kind_of_aval(equation.outvars[0].aval), params["fill_value"])
        return np.asarray(np.concatenate([operand.ravel(), beyond])[places], object)

    def rule_scatter(self, equation, ins):
        """Entries replaced at constant indices, found on numbered arrays as for `gather`."""
        operand, indices, updates = ins
        old = np.arange(operand.size).reshape(operand.shape)
        new = np.arange(operand.size, operand.size + updates.size).reshape(updates.shape)
        places = self.scattered(equation, old, indices, new).astype(int)
        return np.asarray(np.concatenate([operand.ravel(), updates.ravel()])[places], object)

    def rule_scatter_add(self, equation, ins):
        """Entries added at constant indices; where each goes is found by adding a single one."""
        operand, indices, updates = ins
        out: Any = np.array(operand, object)
        nothing, one = np.zeros(operand.shape, int), np.zeros(updates.shape, int)
        for place in np.ndindex(*updates.shape):
            one[place] = 1
            for target in np.argwhere(self.scattered(equation, nothing, indices, one)):
                index = tuple(target)
                out[index] = self.emit("add", out[index], updates[place])
            one[place] = 0
        return out

    def scattered(self, equation, old: np.ndarray, indices: Operands, new: np.ndarray):
        if any(isinstance(x, Value) for x in indices.ravel()):
            name = equation.primitive.name
            raise Unscalarisable(f"'{name}' has indices that depend on the state")
        if bits(kind_of_aval(equation.invars[0].aval)) < 16:
            # Too small for the numbers of all entries.
            dtype = equation.invars[0].aval.dtype
            raise Unscalarisable(f"it replaces entries of an array of type {dtype}")
        with jax.ensure_compile_time_eval():
            # In the types of the equation, which hold these whole numbers exactly.
            given = (old, indices, new)
            typed = [x.astype(v.aval.dtype) for x, v in zip(given, equation.invars, strict=True)]
            return np.asarray(equation.primitive.bind(*typed, **equation.params))

    def rule_dot_general(self, equation, ins):
        kind = kind_of_aval(equation.outvars[0].aval)
        a, b = (self.entrywise(kind, x) for x in ins)
        return self.dot_general(a, b, equation.params["dimension_numbers"], kind)

    def dot_general(self, a: Operands, b: Operands, dimension_numbers, kind: Kind) -> Operands:
        (a_sum, b_sum), (a_batch, b_batch) = dimension_numbers
        a_free = [i for i in range(a.ndim) if i not in (*a_sum, *a_batch)]
        b_free = [i for i in range(b.ndim) if i not in (*b_sum, *b_batch)]
        a, b = a.transpose(*a_batch, *a_free, *a_sum), b.transpose(*b_batch, *b_free, *b_sum)
        batch, left = a.shape[: len(a_batch)], a.shape[len(a_batch) : a.ndim - len(a_sum)]
        right, length = (
            b.shape[len(b_batch) : b.ndim - len(b_sum)],
            math.prod(a.shape[-len(a_sum) :] if a_sum else ()),
        )
        rows = a.reshape((*batch, math.prod(left), length))
        columns = b.reshape((*batch, math.prod(right), length))
        out = np.empty((*batch, rows.shape[-2], columns.shape[-2]), object)
        for *k, i, j in np.ndindex(*out.shape):
            total: Operand = constant(0, kind)
            for x, y in zip(rows[(*k, i)], columns[(*k, j)], strict=True):
                total = self.emit("add", total, self.emit("mul", x, y))
            out[(*k, i, j)] = total
        return out.reshape((*batch, *left, *right))


def _rule(name: str) -> str:
    """The method that has the rule for a primitive."""
    return f"rule_{name.replace('-', '_')}"
