"""The operations and the numbers of a function, for one kind of arguments, as JAX traces them.

A capture is a jaxpr in two parts: its structure, by which two of them compare, and the float64
numbers in it, which can be replaced where it is run.
"""

import itertools
from collections.abc import Callable, Hashable, Mapping, Sequence
from contextlib import nullcontext
from copy import deepcopy
from functools import partial
from types import FunctionType
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.core import Tracer
from jax.experimental.xla_metadata import set_xla_metadata
from jax.extend import core

from retrax.numerics.bits import Same, brief_content, content, words_of
from retrax.numerics.reads import is_of_library

_CALLS = frozenset({"jit", "pjit", "closed_call", "core_call"})
# Operations that call functions of Python, which are often made anew wherever they are called.
_CALLBACKS = frozenset(
    {"pure_callback", "io_callback", "debug_callback", "debug_print", "custom_vmap_call"}
)
_traces = itertools.count()


class Call(NamedTuple):
    """The kind of arguments that a function is given: how they are nested, shapes and types."""

    tree: Any
    avals: tuple[tuple[tuple[int, ...], Any], ...]

    @classmethod
    def of(cls, leaves: Sequence[Any], tree: Any) -> "Call":
        """Return the kind of these arguments."""
        return cls(tree, tuple([(a.shape, a.dtype) for a in map(jax.typeof, leaves)]))

    @property
    def examples(self) -> list[jax.ShapeDtypeStruct]:
        """Arguments of this kind, without numbers."""
        return [jax.ShapeDtypeStruct(*aval) for aval in self.avals]


class Body(NamedTuple):
    """A jaxpr taken apart: its operands are variables, numbers by their place, or other values.

    `inside` lists of each operation the bodies of its loops and branches, by parameter.
    """

    inputs: list[Any]
    constants: list[tuple[Any, Any]]
    operations: list[tuple[Any, list[Any], dict[str, Any]]]
    outputs: list[Any]
    numbers: frozenset[int]


class _Number(NamedTuple):
    place: int


class _Value(NamedTuple):
    value: Any


class Capture(NamedTuple):
    """The operations of a function for one kind of arguments.

    `structure` is everything about them but `numbers`, the float64 literals and constants; these
    are inputs of `body`. Numbers inside of rules of derivatives belong to the structure.
    """

    structure: Hashable
    numbers: list[Any]
    body: Body
    results: Any
    holds_traced: bool
    has_loose_rules: bool

    def contents(self) -> tuple[Hashable, ...]:
        """Return the bits of all numbers; one that JAX is tracing has none."""
        return tuple([Same(x) if isinstance(x, Tracer) else content(x) for x in self.numbers])

    def differs(self, again: "Capture") -> bool:
        """Tell whether two traces at one moment differ.

        Rules and callbacks that cannot be compared do not.
        """
        if self.structure == again.structure:
            return self.contents() != again.contents()
        return not self.has_loose_rules

    def __call__(self, leaves: Sequence[Any], others: Mapping[int, Any] | None = None) -> Any:
        """Return what the function returns, with other numbers in some places."""
        run = _Run(self.numbers, others or {})
        return jax.tree.unflatten(self.results, run.body(self.body, leaves))


def capture(function: Callable[..., Any], call: Call, apart: bool) -> Capture:
    """Trace a function. JAX must take nothing from its memory of functions inside it: `apart`.

    JAX remembers what became of functions that were handed to `lax.scan` or `jax.jit`, by which
    functions they are. What it remembers is kept apart by the attributes of operations.
    """

    def flat(*leaves: Any) -> Any:
        args, keywords = jax.tree.unflatten(call.tree, leaves)
        return function(*args, **keywords)

    with set_xla_metadata(retrax_look=str(next(_traces))) if apart else nullcontext():
        closed, shapes = jax.make_jaxpr(flat, return_shape=True)(*call.examples)
        closed = _own(closed)
        reader = _Reader()
        structure, body = reader.body(closed.jaxpr, closed.consts, lifts=True)
    nesting = jax.tree.structure(shapes)
    rest = nesting, reader.holds_traced, reader.has_loose_rules
    return Capture((structure, nesting), reader.numbers, body, *rest)


def _own(x: Any) -> Any:
    """Return a jaxpr, or what holds some, with copies of the arrays that a user may write into."""
    if isinstance(x, np.ndarray):
        return x.copy()
    if type(x).__name__ == "TypedNdArray":  # in JAX before 0.10 it wraps an array
        return deepcopy(x)
    if isinstance(x, core.ClosedJaxpr):
        jaxpr, consts = _own(x.jaxpr), [_own(one) for one in x.consts]
        same = jaxpr is x.jaxpr and all(a is b for a, b in zip(consts, x.consts, strict=True))
        return x if same else x.replace(jaxpr=jaxpr, consts=consts)
    if isinstance(x, core.Jaxpr):
        eqns, outvars = [_owned_operation(eqn) for eqn in x.eqns], list(map(_own, x.outvars))
        pairs = zip((*eqns, *outvars), (*x.eqns, *x.outvars), strict=True)
        return x if all(a is b for a, b in pairs) else x.replace(eqns=eqns, outvars=outvars)
    if isinstance(x, core.Literal):
        value = _own(x.val)
        return x if value is x.val else core.Literal(value, x.aval)
    if type(x) in (tuple, list):
        parts = type(x)(map(_own, x))
        return x if all(a is b for a, b in zip(parts, x, strict=True)) else parts
    return x


def _owned_operation(eqn: Any) -> Any:
    params = {key: _own(x) for key, x in eqn.params.items()}
    invars = [_own(v) for v in eqn.invars]
    same = all(params[key] is x for key, x in eqn.params.items())
    same = same and all(a is b for a, b in zip(invars, eqn.invars, strict=True))
    return eqn if same else eqn.replace(params=params, invars=invars)


class _Reader:
    """Takes a jaxpr apart into its structure and its numbers."""

    def __init__(self) -> None:
        self.numbers: list[Any] = []
        self.holds_traced = self.has_loose_rules = False

    def body(self, jaxpr: Any, consts: Sequence[Any], lifts: bool, rules: int = 2) -> tuple:
        """Return the structure of a jaxpr and its body; with `lifts` its numbers are taken out."""
        names = {v: k for k, v in enumerate((*jaxpr.invars, *jaxpr.constvars))}
        first = len(self.numbers)
        held = [self._value(x, lifts) for x in consts]
        inputs = tuple([str(v.aval) for v in jaxpr.invars])
        parts: list[Hashable] = [inputs, tuple([key for key, _ in held])]
        operations = []
        for eqn in jaxpr.eqns:
            # Whether an exponent is whole decides on the series of a power.
            kept = 1 if eqn.primitive.name == "pow" else None
            ins = [self._operand(v, names, lifts and k != kept) for k, v in enumerate(eqn.invars)]
            params, inside = self._params(eqn, lifts, rules)
            names |= {v: len(names) + k for k, v in enumerate(eqn.outvars)}
            outs = tuple([str(v.aval) for v in eqn.outvars])
            parts.append((eqn.primitive.name, tuple([key for key, _ in ins]), params, outs))
            operations.append((eqn, [x for _, x in ins], inside))
        ends = [self._operand(v, names, lifts) for v in jaxpr.outvars]
        parts.append(tuple([key for key, _ in ends]))
        constants = list(zip(jaxpr.constvars, [x for _, x in held], strict=True))
        own = frozenset(range(first, len(self.numbers)))
        outputs = [x for _, x in ends]
        return tuple(parts), Body(jaxpr.invars, constants, operations, outputs, own)

    def _operand(self, v: Any, names: dict[Any, int], lifts: bool) -> tuple[Hashable, Any]:
        if isinstance(v, core.Literal):
            return self._value(v.val, lifts)
        return names[v], v

    def _value(self, x: Any, lifts: bool) -> tuple[Hashable, Any]:
        if isinstance(x, Tracer):
            dtype = jax.typeof(x).dtype
        else:
            dtype = getattr(x, "dtype", None) or np.asarray(x).dtype
        if dtype == np.float64 and lifts:
            self.numbers.append(x)
            return ("number", np.shape(x)), _Number(len(self.numbers) - 1)
        if isinstance(x, Tracer):
            self.holds_traced = True
            return Same(x), _Value(x)
        if jnp.issubdtype(dtype, jax.dtypes.prng_key):
            return (str(dtype), brief_content(words_of(x))), _Value(x)
        return (str(dtype), np.shape(x), brief_content(x)), _Value(x)

    def _params(self, eqn: Any, lifts: bool, rules: int) -> tuple[Hashable, dict[str, Any]]:
        """Return the parameters of an operation as a key, and the bodies that can be run here."""
        name, inside = eqn.primitive.name, {}
        self.has_loose_rules |= name in _CALLBACKS
        lifts = lifts and (name in _CALLS or name in _LOOPS)
        found: list[Hashable] = []
        for key, x in sorted(eqn.params.items()):
            if name == "custom_jvp_call" and key == "jvp_jaxpr_fun":
                found.append(self._rule(eqn, x, rules))
            elif name == "custom_vjp_call" and key in ("fwd_jaxpr_thunk", "bwd", "out_trees"):
                found.append(self._backward_rule(eqn.params["bwd"]))
            else:
                part, bodies = self._param(x, lifts, rules)
                found.append((key, part))
                if lifts and bodies is not None:
                    inside[key] = bodies
        return tuple(found), inside

    def _param(self, x: Any, lifts: bool, rules: int) -> tuple[Hashable, Any]:
        if isinstance(x, core.ClosedJaxpr):
            return self.body(x.jaxpr, x.consts, lifts, rules)
        if isinstance(x, core.Jaxpr):
            return self.body(x, (), False, rules)[0], None
        if isinstance(x, tuple | list):
            parts = [self._param(one, lifts, rules) for one in x]
            bodies = [body for _, body in parts]
            return (type(x), *[part for part, _ in parts]), bodies if all(bodies) else None
        if isinstance(x, dict):
            return tuple([(k, self._param(v, False, rules)[0]) for k, v in x.items()]), None
        if isinstance(x, np.ndarray | jax.Array):
            return self._value(x, False)[0], None
        try:
            hash(x)
        except TypeError:
            return Same(x), None
        return (type(x), x), None

    def _rule(self, eqn: Any, rule: Any, rules: int) -> Hashable:
        """Return the structure of a rule for derivatives, and that of the rule of this one."""
        if not rules:
            return None
        zeros = [False] * (len(eqn.invars) - eqn.params["num_consts"])
        try:
            jaxpr, consts, *_ = rule.call_wrapped(*zeros)
        except Exception:  # of `equinox`, where no derivative is allowed: it may never be asked for
            self.has_loose_rules = True
            return Same(object())
        return self.body(jaxpr, consts, False, rules - 1)[0]

    def _backward_rule(self, rule: Any) -> Hashable:
        """Name a rule of a library; any other is called later, and is taken for a new one."""
        function = getattr(rule, "f", rule)
        if isinstance(function, FunctionType) and is_of_library(function):
            return Same(function)
        self.has_loose_rules = True
        return Same(object())


# Operations whose bodies can be run with other numbers.
_LOOPS = frozenset({"scan", "while", "cond"})


class _Run:
    """One run through the operations of a capture, with `others` in the places of some numbers."""

    def __init__(self, numbers: Sequence[Any], others: Mapping[int, Any]):
        self._numbers, self._others = numbers, others

    def _read(self, values: dict[Any, Any], operand: Any) -> Any:
        if isinstance(operand, _Number):
            place = operand.place
            return self._others.get(place, self._numbers[place])
        return operand.value if isinstance(operand, _Value) else values[operand]

    def body(self, body: Body, leaves: Sequence[Any]) -> list[Any]:
        values = dict(zip(body.inputs, leaves, strict=True))
        values |= {v: self._read(values, x) for v, x in body.constants}
        for eqn, operands, inside in body.operations:
            given = [self._read(values, x) for x in operands]
            results = self._operation(eqn, given, inside)
            values |= dict(zip(eqn.outvars, results, strict=True))
        return [self._read(values, x) for x in body.outputs]

    def _operation(self, eqn: Any, given: list[Any], inside: dict[str, Any]) -> Sequence[Any]:
        if not any(self._differs(x) for x in inside.values()):
            params = eqn.primitive.get_bind_params(eqn.params)
            functions, params = params if isinstance(params, tuple) else ((), params)
            results = eqn.primitive.bind(*functions, *given, **params)
            return results if eqn.primitive.multiple_results else [results]
        name, params = eqn.primitive.name, eqn.params
        if name == "cond":
            ways = [partial(self._way, body) for body in inside["branches"]]
            return lax.switch(given[0], ways, *given[1:])
        if name == "scan":
            return self._scan(inside["jaxpr"], params, given)
        if name == "while":
            return self._while(inside, params, given)
        return self.body(next(iter(inside.values())), given)

    def _differs(self, bodies: Any) -> bool:
        if isinstance(bodies, list):
            return any(map(self._differs, bodies))
        return not bodies.numbers.isdisjoint(self._others)

    def _way(self, body: Body, *given: Any) -> list[Any]:
        return self.body(body, given)

    def _scan(self, body: Body, params: dict[str, Any], given: list[Any]) -> Sequence[Any]:
        fixed, carried = params["num_consts"], params["num_carry"]
        first = fixed + carried

        def step(carry: list[Any], x: list[Any]) -> tuple[list[Any], list[Any]]:
            out = self.body(body, [*given[:fixed], *carry, *x])
            return out[:carried], out[carried:]

        how = {key: params[key] for key in ("length", "reverse", "unroll")}
        carry, out = lax.scan(step, given[fixed:first], given[first:], **how)
        return [*carry, *out]

    def _while(self, inside: dict[str, Any], params: dict[str, Any], given: list) -> Sequence[Any]:
        a, b = params["cond_nconsts"], params["body_nconsts"]
        test, work, start = given[:a], given[a : a + b], given[a + b :]
        return lax.while_loop(
            lambda x: self.body(inside["cond_jaxpr"], [*test, *x])[0],
            lambda x: self.body(inside["body_jaxpr"], [*work, *x]),
            start,
        )
