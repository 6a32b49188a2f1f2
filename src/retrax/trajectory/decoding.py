"""Systems and integrators from the data in a file.

Only what is named in `FOLDERS` is built. A factory of the user's is called where the user, not the
file, names its module: to import a module is to run it.
"""

import base64
import dataclasses
import importlib
import inspect
import re
from collections.abc import Callable, Iterable
from types import ModuleType
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax.tree_util import Partial

from retrax.errors import BadInput
from retrax.numerics.checks import reason, shown
from retrax.trajectory.encoding import ARRAY_TYPES, FOLDERS
from retrax.trajectory.factory import Factory

_MODULE = re.compile(rf"retrax\.({'|'.join(FOLDERS)})(\.[a-z0-9_]+)*")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)*")


_LONGEST = 200
# Modules whose functions a file may name; `None` where it may name none.
Trust = frozenset[str] | None


class NeedsImport(BadInput):
    """The data names a factory in a module that the user has not named."""


def trusted(modules: Any) -> Trust:
    """The modules that a user names on a call: one or several, as names or as modules."""
    several = modules if isinstance(modules, list | tuple | set | frozenset) else [modules]
    names = [one.__name__ if isinstance(one, ModuleType) else one for one in several]
    for name in names if modules is not None else []:
        if not (isinstance(name, str) and _NAME.fullmatch(name)):
            raise BadInput(
                f"trust = {shown(modules)} must be the name of a module, such as 'my_bodies', or a "
                "list of names."
            )
    return frozenset(names) if modules is not None else frozenset()


def factories(data: Any) -> Iterable[str]:
    """The factories that data names, as `module:function`, anywhere in it."""
    if isinstance(data, dict):
        if isinstance(data.get("factory"), str):
            yield data["factory"]
        for part in data.values():
            yield from factories(part)
    elif isinstance(data, list):
        for part in data:
            yield from factories(part)


def decode(data: Any, trust: Trust) -> Any:
    """The value that `encode` made `data` of.

    **Arguments:** `trust`: the modules outside retrax that may be imported, and whose factories
    may be called. All names in the data are compared with them before anything is imported.

    **Raises:** `NeedsImport` where the data names a factory of another module; `BadInput` where it
    is none of `encode`.
    """
    try:
        for reference in factories(data):
            _require_trust(reference, trust)
        return _decode(data, trust)
    except RecursionError as cause:
        raise BadInput("the stored value is nested too deep to be one of retrax.") from cause


def _require_trust(reference: str, trust: Trust) -> None:
    module, _, name = reference.partition(":")
    named = len(reference) <= _LONGEST and _NAME.fullmatch(module) and _NAME.fullmatch(name)
    if not named:
        raise BadInput(f"the file names {shown(reference)}, which is not a function in a module.")
    if trust is None or module not in trust:
        raise NeedsImport(
            f"the file names the function {name!r} of the module {module!r}. To import a module is "
            "to run it, so none is imported unless you name it: if this one is your own and you "
            f"expect it here, say rx.resume(path, trust={module!r}) or `retrax resume PATH --trust "
            f"{module}`; or give the system or integrator itself to rx.resume."
        )


def _decode(data: Any, trust: Trust) -> Any:
    if data is None or isinstance(data, bool | int | float | str):
        return data
    if isinstance(data, list):
        return tuple(_decode(x, trust) for x in data)
    if isinstance(data, dict) and data:
        kind = next((key for key in _KINDS if key in data), None)
        if kind is not None:
            try:
                return _KINDS[kind](data, trust)
            except (BadInput, RecursionError):
                raise
            except Exception as cause:  # a value of another kind than this class or array has
                raise BadInput(f"the stored {kind} cannot be read: {reason(cause)}.") from cause
    raise BadInput(f"the stored value {str(data)[:60]!r} is none that retrax writes.")


def decode_array(data: dict[str, Any]) -> Any:
    if data["dtype"] not in ARRAY_TYPES:
        raise BadInput(f"the stored array is of {data['dtype']!r}, which retrax does not write.")
    shape = data["shape"]
    if not all(type(n) is int and n >= 0 for n in shape):
        raise BadInput(f"the stored array has the shape {shown(shape)}, which is none.")
    flat = np.frombuffer(base64.b64decode(data["data"], validate=True), data["dtype"])
    array = flat.reshape(shape).copy()
    return jnp.asarray(array) if data["jax"] else array[()]


def _decode_object(data: dict[str, Any], trust: Trust) -> Any:
    cls: Any = _in_retrax(data["class"])
    fields = {name: _decode(x, trust) for name, x in data["fields"].items()}
    known = _parts(cls)
    if set(fields) != known and hasattr(cls, "_upgraded"):
        fields = cls._upgraded(fields)
    if set(fields) != known:
        odd = ", ".join(sorted(set(fields) ^ known))
        raise BadInput(
            f"the stored {data['class'].split(':')[1]} is of another version of retrax: it does "
            f"not have the same parts ({odd})."
        )
    if issubclass(cls, tuple):
        return cls(**fields)
    made = object.__new__(cls)  # as a pytree is rebuilt: part by part, nothing computed again
    for name, value in fields.items():
        object.__setattr__(made, name, value)
    for parent in cls.__mro__:
        if "__check_init__" in vars(parent):
            parent.__check_init__(made)
    return made


def _parts(cls: Any) -> set[str]:
    """The names of the fields of a class of values; others are refused."""
    if isinstance(cls, type) and issubclass(cls, tuple):
        return set(getattr(cls, "_fields", ()))
    if isinstance(cls, type) and issubclass(cls, eqx.Module):
        return {field.name for field in dataclasses.fields(cls)}
    raise BadInput(f"the file names {cls!r}, which is not a class of values.")


def _decode_partial(data: dict[str, Any], trust: Trust) -> Partial:
    function = _decode(data["partial"], trust)
    if not callable(function):
        raise BadInput(f"the stored function {str(data['partial'])[:60]!r} is none.")
    return Partial(function, *_decode(data["args"], trust), **_decode(data["keywords"], trust))


def _decode_function(data: dict[str, Any], trust: Trust) -> Any:
    function = _in_retrax(data["function"])
    if isinstance(function, type) or not callable(function):
        raise BadInput(f"the stored function {data['function']!r} is none.")
    return function


def _in_retrax(reference: str) -> Any:
    """The class or function that a file names: by its own name, in its own module of retrax."""
    module, _, name = reference.partition(":")
    if not (_MODULE.fullmatch(module) and _NAME.fullmatch(name)):
        raise BadInput(f"the file names {shown(reference)}, which is not one of retrax's values.")
    found = _found(reference)
    if (found.__module__, found.__qualname__) != (module, name):
        raise BadInput(f"the file names {reference!r}, which is defined elsewhere.")
    return found


def _found(reference: str) -> Any:
    """What stands under a name in a module, looked up without running anything but the module."""
    module, _, name = reference.partition(":")
    try:
        value: Any = importlib.import_module(module)
        for part in name.split("."):
            value = inspect.getattr_static(value, part)
    except (Exception, SystemExit) as cause:
        raise BadInput(
            f"the file names {reference!r}, which cannot be imported here ({reason(cause)}): the "
            "folder of its module must be where Python looks, for example on PYTHONPATH."
        ) from cause
    return value


def _decode_call(data: dict[str, Any], trust: Trust) -> Any:
    _require_trust(data["factory"], trust)
    function = _found(data["factory"])
    marked = isinstance(function, Factory)
    if not (marked and f"{function.module}:{function.name}" == data["factory"]):
        raise BadInput(
            f"the file names {data['factory']!r}, which does not carry the mark @rx.factory and is "
            "therefore not called."
        )
    args, keywords, part = (
        _decode(data["args"], trust),
        _decode(data["keywords"], trust),
        data["part"],
    )
    try:
        made = function(*args, **keywords)
    except (Exception, SystemExit) as cause:
        raise BadInput(
            f"the factory {data['factory']!r}, called as the file says, raised {reason(cause)}."
        ) from cause
    if part is None:
        return made
    if type(part) is not int or type(made) is not tuple or not 0 <= part < len(made):
        raise BadInput(f"the factory {data['factory']!r} has no result with number {shown(part)}.")
    return made[part]


_KINDS: dict[str, Callable[[dict[str, Any], Trust], Any]] = {
    "number": lambda data, _: float(data["number"]),
    "array": lambda data, _: decode_array(data["array"]),
    "list": lambda data, trust: [_decode(x, trust) for x in data["list"]],
    "set": lambda data, trust: frozenset(_decode(x, trust) for x in data["set"]),
    "dict": lambda data, trust: {_decode(k, trust): _decode(x, trust) for k, x in data["dict"]},
    "class": _decode_object,
    "function": _decode_function,
    "partial": _decode_partial,
    "factory": _decode_call,
}
