"""Numbers that functions hold, taken out and put back: parameters where they were constants.

A function holds numbers in its closure, its defaults, the globals that it names, the arguments of
a partial, the fields of the object whose method it is, and in tuples, lists and dictionaries there.
`Held` lists those that can be replaced; `replaced` makes a function anew with others in their
places, traced ones among them. Nothing of the user's is changed: what holds a number is copied.

A traced number is no Python number. A function that asks for types, or that catches errors, might
go another way with it and not say so: `is_curious` names those, and their numbers stay as they are.
"""

import hashlib
import types
from collections.abc import Hashable, Iterator, Mapping
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jax.tree_util import Partial

from retrax.numerics.reads import reads

# A number's place: what holds it, by its identity, and where in there.
Place = tuple[int, Hashable]
# Containers with more entries than this are tables of a program, not numbers that a user changes.
_MOST_ENTRIES = 64
# Arrays of more bytes than this are compared by their checksums.
_LONG = 256
# Stands for a copy that is being made.
_UNFINISHED = object()


class Same:
    """Something that is compared by identity."""

    __slots__ = ("it",)

    def __init__(self, it: object):
        self.it = it

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Same) and self.it is other.it

    def __hash__(self) -> int:
        return id(self.it)


class Held:
    """Numbers in order, with their places, and all that must be copied to replace them."""

    def __init__(self) -> None:
        self.values: list[Any] = []
        self.places: dict[Place, int] = {}
        self.touched: set[int] = set()
        self.curious = False

    def add(self, x: Any, holder: object, slot: Hashable, path: list[int]) -> Hashable:
        """Note a number in its place; return what a program depends on of it."""
        place = (id(holder), slot)
        self.touched.update(path)
        if place not in self.places:
            self.places[place] = len(self.values)
            self.values.append(x)
        return "held", type(x), np.shape(x), self.places[place]

    def contents(self) -> tuple[bytes, ...]:
        """Return the bits of all numbers."""
        return tuple([content(x) for x in self.values])


def content(x: Any) -> bytes:
    """Return the bits of a number or an array."""
    return np.asarray(x).tobytes()


def brief_content(x: Any) -> bytes:
    """Return the bits of an array, or their checksum if there are many."""
    bits = content(x)
    return bits if len(bits) <= _LONG else hashlib.sha256(bits).digest()


def is_number(x: Any) -> bool:
    """Tell whether `x` is a float64 number or array, which a traced one can stand for."""
    kind = type(x)
    if kind is float or kind is np.float64:
        return True
    if kind is np.ndarray:
        return x.dtype == np.float64
    return isinstance(x, jax.Array) and not isinstance(x, Tracer) and x.dtype == jnp.float64


def is_traced_number(x: Any) -> bool:
    """Tell whether `x` is a float64 number or array that JAX is tracing."""
    return isinstance(x, Tracer) and jax.typeof(x).dtype == jnp.float64


def is_field(x: Any, name: str) -> bool:
    """Tell whether an attribute is a field of `x` itself, and `x` is copied by copying its fields.

    A finalizer would run for the copy too.
    """
    cls = type(x)
    if isinstance(x, type | types.ModuleType) or hasattr(cls, "__del__"):
        return False
    return name in getattr(x, "__dict__", ()) and not hasattr(getattr(cls, name, None), "__set__")


def slots(cls: type) -> Iterator[str]:
    """Return the names of the slots of a class, as Python mangles them."""
    names = vars(cls).get("__slots__", ())
    names = (names,) if isinstance(names, str) else names
    for name in names:
        if name not in {"__dict__", "__weakref__"}:
            private = name.startswith("__") and not name.endswith("__")
            yield f"_{cls.__name__.lstrip('_')}{name}" if private else name


def plain_size(cls: type, count: int) -> int:
    """Return the memory that an object takes where it holds nothing that only a C program sees."""
    held = count + (cls.__dictoffset__ > 0) + (cls.__weakrefoffset__ > 0)
    return object.__basicsize__ + np.dtype(np.intp).itemsize * held


def is_short(x: tuple | list | dict) -> bool:
    """Tell whether a container has so few entries that they may be numbers of a user's."""
    return len(x) <= _MOST_ENTRIES


def example(x: Any) -> jax.ShapeDtypeStruct:
    """Return what a traced number that stands for `x` looks like to JAX."""
    weak = type(x) is float or (isinstance(x, jax.Array) and x.aval.weak_type)
    return jax.ShapeDtypeStruct(np.shape(x), np.float64, weak_type=weak)


def replaced(tree: Any, held: Held, numbers: Mapping[int, Any]) -> Any:
    """Return a pytree whose functions hold other numbers, given by their places in `held.values`.

    **Raises:** `LookupError` where a number has not been found again.
    """
    copies = _Copies(held, numbers)
    new = copies.tree(tree)
    if copies.found != set(numbers):
        raise LookupError("a number that a function holds is not where it was found")
    return new


class _Copies:
    """Copies of what holds numbers that are replaced; each is made once."""

    def __init__(self, held: Held, numbers: Mapping[int, Any]):
        self.held, self.numbers = held, numbers
        self.found: set[int] = set()
        self.made: dict[int, Any] = {}
        self.cells: dict[int, types.CellType] = {}

    def tree(self, x: Any) -> Any:
        """Return a pytree with the functions of its partials replaced."""

        def swap(node: Any) -> Any:
            if not isinstance(node, Partial):
                return node
            return Partial(self.of(node.func), *self.tree(node.args), **self.tree(node.keywords))

        return jax.tree.map(swap, x, is_leaf=lambda node: isinstance(node, Partial))

    def at(self, x: Any, holder: object, slot: Hashable) -> Any:
        """Return what takes the place of `x` in its holder."""
        index = self.held.places.get((id(holder), slot))
        if index is None or index not in self.numbers:
            return self.of(x)
        self.found.add(index)
        return self.numbers[index]

    def of(self, x: Any) -> Any:
        if id(x) not in self.held.touched:
            return x
        if id(x) not in self.made:
            self.made[id(x)] = _UNFINISHED
            self.made[id(x)] = self._copy(x)
        if self.made[id(x)] is _UNFINISHED:
            raise LookupError("what holds a number holds itself")
        return self.made[id(x)]

    def _copy(self, x: Any) -> Any:
        if isinstance(x, types.FunctionType):
            return self._function(x)
        if isinstance(x, types.MethodType):
            return types.MethodType(self.of(x.__func__), self.of(x.__self__))
        if isinstance(x, partial):
            args = [self.at(v, x, k) for k, v in enumerate(x.args)]
            named = {k: self.at(v, x, k) for k, v in x.keywords.items()}
            return type(x)(self.of(x.func), *args, **named)
        if type(x) is dict:
            named = self.made[id(x)] = {}
            named.update({key: self.at(v, x, key) for key, v in x.items()})
            return named
        if type(x) is list:
            items = self.made[id(x)] = []
            items.extend([self.at(v, x, k) for k, v in enumerate(x)])
            return items
        if type(x) is tuple:
            return tuple([self.at(v, x, k) for k, v in enumerate(x)])
        plain = type(x) is types.SimpleNamespace
        new = types.SimpleNamespace() if plain else object.__new__(type(x))
        self.made[id(x)] = new
        vars(new).update({name: self.at(v, x, name) for name, v in vars(x).items()})
        return new

    def _function(self, f: types.FunctionType) -> types.FunctionType:
        closure = f.__closure__ or ()
        # Functions that were made together share their cells, and so do their copies.
        fresh = {id(cell): cell for cell in closure if id(cell) not in self.cells}
        self.cells.update({key: types.CellType() for key in fresh})
        cells = tuple([self.cells[id(cell)] for cell in closure])
        names = self._names(f)
        new = types.FunctionType(f.__code__, names, f.__name__, None, cells)
        self.made[id(f)] = new
        new.__dict__.update(f.__dict__)
        if f.__defaults__:
            new.__defaults__ = tuple(self.at(v, f, k) for k, v in enumerate(f.__defaults__))
        if f.__kwdefaults__:
            new.__kwdefaults__ = {k: self.at(v, f, k) for k, v in f.__kwdefaults__.items()}
        for key, old in fresh.items():
            try:
                self.cells[key].cell_contents = self.at(old.cell_contents, old, None)
            except ValueError:  # a name that has not been given a value
                continue
        for name, _ in reads(f.__code__).names:
            if name in f.__globals__:
                names[name] = self.at(f.__globals__[name], f.__globals__, name)
        return new

    def _names(self, f: types.FunctionType) -> dict[str, Any]:
        """Return the one copy of the globals that all copies of functions share."""
        return self.made.setdefault(id(f.__globals__), dict(f.__globals__))
