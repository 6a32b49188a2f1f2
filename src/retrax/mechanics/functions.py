"""What a user hands to a system: checked once, carried as pytrees."""

from types import MethodType
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.tree_util import Partial

from retrax.errors import BadInput
from retrax.groups.base import AbstractLieGroup


def require_group(group: Any) -> AbstractLieGroup:
    """Refuse anything that is not a group object."""
    if not isinstance(group, AbstractLieGroup):
        raise BadInput(f"group = {group!r} is not a Lie group; pass an instance, such as SO3().")
    return group


def as_pytree(function: Any) -> Any:
    """A function that passes through `jax.jit`: modules and partials as they are, others wrapped.

    Arrays held by an `equinox.Module`, the function itself or the object whose method it is, or
    bound in a `jax.tree_util.Partial` stay parameters: they can be differentiated and may differ
    between the members of an ensemble.
    """
    if function is None or isinstance(function, eqx.Module | Partial):
        return function
    if isinstance(function, MethodType) and isinstance(function.__self__, eqx.Module):
        return Partial(function.__func__, function.__self__)
    return Partial(function)


def arguments(group: AbstractLieGroup) -> tuple:
    """What functions are given, without the numbers: `g`, a vector or covector, and `t`."""
    coordinates = jax.ShapeDtypeStruct((group.dim,), jnp.float64)
    return group.layout(), coordinates, jax.ShapeDtypeStruct((), jnp.float64)


def require_output(name: str, function: Any, arguments: tuple, shape: tuple[int, ...]) -> None:
    """Refuse a function that cannot be traced or that returns something of another shape."""
    if function is None:
        return
    if not callable(function):
        raise BadInput(f"{name} = {function!r} must be a function of JAX arrays.")
    try:
        out = jax.eval_shape(lambda *a: jnp.asarray(function(*a)), *arguments)
    except Exception as cause:
        raise BadInput(
            f"{name} cannot be evaluated on JAX arrays: {type(cause).__name__}: {cause}"
        ) from cause
    if out.shape != shape or not jnp.issubdtype(out.dtype, jnp.floating):
        wanted = "a real number" if shape == () else f"real numbers of shape {shape}"
        raise BadInput(
            f"{name} returns {out.dtype} of shape {out.shape}, but it must return {wanted}."
        )
