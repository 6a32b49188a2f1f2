"""Whether two sweeps are the same: a digest of every number and of the code of every function."""

import dataclasses
import hashlib
import re
from functools import partial
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any

import jax
import numpy as np
from jax.tree_util import Partial

from retrax.simulate.sweeping.closures import Code

_ADDRESS = re.compile(r" at 0x[0-9a-f]+")


def digest(x: Any) -> str:
    """Equal in every process for equal numbers and equal code, and nearly never otherwise."""
    return hashlib.sha256("\n".join(_described(x, set())).encode()).hexdigest()[:16]


def _described(x: Any, seen: set[int]) -> list[str]:
    """Lines that say what `x` is, without addresses; what is being described is not gone into."""
    if isinstance(x, np.ndarray | np.generic | jax.Array):
        array = np.asarray(x)
        return [f"{array.dtype} {array.shape} {hashlib.sha256(array.tobytes()).hexdigest()}"]
    if x is None or isinstance(x, bool | int | float | complex | str | bytes):
        return [repr(x)]
    if isinstance(x, ModuleType | type | BuiltinFunctionType):
        return [getattr(x, "__qualname__", x.__name__)]
    if id(x) in seen:
        return ["again"]
    seen = seen | {id(x)}
    return [type(x).__qualname__, *(line for part in _parts(x) for line in _described(part, seen))]


def _parts(x: Any) -> list[Any]:
    """What something consists of; its text where there is nothing else to go by."""
    if isinstance(x, Code):
        return [x.function, x.held]
    if isinstance(x, Partial | partial):
        return [x.func, x.args, x.keywords]
    if isinstance(x, MethodType):
        return [x.__func__, x.__self__]
    if isinstance(x, FunctionType):
        return _parts_of_function(x)
    if isinstance(x, CodeType):
        return [x.co_code, x.co_names, x.co_varnames, *x.co_consts]
    if isinstance(x, dict):
        return [part for item in x.items() for part in item]
    if isinstance(x, tuple | list):
        return list(x)
    if isinstance(x, set | frozenset):
        return sorted(map(repr, x))
    if dataclasses.is_dataclass(x):
        return [getattr(x, f.name, None) for f in dataclasses.fields(x)]
    return [_ADDRESS.sub("", repr(x))]


def _parts_of_function(function: FunctionType) -> list[Any]:
    """Its code, the values it has closed over, and the numbers and functions it finds by name.

    A function of an installed package is known by its name.
    """
    here = function.__module__ or ""
    if here.split(".")[0] in ("jax", "jaxlib", "numpy", "equinox", "retrax"):
        return [here, function.__qualname__]
    cells = []
    for cell in function.__closure__ or ():
        try:
            cells.append(cell.cell_contents)
        except ValueError:  # a name that has not been given a value
            cells.append(None)
    named = [function.__globals__.get(name) for name in function.__code__.co_names]
    defaults = [function.__defaults__, function.__kwdefaults__]
    return [function.__code__, *defaults, *cells, *named]
