"""Which primitive of JAX is handled where: one table from its name to its rule.

A rule says what becomes of a primitive on arrays of operands, and on arrays of which some have a
kept axis or are flat. A primitive that is not in the table has no scalar form.
"""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from jax.extend.core import JaxprEqn as Equation

from retrax.engine.axes.loops import KeptArray, Operands, ProgramArray
from retrax.engine.axes.rules import KeptRules
from retrax.engine.kinds import Unscalarisable, kind_of_variable
from retrax.engine.trace import random_numbers
from retrax.engine.trace.arithmetic import Arithmetic
from retrax.engine.trace.control import ControlRules
from retrax.engine.trace.indexing import MOVES, Indexing
from retrax.engine.trace.linear_algebra import LinearAlgebra
from retrax.engine.trace.tables import depends_on_state
from retrax.numerics.inverse_error import erf_inv

if TYPE_CHECKING:
    from retrax.engine.trace.evaluator import Evaluator

# The inputs of an equation; each handler is given arrays of the sort that it takes.
Ins = list[Any]
Outs = Sequence[ProgramArray]
Handler = Callable[["Evaluator", Equation, Ins], Outs]


def take_apart(on: "Evaluator", equation: Equation, ins: Ins) -> Outs:
    """Take short arrays with a kept axis apart, and reject longer ones."""
    return on.kept.take_apart(equation, ins)


def as_plain(on: "Evaluator", equation: Equation, ins: Ins) -> Outs:
    """Make one plain buffer of each flat array."""
    return on.flat.as_plain(equation, ins)


class Rule(NamedTuple):
    """What becomes of a primitive.

    - `entries`: on arrays of operands.
    - `kept`: where some input has a kept axis.
    - `flat`: where some input is flat.
    """

    entries: Handler
    kept: Handler = take_apart
    flat: Handler = as_plain


def _reject(on: "Evaluator", equation: Equation, ins: Ins) -> Outs:
    raise Unscalarisable(f"the primitive '{equation.primitive.name}' has no scalar form")


# Of a primitive that is not in the table.
NO_RULE = Rule(_reject)


def _alike(entries: Handler) -> Rule:
    """Make a rule that does the same to every entry, whatever the axes."""
    return Rule(
        entries,
        lambda on, equation, ins: [on.kept.alike(equation, ins)],
        lambda on, equation, ins: [on.flat.alike(equation, ins)],
    )


def _entrywise(operation: str) -> Rule:
    """Make a rule of one operation for each entry."""
    return _alike(lambda on, equation, ins: [on.arithmetic.guard(operation, *ins)])


def _several(method: Callable[[Arithmetic, Equation, list[Operands]], Operands]) -> Rule:
    """Make a rule of a few operations for each entry."""
    return _alike(lambda on, equation, ins: [method(on.arithmetic, equation, ins)])


def _reduction(operation: str) -> Rule:
    """Make a rule that reduces all entries along some axes to one."""

    def entries(on: "Evaluator", equation: Equation, ins: Ins) -> Outs:
        kind = kind_of_variable(equation.outvars[0])
        return [on.arithmetic.reduce(operation, ins[0], equation.params["axes"], kind)]

    def on_kept(on: "Evaluator", equation: Equation, ins: Ins) -> Outs:
        kind = kind_of_variable(equation.outvars[0])
        axes = [int(axis) for axis in equation.params["axes"]]
        return [on.kept.reduce(operation, ins[0], axes, kind)]

    return Rule(
        entries, on_kept, lambda on, equation, ins: [on.flat.reduce(operation, equation, ins)]
    )


def _movement(name: str, method: Callable[..., Any], flat: Handler = as_plain) -> Rule:
    """Make a rule for entries that only change their places."""

    def entries(on: "Evaluator", equation: Equation, ins: Ins) -> Outs:
        out = MOVES[name](*ins, **equation.params)
        return list(out) if isinstance(out, list) else [np.asarray(out, object)]

    def on_kept(on: "Evaluator", equation: Equation, ins: Ins) -> Outs:
        out = method(on.kept, *ins, **equation.params)
        return out if isinstance(out, list) else [out]

    return Rule(entries, on_kept, flat)


def _along(method: Callable[[Arithmetic, Equation, list[Operands]], Operands]) -> Rule:
    """Make a rule for entries that depend on others along an axis."""
    return Rule(lambda on, equation, ins: [method(on.arithmetic, equation, ins)])


def _matrix(method: Callable[[LinearAlgebra, Equation, list[Operands]], list[Operands]]) -> Rule:
    """Make a rule for entries of small matrices, one after the other."""
    return Rule(lambda on, equation, ins: method(on.matrices, equation, ins))


def _control(method: Callable[[ControlRules, Equation, Ins], Outs]) -> Rule:
    """Make a rule for a loop or a choice, of arrays with kept axes too."""

    def handle(on: "Evaluator", equation: Equation, ins: Ins) -> Outs:
        return method(on.control, equation, ins)

    return Rule(handle, handle)


def _window(on: "Evaluator", equation: Equation, ins: Ins) -> Outs:
    return [on.tables.dynamic_slice(equation, ins)]


def _gather(on: "Evaluator", equation: Equation, ins: Ins) -> Outs:
    """Move entries at known places, and look up others."""
    if depends_on_state(ins[1]):
        return [on.tables.gather(equation, ins)]
    if isinstance(ins[0], KeptArray):
        return on.kept.gather(equation, ins)
    return [on.indexing.gather(equation, ins)]


def _scatter(method: Callable[[Indexing, Equation, list[Operands]], Operands] | None) -> Rule:
    """Make a rule that replaces entries: at known places by `method`, else in memory."""

    def entries(on: "Evaluator", equation: Equation, ins: Ins) -> Outs:
        if method is None or depends_on_state(ins[1]):
            return [on.scatters.scatter(equation, ins)]
        return [method(on.indexing, equation, ins)]

    def on_kept(on: "Evaluator", equation: Equation, ins: Ins) -> Outs:
        if method is None or depends_on_state(ins[1]) or not on.kept.is_short(ins):
            return [on.scatters.scatter(equation, ins)]
        return on.kept.take_apart(equation, ins)

    return Rule(entries, on_kept)


def _update(on: "Evaluator", equation: Equation, ins: Ins) -> Outs:
    """Replace a window: in small arrays by comparing places, in others in memory."""
    if on.indexing.is_searched(ins):
        return [on.indexing.dynamic_update_slice(equation, ins)]
    return [on.scatters.dynamic_update_slice(equation, ins)]


def _update_kept(on: "Evaluator", equation: Equation, ins: Ins) -> Outs:
    if on.kept.is_short(ins):
        return on.kept.take_apart(equation, ins)
    return [on.scatters.dynamic_update_slice(equation, ins)]


def _inline_solver(on: "Evaluator", equation: Equation, ins: Ins) -> Outs:
    """Inline a linear system that has a solver of its own."""
    counts, solve = equation.params["const_lengths"], equation.params["jaxprs"].solve
    first = counts.matvec + counts.vecmat
    consts, given = ins[first : first + counts.solve], ins[sum(counts) :]
    return on.inline(solve, [*consts, *given])


def _keep_named(on: "Evaluator", equation: Equation, ins: Ins) -> Outs:
    return [on.keep_named(equation, ins[0])]


def _expand(on: "Evaluator", equation: Equation, ins: Ins) -> Outs:
    return on.expand(equation, ins)


def _write_out(function: Callable[..., Any]) -> Rule:
    """Make a rule of a function of arrays that is written in operations of JAX."""

    def entries(on: "Evaluator", equation: Equation, ins: Ins) -> Outs:
        return on.write_out(function, equation, ins)

    return Rule(entries, entries)


def _pass_through(on: "Evaluator", equation: Equation, ins: Ins) -> Outs:
    return ins


# Primitives that are one operation for each entry, and the operation.
_OPERATION = {
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

RULES: dict[str, Rule] = {
    **{primitive: _entrywise(operation) for primitive, operation in _OPERATION.items()},
    "bitcast_convert_type": _several(random_numbers.reinterpret),
    "clamp": _several(Arithmetic.clamp),
    "convert_element_type": _several(Arithmetic.convert),
    "le_to": _several(Arithmetic.total_order),
    "lt_to": _several(Arithmetic.total_order),
    "integer_pow": _several(Arithmetic.integer_pow),
    "logistic": _several(Arithmetic.logistic),
    "pow": _several(Arithmetic.pow),
    "reduce_precision": _several(Arithmetic.reduce_precision),
    "round": _several(Arithmetic.round),
    "rsqrt": _several(Arithmetic.rsqrt),
    "select_n": _several(Arithmetic.select),
    "square": _several(Arithmetic.square),
    "erf_inv": _write_out(erf_inv),
    # Random numbers.
    "random_clone": Rule(_pass_through, _pass_through, _pass_through),
    "random_bits": _along(random_numbers.bits),
    "random_fold_in": _along(random_numbers.fold_in),
    "random_seed": _along(random_numbers.seed),
    "random_split": _along(random_numbers.split),
    "random_unwrap": _along(random_numbers.unwrap),
    "random_wrap": _along(random_numbers.wrap),
    # All entries along some axes as one.
    "reduce_and": _reduction("and"),
    "reduce_max": _reduction("max"),
    "reduce_min": _reduction("min"),
    "reduce_or": _reduction("or"),
    "reduce_prod": _reduction("mul"),
    "reduce_sum": _reduction("add"),
    "reduce_xor": _reduction("xor"),
    "dot_general": Rule(
        lambda on, equation, ins: [on.arithmetic.dot_general(equation, ins)],
        lambda on, equation, ins: [on.kept.dot_general(equation, ins)],
    ),
    # Along an axis.
    "argmax": _along(Arithmetic.argmax),
    "argmin": _along(Arithmetic.argmin),
    "cummax": _along(Arithmetic.cumulative),
    "cummin": _along(Arithmetic.cumulative),
    "cumprod": _along(Arithmetic.cumulative),
    "cumsum": _along(Arithmetic.cumulative),
    "iota": _along(Arithmetic.iota),
    # Entries that change their places.
    "broadcast_in_dim": _movement("broadcast_in_dim", KeptRules.broadcast_in_dim),
    "concatenate": _movement("concatenate", KeptRules.concatenate),
    "expand_dims": _movement("expand_dims", KeptRules.expand_dims),
    "pad": _movement("pad", KeptRules.pad),
    "reshape": _movement(
        "reshape",
        KeptRules.reshape,
        lambda on, equation, ins: on.flat.reshape(equation, ins),
    ),
    "rev": _movement("rev", KeptRules.rev),
    "slice": _movement("slice", KeptRules.slice),
    "split": _movement("split", KeptRules.split),
    "squeeze": _movement("squeeze", KeptRules.squeeze),
    "stack": _movement("stack", KeptRules.stack),
    "tile": Rule(lambda on, equation, ins: [np.tile(ins[0], equation.params["reps"])]),
    "transpose": _movement("transpose", KeptRules.transpose),
    "unstack": _movement("unstack", KeptRules.unstack),
    # Entries by their index.
    "dynamic_slice": Rule(_window, _window),
    "dynamic_update_slice": Rule(_update, _update_kept),
    "gather": Rule(_gather, _gather),
    "scatter": _scatter(Indexing.scatter),
    "scatter-add": _scatter(Indexing.scatter_add),
    "scatter-max": _scatter(None),
    "scatter-min": _scatter(None),
    "scatter-mul": _scatter(None),
    # Small matrices.
    "cholesky": _matrix(LinearAlgebra.cholesky),
    "custom_linear_solve": Rule(_inline_solver, _inline_solver),
    "lu": _matrix(LinearAlgebra.lu),
    "sort": _matrix(LinearAlgebra.sort),
    "triangular_solve": _matrix(LinearAlgebra.triangular_solve),
    # Loops and choices.
    "cond": _control(ControlRules.choice),
    "scan": _control(ControlRules.scan),
    "while": _control(ControlRules.while_loop),
    # What asks for nothing, or for a kept axis.
    "copy": Rule(_pass_through, _pass_through, _pass_through),
    "copy_p": Rule(_pass_through, _pass_through, _pass_through),
    "name": Rule(_keep_named, _keep_named),
    "optimization_barrier": Rule(_pass_through, _pass_through, _pass_through),
    "stop_gradient": Rule(_pass_through, _pass_through, _pass_through),
    # A call of JAX 0.11 with derivative rules of its own.
    "call_hi_primitive": Rule(_expand, _expand),
}
# What JAX itself evaluates where all is known: quicker, and with its own last digits.
BY_JAX = {"erf_inv", *(name for name in RULES if name.startswith("random_"))}
# Calls, which are inlined.
CALLS = {
    "checkpoint", "closed_call", "core_call", "custom_jvp_call", "custom_lin", "custom_vjp_call",
    "eval_jaxpr", "jit", "pjit", "remat", "remat2",
}  # fmt: skip
