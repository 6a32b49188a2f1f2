"""Systems and integrators as data: what JSON can hold, and nothing that runs.

| here | in JSON |
| --- | --- |
| `None`, truth values, whole numbers, finite numbers, text | themselves |
| a number that is not finite | `{"number": "nan"}` |
| a tuple | a list |
| a list, a dictionary, a frozen set | `{"list": ...}`, `{"dict": ...}`, `{"set": ...}` |
| an array | `{"array": {"dtype", "shape", "data", "jax"}}` |
| an object of a class of retrax | `{"class": "retrax.groups.so3:SO3", "fields": ...}` |
| a function of retrax, also with arguments bound | `{"function": ...}`, `{"partial": ...}` |
| anything that a `factory` made | `{"factory": "module:name", "args", "keywords", "part"}` |
"""

import base64
import dataclasses
import math
from typing import Any

import equinox as eqx
import jax
import numpy as np
from jax.tree_util import Partial

from retrax.trajectory.factory import Call, call_that_made

# The folders whose classes and functions a file may name: they compute and do nothing else.
FOLDERS = ("numerics", "groups", "spaces", "mechanics", "systems", "integrators")
ARRAY_TYPES = ("float64", "int64", "int32", "bool", "complex128")


class Unstorable(Exception):
    """Something that a file cannot hold; the message says what, and where in the object."""


def encode(value: Any, where: str) -> Any:
    """The data of a value; `where` names it in what is said if it has none."""
    if isinstance(value, np.ndarray | np.generic | jax.Array):
        return {"array": encode_array(value, where)}
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else {"number": repr(value)}
    if isinstance(value, tuple | list | dict | frozenset):
        return _encode_container(value, where)
    return _encode_made(value, where)


def encode_array(value: Any, where: str) -> dict[str, Any]:
    array = np.asarray(value)
    if str(array.dtype) not in ARRAY_TYPES:
        raise Unstorable(f"{where} is an array of {array.dtype}")
    return {
        "dtype": str(array.dtype),
        "shape": list(array.shape),
        "data": base64.b64encode(np.ascontiguousarray(array).tobytes()).decode(),
        "jax": isinstance(value, jax.Array),
    }


def _encode_container(value: Any, where: str) -> Any:
    if hasattr(value, "_fields"):
        return _encode_object(value, value._fields, where)
    if isinstance(value, tuple):
        return [encode(x, f"{where}[{k}]") for k, x in enumerate(value)]
    if isinstance(value, list):
        return {"list": [encode(x, f"{where}[{k}]") for k, x in enumerate(value)]}
    if isinstance(value, frozenset):
        return {"set": [encode(x, where) for x in sorted(value)]}
    return {"dict": [[encode(k, where), encode(x, f"{where}[{k!r}]")] for k, x in value.items()]}


def _encode_made(value: Any, where: str) -> Any:
    """An object or a function: part by part where it is of retrax, else by the call that made it.

    Part by part comes first, for then nothing has to be imported to read it.
    """
    call = call_that_made(value)
    try:
        if isinstance(value, eqx.Module):
            return _encode_object(value, [f.name for f in dataclasses.fields(value)], where)
        if isinstance(value, Partial):
            return {
                "partial": encode(value.func, where),
                "args": encode(value.args, where),
                "keywords": encode(dict(value.keywords), where),
            }
        return {"function": _name_in_retrax(value, where)}
    except Unstorable:
        if call is None:
            raise
    return _encode_call(call, where)


def _encode_object(value: Any, fields: Any, where: str) -> dict[str, Any]:
    return {
        "class": _name_in_retrax(type(value), where),
        "fields": {name: encode(getattr(value, name), f"{where}.{name}") for name in fields},
    }


def _name_in_retrax(value: Any, where: str) -> str:
    module, name = getattr(value, "__module__", None), getattr(value, "__qualname__", "")
    package, *folders = str(module).split(".")
    if package == "retrax" and folders[:1] and folders[0] in FOLDERS and "<" not in name:
        return f"{module}:{name}"
    kind = "an object of the class" if isinstance(value, type) else "the function"
    raise Unstorable(f"{where} is {kind} {name or value!r} of the module {module}")


def _encode_call(call: Call, where: str) -> dict[str, Any]:
    module, name = call.factory.module, call.factory.name
    if module == "__main__" or "<" in name:
        raise Unstorable(
            f"{where} was made by the factory {name} of {module}, which another process cannot "
            "import"
        )
    return {
        "factory": f"{module}:{name}",
        "args": encode(call.args, f"an argument of {name}"),
        "keywords": encode(call.keywords, f"an argument of {name}"),
        "part": call.part,
    }
