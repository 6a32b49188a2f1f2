"""What does not change while a process runs: Python's own modules, JAX, NumPy and retrax."""

import sys
import sysconfig
from functools import lru_cache
from types import FunctionType, ModuleType
from typing import Any

_PYTHON = str(sysconfig.get_path("stdlib"))
_LIBRARIES = frozenset(
    "jax jaxlib numpy scipy equinox jaxtyping beartype ml_dtypes opt_einsum retrax".split()
)
# Modules of Python in which every function returns the same for the same arguments.
_PURE = frozenset(
    "__future__ _collections_abc _functools _operator _abc abc bisect builtins cmath collections "
    "contextlib copy dataclasses enum fractions functools heapq itertools logging math numbers "
    "operator re statistics string textwrap types typing warnings".split()
)
_IMPURE = frozenset({"numpy.random"})
IMPURE_BUILTINS = frozenset(
    {"open", "input", "eval", "exec", "globals", "locals", "vars", "id", "__import__", "compile"}
)


@lru_cache(maxsize=1024)
def is_own(cls: type) -> bool:
    """Whether a class, or one that it derives from, is the user's."""
    return not all(map(is_library_class, cls.__mro__))


def is_library_class(cls: type) -> bool:
    """Classes made by `dataclasses.make_dataclass` and the like say they were of Python's own."""
    module = sys.modules.get(cls.__module__)
    if not is_library(cls.__module__, file_of(module)):
        return False
    first = cls.__qualname__.partition(".")[0]
    return cls.__module__.partition(".")[0] in _LIBRARIES or hasattr(module, first)


def is_of_library(f: FunctionType) -> bool:
    """By the module that it was written in; `functools.wraps` gives it the name of another."""
    return is_library(f.__globals__.get("__name__"), f.__globals__.get("__file__"))


def file_of(module: Any) -> str | None:
    """The file of a module; those built into Python have none."""
    return getattr(module, "__file__", None)


@lru_cache(maxsize=4096)
def is_library(module: str | None, file: str | None) -> bool:
    """Whether this is Python's or one of the libraries that do not change.

    A module of the user's may have the name of one of Python's, but lies elsewhere.
    """
    top = (module or "").partition(".")[0]
    if top in _LIBRARIES:
        return True
    return top in sys.stdlib_module_names and (file is None or _lies_in_python(file))


def _lies_in_python(file: str) -> bool:
    return file.startswith(_PYTHON) and "-packages" not in file


def is_pure(module: ModuleType) -> bool:
    """Whether functions of a module depend on nothing but their arguments."""
    name = module.__name__
    return is_pure_name(name) and is_library(name, file_of(module))


@lru_cache(maxsize=4096)
def is_pure_name(name: str) -> bool:
    """The same, of the name of a module that is known to be of a library."""
    top = name.partition(".")[0]
    return (top in _LIBRARIES or top in _PURE) and name not in _IMPURE
