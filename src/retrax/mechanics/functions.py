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
from retrax.numerics.checks import finite_rows
from retrax.numerics.known import require_each


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


def require_not_constant(name: str, function: Any, given: tuple) -> None:
    """Refuse a function that returns no number whatever it is given.

    Where it is undefined at some places only, `require_energy` looks at those at which runs start.
    """
    (out,) = jax.make_jaxpr(lambda *x: jnp.asarray(function(*x)))(*given).jaxpr.outvars
    value = getattr(out, "val", None)  # of a literal, which depends on nothing
    if value is not None and not np.isfinite(value):
        raise BadInput(f"{name} is {value} everywhere: it must be a number.")


def require_energy(name: str, value: Any) -> None:
    """Refuse the value of an energy at a start that is no number.

    Its slopes may be finite where it is not, and a run would not notice.
    """

    def check(value: np.ndarray) -> None:
        if not np.isfinite(value).all():
            raise BadInput(
                f"{name} is {value} in this state: it must be a number where a run starts."
            )

    require_each(check, value, fine=finite_rows)
