"""What a value consists of, as a key that compares by content.

A traced program holds everything that its functions found when they ran: the numbers they have
closed over, the globals they name, the attributes of objects. A program may be used again only
where all of that is the same. Of a function that a user has handed over, that is what JAX sees in
it (`looks`). Everything else is followed by a `Walk`: classes of the user's with their methods,
what is static in systems, and whatever these hold. Numbers compare with their types and their bits:
1, 1.0 and True differ, and so do 0.0 and -0.0. A `digest` is the same as a short text, for other
processes.

What a walk knows is in lists: instructions of Python, functions of Python, JAX, NumPy and retrax.
Where something else is met (a generator, an open file, what `functools.lru_cache` has made, a class
with a metaclass of its own), the fingerprint is not `complete`, and what was traced from it must be
traced again.
"""

import hashlib
import re
import types
from collections.abc import Hashable
from typing import Any, NamedTuple

from retrax.numerics.bits import Same
from retrax.numerics.capture import Call
from retrax.numerics.known import nothing_is_traced
from retrax.numerics.looks import Look, Once, UserFunction, look_at
from retrax.numerics.walk import Layout, Walk

_ADDRESS = re.compile(r" at 0x[0-9a-f]+")
# Where a number stands: the function among those looked at, the call, the number in its capture.
Place = tuple[int, Call, int]


class Looks(tuple[Look, ...]):
    """The functions that were looked at, in order. What they do is compared elsewhere in a key."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Looks)

    def __hash__(self) -> int:
        return 0


class Fingerprint(NamedTuple):
    """A key, whether all was found that the value consists of, and whether functions call others.

    `calls` is true where a function or class of the user's is reached through another one, so that
    JAX may have traced it by itself. `looks` are those at the functions of users.
    """

    parts: Hashable
    complete: bool
    calls: bool = False
    looks: Looks = Looks()

    @property
    def is_lasting(self) -> bool:
        """Whether its digest tells all that the value consists of, in other processes too."""
        return self.complete and all(look.known for look in self.looks)


class Content(NamedTuple):
    """What a value consists of: a key of all but the numbers in the user's functions."""

    parts: Hashable
    looks: Looks
    complete: bool
    calls: bool

    def fingerprint(self, free: tuple[Place, ...] = ()) -> Fingerprint:
        """Return all of it as one key, but for the numbers in the places `free`."""
        numbers = _Numbers(self.looks, free)
        return Fingerprint((self.parts, numbers), self.complete, self.calls, self.looks)


def fingerprint(x: object) -> Fingerprint:
    """Follow `x` to all that it consists of; of a pytree structure, to all but its leaves."""
    return content(x).fingerprint()


def content(*values: object, takes_traced: bool = False) -> Content:
    """Follow values to all that they consist of.

    A user's function may hold a number that JAX is tracing. What was made from it is not used
    again, unless whoever asks `takes_traced` numbers out.
    """
    walk = _LookingWalk(takes_traced)
    try:
        parts = tuple([walk.of(x) for x in values])
        hash(parts)
    except Exception:  # too much to look at, or whatever a property of a user's object raises
        return Content(Same(values), Looks(), complete=False, calls=True)
    return Content(parts, Looks(walk.looks), walk.complete, walk.calls)


def digest(x: object) -> str:
    """Return a short text, equal in every process for equal content and almost only then."""
    return digest_of(fingerprint(x))


def digest_of(found: Fingerprint) -> str:
    """Return the digest of what has the fingerprint `found`."""
    lines = "\n".join(_lines(found.parts))
    return hashlib.sha256(lines.encode()).hexdigest()[:16]


class _LookingWalk(Walk):
    """A walk that looks at what the functions of users do, and not at what they read."""

    def __init__(self, takes_traced: bool):
        super().__init__()
        self.looks: list[Look] = []
        self._takes_traced = takes_traced

    def _composite(self, x: Any) -> Hashable:
        if isinstance(x, Once):
            return Same(x)
        if not isinstance(x, UserFunction):
            return super()._composite(x)
        look = look_at(x)
        self.complete = self.complete and (look.known or self._takes_traced or nothing_is_traced())
        if look not in self.looks:
            self.looks.append(look)
        return _Guard(look), self.looks.index(look)


class _Guard:
    """A look in a key: it equals another that has done the same for the same arguments."""

    __slots__ = ("look",)

    def __init__(self, look: Look):
        self.look = look

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Guard) and self.look.matches(other.look, None)

    def __hash__(self) -> int:
        return 0


class _Numbers:
    """The numbers in the captures of looks, but for those in the places `free`."""

    __slots__ = ("free", "looks")

    def __init__(self, looks: Looks, free: tuple[Place, ...]):
        self.looks, self.free = looks, free

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, _Numbers) or self.free != other.free:
            return False
        if len(self.looks) != len(other.looks):
            return False
        pairs = enumerate(zip(self.looks, other.looks, strict=True))
        return all(a.matches(b, self._free(i)) for i, (a, b) in pairs)

    def __hash__(self) -> int:
        return len(self.free)

    def _free(self, i: int) -> frozenset[tuple[Call, int]]:
        return frozenset((call, k) for which, call, k in self.free if which == i)


def _lines(part: Hashable) -> list[str]:
    """Return a key as lines of text, without addresses."""
    if isinstance(part, frozenset):
        return ["set", *sorted("\n".join(_lines(one)) for one in part)]
    if isinstance(part, _Numbers | Layout):
        return []
    if isinstance(part, tuple) and len(part) == 2 and part[0] in (set, frozenset):
        return _lines((part[0].__name__, frozenset(part[1])))
    if isinstance(part, tuple):
        return [f"{len(part)} parts", *(line for one in part for line in _lines(one))]
    if isinstance(part, types.CodeType):
        return _lines_of_code(part)
    if isinstance(part, Same):
        return [_name(part.it)]
    if isinstance(part, _Guard):
        return _lines(Walk().of(part.look.function.__wrapped__))
    return [_name(part) if isinstance(part, type) else repr(part)]


def _lines_of_code(code: types.CodeType) -> list[str]:
    walk = Walk()
    constants = [
        line
        for x in code.co_consts
        for line in (_lines_of_code(x) if isinstance(x, types.CodeType) else _lines(walk.of(x)))
    ]
    return [repr(code.co_code), repr(code.co_names), repr(code.co_varnames), *constants]


def _name(x: object) -> str:
    name = getattr(x, "__qualname__", None) or getattr(x, "__name__", None)
    if isinstance(name, str):
        return f"{getattr(x, '__module__', '')}.{name}"
    return f"{type(x).__qualname__} {_ADDRESS.sub('', repr(x))}"
