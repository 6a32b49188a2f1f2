"""What is handed to groups, retractions and spaces: shapes always, numbers where none is traced."""

import inspect
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from importlib import import_module
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import PyTree

from retrax.errors import BadInput, RetraxError
from retrax.groups.other_forms import from_other_form
from retrax.numerics.checks import (
    finite64,
    float64,
    is_traced,
    quote,
    require_finite,
    require_float64,
    require_instance,
)
from retrax.numerics.evaluate import evaluate
from retrax.numerics.platform import require_platform

if TYPE_CHECKING:
    from retrax.groups.base import AbstractLieGroup

_BASE = "retrax.groups.base"
# All groups give their arguments these names: coordinates, elements and tangents to them, algebra.
_VECTORS = {"xi", "eta", "mu", "u"}
_KNOWN = _VECTORS | {"g", "k", "delta", "a", "x", "key", "group", "y", "v"}
# Methods whose elements have to lie on the group.
_ON_THE_GROUP = {"compose", "inverse", "log", "cay_inv", "Ad", "coAd"}
# Methods of spaces that take points beside them.
_BESIDE = {"defect", "project"}
# So far may what a matrix or a velocity stands for be from it, relative to the numbers in it.
_ALLOWED = 1e-9


class _Looks(threading.local):
    """Whether a method runs whose arguments were looked at: what it calls need not look again."""

    done = False


_looks = _Looks()


@contextmanager
def trust_arguments() -> Iterator[None]:
    """Take it that what methods are handed in here is what they are to be handed."""
    before, _looks.done = _looks.done, True
    try:
        yield
    finally:
        _looks.done = before


def element(name: str, value: PyTree, like: PyTree[jax.ShapeDtypeStruct]) -> PyTree:
    """Return `value` with every leaf a float64 array, lists of numbers included."""
    if isinstance(like, tuple) and isinstance(value, tuple | list) and len(value) == len(like):
        return tuple(element(name, v, part) for v, part in zip(value, like, strict=True))
    return value if isinstance(like, tuple) else float64(name, value)


def look_at_arguments(kind: type) -> None:
    """Make the public methods that a class defines reject what is none of their arguments."""
    for name, method in list(vars(kind).items()):
        if inspect.isfunction(method) and (not name.startswith("_") or name == "__call__"):
            parameters = list(inspect.signature(method).parameters.values())[1:]
            if name == "check_membership":
                setattr(kind, name, _after_layout(method))
            elif name == "identity" or (parameters and {p.name for p in parameters} <= _KNOWN):
                setattr(kind, name, _looking(method, parameters))


def _looking(method: Callable[..., Any], parameters: list[inspect.Parameter]) -> Callable[..., Any]:
    names = [parameter.name for parameter in parameters]
    optional = {parameter.name for parameter in parameters if parameter.default is None}

    @wraps(method)
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        given = dict(zip(names, args, strict=False)) | kwargs
        fits = len(given) == len(args) + len(kwargs) and given.keys() <= set(names)
        if not fits or _looks.done:
            return method(self, *args, **kwargs)
        if any(is_traced(x) for x in given.values() if not isinstance(x, Iterator)):
            shaped = {name: _of_shape(self, given, method.__name__, name) for name in given}
            return method(self, **shaped)
        require_platform()
        absent = {name for name in optional & given.keys() if given[name] is None}
        looked = {
            name: None if name in absent else _argument(self, given, method.__name__, name)
            for name, value in given.items()
        }
        with trust_arguments():
            result = method(self, **looked)
        _require_numbers(self, method.__name__, looked, result)
        if method.__name__ == "lift":
            _require_tangent(self, looked["y"], looked["v"], result)
        return result

    return call


def _of_shape(owner: Any, given: dict[str, Any], method: str, name: str) -> PyTree:
    """Return an argument if it has its shape: JAX knows the shapes of what it traces."""
    like, value = _like(owner, given, name), given[name]
    if like is None or value is None:
        return value
    made = element(name, value, like) if isinstance(value, list) else value
    if _shapes(made, like) != _shapes(like, like):
        raise BadInput(
            f"{owner!r}.{method}: {name} is {in_words(value)}, but must be {in_words(like)}."
        )
    return made


def _shapes(value: PyTree, like: PyTree[jax.ShapeDtypeStruct]) -> PyTree:
    """Return the shapes of arrays, nested as they are where an element is a tuple of them."""
    return jax.tree.map(_shape, value) if isinstance(like, tuple) else _shape(value)


def _like(owner: Any, given: dict[str, Any], name: str) -> PyTree[jax.ShapeDtypeStruct]:
    """Return how an argument is to be laid out; `None` of groups and keys."""
    if name in ("y", "v"):
        return owner.layout() if hasattr(owner, "layout") else None  # of a user's own kind
    Group: Any = import_module(_BASE).AbstractLieGroup
    own = owner if isinstance(owner, Group) else getattr(owner, "group", None)
    group: Any = given.get("group", own)
    if name in ("group", "key") or not isinstance(group, Group):
        return None
    if name in _VECTORS:
        return jax.ShapeDtypeStruct((group.dim,), jnp.float64)
    return group.algebra_layout() if name == "x" else group.layout()


def _require_numbers(owner: object, method: str, given: dict[str, PyTree], result: PyTree) -> None:
    """Reject arguments, finite themselves, from which a method makes what is not finite."""
    numbers = (x for x in jax.tree.leaves(result) if isinstance(x, jax.Array))
    if not all(is_traced(x) or np.isfinite(np.asarray(x)).all() for x in numbers):
        shown_all = ", ".join(f"{name} = {quote(value)}" for name, value in given.items())
        raise BadInput(
            f"{owner!r}.{method} is not finite for {shown_all}: numbers of this size overflow, "
            "or the map is singular there."
        )


def _after_layout(method: Callable[..., None]) -> Callable[..., None]:
    """Make a check of numbers say what is wrong with the layout where it cannot read them."""

    @wraps(method)
    def call(self: "AbstractLieGroup", name: str, g: PyTree) -> None:
        try:
            method(self, name, g)
        except RetraxError:
            raise
        except Exception:
            self.check_layout(name, g)
            raise

    return call


def _argument(owner: Any, given: dict[str, object], method: str, name: str) -> PyTree:
    """Return one argument as the method takes it; the sentence about another names the method."""
    try:
        return _take(owner, given, method, name)
    except BadInput as wrong:
        raise BadInput(f"{owner!r}.{method}: {wrong}") from wrong


def _take(owner: Any, given: dict[str, object], method: str, name: str) -> PyTree:
    value = given[name]
    Group: Any = import_module(_BASE).AbstractLieGroup
    if name == "group":
        given_group: Any = require_instance(name, value, Group, "a Lie group, such as SO3()")
        if method != "check":
            owner.check(given_group)
        return given_group
    if name == "key":
        return _key(name, value)
    like: Any = _like(owner, given, name)
    if like is None:
        return value
    if name in _VECTORS:
        return finite64(name, value, like.shape)
    made = element(name, value, like)
    if name in ("y", "v"):
        require_layout(name, made, like, f"laid out as points of {owner.name} are")
        if name == "y" and method not in _BESIDE:
            owner.check(name, made)
        return made
    group: Any = owner if isinstance(owner, Group) else given.get("group", owner.group)
    if name == "x":
        require_layout(name, made, like, f"in the algebra of {group.name}")
        _require_in_algebra(name, made, group)
    elif method in _ON_THE_GROUP:
        group.check(name, made)
    else:
        group.check_layout(name, made)
    return made


def _require_in_algebra(name: str, x: PyTree, group: "AbstractLieGroup") -> None:
    """Reject a matrix that is not that of its own coordinates."""
    off, size = _apart(x, evaluate(_same, group, x)), _largest(x)
    if not off <= _ALLOWED * size:
        raise BadInput(
            f"{name} = {quote(x)} is not in the algebra of {group.name}: it differs by {off:.2g} "
            "from the matrix of its coordinates."
        )


def _require_tangent(space: Any, y: PyTree, v: PyTree, xi: Any) -> None:
    """Reject a velocity that the generator made from it does not lead along."""
    off = _apart(v, evaluate(_lead, space, y, xi))
    if not off <= _ALLOWED * (_largest(v) + _largest(xi) * _largest(y)):
        raise BadInput(
            f"{space!r}.lift: v = {quote(v)} is not tangent to {space.name} at y: it misses the "
            f"tangent space by {off:.2g}."
        )


def _same(group: "AbstractLieGroup", x: PyTree) -> PyTree:
    return group.hat(group.vee(x))


def _lead(space: Any, y: PyTree, xi: jax.Array) -> PyTree:
    return space.tangent(y, xi)


def _largest(x: PyTree) -> float:
    return max(float(np.max(np.abs(leaf), initial=0.0)) for leaf in jax.tree.leaves(x))


def _apart(x: PyTree, y: PyTree) -> float:
    return _largest(jax.tree.map(lambda a, b: np.asarray(a) - np.asarray(b), x, y))


def require_layout(
    name: str, value: PyTree, like: PyTree[jax.ShapeDtypeStruct], where: str
) -> None:
    """Reject a pytree that is not of finite float64 arrays, laid out as `like` is."""
    leaves, structure = jax.tree.flatten(value, is_leaf=lambda x: isinstance(x, Iterator))
    expected, form = jax.tree.flatten(like)
    shapes, wanted = [_shape(x) for x in leaves], [x.shape for x in expected]
    if structure != form or shapes != wanted:
        raise BadInput(
            f"{name} is not {where}: expected {in_words(like)}, "
            f"got {in_words(value)}.{from_other_form(wanted, shapes)}"
        )
    require_float64(name, leaves)
    require_finite(name, leaves)


def _shape(x: object) -> tuple[int, ...]:
    """Return the shape of an array or a number, and of anything else one that nothing has."""
    known = isinstance(x, np.ndarray | np.generic | jax.Array | jax.ShapeDtypeStruct | float | int)
    return np.shape(x) if known else (-1,)


def in_words(x: PyTree) -> str:
    """Describe how a pytree of arrays is laid out; what is no array is shown."""
    if isinstance(x, tuple | list) and not (x and all(isinstance(e, float | int) for e in x)):
        return "a tuple (" + ", ".join(in_words(part) for part in x) + ")"
    if isinstance(x, list | tuple | np.ndarray | jax.Array | jax.ShapeDtypeStruct | float | int):
        return f"an array of shape {np.shape(x)}"
    return quote(x)


def _key(name: str, value: object) -> jax.Array:
    """Return a key of JAX, of the new kind or the old."""
    if isinstance(value, jax.Array):
        new = jnp.issubdtype(value.dtype, jax.dtypes.prng_key) and value.shape == ()
        if new or (value.dtype == jnp.uint32 and value.shape == (2,)):
            return value
    raise BadInput(f"{name} = {quote(value)} is not one key of JAX, such as jax.random.key(0).")
