"""An object from its name and its parameters, both plain data: nothing is evaluated.

A description is a name, `"LieVerlet"`, or a table, `{"name": "LieVerlet", "retraction": "Exp"}`;
the other keys of a table are the parameters of the constructor. Some parameters are objects
themselves, a retraction, a group, a potential: descriptions may stand there.
"""

import contextlib
import inspect
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from retrax.cases.choices import choose, did_you_mean
from retrax.errors import BadInput

# A constructor, or a ready object, which takes no parameters.
Choices = Mapping[str, Callable[..., Any] | Any]

_ARTICLES = {bool: "true or false", int: "a whole number", float: "a number", str: "text"}


@contextlib.contextmanager
def located(where: str) -> Iterator[None]:
    """Put `where` before the sentence of any `BadInput` that is raised inside."""
    try:
        yield
    except BadInput as error:
        raise BadInput(f"{where}: {error}") from error


def make(kind: str, described: Any, choices: Choices, parts: Mapping[str, Choices]) -> Any:
    """The object that `described` describes.

    **Arguments:**

    - `kind`: what it is called in sentences, `"system"` for instance.
    - `described`: a name, or a table with `name` and parameters.
    - `choices`: constructors by name, and ready objects.
    - `parts`: for parameters that are objects, by their names: the constructors of those.

    **Raises:** `BadInput` for an unknown name or parameter, with the closest one that is known,
    and for values that the constructor refuses.
    """
    name, given = named(kind, described)
    maker = choose(kind, name, choices)
    if not callable(maker):
        _require_none(name, maker, given)
        return maker
    known = inspect.signature(maker).parameters
    for key in given:
        if key not in known:
            listed = f"they are {', '.join(known)}" if known else "it has none"
            raise BadInput(
                f"{key!r} is no parameter of {name}: {listed}.{did_you_mean(key, known)}"
            )
    for key, parameter in known.items():
        if parameter.default is parameter.empty and key not in given:
            raise BadInput(f"{name} needs the parameter {key!r}: it has no default.")
    values = {
        key: typed(key, _part(key, value, parts), known[key].annotation)
        for key, value in given.items()
    }
    try:
        return maker(**values)
    except (BadInput, Warning):
        raise
    except Exception as cause:  # whatever a constructor that was given plain data stumbles over
        told = " ".join(str(cause).split())
        raise BadInput(
            f"{name} cannot be made of {', '.join(map(_shown, given.items())) or 'nothing'}: {told}"
        ) from cause


def named(kind: str, described: Any) -> tuple[str, dict[str, Any]]:
    """The name in a description, and its parameters."""
    if isinstance(described, str):
        return described, {}
    if not isinstance(described, Mapping):
        raise BadInput(
            f"{kind} = {described!r} must be a name, or a table with a name and parameters."
        )
    given = dict(described)
    name = given.pop("name", None)
    if not isinstance(name, str):
        raise BadInput(f"{kind} needs the key 'name', which is text; it has {sorted(described)}.")
    return name, given


def typed(key: str, value: Any, wanted: Any) -> Any:
    """`value`, refused where it is not of the plain type `wanted`; whole numbers pass as numbers.

    Anything else than bool, int, float and str is left to whoever takes the value.
    """
    if wanted not in (bool, int, float, str):
        return value
    if wanted is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if not isinstance(value, wanted) or (wanted is not bool and isinstance(value, bool)):
        raise BadInput(f"{key} = {value!r} must be {_ARTICLES[wanted]}.")
    return value


def _part(key: str, value: Any, parts: Mapping[str, Choices]) -> Any:
    """A parameter that is an object, made of its description; any other as it is."""
    if key not in parts or not isinstance(value, str | Mapping):
        return value
    if isinstance(value, Mapping):
        with located(key):
            return make(key, value, parts[key], parts)
    return make(key, value, parts[key], parts)


def _require_none(name: str, ready: Any, given: Mapping[str, Any]) -> None:
    if given:
        raise BadInput(
            f"{name!r} takes no parameters, but has {', '.join(given)}: it stands for {ready!r}; "
            "name the class to choose them."
        )


def _shown(item: tuple[str, Any]) -> str:
    key, value = item
    text = repr(value)
    return f"{key} = {text if len(text) <= 60 else text[:57] + '...'}"
