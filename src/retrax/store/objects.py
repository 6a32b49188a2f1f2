"""Systems and integrators as data: what JSON can hold, and nothing that runs.

| here | in JSON |
| --- | --- |
| `None`, truth values, whole numbers, finite numbers, text | themselves |
| a number that is not finite | `{"number": "nan"}` |
| a tuple | a list |
| a list, a dictionary, a frozen set | `{"list": ...}`, `{"dict": ...}`, `{"set": ...}` |
| an array | `{"array": {"dtype", "shape", "data", "jax"}}` |
| an object of a class of retrax | `{"class": "groups:SO3", "fields": ...}` |
| a function of retrax, also with arguments bound | `{"function": ...}`, `{"partial": ...}` |
| anything that a `factory` made | `{"factory": "module:name", "args", "keywords", "part"}` |

A class or function of retrax is named by its folder and its own name, so modules can move within
a folder, and `_MOVED` has the classes that left theirs. Decoding builds only what one of `FOLDERS`
defines. It calls a factory of the user's only where the user, not the file, names its module: to
import a module is to run it.
"""

import base64
import dataclasses
import functools
import importlib
import inspect
import math
import pkgutil
import re
from collections.abc import Callable, Iterable, Sequence
from types import ModuleType
from typing import Any

import equinox as eqx
import jax
import numpy as np
from jax.tree_util import Partial

from retrax.errors import BadInput
from retrax.numerics.checks import quote, reason
from retrax.numerics.evaluate import as_jax
from retrax.numerics.looks import UserFunction
from retrax.store.factory import Call, Factory, call_that_made

# The folders whose classes and functions a file may name: they compute and do nothing else.
FOLDERS = (
    "numerics",
    "groups",
    "spaces",
    "mechanics",
    "integrators",
    "nodal",
    "contact",
    "mechanisms",
    "systems",
)
# The folders of classes that files of earlier versions name in others.
_MOVED = {
    "integrators:ContactDKD": "systems",
    "integrators:ContactMidpoint": "systems",
    "integrators:KahanAttitude": "systems",
    "integrators:NonsmoothRattle": "contact",
    "integrators:RollingDKD": "systems",
    "integrators:RollingVerlet": "systems",
    "systems:Base": "nodal",
    "systems:Drag": "nodal",
    "systems:Pose": "nodal",
}
ARRAY_TYPES = ("float64", "int64", "int32", "bool", "complex128")

# What `encode` makes: anything that JSON holds.
Data = Any
# Modules whose functions a file may name; `None` trusts none.
Trust = frozenset[str] | None
# How a user names them.
Modules = str | ModuleType | Sequence[str | ModuleType]

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)*")
# The folder and the name: `groups:SO3`.
_REFERENCE = re.compile(rf"({'|'.join(FOLDERS)}):({_NAME.pattern})", re.ASCII)
_LONGEST = 200
_MANY = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


class Unstorable(Exception):
    """Something that a file cannot hold; the message says what, and where in the object."""


class NeedsImport(BadInput):
    """The data names a factory in a module that the user has not named."""


# Names


@functools.cache
def find_definitions(folder: str) -> dict[str, tuple[Any, ...]]:
    """Find all classes and functions that the modules of a folder define, by name."""
    package = importlib.import_module(f"retrax.{folder}")
    found: dict[str, tuple[Any, ...]] = {}
    for about in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
        module = importlib.import_module(about.name)
        for name, value in vars(module).items():
            own = (getattr(value, "__module__", ""), getattr(value, "__qualname__", ""))
            if callable(value) and own == (module.__name__, name):
                found[name] = (*found.get(name, ()), value)
    return found


def _name_in_retrax(value: Any, where: str) -> str:
    module, name = getattr(value, "__module__", None), getattr(value, "__qualname__", "")
    package, *folders = str(module).split(".")
    if package != "retrax" or folders[:1] == [] or folders[0] not in FOLDERS or "<" in name:
        kind = "an object of the class" if isinstance(value, type) else "the function"
        raise Unstorable(f"{where} is {kind} {name or value!r} of the module {module}")
    if len(find_definitions(folders[0]).get(name.split(".")[0], ())) != 1:
        raise Unstorable(f"{where} is {name} of {module}, a name that retrax gives twice")
    return f"{folders[0]}:{name}"


def _in_retrax(reference: str) -> Any:
    """Look up the class or function that a file names."""
    found = _REFERENCE.fullmatch(reference) if len(reference) <= _LONGEST else None
    if found is None:
        raise BadInput(f"the file names {quote(reference)}, which is not one of retrax's values.")
    folder, name = _MOVED.get(reference, found[1]), found[2]
    top, *rest = name.split(".")
    candidates = find_definitions(folder).get(top, ())
    if len(candidates) != 1:
        raise BadInput(f"the file names {name!r}, which this retrax does not have in {folder}.")
    value = candidates[0]
    for part in rest:
        value = inspect.getattr_static(value, part, None)
    if getattr(value, "__qualname__", None) != name:
        raise BadInput(f"the file names {name!r}, which is defined elsewhere.")
    return value


def read_trusted(modules: Any) -> frozenset[str]:
    """Read the modules that a user names on a call: one or several, as names or as modules."""
    several = modules if isinstance(modules, list | tuple | set | frozenset) else [modules]
    names = [one.__name__ if isinstance(one, ModuleType) else one for one in several]
    for name in names if modules is not None else []:
        if not (isinstance(name, str) and _NAME.fullmatch(name)):
            raise BadInput(
                f"trust = {quote(modules)} must be the name of a module, such as 'my_bodies', or a "
                "list of names."
            )
    return frozenset(names) if modules is not None else frozenset()


def factories(data: Data) -> Iterable[str]:
    """Find the factories that data names anywhere in it, as `module:function`."""
    if isinstance(data, dict):
        if isinstance(data.get("factory"), str):
            yield data["factory"]
        for part in data.values():
            yield from factories(part)
    elif isinstance(data, list):
        for part in data:
            yield from factories(part)


# Encoding


def encode(value: Any, where: str) -> Data:
    """Turn a value into data; `where` names it in the sentence of `Unstorable`."""
    if isinstance(value, np.ndarray | np.generic | jax.Array):
        return {"array": encode_array(value, where)}
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else {"number": repr(value)}
    if isinstance(value, tuple | list | dict | frozenset):
        return _encode_container(value, where)
    return _encode_made(value, where)


def encode_array(value: np.ndarray | np.generic | jax.Array, where: str) -> dict[str, Data]:
    array = np.asarray(value)
    if str(array.dtype) not in ARRAY_TYPES:
        raise Unstorable(f"{where} is an array of {array.dtype}")
    return {
        "dtype": str(array.dtype),
        "shape": list(array.shape),
        "data": base64.b64encode(np.ascontiguousarray(array).tobytes()).decode(),
        "jax": isinstance(value, jax.Array),
    }


def _encode_container(value: Any, where: str) -> Data:
    if hasattr(value, "_fields"):
        return _encode_object(value, value._fields, where)
    if isinstance(value, tuple):
        return [encode(x, f"{where}[{k}]") for k, x in enumerate(value)]
    if isinstance(value, list):
        return {"list": [encode(x, f"{where}[{k}]") for k, x in enumerate(value)]}
    if isinstance(value, frozenset):
        return {"set": [encode(x, where) for x in sorted(value)]}
    return {"dict": [[encode(k, where), encode(x, f"{where}[{k!r}]")] for k, x in value.items()]}


def _encode_made(value: Any, where: str) -> Data:
    """Encode an object or a function part by part where it is of retrax, else by its factory.

    Part by part comes first, for then nothing has to be imported to read it.
    """
    call = call_that_made(value)
    try:
        if isinstance(value, eqx.Module):
            return _encode_object(value, [f.name for f in dataclasses.fields(value)], where)
        if isinstance(value, UserFunction):
            return encode(value.__wrapped__, where)
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


def _encode_object(value: Any, fields: Iterable[str], where: str) -> dict[str, Data]:
    return {
        "class": _name_in_retrax(type(value), where),
        "fields": {name: encode(getattr(value, name), f"{where}.{name}") for name in fields},
    }


def _encode_call(call: Call, where: str) -> dict[str, Data]:
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


# Decoding


def decode(data: Data, trust: Trust) -> Any:
    """Rebuild the value that `encode` made `data` of.

    **Arguments:** `trust`: the modules outside retrax that may be imported, and whose factories
    may be called. All names in the data are compared with them before anything is imported.

    **Raises:** `NeedsImport` where the data names a factory of another module; `BadInput` where
    `encode` makes no such data.
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
        raise BadInput(f"the file names {quote(reference)}, which is not a function in a module.")
    if trust is None or module not in trust:
        raise NeedsImport(
            f"the file names the function {name!r} of the module {module!r}. To import a module is "
            "to run it, so none is imported unless you name it: if this one is your own and you "
            f"expect it here, say trust={module!r} in rx.load or rx.resume, or --trust {module} on "
            "the command line; or give the system or integrator itself to rx.resume."
        )


def _decode(data: Data, trust: Trust) -> Any:
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
    raise BadInput(f"retrax writes no stored value like {str(data)[:60]!r}.")


def decode_array(data: dict[str, Data]) -> Any:
    if data["dtype"] not in ARRAY_TYPES:
        raise BadInput(f"the stored array is of {data['dtype']!r}, which retrax does not write.")
    shape = data["shape"]
    if not all(type(n) is int and n >= 0 for n in shape):
        raise BadInput(f"the stored array has the impossible shape {quote(shape)}.")
    flat = np.frombuffer(base64.b64decode(data["data"], validate=True), data["dtype"])
    array = flat.reshape(shape).copy()
    return as_jax(array) if data["jax"] else array[()]


def _decode_object(data: dict[str, Data], trust: Trust) -> Any:
    cls: Any = _in_retrax(data["class"])
    fields = {name: _decode(x, trust) for name, x in data["fields"].items()}
    known = _parts(cls)
    fields = _later(cls, set(fields)) | fields
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
    _require_makeable(made, fields)
    return made


def _require_makeable(made: Any, fields: dict[str, Any]) -> None:
    """Reject an object that its constructor does not make of the same parts.

    This can be told where each argument that the constructor must have is a part, or where the
    class tells which `_arguments` its parts were made from. Others are left at their defaults; that
    inertias have to be `physical` is not asked for, since what was said about it is not stored.
    Words, flags and promises are those that the constructor gives, whatever the file tells.
    """
    cls = type(made)
    given = cls._arguments(fields) if hasattr(cls, "_arguments") else fields
    wanted = inspect.signature(cls).parameters.values()
    if any(p.kind in _MANY or (p.name not in given and p.default is p.empty) for p in wanted):
        return
    arguments = {p.name: given[p.name] for p in wanted if p.name in given}
    if any(p.name == "physical" for p in wanted):
        arguments["physical"] = False
    again = cls(**arguments)
    leaves, others = jax.tree.leaves(made), jax.tree.leaves(again)
    alike = [np.shape(x) for x in leaves] == [np.shape(x) for x in others]
    if alike and not all(map(_agree, leaves, others)):
        raise BadInput(f"the parts of the stored {cls.__name__} contradict each other.")
    if {p.name for p in wanted} <= {*given, "physical"}:  # then words and flags follow as well
        for name in fields:
            value = getattr(again, name)
            if isinstance(value, bool | int | str | frozenset):
                object.__setattr__(made, name, value)


def _agree(one: Any, other: Any) -> bool:
    a, b = np.asarray(one), np.asarray(other)
    return a.dtype == b.dtype and np.allclose(
        a, b, rtol=1e-9, atol=1e-9 * np.max(np.abs(b), initial=0.0), equal_nan=True
    )


def _later(cls: Any, there: set[str]) -> dict[str, Any]:
    """Return the fields that a class has been given since: those with a default."""
    if not (isinstance(cls, type) and issubclass(cls, eqx.Module)):
        return {}
    fields = [field for field in dataclasses.fields(cls) if field.name not in there]
    return {f.name: f.default for f in fields if f.default is not dataclasses.MISSING}


def _parts(cls: Any) -> set[str]:
    """Name the fields of a class of values; reject any other class."""
    if isinstance(cls, type) and issubclass(cls, tuple):
        return set(getattr(cls, "_fields", ()))
    if isinstance(cls, type) and issubclass(cls, eqx.Module):
        return {field.name for field in dataclasses.fields(cls)}
    raise BadInput(f"the file names {cls!r}, which is not a class of values.")


def _decode_partial(data: dict[str, Data], trust: Trust) -> Partial:
    function = _decode(data["partial"], trust)
    if not callable(function):
        raise BadInput(f"the file names {str(data['partial'])[:60]!r}, which is not a function.")
    return Partial(function, *_decode(data["args"], trust), **_decode(data["keywords"], trust))


def _decode_function(data: dict[str, Data], trust: Trust) -> Callable[..., Any]:
    function = _in_retrax(data["function"])
    if isinstance(function, type) or not callable(function):
        raise BadInput(f"the file names {data['function']!r}, which is not a function.")
    return function


def _decode_call(data: dict[str, Data], trust: Trust) -> Any:
    _require_trust(data["factory"], trust)
    function = _import_name(data["factory"])
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
        raise BadInput(f"the factory {data['factory']!r} has no result with number {quote(part)}.")
    return made[part]


def _import_name(reference: str) -> Any:
    """Import a module that the user trusts, and look a name up in it."""
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


_KINDS: dict[str, Callable[[dict[str, Data], Trust], Any]] = {
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
