"""What is called: one entry for every public constructor and function."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import retrax as rx

from .sound import sound


@dataclass(frozen=True)
class Entry:
    """A public callable with arguments that are right.

    **Attributes:**

    - `name`: as a user writes it after `rx.`.
    - `function`: what is called, with keywords.
    - `arguments`: a function that makes right arguments, by keyword.
    - `refusals`: the classes of error that it may raise.
    - `sound`: whether a result is one; its arrays are finite in any case.
    - `values`: strategies for arguments whose kind says too little.
    - `pairs`: whether two arguments may be wrong at once.
    - `cheap`: whether a call takes less than a second.
    - `weight`: its part of the examples, 1 for the others.
    - `kind`: the class of input it is counted under.
    """

    name: str
    function: Callable[..., Any]
    arguments: Callable[[], dict[str, Any]]
    refusals: tuple[type[Exception], ...] = (rx.BadInput,)
    sound: Callable[[Any], bool] = sound
    values: Mapping[str, Any] = field(default_factory=dict)
    pairs: bool = True
    cheap: bool = True
    weight: float = 1.0
    kind: str = ""


REGISTRY: dict[str, Entry] = {}


def entry(name: str, function: Any = None, *, kind: str, **options: Any) -> Callable:
    """Register the arguments that the decorated function makes."""

    def register(arguments: Callable[[], dict[str, Any]]) -> Callable[[], dict[str, Any]]:
        called = public(name) if function is None else function
        REGISTRY[name] = Entry(name, called, arguments, kind=kind, **options)
        return arguments

    return register


def simple(kind: str, name: str, /, **arguments: Any) -> None:
    """Register a callable whose right arguments are plain values."""
    entry(name, kind=kind)(lambda: dict(arguments))


def public(name: str) -> Any:
    """The object that a user reaches as `rx.name`."""
    found: Any = rx
    for part in name.split("."):
        found = getattr(found, part)
    return found
