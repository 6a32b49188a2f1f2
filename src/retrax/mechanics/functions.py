"""What a user hands to a system: checked once, carried as pytrees."""

from types import MethodType
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.tree_util import Partial

from retrax.errors import BadInput
from retrax.groups.base import AbstractLieGroup
from retrax.numerics.checks import is_traced

# At so many random elements an energy is looked at before it is said to be a number nowhere.
_PLACES = 3


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


def uses_velocity(force: Any, group: AbstractLieGroup) -> bool:
    """Whether `force(g, xi, t)` depends on `xi`, as far as its operations show."""
    g, xi, t = arguments(group)
    program = jax.make_jaxpr(lambda xi, g, t: jnp.asarray(force(g, xi, t)))(xi, g, t).jaxpr
    velocity = program.invars[0]
    read = [v for equation in program.eqns for v in equation.invars] + list(program.outvars)
    return any(v is velocity for v in read)


def require_energy(name: str, energy: Any, group: AbstractLieGroup, *fibre: Any) -> None:
    """Refuse an energy that is a number nowhere: its slopes may be, and a run would not notice.

    It is looked at where the group is the identity and, where it is singular there, at random
    elements.
    """
    keys = jax.random.split(jax.random.key(7), _PLACES)
    for k in range(-1, _PLACES):
        g = group.identity() if k < 0 else group.random(keys[k])
        value = energy(g, *fibre)
        if is_traced(value) or np.isfinite(np.asarray(value)).all():
            return
    raise BadInput(f"{name} is {value} at the identity and at random places: it must be a number.")
