"""The content of a value as a short text: the same in every process."""

import hashlib
import re
from types import CodeType
from typing import Any

from retrax.numerics.fingerprint import Fingerprint, Same, Walk, fingerprint

_ADDRESS = re.compile(r" at 0x[0-9a-f]+")


def digest(x: Any) -> str:
    """A text that is equal in every process for equal content, and nearly never otherwise."""
    return digest_of(fingerprint(x))


def digest_of(found: Fingerprint) -> str:
    """The digest of what has the fingerprint `found`."""
    lines = "\n".join(_lines(found.parts))
    return hashlib.sha256(lines.encode()).hexdigest()[:16]


def _lines(part: Any) -> list[str]:
    """A key as lines of text, without addresses."""
    if isinstance(part, frozenset):
        return ["set", *sorted("\n".join(_lines(one)) for one in part)]
    if isinstance(part, tuple):
        return [f"{len(part)} parts", *(line for one in part for line in _lines(one))]
    if isinstance(part, CodeType):
        return _lines_of_code(part)
    if isinstance(part, Same):
        return [_name(part.it)]
    return [_name(part) if isinstance(part, type) else repr(part)]


def _lines_of_code(code: CodeType) -> list[str]:
    walk = Walk()
    constants = [
        line
        for x in code.co_consts
        for line in (_lines_of_code(x) if isinstance(x, CodeType) else _lines(walk.of(x)))
    ]
    return [repr(code.co_code), repr(code.co_names), repr(code.co_varnames), *constants]


def _name(x: Any) -> str:
    name = getattr(x, "__qualname__", None) or getattr(x, "__name__", None)
    if isinstance(name, str):
        return f"{getattr(x, '__module__', '')}.{name}"
    return f"{type(x).__qualname__} {_ADDRESS.sub('', repr(x))}"
