"""Functions that make systems, marked so that a file can name the call instead of the system."""

import functools
from collections.abc import Callable
from types import FunctionType
from typing import Any, NamedTuple

import equinox as eqx

from retrax.errors import BadInput
from retrax.numerics.checks import quote

_MARK = "_made_by"


class Call(NamedTuple):
    """Which call made an object: the factory, its arguments, and which of its results it was."""

    factory: "Factory"
    args: tuple[Any, ...]
    keywords: dict[str, Any]
    part: int | None


class Factory:
    """What `factory` makes of a function: the same function, which remembers its calls."""

    def __init__(self, function: Callable[..., Any]):
        self.function = function
        self.module, self.name = function.__module__, function.__qualname__
        functools.update_wrapper(self, function)

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        made = self.function(*args, **keywords)
        parts = enumerate(made) if type(made) is tuple else [(None, made)]
        for part, one in parts:
            if isinstance(one, eqx.Module | FunctionType):
                object.__setattr__(one, _MARK, Call(self, args, keywords, part))
        return made


def factory(function: Callable[..., Any]) -> Factory:
    """Mark a function that makes a system, so that a file can name it instead of storing it.

    A file keeps data and no code, so it cannot hold a system with a function of yours in it, such
    as `potential=lambda R: ...`. It can hold the recipe: a marked function of a module that can be
    imported, and the numbers, texts and arrays that it was called with. The function may also
    return several things in a tuple, such as a system and a state. With `trust="my_module"`
    `retrax.resume` and `retrax.load` import that module, see that the function carries the mark,
    and call it again; without `trust` they import no module, whatever a file names.

    ```
    @rx.factory
    def top(mass):
        return rx.MechanicalSystem(rx.SO3(), [1.0, 2.8, 2.0], lambda R: mass * R[2, 2])
    ```
    """
    named = all(hasattr(function, name) for name in ("__module__", "__qualname__"))
    if not (callable(function) and named) or isinstance(function, type):
        raise BadInput(
            f"factory: function = {quote(function)} is not a function that makes a system."
        )
    return Factory(function)


def call_that_made(value: object) -> Call | None:
    """Return the call of a factory that made an object, if one did."""
    return getattr(value, _MARK, None)
