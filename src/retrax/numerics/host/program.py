"""A jaxpr as a list of NumPy calls.

JAX traces a function to a jaxpr, which costs no compilation. Here its equations become calls of
NumPy on whole arrays, one after the other; calls are inlined, what depends on constants alone is
computed once, and what no result depends on is left out. A primitive without a rule raises
`NoRule`, which names it.
"""

from collections.abc import Callable, Sequence
from typing import Any, SupportsIndex

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jax.extend import core as jex

from retrax.numerics.bits import words_of

# What a rule makes of an equation: a function of its inputs that returns its output or outputs.
Call = Callable[..., Any]
Equation = jex.JaxprEqn
# Axes as JAX names them, some by numbers of NumPy.
Axes = Sequence[SupportsIndex]
# NumPy makes numbers of arrays without axes.
HostArray = np.ndarray | np.generic

# Calls, which are inlined, and where their jaxprs are.
_CALLS = frozenset(
    {
        "checkpoint", "closed_call", "core_call", "custom_jvp_call", "custom_lin",
        "custom_vjp_call", "eval_jaxpr", "jit", "pjit", "remat", "remat2",
    }
)  # fmt: skip
_INSIDE = ("jaxpr", "call_jaxpr", "fun_jaxpr")
# These may run for long: they wait for somebody to ask.
_LOOPS = frozenset({"while", "scan", "cond"})


class NoRule(Exception):
    """A jaxpr has a primitive that NumPy has no rule for."""


class HostProgram:
    """The NumPy calls of a closed jaxpr. Make one with `host_program`.

    Each number or array has a slot; a call reads some slots and fills others.
    """

    def __init__(self, closed: jex.ClosedJaxpr, rules: "Rules"):
        self._rules = rules
        self._slots: list[Any] = []
        self._known: list[bool] = []
        self._calls: list[tuple[Call, tuple[int, ...], tuple[int, ...], bool]] = []
        self._inputs = [self._new() for _ in closed.jaxpr.invars]
        constants = [self._constant(host_array(x)) for x in closed.consts]
        self._outputs = self._inline(closed.jaxpr, constants, self._inputs)
        self._prune()

    def __call__(self, arrays: Sequence[Any]) -> list[Any]:
        """Return the outputs, which may share their memory with the inputs."""
        slots = self._slots.copy()
        for slot, array in zip(self._inputs, arrays, strict=True):
            slots[slot] = array
        for call, ins, outs, several in self._calls:
            result = call(*[slots[k] for k in ins])
            if several:
                for slot, array in zip(outs, result, strict=True):
                    slots[slot] = array
            else:
                slots[outs[0]] = result
        return [slots[k] for k in self._outputs]

    def _new(self) -> int:
        self._slots.append(None)
        self._known.append(False)
        return len(self._slots) - 1

    def _constant(self, array: Any) -> int:
        self._slots.append(array)
        self._known.append(True)
        return len(self._slots) - 1

    def _inline(
        self, jaxpr: jex.Jaxpr, constants: Sequence[int], arguments: Sequence[int]
    ) -> list[int]:
        """Add the calls of a jaxpr; return the slots of its outputs."""
        where: dict[Any, int] = dict(zip(jaxpr.constvars, constants, strict=True))
        where.update(zip(jaxpr.invars, arguments, strict=True))

        def read(v: Any) -> int:
            if not isinstance(v, jex.Literal):
                return where[v]
            aval: Any = v.aval
            return self._constant(np.asarray(v.val, aval.dtype))

        for equation in jaxpr.eqns:
            ins = [read(v) for v in equation.invars]
            where.update(zip(equation.outvars, self._equation(equation, ins), strict=True))
        return [read(v) for v in jaxpr.outvars]

    def _equation(self, equation: Equation, ins: list[int]) -> list[int]:
        name, params = equation.primitive.name, equation.params
        if name in _CALLS:
            return self._call(next(params[key] for key in _INSIDE if key in params), ins)
        if name == "cond" and self._known[ins[0]]:
            branches = params["branches"]
            chosen = min(max(int(self._slots[ins[0]]), 0), len(branches) - 1)
            return self._call(branches[chosen], ins[1:])
        rule = self._rules.get(name)
        if rule is None or equation.effects:
            raise NoRule(name)
        call, several = rule(equation), equation.primitive.multiple_results
        if name not in _LOOPS and all(self._known[k] for k in ins):
            result = call(*[self._slots[k] for k in ins])
            return [self._constant(x) for x in (result if several else [result])]
        outs = [self._new() for _ in equation.outvars]
        self._calls.append((call, tuple(ins), tuple(outs), several))
        return outs

    def _call(self, inner: Any, ins: Sequence[int]) -> list[int]:
        if not hasattr(inner, "consts"):
            return self._inline(inner, [], ins)
        constants = [self._constant(host_array(x)) for x in inner.consts]
        return self._inline(inner.jaxpr, constants, ins)

    def _prune(self) -> None:
        """Drop the calls that no output depends on."""
        needed, kept = set(self._outputs), []
        for call in reversed(self._calls):
            if needed.intersection(call[2]):
                needed.update(call[1])
                kept.append(call)
        self._calls = kept[::-1]


Rule = Callable[[Equation], Call]
Rules = dict[str, Rule]


def shape_of(v: Any) -> tuple[int, ...]:
    """Return the shape of a variable of a jaxpr."""
    return tuple(v.aval.shape)


def dtype_of(v: Any) -> np.dtype:
    """Return the type of a variable of a jaxpr."""
    return v.aval.dtype


def host_array(x: Any) -> Any:
    """Return an array of JAX on the host; keys of random numbers as whole numbers."""
    if isinstance(x, Tracer):
        raise NoRule("a value that JAX is tracing")
    if isinstance(x, jax.Array) and jnp.issubdtype(x.dtype, jax.dtypes.extended):
        return pack_keys(words_of(x))
    return np.asarray(x)


def pack_keys(words: HostArray) -> HostArray:
    """Return keys of two words each as single whole numbers, so that they move as numbers do."""
    array = np.asarray(words)
    if array.shape[-1] != 2 or array.dtype != np.uint32:
        raise NoRule("keys that are not Threefry's")
    high, low = (array[..., k].astype(np.uint64) for k in (0, 1))
    return high << np.uint64(32) | low


def unpack_keys(keys: HostArray) -> np.ndarray:
    """Return the two words of each key along a last axis."""
    array = np.asarray(keys, np.uint64)
    return np.stack([array >> np.uint64(32), array & np.uint64(0xFFFFFFFF)], -1).astype(np.uint32)
