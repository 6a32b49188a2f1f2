"""An object from its name and its parameters, both plain data: nothing is evaluated.

A description is a name, `"LieVerlet"`, or a table, `{"name": "LieVerlet", "retraction": "Exp"}`;
the other keys of a table are the parameters of the constructor. Some parameters are objects
themselves, a retraction, a group, a potential: descriptions may stand there. An unknown name is
answered with the closest one that is known.
"""

import contextlib
import difflib
import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, TypeVar

from retrax.errors import BadInput

Value = TypeVar("Value")
# Of more choices than this only the closest is named.
_MANY = 50

# Constructors, and ready objects, which take no parameters.
Choices = Mapping[str, Callable[..., Any] | Any]
_ARTICLES = {bool: "true or false", int: "a whole number", float: "a number", str: "text"}


def closest(name: str, known: Iterable[str]) -> str | None:
    """Return the known name most like `name`, capitals apart; `None` if all look different."""
    folded = {one.lower().strip("-"): one for one in known}
    found = difflib.get_close_matches(name.lower().strip("-"), folded, n=1)
    return folded[found[0]] if found else None


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return a question to add to a sentence about an unknown name; empty if none is close."""
    found = closest(name, known)
    return f" Did you mean {found!r}?" if found else ""


def choose(kind: str, name: str, choices: Mapping[str, Value]) -> Value:
    """Look up the choice called `name`.

    **Raises:** `BadInput` with the closest name and, unless there are too many, all names.
    """
    if name in choices:
        return choices[name]
    meant = did_you_mean(name, choices)
    listed = f" The choices are {', '.join(sorted(choices))}."
    raise BadInput(
        f"{kind} = {name!r} is not known.{meant}{'' if meant and len(choices) > _MANY else listed}"
    )


@contextlib.contextmanager
def locate_errors(where: str) -> Iterator[None]:
    """Begin the sentence of every `BadInput` that is raised inside with `where`."""
    try:
        yield
    except BadInput as error:
        raise BadInput(f"{where}: {error}") from error


def make(kind: str, described: object, choices: Choices, parts: Mapping[str, Choices]) -> Any:
    """Make the object that `described` describes.

    **Arguments:**

    - `kind`: what it is called in sentences, `"system"` for instance.
    - `described`: a name, or a table with `name` and parameters.
    - `choices`: constructors by name, and ready objects.
    - `parts`: the constructors of parameters that are objects, by the names of the parameters.

    **Raises:** `BadInput` for an unknown name or parameter, with the closest one that is known,
    and for values that the constructor rejects.
    """
    name, given = read_name(kind, described)
    maker = choose(kind, name, choices)
    if not callable(maker):
        _require_none(name, maker, given)
        return maker
    known = inspect.signature(maker).parameters
    for key in given:
        if key not in known:
            listed = f"has {', '.join(known)}" if known else "has no parameters"
            raise BadInput(
                f"{name} has no parameter {key!r}: it {listed}.{did_you_mean(key, known)}"
            )
    for key, parameter in known.items():
        if parameter.default is parameter.empty and key not in given:
            raise BadInput(f"{name} needs the parameter {key!r}: it has no default.")
    values = {
        key: require_type(key, _part(key, value, parts), known[key].annotation)
        for key, value in given.items()
    }
    try:
        return maker(**values)
    except (BadInput, Warning):
        raise
    except Exception as cause:  # whatever a constructor that was given plain data stumbles over
        told = " ".join(str(cause).split())
        raise BadInput(
            f"{name} cannot be made of {', '.join(map(_show, given.items())) or 'nothing'}: {told}"
        ) from cause


def read_name(kind: str, described: object) -> tuple[str, dict[str, Any]]:
    """Return the name in a description, and its parameters."""
    if isinstance(described, str):
        return described, {}
    if not isinstance(described, Mapping):
        raise BadInput(
            f"{kind} = {described!r} must be a name, or a table with a name and parameters."
        )
    given = dict(described)
    name = given.pop("name", None)
    if not isinstance(name, str):
        raise BadInput(f"{kind} needs the key 'name', a text; it has {sorted(described)}.")
    return name, given


def require_type(key: str, value: Any, wanted: Any) -> Any:
    """Return `value` if it is of the plain type `wanted`; a whole number passes as a number.

    Types other than bool, int, float and str are left to whoever takes the value.
    """
    if wanted not in (bool, int, float, str):
        return value
    if wanted is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if not isinstance(value, wanted) or (wanted is not bool and isinstance(value, bool)):
        raise BadInput(f"{key} = {value!r} must be {_ARTICLES[wanted]}.")
    return value


def _part(key: str, value: Any, parts: Mapping[str, Choices]) -> Any:
    """Make a parameter that is an object of its description; return any other as it is.

    A list may hold descriptions too.
    """
    if key in parts and isinstance(value, list | tuple):
        return [_part(key, one, parts) for one in value]
    if key not in parts or not isinstance(value, str | Mapping):
        return value
    if isinstance(value, Mapping):
        with locate_errors(key):
            return make(key, value, parts[key], parts)
    return make(key, value, parts[key], parts)


def _require_none(name: str, ready: object, given: Mapping[str, Any]) -> None:
    if given:
        raise BadInput(
            f"{name!r} takes no parameters, but has {', '.join(given)}: it stands for {ready!r}; "
            "name the class to choose them."
        )


def _show(item: tuple[str, Any]) -> str:
    key, value = item
    text = repr(value)
    return f"{key} = {text if len(text) <= 60 else text[:57] + '...'}"
