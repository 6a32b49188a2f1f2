"""Evaluate functions written in JAX without compiling them.

XLA takes tenths of a second to compile what NumPy does in a millisecond. So energies, checks and
whatever else is looked at a few times are traced by JAX, once for arguments of one kind, and NumPy
evaluates the jaxpr. While JAX itself traces an argument, and where a function uses what NumPy has
no rule for, XLA compiles it.
"""

from collections.abc import Callable, Hashable
from functools import lru_cache, update_wrapper
from types import FunctionType
from typing import Any, Generic, NamedTuple, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import PyTree

from retrax.errors import BadInput
from retrax.numerics.checks import is_traced, reason, shape_and_dtype
from retrax.numerics.fingerprint import Fingerprint, fingerprint
from retrax.numerics.host.program import HostProgram, NoRule, host_array
from retrax.numerics.host.rules import host_program
from retrax.numerics.jax_hints import compile_once
from retrax.numerics.reuse import Reused

T = TypeVar("T")


class Evaluated(Generic[T]):
    """A function written in JAX that NumPy evaluates; its results are arrays of NumPy.

    It may be handed systems, integrators, groups or spaces.
    """

    def __init__(self, function: Callable[..., T]):
        self._function, self._compiled = function, compile_once(function)
        update_wrapper(self, function)

    def __call__(self, *arguments: PyTree) -> T:
        return self.prepare(*arguments)(*arguments)

    def prepare(self, *arguments: PyTree) -> Callable[..., T]:
        """Return the function for arguments of the structure, the shapes and the types of these."""
        leaves, tree = jax.tree.flatten(arguments)
        if is_traced(leaves):
            return self._compiled
        avals = tuple([shape_and_dtype(x) for x in leaves])
        identity = fingerprint((self._function, tree))
        found = _trace(tree, avals, identity, Beside(self._function))
        return self._compiled_to_host if found is None else found

    def _compiled_to_host(self, *arguments: PyTree) -> T:
        return jax.tree.map(_on_host, self._compiled(*arguments))


def evaluate(function: Callable[..., T], *arguments: PyTree) -> T:
    """Return what a function written in JAX makes of the arguments, in arrays of NumPy."""
    lasting = isinstance(function, FunctionType) and function.__closure__ is None
    return (_evaluate(function) if lasting else Evaluated(function))(*arguments)


def evaluate_in_jax(function: Callable[..., T], *arguments: PyTree) -> T:
    """Return what `evaluate` does, in arrays of JAX."""
    return jax.tree.map(as_jax, evaluate(function, *arguments))


def as_jax(x: Any) -> Any:
    """Return an array of NumPy as one of JAX; nothing is compiled."""
    if not isinstance(x, np.ndarray | np.generic):
        return x
    with jax.ensure_compile_time_eval():  # plain numbers are known also where a program is traced
        return jax.device_put(x)


@lru_cache(maxsize=256)
def _evaluate(function: Callable[..., T]) -> Evaluated[T]:
    return Evaluated(function)


def _on_host(x: Any) -> Any:
    if isinstance(x, Tracer) or jnp.issubdtype(x.dtype, jax.dtypes.extended):
        return x
    return np.asarray(x)


class Beside:
    """Something that stands beside a key which tells all about it: any other is as good."""

    def __init__(self, it: Any):
        self.it = it

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Beside)

    def __hash__(self) -> int:
        return 0


class _Traced(NamedTuple):
    """The NumPy calls of a function, and how its results are nested."""

    program: HostProgram
    tree: Any

    def __call__(self, *arguments: PyTree) -> Any:
        with np.errstate(all="ignore"):
            results = self.program([host_array(x) for x in jax.tree.leaves(arguments)])
        return jax.tree.unflatten(self.tree, [np.array(x) for x in results])


@Reused
def _trace(tree: Hashable, avals: tuple, identity: Fingerprint, of: Beside) -> _Traced | None:
    """Trace a function of arguments of one kind; return `None` if NumPy cannot evaluate it."""
    structure: Any = tree
    examples = jax.tree.unflatten(structure, [jax.ShapeDtypeStruct(*aval) for aval in avals])
    try:
        closed, results = jax.make_jaxpr(lambda *a: of.it(*a), return_shape=True)(*examples)
    except NotImplementedError as cause:  # a callback that says nothing about vmap, for example
        raise BadInput(
            f"a function of the system cannot be looked at for many states: {reason(cause)}."
        ) from cause
    leaves, nesting = jax.tree.flatten(results)
    if any(jnp.issubdtype(x.dtype, jax.dtypes.extended) for x in leaves):
        return None
    try:
        return _Traced(host_program(closed), nesting)
    except NoRule:
        return None
