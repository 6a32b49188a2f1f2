"""A walk through a value, to all that it consists of; `fingerprint` says what for."""

import abc
import re
import struct
import sys
import types
from array import array
from collections import deque
from collections.abc import Hashable, Iterator
from functools import cached_property, partial
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jax.tree_util import Partial

from retrax.numerics.bits import Same, brief_content, content, words_of
from retrax.numerics.reads import (
    AttributePath,
    Reads,
    is_library_class,
    is_library_module,
    is_of_library,
    is_own,
    is_pure,
    is_pure_builtin,
    reads,
)

_Paths = tuple[AttributePath, ...]
_TreeDef = type(jax.tree.structure(0))
# Attributes of a class that say nothing about what its methods do.
_LABELS = frozenset(
    "__dict__ __weakref__ __doc__ __module__ __qualname__ __annotations__ __abstractmethods__ "
    "_abc_impl __dataclass_fields__ __dataclass_params__ __match_args__ __firstlineno__ "
    "__static_attributes__ __parameters__ __orig_bases__ __annotate__ __annotate_func__ "
    "__annotations_cache__ __abstractvars__ __abstractclassvars__".split()
)
_BY_IDENTITY = (
    types.MethodDescriptorType, types.WrapperDescriptorType, types.GetSetDescriptorType,
    types.MemberDescriptorType, type(Reads.names),
)  # fmt: skip
_BY_TEXT = (range, np.dtype, type(Ellipsis), type(NotImplemented))
_NUMBERS = (int, float, complex, str, bytes, bytearray)
_CONTAINERS = (tuple, list, dict, set, frozenset)
_VALUES = (*_NUMBERS, *_CONTAINERS, np.ndarray, jax.Array)
_USUAL = frozenset({types.FunctionType, *_CONTAINERS})
# What `equinox` puts where a field is missing: there is one.
MARKERS = frozenset({type(jax.tree.structure(eqx.Module()).node_data()[1][0])})
# Where `jax.grad` and the like are written, and what checks types and shapes.
_TRANSFORMATIONS = frozenset({"jax._src.api", "jax._src.traceback_util"})
_CHECKER = "jaxtyping._decorator"
# Who closes over more things than this has closed over something like a whole program.
_MOST = 3_000


class Layout(NamedTuple):
    """How an array lies in memory, which a copy in another process need not share."""

    strides: tuple[int, ...]


class ByContent(abc.ABC):
    """A callable that compares by its content, and not by which object it is."""

    @property
    @abc.abstractmethod
    def content(self) -> Any:
        """Everything that it consists of."""


class Walk:
    """One walk through a value. What has been met before is named by its number.

    `complete` is true where everything that was met is known to be what it was compared by. `calls`
    is true where a function or class of the user's is reached through another one.
    """

    def __init__(self) -> None:
        self.complete, self.calls = True, False
        self.inside = 0  # functions of the user's own
        self.seen: dict[int, int] = {}
        # Bound methods and the like live for a moment; another with the same `id` may follow.
        self.alive: list[object] = []

    def of(self, x: Any) -> Hashable:
        kind = type(x)
        if x is None or kind is bool or kind is int or kind is str or kind is bytes:
            return kind, x
        if kind in MARKERS:
            return kind
        if kind is float or kind is complex:
            return kind, repr(x)
        if kind is tuple and {*map(type, x)} == {float}:
            return kind, struct.pack(f"{len(x)}d", *x)  # tables of methods have hundreds
        if kind in _USUAL:
            return self._meet(x) if x else kind
        if isinstance(x, type):
            return self._meet(x) if is_own(x) else self._of_library(x, x.__module__, x.__name__)
        if isinstance(x, np.ndarray | np.generic):
            return self._meet(x) if isinstance(x, np.ndarray) else self._array(x)
        if isinstance(x, Tracer):
            return self._opaque(x)
        if isinstance(x, jax.Array):
            return self._jax_array(x)
        if isinstance(x, _BY_TEXT):
            return kind, repr(x)
        if isinstance(x, slice):
            return kind, self.of((x.start, x.stop, x.step))
        if isinstance(x, re.Pattern):
            return kind, x.pattern, x.flags
        if isinstance(x, types.CodeType):
            return x
        if isinstance(x, types.ModuleType):
            return self._opaque(x)
        return Same(x) if kind is object else self._meet(x)

    def _meet(self, x: Any) -> Hashable:
        number = self.seen.get(id(x))
        if number is not None:
            return "again", number
        if len(self.seen) > _MOST:
            raise OverflowError("more things than a function of mechanics reads")
        self.seen[id(x)] = len(self.seen)
        self.alive.append(x)
        return self._composite(x)

    def _composite(self, x: Any) -> Hashable:
        if isinstance(x, types.FunctionType):
            return self._function(x)
        if isinstance(x, np.ndarray):
            return self._array(x)
        if isinstance(x, _TreeDef):
            return self.tree(x)
        if type(x) in _CONTAINERS:
            return self._container(x)
        if isinstance(x, ByContent):
            return type(x), self.of(x.content)
        if type(x) is deque:
            return deque, x.maxlen, tuple([self.of(item) for item in x])
        if type(x) is array:
            return array, x.typecode, x.tobytes()
        if isinstance(x, type):
            return self._class(x)
        if isinstance(x, types.MethodType):
            return "method", self.of(x.__func__), self.of(x.__self__)
        if type(x) in (partial, Partial):
            named = [(key, self.of(v)) for key, v in x.keywords.items()]
            args = [self.of(v) for v in x.args]
            return type(x).__name__, self.of(x.func), tuple(args), tuple(named)
        if isinstance(x, types.BuiltinFunctionType | types.MethodWrapperType):
            return self._builtin(x)
        if isinstance(x, np.ufunc):
            return self._of_library(x, "numpy", x.__name__)
        if isinstance(x, _BY_IDENTITY):
            return Same(x)
        if isinstance(x, staticmethod | classmethod):
            return type(x).__name__, self.of(x.__func__)
        if isinstance(x, property):
            return "property", self.of(x.fget), self.of(x.fset)
        if isinstance(x, types.MappingProxyType):
            return "proxy", self.of(dict(x))
        if isinstance(x, cached_property):
            return "property", self.of(x.func)
        return self._object(x)

    def _opaque(self, x: object) -> Hashable:
        self.complete = False
        return Same(x)

    def _of_library(self, x: object, module: str, name: str) -> Hashable:
        """Compare what Python or a library has by identity; it is known if it is in a list."""
        return Same(x) if is_pure(module, name) or is_pure_builtin(name, x) else self._opaque(x)

    def _array(self, x: np.ndarray | np.generic) -> Hashable:
        if x.dtype.hasobject:
            return type(x), x.shape, self.of(x.tolist())
        if type(x) is np.ndarray or isinstance(x, np.generic):
            return type(x), x.dtype, x.shape, Layout(x.strides), brief_content(x)
        return self._opaque(x)

    def _jax_array(self, x: jax.Array) -> Hashable:
        if jnp.issubdtype(x.dtype, jax.dtypes.prng_key):
            return "keys", str(x.dtype), content(words_of(x))
        return "jax", str(x.dtype), x.shape, x.aval.weak_type, brief_content(x)

    def _container(self, x: Any) -> Hashable:
        if isinstance(x, dict):
            return type(x), tuple([(self.of(key), self.of(v)) for key, v in x.items()])
        return type(x), tuple([self.of(item) for item in x])  # sets too: a loop sees their order

    def tree(self, tree: Any) -> Hashable:
        """Follow the structure of a pytree: the kind of each node and what is static in it."""
        node = tree.node_data()
        if node is None:
            return "leaf"
        kind, static = node
        if static is not None:
            # Named here, and not by `of`, for speed: this is where every run comes along.
            listed = type(static) is tuple
            static = tuple([self.of(x) for x in static]) if listed else self.of(static)
        children = [self.tree(child) for child in tree.children()]
        return (self._meet(kind) if is_own(kind) else kind, static, *children)

    def _function(self, f: types.FunctionType) -> Hashable:
        if is_of_library(f):
            return self._library_function(f)
        found = reads(f.__code__)
        self.complete = self.complete and found.known
        by_name = zip(found.cells, f.__closure__ or (), strict=True)
        self.calls = self.calls or self.inside > 0
        self.inside += 1
        parts = (
            f.__code__,
            self._defaults(f),
            tuple([self._cell(cell, paths) for (_, paths), cell in by_name]),
            tuple([self._global(f, name, paths) for name, paths in found.names]),
            self.of(f.__dict__) if f.__dict__ else None,
        )
        self.inside -= 1
        return parts

    def _defaults(self, f: types.FunctionType) -> Hashable:
        if not f.__defaults__ and not f.__kwdefaults__:
            return None
        return self.of(f.__defaults__), self.of(f.__kwdefaults__)

    def _library_function(self, f: types.FunctionType) -> Hashable:
        module = f.__globals__["__name__"]
        if module == _CHECKER and hasattr(f, "__wrapped__"):
            return "checked", self.of(f.__wrapped__)
        if not f.__closure__ and not f.__defaults__ and not f.__kwdefaults__:
            return self._of_library(f, module, f.__name__)
        cells = tuple([self._cell(cell, ((),), True) for cell in f.__closure__ or ()])
        if module not in _TRANSFORMATIONS:
            self._of_library(f, module, f.__name__)
        # Made by jax.grad and the like: by its code.
        return f.__code__ if cells else Same(f), self._defaults(f), cells

    def _cell(self, cell: Any, paths: _Paths, of_library: bool = False) -> Hashable:
        try:
            content = cell.cell_contents
        except ValueError:  # a name that has not been given a value
            return "empty"
        if of_library and isinstance(content, types.ModuleType) and is_library_module(content):
            return Same(content)
        return self._along(content, paths)

    def _global(self, f: types.FunctionType, name: str, paths: _Paths) -> Hashable:
        if name in f.__globals__:
            return self._along(f.__globals__[name], paths)
        builtin = f.__builtins__.get(name, self)
        if builtin is self:
            return "missing"
        return Same(builtin) if is_pure_builtin(name, builtin) else self._opaque(builtin)

    def _along(self, x: Any, paths: _Paths) -> Hashable:
        """Return what is read of `x`: all of it, or what paths of attributes lead to."""
        if paths == ((),) or isinstance(x, _VALUES):
            return self.of(x)
        return tuple([self._at(x, path) for path in paths])

    def _at(self, x: Any, path: AttributePath) -> Hashable:
        for k, name in enumerate(path):
            if not isinstance(x, types.ModuleType):
                # What looks up an attribute is a part of the whole, as the whole's class says.
                return path[:k], self.of(x)
            library = is_library_module(x)
            if not library and (type(x) is not types.ModuleType or name not in vars(x)):
                return self._opaque(x)
            try:
                value = getattr(x, name)
            except Exception:
                return self._opaque(x)
            if library and not isinstance(value, types.ModuleType):
                return path[: k + 1], self._identify(x, name, value)
            x = value
        return path, self.of(x)

    def _identify(self, module: types.ModuleType, name: str, value: Any) -> Hashable:
        """Return what a library calls `name`: by identity, or a constant by its value."""
        if isinstance(value, float | int):
            return self.of(value)
        own = module.__name__ == "retrax"  # its names come from all of its packages
        where = getattr(value, "__module__", "") if own else module.__name__
        return Same(value) if is_pure(where, name) else self._opaque(value)

    def _class(self, cls: type) -> Hashable:
        """Follow a class of the user's own: which it is, and everything in it and in its bases."""
        self.calls = True
        if not is_library_class(type(cls)):
            return self._opaque(cls)
        parts = [
            Same(base)
            if is_library_class(base)
            else tuple([(k, self.of(v)) for k, v in vars(base).items() if k not in _LABELS])
            for base in cls.__mro__
        ]
        return Same(cls), _registered_classes(cls), *parts

    def _builtin(self, x: Any) -> Hashable:
        owner = x.__self__
        if isinstance(owner, type):
            self.of(owner)
            return "of", x.__name__, Same(owner)
        if owner is None or isinstance(owner, types.ModuleType):
            module = x.__module__ or "" if owner is None else owner.__name__
            return self._of_library(x, module, x.__name__)
        return "of", x.__name__, self.of(owner)

    def _object(self, x: Any) -> Hashable:
        cls = type(x)
        if not is_own(cls) and _is_named(x):
            return self._of_library(x, x.__module__, x.__name__)
        names = [name for base in cls.__mro__ for name in _slots(base)]
        parts: list[Hashable] = [self.of(cls)]
        if isinstance(x, _NUMBERS):
            plain: Any = next(kind for kind in _NUMBERS if isinstance(x, kind))
            parts.append(plain.__repr__(x))
        elif isinstance(x, _CONTAINERS):
            plain = next(kind for kind in _CONTAINERS if isinstance(x, kind))
            parts.append(self._container(plain(x)))
            parts.append(self.of(getattr(x, "default_factory", None)))
        elif cls.__basicsize__ > _plain_size(cls, len(names)):
            return self._opaque(x)  # it holds something that only a C program sees
        held = getattr(x, "__dict__", None)
        if held:
            parts.append(tuple([(key, self.of(v)) for key, v in held.items()]))
        parts += [(name, self.of(getattr(x, name, None))) for name in names]
        return tuple(parts)


def _registered_classes(cls: type) -> Hashable:
    """Return the classes that an abstract class takes for its own, as `register` has told it."""
    if not isinstance(cls, abc.ABCMeta):
        return None
    return frozenset(map(id, abc._get_dump(cls)[0]))  # type: ignore[attr-defined]


def _is_named(x: Any) -> bool:
    """Tell whether a module of a library has `x` by its own name: jitted functions of JAX are."""
    module, name = getattr(x, "__module__", None), getattr(x, "__name__", None)
    if not isinstance(module, str) or not isinstance(name, str):
        return False
    where = sys.modules.get(module)
    return where is not None and is_library_module(where) and getattr(where, name, None) is x


def _slots(cls: type) -> Iterator[str]:
    """Return the names of the slots of a class, as Python mangles them."""
    names = vars(cls).get("__slots__", ())
    names = (names,) if isinstance(names, str) else names
    for name in names:
        if name not in {"__dict__", "__weakref__"}:
            private = name.startswith("__") and not name.endswith("__")
            yield f"_{cls.__name__.lstrip('_')}{name}" if private else name


def _plain_size(cls: type, count: int) -> int:
    """Return the memory that an object takes where it holds nothing that only a C program sees."""
    held = count + (cls.__dictoffset__ > 0) + (cls.__weakrefoffset__ > 0)
    return object.__basicsize__ + np.dtype(np.intp).itemsize * held
