"""What a value consists of, as a key that compares by content.

A traced program holds everything that its functions found when they ran: the numbers they have
closed over, the globals they name, the attributes of objects. A program may be used again only
where all of that is the same. `fingerprint` follows a function to all of it: code, defaults, cells,
the globals that the code names, attribute by attribute, and so on through functions, methods,
partials, objects and their classes. Numbers compare with their types and their bits: 1, 1.0 and
True differ, and so do 0.0 and -0.0. A `digest` is the same as a short text, for other processes.

Python, JAX, NumPy and retrax do not change: their functions, classes and modules are compared by
identity. Where something is met that cannot be looked into (a generator, an open file, an object of
an extension module, what `os` and `random` return), the fingerprint is not `complete`, and what was
traced from it must be traced again.

A `Content` keeps the numbers that functions hold apart from all else, so that they can be replaced:
see `held`.
"""

import hashlib
import re
import types
from collections.abc import Hashable, Sequence
from typing import Any, NamedTuple

from retrax.numerics.held import Held, Same
from retrax.numerics.walk import Walk

_ADDRESS = re.compile(r" at 0x[0-9a-f]+")


class Fingerprint(NamedTuple):
    """A key, whether all was found that the value consists of, and whether functions call others.

    `calls` is true where a function or class of the user's is reached through another one, so that
    JAX may have traced it by itself.
    """

    parts: Hashable
    complete: bool
    calls: bool = False


class Content(NamedTuple):
    """What a value consists of: a key of all but the numbers that its functions hold, and those."""

    parts: Hashable
    held: Held
    complete: bool
    calls: bool

    @property
    def fingerprint(self) -> Fingerprint:
        """All of it as one key."""
        return Fingerprint((self.parts, self.held.contents()), self.complete, self.calls)


def fingerprint(x: object) -> Fingerprint:
    """Follow `x` to all that it consists of; of a pytree structure, to all but its leaves."""
    walk = Walk()
    try:
        parts = walk.of(x)
        hash(parts)
    except Exception:  # too much to look at, or whatever a property of a user's object raises
        return Fingerprint(Same(x), complete=False, calls=True)
    return Fingerprint(parts, walk.complete, walk.calls)


def content(structures: Sequence[Any], *settings: object, takes_traced: bool = False) -> Content:
    """Follow structures of pytrees, and take out the numbers that their functions hold.

    Those that JAX is tracing are taken out only where it `takes_traced` ones.
    """
    walk = Walk(takes_traced)
    try:
        parts = (*[walk.tree(x, takes_out=True) for x in structures], *map(walk.of, settings))
        hash(parts)
    except Exception:  # as above
        return Content(Same(structures), Held(), complete=False, calls=True)
    return Content(parts, walk.held, walk.complete, walk.calls)


def digest(x: object) -> str:
    """Return a short text, equal in every process for equal content and almost only then."""
    return digest_of(fingerprint(x))


def digest_of(found: Fingerprint) -> str:
    """Return the digest of what has the fingerprint `found`."""
    lines = "\n".join(_lines(found.parts))
    return hashlib.sha256(lines.encode()).hexdigest()[:16]


def _lines(part: Hashable) -> list[str]:
    """Return a key as lines of text, without addresses."""
    if isinstance(part, frozenset):
        return ["set", *sorted("\n".join(_lines(one)) for one in part)]
    if isinstance(part, tuple):
        return [f"{len(part)} parts", *(line for one in part for line in _lines(one))]
    if isinstance(part, types.CodeType):
        return _lines_of_code(part)
    if isinstance(part, Same):
        return [_name(part.it)]
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
