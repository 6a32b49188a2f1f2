"""Systems and integrators from the data in a file. Only what is named in `FOLDERS` is built."""

import base64
import dataclasses
import importlib
import re
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax.tree_util import Partial

from retrax.errors import BadInput
from retrax.trajectory.encoding import ARRAY_TYPES, FOLDERS
from retrax.trajectory.factory import Factory

_MODULE = re.compile(rf"retrax\.({'|'.join(FOLDERS)})(\.[a-z0-9_]+)*")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)*")


class NeedsImport(Exception):
    """The data names a factory outside retrax, and the reader was told to import nothing."""


def decode(data: Any, factories: bool) -> Any:
    """The value that `encode` made `data` of.

    **Arguments:** `factories`: whether modules outside retrax may be imported and their factories
    called; otherwise `NeedsImport` is raised where one is named.

    **Raises:** `BadInput` where the data is none of `encode`.
    """
    if data is None or isinstance(data, bool | int | float | str):
        return data
    if isinstance(data, list):
        return tuple(decode(x, factories) for x in data)
    if isinstance(data, dict) and data:
        kind = next((key for key in _KINDS if key in data), None)
        if kind is not None:
            try:
                return _KINDS[kind](data, factories)
            except (KeyError, TypeError, AttributeError, ValueError) as cause:
                if isinstance(cause, BadInput):
                    raise
                raise BadInput(f"the stored {kind} cannot be read: {cause}.") from cause
    raise BadInput(f"the stored value {str(data)[:60]!r} is none that retrax writes.")


def decode_array(data: dict[str, Any]) -> Any:
    if data["dtype"] not in ARRAY_TYPES:
        raise BadInput(f"the stored array is of {data['dtype']!r}, which retrax does not write.")
    flat = np.frombuffer(base64.b64decode(data["data"], validate=True), data["dtype"])
    array = flat.reshape(data["shape"]).copy()
    return jnp.asarray(array) if data["jax"] else array[()]


def _decode_object(data: dict[str, Any], factories: bool) -> Any:
    cls: Any = _in_retrax(data["class"])
    fields = {name: decode(x, factories) for name, x in data["fields"].items()}
    known = _parts(cls)
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


def _decode_partial(data: dict[str, Any], factories: bool) -> Partial:
    function = decode(data["partial"], factories)
    if not callable(function):
        raise BadInput(f"the stored function {str(data['partial'])[:60]!r} is none.")
    return Partial(
        function, *decode(data["args"], factories), **decode(data["keywords"], factories)
    )


def _decode_function(data: dict[str, Any], factories: bool) -> Any:
    function = _in_retrax(data["function"])
    if isinstance(function, type) or not callable(function):
        raise BadInput(f"the stored function {data['function']!r} is none.")
    return function


def _in_retrax(reference: str) -> Any:
    """The class or function that a file names: by its own name, in its own module of retrax."""
    module, _, name = reference.partition(":")
    if not (_MODULE.fullmatch(module) and _NAME.fullmatch(name)):
        raise BadInput(f"the file names {reference!r}, which is not one of retrax's values.")
    found = _found(reference)
    if (found.__module__, found.__qualname__) != (module, name):
        raise BadInput(f"the file names {reference!r}, which is defined elsewhere.")
    return found


def _found(reference: str) -> Any:
    module, _, name = reference.partition(":")
    try:
        value = importlib.import_module(module)
        for part in name.split("."):
            value = getattr(value, part)
    except (ImportError, AttributeError) as cause:
        raise BadInput(
            f"the file names {reference!r}, which cannot be imported here ({cause}): the folder of "
            "its module must be where Python looks, for example on PYTHONPATH."
        ) from cause
    return value


def _decode_call(data: dict[str, Any], factories: bool) -> Any:
    if not factories:
        raise NeedsImport(data["factory"])
    module, _, name = data["factory"].partition(":")
    if not (_NAME.fullmatch(module) and _NAME.fullmatch(name)):
        raise BadInput(f"the file names {data['factory']!r}, which is not a function in a module.")
    function = _found(data["factory"])
    if not isinstance(function, Factory):
        raise BadInput(
            f"the file names {data['factory']!r}, which does not carry the mark @rx.factory and is "
            "therefore not called."
        )
    made = function(*decode(data["args"], factories), **decode(data["keywords"], factories))
    return made if data["part"] is None else made[data["part"]]


_KINDS: dict[str, Callable[[dict[str, Any], bool], Any]] = {
    "number": lambda data, _: float(data["number"]),
    "array": lambda data, _: decode_array(data["array"]),
    "list": lambda data, factories: [decode(x, factories) for x in data["list"]],
    "set": lambda data, factories: frozenset(decode(x, factories) for x in data["set"]),
    "dict": lambda data, factories: {
        decode(k, factories): decode(x, factories) for k, x in data["dict"]
    },
    "class": _decode_object,
    "function": _decode_function,
    "partial": _decode_partial,
    "factory": _decode_call,
}
