"""A walk through a value, to all that it consists of; `fingerprint` says what for."""

import logging
import re
import struct
import sys
import types
from array import array
from collections import deque
from collections.abc import Hashable
from functools import cached_property, partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jax.tree_util import Partial

from retrax.numerics.held import (
    Held,
    Same,
    brief_content,
    is_field,
    is_number,
    is_short,
    is_traced_number,
    plain_size,
    slots,
)
from retrax.numerics.reads import (
    IMPURE_BUILTINS,
    AttributePath,
    Reads,
    file_of,
    is_library,
    is_library_class,
    is_of_library,
    is_own,
    is_pure,
    is_pure_name,
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
    np.ufunc, types.MethodDescriptorType, types.WrapperDescriptorType, types.GetSetDescriptorType,
    types.MemberDescriptorType, type(Reads.names), logging.Logger,
)  # fmt: skip
_NOT_COPIED = (
    type, types.BuiltinFunctionType, types.MethodWrapperType, *_BY_IDENTITY, staticmethod,
    classmethod, property, cached_property, types.MappingProxyType, deque, array, _TreeDef,
)  # fmt: skip
_BY_TEXT = (range, slice, np.dtype, re.Pattern, type(Ellipsis), type(NotImplemented))
_NUMBERS = (int, float, complex, str, bytes, bytearray)
_CONTAINERS = (tuple, list, dict, set, frozenset)
_USUAL = frozenset({types.FunctionType, *_CONTAINERS})
# What `equinox` puts where a field is missing: there is one.
MARKERS = frozenset({type(jax.tree.structure(eqx.Module()).node_data()[1][0])})
# What `jax.tree_util.Partial` puts around a `functools.partial`.
_SHIM = type(Partial(partial(max)).func)
# Where `jaxtyping.jaxtyped` is written. What it puts around a function checks types and shapes.
_CHECKER = "jaxtyping._decorator"
# Who closes over more things than this has closed over something like a whole program.
_MOST = 3_000


class Walk:
    """One walk through a value. What has been met before is named by its number."""

    def __init__(self, takes_traced: bool = False) -> None:
        self.complete, self.calls = True, False
        self.takes_traced = takes_traced  # numbers that JAX is tracing are taken out too
        self.inside = 0  # functions of the user's own
        self.seen: dict[tuple[int, bool], int] = {}
        # Numbers taken out; whether all on the way here can be copied, and what that is.
        self.held, self.open = Held(), False
        self.path: list[int] = []
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
        if kind is tuple and not self.open and {*map(type, x)} == {float}:
            return kind, struct.pack(f"{len(x)}d", *x)  # tables of methods have hundreds
        if kind in _USUAL:
            return self._met(x) if x else kind
        if isinstance(x, type):
            return self._met(x) if is_own(x) else self._of_library(x, x.__module__)
        if isinstance(x, np.ndarray | np.generic):
            return self._array(x)
        if isinstance(x, Tracer):
            return self._opaque(x)
        if isinstance(x, jax.Array):
            return self._jax_array(x)
        if isinstance(x, _BY_TEXT):
            return kind, repr(x)
        if isinstance(x, types.CodeType):
            return x
        if isinstance(x, types.ModuleType):
            return Same(x) if is_pure(x) else self._opaque(x)
        return Same(x) if kind is object else self._met(x)

    def function(self, x: Any) -> Hashable:
        """Follow a function of a partial in a pytree, and take out the numbers that it holds."""
        self.open = True
        found = self.of(x)
        self.open = False
        return found

    def _met(self, x: Any) -> Hashable:
        if self.open and isinstance(x, _NOT_COPIED):
            return self._closed(x)
        number = self.seen.get((id(x), self.open))
        if number is not None:
            if self.open and (id(x) in self.held.touched or id(x) in self.path):
                self.held.touched.update(self.path)
            return "again", number
        if len(self.seen) > _MOST:
            raise OverflowError("more things than a function of mechanics reads")
        self.seen[id(x), self.open] = len(self.seen)
        self.alive.append(x)
        if not self.open:
            return self._composite(x)
        self.path.append(id(x))
        found = self._composite(x)
        self.path.pop()
        return found

    def _closed(self, x: Any) -> Hashable:
        """Follow `x`, of which no copy can be made."""
        was, self.open = self.open, False
        found = self.of(x)
        self.open = was
        return found

    def _held(self, x: Any, holder: object, slot: Hashable) -> Hashable:
        """Follow what is held in a place: take it out if it is a number."""
        if self.open and (is_number(x) or (self.takes_traced and is_traced_number(x))):
            return self.held.add(x, holder, slot, self.path)
        return self.of(x)

    def _composite(self, x: Any) -> Hashable:
        if isinstance(x, types.FunctionType):
            return self._function(x)
        if isinstance(x, _TreeDef):
            return self.tree(x)
        if type(x) in _CONTAINERS:
            return self._container(x)
        if type(x) is deque:
            return deque, x.maxlen, tuple([self.of(item) for item in x])
        if type(x) is array:
            return array, x.typecode, x.tobytes()
        if isinstance(x, type):
            return self._class(x)
        if isinstance(x, types.MethodType):
            return "method", self.of(x.__func__), self.of(x.__self__)
        if isinstance(x, partial):
            was, self.open = self.open, self.open and type(x) in (partial, Partial)
            named = [(key, self._held(v, x, key)) for key, v in x.keywords.items()]
            args = [self._held(v, x, k) for k, v in enumerate(x.args)]
            parts = type(x).__name__, self.of(x.func), tuple(args), tuple(named)
            self.open = was
            return parts
        if isinstance(x, types.BuiltinFunctionType | types.MethodWrapperType):
            return self._builtin(x)
        if isinstance(x, _BY_IDENTITY):
            return Same(x)
        if isinstance(x, staticmethod | classmethod):
            return type(x).__name__, self.of(x.__func__)
        if isinstance(x, property):
            return "property", self.of(x.fget)
        if isinstance(x, types.MappingProxyType):
            return "proxy", self.of(dict(x))
        if isinstance(x, cached_property):
            return "property", self.of(x.func)
        return self._object(x)

    def _opaque(self, x: object) -> Hashable:
        self.complete = False
        return Same(x)

    def _of_library(self, x: object, module: str) -> Hashable:
        """Compare a pure function or class of Python's or a library's by identity."""
        return Same(x) if is_pure_name(module) else self._opaque(x)

    def _array(self, x: np.ndarray | np.generic) -> Hashable:
        if x.dtype.hasobject:
            return type(x), x.shape, self.of(x.tolist())
        content = brief_content(x)
        if type(x) is np.ndarray or isinstance(x, np.generic):
            return type(x), x.dtype, x.shape, content
        return Same(type(x)), x.dtype, x.shape, content, self.of(vars(x))

    def _jax_array(self, x: jax.Array) -> Hashable:
        if jnp.issubdtype(x.dtype, jax.dtypes.prng_key):
            return "keys", str(x.dtype), self._jax_array(jax.random.key_data(x))
        return "jax", str(x.dtype), x.shape, x.aval.weak_type, brief_content(x)

    def _container(self, x: Any) -> Hashable:
        kind, was = type(x), self.open
        self.open = was and kind not in (set, frozenset) and is_short(x)
        if isinstance(x, dict):
            pairs = [(self._closed(key), self._held(v, x, key)) for key, v in x.items()]
            found: Hashable = tuple(pairs)
        else:
            parts = [self._held(item, x, k) for k, item in enumerate(x)]
            found = frozenset(parts) if isinstance(x, set | frozenset) else tuple(parts)
        self.open = was
        return kind, found

    def tree(self, tree: Any, takes_out: bool = False) -> Hashable:
        """Follow the structure of a pytree: the kind of each node and what is static in it.

        With `takes_out` the numbers that the functions of its partials hold are taken out.
        """
        node = tree.node_data()
        if node is None:
            return "leaf"
        kind, static = node
        if takes_out and kind is Partial:
            static = self.function(static)
        elif static is not None:
            # Named here, and not by `of`, for speed: this is where every run comes along.
            listed = type(static) is tuple
            static = tuple([self.of(x) for x in static]) if listed else self.of(static)
        children = [self.tree(child, takes_out) for child in tree.children()]
        return (self._met(kind) if is_own(kind) else kind, static, *children)

    def _function(self, f: types.FunctionType) -> Hashable:
        if is_of_library(f):
            was, self.open = self.open, False
            found = self._library_function(f)
            self.open = was
            return found
        found = reads(f.__code__)
        self.held.curious = self.held.curious or not found.plain
        by_name = zip(found.cells, f.__closure__ or (), strict=True)
        self.calls = self.calls or self.inside > 0
        self.inside += 1
        parts = (
            f.__code__,
            self._defaults(f),
            tuple([self._cell(cell, paths) for (_, paths), cell in by_name]),
            tuple([self._global(f, name, paths) for name, paths in found.names]),
            tuple([self._imported(name, taken) for name, taken in found.imports]),
            self._closed(f.__dict__) if f.__dict__ else None,
        )
        self.inside -= 1
        return parts

    def _defaults(self, f: types.FunctionType) -> Hashable:
        if not f.__defaults__ and not f.__kwdefaults__:
            return None
        named = (f.__kwdefaults__ or {}).items()
        values = tuple([self._held(v, f, k) for k, v in enumerate(f.__defaults__ or ())])
        return values, tuple([(key, self._held(v, f, key)) for key, v in named])

    def _library_function(self, f: types.FunctionType) -> Hashable:
        if f.__globals__["__name__"] == _CHECKER and hasattr(f, "__wrapped__"):
            return "checked", self.of(f.__wrapped__)
        cells = [self._cell(cell, ((),)) for cell in f.__closure__ or ()]
        same = self._of_library(f, f.__globals__["__name__"])
        # Made by jax.grad and the like: by its code.
        return f.__code__ if cells else same, self._defaults(f), tuple(cells)

    def _cell(self, cell: Any, paths: _Paths) -> Hashable:
        try:
            content = cell.cell_contents
        except ValueError:  # a name that has not been given a value
            return "empty"
        return self._along(content, paths, cell, None)

    def _global(self, f: types.FunctionType, name: str, paths: _Paths) -> Hashable:
        if name in f.__globals__:
            return self._along(f.__globals__[name], paths, f.__globals__, name)
        if name in IMPURE_BUILTINS:
            self.complete = False
        builtin = f.__builtins__.get(name, self)
        return "missing" if builtin is self else Same(builtin)

    def _imported(self, name: str | None, taken: tuple[str, ...]) -> Hashable:
        module = None if name is None else sys.modules.get(name)
        if module is None or not (taken or is_pure(module)):
            self.complete = False
            return name
        return self._along(module, tuple((attribute,) for attribute in taken), module, None)

    def _along(self, x: Any, paths: _Paths, holder: object, slot: Hashable) -> Hashable:
        """Return what is read of `x`: all of it, or what paths of attributes lead to."""
        if self.open and (is_number(x) or (self.takes_traced and is_traced_number(x))):
            return self.held.add(x, holder, slot, self.path)
        if paths == ((),) or isinstance(x, (*_NUMBERS, *_CONTAINERS, np.ndarray, jax.Array)):
            return self.of(x)
        return tuple([self._at(x, path) for path in paths])

    def _at(self, x: Any, path: AttributePath) -> Hashable:
        was, depth = self.open, len(self.path)
        found = self._followed(x, path)
        self.open = was
        del self.path[depth:]
        return found

    def _followed(self, x: Any, path: AttributePath) -> Hashable:
        for k, name in enumerate(path):
            library = isinstance(x, types.ModuleType) and is_library(x.__name__, file_of(x))
            if library and not is_pure(x):
                return self._opaque(x)
            try:
                value = getattr(x, name)
            except AttributeError:
                return "missing", name, self.of(x)
            except Exception:  # whatever a property raises
                return self._opaque(x)
            if library and not isinstance(value, types.ModuleType | float | int):
                return Same(value)
            self.open = self.open and is_field(x, name)
            self.path.append(id(x))
            if isinstance(value, (*_NUMBERS, *_CONTAINERS, np.ndarray, jax.Array)):
                return path[: k + 1], self._held(value, x, name)
            x = value
        return path, self.of(x)

    def _class(self, cls: type) -> Hashable:
        """Follow a class of the user's own: which it is, and everything in it and in its bases."""
        self.calls, was, self.open = True, self.open, False
        own = [base for base in cls.__mro__ if not is_library_class(base)]
        parts = [
            tuple([(k, self.of(v)) for k, v in vars(base).items() if k not in _LABELS])
            for base in own
        ]
        self.open = was
        return Same(cls), *parts

    def _builtin(self, x: Any) -> Hashable:
        owner = x.__self__
        if isinstance(owner, type):
            self.of(owner)
            return "of", x.__name__, Same(owner)
        if owner is None or isinstance(owner, types.ModuleType):
            return Same(x) if owner is None or is_pure(owner) else self._opaque(x)
        return "of", x.__name__, self.of(owner)

    def _wrapper(self, x: Any) -> Hashable:
        """Look into what `jax.jit` and `functools.lru_cache`, written in C, made of a function."""
        wrapped = getattr(x, "__wrapped__", None)
        if not isinstance(wrapped, types.FunctionType):
            return self._opaque(x)
        if is_of_library(wrapped) and not wrapped.__closure__:
            return Same(x)
        self.calls = True
        return "wrapped", self._closed(type(x)), self._closed(wrapped)

    def _object(self, x: Any) -> Hashable:
        cls = type(x)
        names = [name for base in cls.__mro__ for name in slots(base)]
        parts: list[Hashable] = [self._closed(cls)]
        was = self.open
        if isinstance(x, _NUMBERS):
            plain: Any = next(kind for kind in _NUMBERS if isinstance(x, kind))
            parts.append(plain.__repr__(x))
        elif isinstance(x, _CONTAINERS):
            plain = next(kind for kind in _CONTAINERS if isinstance(x, kind))
            self.open = False
            parts.append(self._container(plain(x)))
            parts.append(self.of(getattr(x, "default_factory", None)))
        elif cls.__basicsize__ > plain_size(cls, len(names)):
            return self._wrapper(x)
        held = getattr(x, "__dict__", None)
        if held:
            self.open = self.open and not names and (is_own(cls) or cls is _SHIM)
            self.open = self.open and all(is_field(x, name) for name in held)
            parts.append(tuple([(key, self._held(v, x, key)) for key, v in held.items()]))
        self.open = False
        parts += [(name, self.of(getattr(x, name, None))) for name in names]
        self.open = was
        return tuple(parts)
