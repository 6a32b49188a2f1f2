"""What a user's function is at one moment: the operations that JAX sees in it, made anew.

Python lets a function read anything: globals, files, caches, the clock. No look at its code tells
all of it. What a program depends on is what the function does with its arguments, and that is its
jaxpr. So a function that a user hands over is kept as a `UserFunction`; a `Look` is what it is
during one call of retrax, and has a `Capture` for every kind of arguments that it was given: the
structure of the jaxpr, and the numbers in it. Whatever way of Python leads to other operations or
other numbers, it is seen. Where only the numbers differ, they can be the inputs of a program.

Looks compare as guards do: an older one has the captures that some program was made from, and the
newer one equals it if it has the same for the same arguments. So a look is a part of the key under
which the program is kept.

To trace a function takes milliseconds. It is not traced again where a walk has shown that nothing
it reads has changed (`fingerprint`), and only functions of which all is known have such a walk.
"""

import itertools
from collections import OrderedDict
from collections.abc import Callable, Container, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar
from functools import partial
from types import FunctionType, MethodType
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.core import Tracer
from jax.experimental.xla_metadata import set_xla_metadata
from jax.extend import core

from retrax.errors import BadInput
from retrax.numerics.bits import Same, brief_content, content
from retrax.numerics.known import nothing_is_traced
from retrax.numerics.reads import is_of_library
from retrax.numerics.walk import Walk

# Captures of so many functions of which all is known are kept.
_MOST = 1024
_CALLS = frozenset({"jit", "pjit", "closed_call", "core_call"})
_looks, _traces = itertools.count(), itertools.count()


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


class UserFunction:
    """A function that a user has handed over. While JAX traces, it is called through its look."""

    def __init__(self, function: Callable[..., Any]):
        self.__wrapped__ = function

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        leaves, tree = jax.tree.flatten((args, keywords))
        if nothing_is_traced() and not any(isinstance(x, Tracer) for x in leaves):
            return self.__wrapped__(*args, **keywords)
        return look_at(self)(leaves, tree)

    def __getattr__(self, name: str) -> Any:
        if name == "__wrapped__":  # a copy is being made
            raise AttributeError(name)
        return getattr(self.__wrapped__, name)

    def __repr__(self) -> str:
        return repr(self.__wrapped__)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, UserFunction) and _key(self) == _key(other)

    def __hash__(self) -> int:
        return hash(_key(self))


def _key(function: UserFunction) -> Hashable:
    """Return what is the same for one function: bound methods are made anew at every look-up."""
    wrapped = function.__wrapped__
    if isinstance(wrapped, MethodType):
        return id(wrapped.__self__), id(wrapped.__func__)
    return wrapped if isinstance(wrapped, ByContent) else id(wrapped)


class ByContent:
    """A callable that compares by what it consists of, and not by which object it is."""


class Once:
    """A function that makes systems, taken for what it is as long as this object is used.

    What it returns is no arrays, so that it cannot be captured.
    """

    def __init__(self, function: Callable[..., Any]):
        self.__wrapped__ = function
        self.__qualname__ = f"{type(self).__qualname__} {next(_looks)}"

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        return self.__wrapped__(*args, **keywords)


def as_maker(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that makes systems, as a key can have it."""
    return function if Look(UserFunction(function)).known else Once(function)


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

    def contents(self) -> tuple[bytes, ...]:
        """Return the bits of all numbers."""
        return tuple([content(x) for x in self.numbers])

    def differs(self, again: "Capture") -> bool:
        """Tell whether two traces at one moment differ; rules that cannot be compared do not."""
        if self.structure == again.structure:
            return self.contents() != again.contents()
        return not self.has_loose_rules

    def __call__(self, leaves: Sequence[Any], others: Mapping[int, Any] | None = None) -> Any:
        """Return what the function returns, with other numbers in some places."""
        run = _Run(self.numbers, others or {})
        return jax.tree.unflatten(self.results, run.body(self.body, leaves))


class NotSeen(LookupError):
    """A look that is closed has not seen what a function does with such arguments."""


class HasChanged(BadInput):
    """A look of before is asked what it was not asked then, and the function has changed since."""


class Look:
    """A user's function at one moment, from its first call of each kind on.

    **Attributes:** `function`; `number`: how many looks came before; `captures`: what was seen.
    A look that is closed sees nothing more, and one that is sealed only while nothing has changed.
    """

    def __init__(self, function: UserFunction):
        self.function, self.number = function, next(_looks)
        self.captures: dict[Call, Capture] = {}
        self.is_closed = self.is_sealed = False
        walk = Walk()
        try:
            self._content = walk.of(function.__wrapped__)
            hash(self._content)
        except Exception:  # too much to look at, or whatever a property of a user's object raises
            walk.complete = False
        self.known, self._calls = walk.complete, walk.calls

    def capture(self, call: Call) -> Capture:
        """Return what the function does with arguments of this kind."""
        found = self.captures.get(call)
        if found is None:
            if self.is_closed:
                raise NotSeen("a function is asked something that it was not asked before")
            if self.is_sealed and not self._holds_now():
                raise HasChanged(
                    f"{self.function!r} does something else than when this run was prepared, and "
                    "is asked what it was not asked then; prepare the run again."
                )
            key = (self._content, call, settings()) if self.known else None
            found = _KNOWN.get(key) if self.known else None
            if found is None:
                found = self._traced(call)
            if self.known:
                _KNOWN[key] = found
                if len(_KNOWN) > _MOST:
                    _KNOWN.popitem(last=False)
            self.captures[call] = found
        return found

    def _traced(self, call: Call) -> Capture:
        """Trace the function; once more, where it may depend on more than its arguments."""
        function, apart = self.function.__wrapped__, self._calls or not self.known
        found = _captured(function, call, apart)
        if self.known and Look(self.function)._content == self._content:
            return found
        last = _LAST.get((_key(self.function), call))
        if (last is None or last.differs(found)) and found.differs(
            _captured(function, call, apart)
        ):
            raise BadInput(
                f"{self.function!r} returns something else each time it is called with the same "
                "arguments (random numbers, a clock, a counter?). A run would keep what it returns "
                "first. Make it a function of its arguments; for noise use rx.Sampled with a "
                "jax.random.key as its state."
            )
        if not any(isinstance(x, Tracer) for x in found.numbers) and not found.holds_traced:
            _LAST[_key(self.function), call] = found
            if len(_LAST) > _MOST:
                _LAST.popitem(last=False)
        return found

    def _holds_now(self) -> bool:
        """Tell whether the function does now what it did at this look, as far as can be told."""
        now = Look(self.function)
        if self.known and now.known and self._content == now._content:
            return True
        return self.matches(now, frozenset()) if self.captures else not self.known

    def __call__(self, leaves: Sequence[Any], tree: Any) -> Any:
        return self.capture(Call.of(leaves, tree))(leaves)

    @property
    def holds_traced(self) -> bool:
        """Whether it holds something that JAX is tracing and that is not among its numbers."""
        return any(capture.holds_traced for capture in self.captures.values())

    def closed(self, places: Container[tuple[Call, int]]) -> "Look":
        """Return a look that does what was seen here and nothing else, without some numbers."""
        other = Look.__new__(Look)
        vars(other).update(vars(self), number=next(_looks), is_closed=True)
        other.captures = {
            call: capture._replace(
                numbers=[
                    np.full(np.shape(x), np.nan) if (call, k) in places else x
                    for k, x in enumerate(capture.numbers)
                ]
            )
            for call, capture in self.captures.items()
        }
        return other

    def matches(self, other: "Look", free: frozenset[tuple[Call, int]] | None) -> bool:
        """Tell whether two looks are the same in all that the older one was asked.

        Numbers may differ in the places `free`, and anywhere if that is `None`.
        """
        old, new = sorted((self, other), key=lambda look: look.number)
        if old is new:
            return True
        for call, then in tuple(old.captures.items()):
            try:
                now = new.capture(call)
            except Exception:  # whatever it raises now, it did not then
                return False
            if now is then:
                continue
            if now.structure != then.structure:
                return False
            if free is not None:
                pairs = enumerate(zip(now.contents(), then.contents(), strict=True))
                if any(a != b for k, (a, b) in pairs if (call, k) not in free):
                    return False
        return True


class Bound:
    """A user's function, as it was looked at, with other numbers in some places."""

    def __init__(self, look: Look):
        self._look = look
        self._others: dict[Call, dict[int, Any]] = {}

    def put(self, call: Call, place: int, number: Any) -> None:
        """Have a number in the place of that in a capture."""
        self._others.setdefault(call, {})[place] = number

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        leaves, tree = jax.tree.flatten((args, keywords))
        call = Call.of(leaves, tree)
        return self._look.capture(call)(leaves, self._others.get(call))


# Captures of functions of which all is known, by what they consist of.
_KNOWN: OrderedDict[Hashable, Capture] = OrderedDict()
# The last captures of the others.
_LAST: OrderedDict[Hashable, Capture] = OrderedDict()


def forget_captures() -> None:
    """Release all captures that are kept."""
    _KNOWN.clear()
    _LAST.clear()


_LOOKS: ContextVar[dict[Hashable, Look] | None] = ContextVar("looks", default=None)


# What JAX makes of mixed types, products of matrices and random numbers depends on these.
_SETTINGS = (
    "jax_numpy_dtype_promotion",
    "jax_enable_x64",
    "jax_default_matmul_precision",
    "jax_default_prng_impl",
    "jax_random_seed_offset",
    "jax_threefry_partitionable",
)


def settings() -> tuple[str, ...]:
    """Return how JAX is set, as far as a jaxpr depends on it."""
    config: Any = jax.config
    return tuple([str(getattr(config, name, None)) for name in _SETTINGS])


def look_at(function: UserFunction) -> Look:
    """Return the look of this moment: inside of `looking` it is the same for one function."""
    looks = _LOOKS.get()
    if looks is None:
        return Look(function)
    key = _key(function)
    if key not in looks:
        looks[key] = Look(function)
    return looks[key]


@contextmanager
def looking(at: Sequence[Look] | None = None) -> Iterator[None]:
    """Look once at every function until this ends; at some functions, as they looked before."""
    now = _LOOKS.get()
    if at is None and now is not None:
        yield
        return
    looks = {} if now is None else now
    token = _LOOKS.set(looks | {_key(look.function): look for look in at} if at else looks)
    try:
        yield
    finally:
        _LOOKS.reset(token)


def _captured(function: Callable[..., Any], call: Call, apart: bool) -> Capture:
    """Trace a function. JAX must take nothing from its memory of functions inside it: `apart`.

    JAX remembers what became of functions that were handed to `lax.scan` or `jax.jit`, by which
    functions they are. What it remembers is kept apart by the attributes of operations.
    """

    def flat(*leaves: Any) -> Any:
        args, keywords = jax.tree.unflatten(call.tree, leaves)
        return function(*args, **keywords)

    with set_xla_metadata(retrax_look=str(next(_traces))) if apart else nullcontext():
        closed, shapes = jax.make_jaxpr(flat, return_shape=True)(*call.examples)
        reader = _Reader()
        structure, body = reader.body(closed.jaxpr, closed.consts, lifts=True)
    nesting = jax.tree.structure(shapes)
    rest = nesting, reader.holds_traced, reader.has_loose_rules
    return Capture((structure, nesting), reader.numbers, body, *rest)


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
            ins = [self._operand(v, names, lifts) for v in eqn.invars]
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
            return (str(dtype), brief_content(jax.random.key_data(x))), _Value(x)
        return (str(dtype), np.shape(x), brief_content(x)), _Value(x)

    def _params(self, eqn: Any, lifts: bool, rules: int) -> tuple[Hashable, dict[str, Any]]:
        """Return the parameters of an operation as a key, and the bodies that can be run here."""
        name, inside = eqn.primitive.name, {}
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
        jaxpr, consts, *_ = rule.call_wrapped(*zeros)
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
