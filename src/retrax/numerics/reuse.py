"""Programs that are used again only where everything they were traced from is the same.

JAX looks at the structure of a system: which function, which numbers by `==`. That a function reads
another number now than when it was traced, it does not see. Here the fingerprint of the structure
joins the key. Where a fingerprint is not complete, nothing is used again.
"""

import contextlib
import gc
import itertools
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator
from functools import lru_cache, update_wrapper
from typing import Any, Generic, NamedTuple, Protocol, TypeVar, runtime_checkable
from weakref import WeakSet

import jax
from jax.experimental.xla_metadata import set_xla_metadata
from jaxtyping import PyTree

from retrax.numerics.checks import shape_and_dtype
from retrax.numerics.fingerprint import Fingerprint, digest_of, fingerprint
from retrax.numerics.looks import forget_captures, looking

T = TypeVar("T")
# So many programs of one function are kept.
_MOST = 64
# A number for each look at something that cannot be looked into.
_unknown = itertools.count()


@runtime_checkable
class Forgets(Protocol):
    """Keeps something that `forget` is to release."""

    def cache_clear(self) -> None: ...


# Everything that keeps programs, so that `forget` finds them.
_memories: "WeakSet[Forgets]" = WeakSet()


def remember(memory: Forgets) -> None:
    """Have `forget` clear this one too."""
    _memories.add(memory)


class Signature(NamedTuple):
    """What a program depends on: structure, shapes and what functions read, not the numbers."""

    tree: Any
    avals: tuple
    identity: Fingerprint


def signature_of(*values: PyTree) -> Signature:
    """Return what programs of arguments like `values` depend on."""
    leaves, tree = jax.tree.flatten(values)
    return Signature(tree, tuple([shape_and_dtype(x) for x in leaves]), fingerprint(tree))


@contextlib.contextmanager
def reading(identity: Fingerprint) -> Iterator[None]:
    """Trace with the functions of users as they were looked at.

    JAX must take nothing from its own memory that was traced from other content. It remembers what
    a function became when it was handed to `lax.scan`, `lax.cond` or `jax.jit`, by which function
    it is. What it remembers is kept apart by the attributes that it gives to operations, and here
    these are a digest of all that functions read.
    """
    with looking(identity.looks):
        if not identity.calls:
            yield
            return
        content = digest_of(identity) + ("" if identity.complete else f" {next(_unknown)}")
        with set_xla_metadata(retrax_reads=content):
            yield


class Reused(Generic[T]):
    """A function of a `Signature` and more whose results are kept, where its identity is known.

    What it raises of the kind `fails` is a result as well: it is raised again.
    """

    def __init__(
        self, make: Callable[..., T], most: int = 256, fails: type[Exception] | tuple[()] = ()
    ):
        def build(
            tree: Hashable, avals: tuple, identity: Fingerprint, *more: Any, **named: Any
        ) -> T | _Failed:
            try:
                with reading(identity):
                    return make(tree, avals, identity, *more, **named)
            except fails as reason:
                return _Failed(reason)

        self._make, self._kept = build, lru_cache(maxsize=most)(build)
        self.cache_info = self._kept.cache_info
        update_wrapper(self, make)
        remember(self)

    def cache_clear(self) -> None:
        self._kept.cache_clear()

    def __call__(
        self, tree: Hashable, avals: tuple, identity: Fingerprint, *more: Any, **named: Any
    ) -> T:
        make = self._kept if identity.complete else self._make
        return _return(make(tree, avals, identity, *more, **named))

    def anew(
        self, tree: Hashable, avals: tuple, identity: Fingerprint, *more: Any, **named: Any
    ) -> T:
        """Make a result that nobody else has, and that is not kept."""
        return _return(self._make(tree, avals, identity, *more, **named))


class _Failed(NamedTuple):
    reason: Exception


def _return(result: T | _Failed) -> T:
    if isinstance(result, _Failed):
        result.reason.__context__ = None  # nor any frame of the first time
        raise result.reason.with_traceback(None)
    return result


class Jitted(Generic[T]):
    """`jax.jit` for a function that is handed systems, integrators, groups or spaces.

    A program is kept when it has been called, for then it is known what it was traced from.
    """

    def __init__(self, function: Callable[..., T], **options: Any):
        self._function, self._options = function, options
        self._kept: OrderedDict[Hashable, Callable[..., T]] = OrderedDict()
        update_wrapper(self, function)
        remember(self)

    def cache_clear(self) -> None:
        self._kept.clear()

    def __call__(self, *arguments: PyTree, **named: PyTree) -> T:
        try:
            return self.program(*arguments, **named)(*arguments, **named)
        except jax.errors.JaxRuntimeError as stopped:
            if "KeyboardInterrupt" in str(stopped):  # of a run that the program called
                raise KeyboardInterrupt from None
            raise

    def program(self, *arguments: PyTree, **named: PyTree) -> Callable[..., T]:
        """Return the compiled function for arguments of the kind of these."""
        static = self._options.get("static_argnames", ())
        fixed = tuple([(name, named[name]) for name in static])
        given = {name: x for name, x in named.items() if name not in static}
        _, avals, identity = signature_of(arguments, given)
        key = (identity, avals, fixed)
        program = self._kept.get(key) if identity.complete else None
        if program is not None:
            return program
        program = jax.jit(lambda *a, **k: self._function(*a, **k), **self._options)

        def first(*arguments: PyTree, **named: PyTree) -> T:
            with reading(identity):
                result = program(*arguments, **named)
            if identity.complete:
                self._kept[key] = program
                if len(self._kept) > _MOST:
                    self._kept.popitem(last=False)
            return result

        return first


def forget() -> None:
    """Release every program that retrax and JAX keep, and the memory that they live in.

    Each program holds pages of memory of its own, of which a process may have 65,530 on Linux: one
    that runs thousands of different systems forgets from time to time. What is needed again is
    compiled again.
    """
    for memory in tuple(_memories):
        memory.cache_clear()
    forget_captures()
    jax.clear_caches()
    gc.collect()
