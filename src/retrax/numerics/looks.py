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

import abc
import itertools
from collections import OrderedDict
from collections.abc import Callable, Container, Hashable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache
from types import MethodType
from typing import Any

import jax
import numpy as np
from jax.core import Tracer

from retrax.errors import BadInput
from retrax.numerics.capture import Call, Capture, capture
from retrax.numerics.known import nothing_is_traced
from retrax.numerics.reads import is_own
from retrax.numerics.walk import ByContent, Walk

# Captures of so many functions of which all is known are kept.
_MOST = 1024
_looks = itertools.count()


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


@lru_cache
def is_plain(tree: Any) -> bool:
    """Tell whether arguments are arrays and nothing else: other nodes may hold functions."""
    kind, static = tree.node_data() or (None, None)
    plain = kind is dict or (static is None and not (kind and is_own(kind)))
    return plain and all(map(is_plain, tree.children()))


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
            self._content = walk.of(function.__wrapped__), *_surroundings()
            hash(self._content)
        except Exception:  # too much to look at, or whatever a property of a user's object raises
            walk.complete, self._content = False, None
        self.known, self._calls = walk.complete, walk.calls

    def capture(self, call: Call) -> Capture:
        """Return what the function does with arguments of this kind."""
        found = self.captures.get(call)
        if found is None:
            if self.is_closed:
                raise NotSeen("a function is asked something that it was not asked before")
            known = self.known and is_plain(call.tree)
            if self.is_sealed and not self._holds_now(known):
                raise HasChanged(
                    f"{self.function!r} does something else than when this run was prepared, and "
                    "is asked what it was not asked then; prepare the run again."
                )
            key = (self._content, call)
            found = _KNOWN.get(key) if known else None
            if found is None:
                found = self._trace(call, known)
            if known:
                _KNOWN[key] = found
                if len(_KNOWN) > _MOST:
                    _KNOWN.popitem(last=False)
            self.captures[call] = found
        return found

    def _trace(self, call: Call, known: bool) -> Capture:
        """Trace the function; once more, where it may depend on more than its arguments."""
        function, apart = self.function.__wrapped__, self._calls or not known
        found = capture(function, call, apart)
        if known and self._reads_alike(Look(self.function)):
            return found
        last = _LAST.get((_key(self.function), call))
        if (last is None or last.differs(found)) and found.differs(capture(function, call, apart)):
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

    def _holds_now(self, known: bool) -> bool:
        """Tell whether the function does now what it did at this look, as far as can be told."""
        now = Look(self.function)
        if known and self._reads_alike(now):
            return True
        return self.matches(now, frozenset()) if self.captures else not known

    def _reads_alike(self, now: "Look") -> bool:
        return now.known and now._content == self._content

    def __call__(self, leaves: Sequence[Any], tree: Any) -> Any:
        return self.capture(Call.of(leaves, tree))(leaves)

    @property
    def holds_traced(self) -> bool:
        """Whether it holds something that JAX is tracing and that is not among its numbers."""
        return any(capture.holds_traced for capture in self.captures.values())

    def close(self, places: Container[tuple[Call, int]]) -> "Look":
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


def _surroundings() -> tuple[Hashable, ...]:
    """Return what else functions depend on of which all is known.

    That is how JAX is set, how NumPy prints, and what abstract classes were told to take for their
    own.
    """
    printed = np.get_printoptions()
    formatter = str(printed.pop("formatter"))
    return settings(), formatter, tuple(printed.values()), abc.get_cache_token()


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
