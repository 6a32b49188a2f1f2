"""What is handed to groups, retractions and spaces, looked at where no program is traced."""

import inspect
from collections.abc import Callable, Iterator
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
    require_finite,
    require_float64,
    require_instance,
    shown,
)
from retrax.numerics.platform import require_platform

if TYPE_CHECKING:
    from retrax.groups.base import AbstractLieGroup

_BASE = "retrax.groups.base"
# All groups give their arguments these names: coordinates, elements and tangents to them, algebra.
_VECTORS = {"xi", "eta", "mu", "u"}
_KNOWN = _VECTORS | {"g", "k", "delta", "a", "x", "key", "group", "y", "v"}
# Methods whose elements have to lie on the group.
_ON_THE_GROUP = {"compose", "inverse", "log", "cay_inv", "Ad", "coAd"}


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
        if not fits or any(is_traced(x) for x in given.values() if not isinstance(x, Iterator)):
            return method(self, *args, **kwargs)
        require_platform()
        absent = {name for name in optional & given.keys() if given[name] is None}
        looked = {
            name: None if name in absent else _argument(self, given, method.__name__, name)
            for name, value in given.items()
        }
        result = method(self, **looked)
        _require_numbers(self, method.__name__, looked, result)
        return result

    return call


def _require_numbers(owner: object, method: str, given: dict[str, PyTree], result: PyTree) -> None:
    """Reject arguments, finite themselves, from which a method makes what is not finite."""
    numbers = (x for x in jax.tree.leaves(result) if isinstance(x, jax.Array))
    if not all(is_traced(x) or np.isfinite(np.asarray(x)).all() for x in numbers):
        shown_all = ", ".join(f"{name} = {shown(value)}" for name, value in given.items())
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
        return _taken(owner, given, method, name)
    except BadInput as wrong:
        raise BadInput(f"{owner!r}.{method}: {wrong}") from wrong


def _taken(owner: Any, given: dict[str, object], method: str, name: str) -> PyTree:
    value = given[name]
    Group: Any = import_module(_BASE).AbstractLieGroup
    if name == "group":
        given_group: Any = require_instance(name, value, Group, "a Lie group, such as SO3()")
        if method != "check":
            owner.check(given_group)
        return given_group
    if name == "key":
        return _key(name, value)
    if name in ("y", "v"):
        like = owner.layout()
        made = element(name, value, like)
        require_layout(name, made, like, f"laid out as points of {owner.name} are")
        return made
    group: Any = (
        owner if isinstance(owner, Group) else given.get("group", getattr(owner, "group", None))
    )
    if name in _VECTORS:
        return finite64(name, value, (group.dim,))
    if name == "x":
        like = jax.eval_shape(group.hat, jax.ShapeDtypeStruct((group.dim,), jnp.float64))
        made = element(name, value, like)
        require_layout(name, made, like, f"in the algebra of {group.name}")
        return made
    made = element(name, value, group.layout())
    if method in _ON_THE_GROUP:
        group.check(name, made)
    else:
        group.check_layout(name, made)
    return made


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
    known = isinstance(x, np.ndarray | np.generic | jax.Array | float | int)
    return np.shape(x) if known else (-1,)


def in_words(x: PyTree) -> str:
    """Describe how a pytree of arrays is laid out; what is no array is shown."""
    if isinstance(x, tuple | list) and not (x and all(isinstance(e, float | int) for e in x)):
        return "a tuple (" + ", ".join(in_words(part) for part in x) + ")"
    if isinstance(x, list | tuple | np.ndarray | jax.Array | jax.ShapeDtypeStruct | float | int):
        return f"an array of shape {np.shape(x)}"
    return shown(x)


def _key(name: str, value: object) -> jax.Array:
    """Return a key of JAX, of the new kind or the old."""
    if isinstance(value, jax.Array):
        new = jnp.issubdtype(value.dtype, jax.dtypes.prng_key) and value.shape == ()
        if new or (value.dtype == jnp.uint32 and value.shape == (2,)):
            return value
    raise BadInput(f"{name} = {shown(value)} is not one key of JAX, such as jax.random.key(0).")
