"""Functions that a user hands to a system: checked once, carried as pytrees."""

import inspect
from collections.abc import Callable, Sequence
from types import FunctionType, MethodType
from typing import Any, overload

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.tree_util import Partial
from jaxtyping import Array, Float, PyTree

from retrax.errors import BadInput
from retrax.groups.base import AbstractLieGroup, Coordinates, Element
from retrax.numerics.bounds import is_never_a_number
from retrax.numerics.checks import finite_rows, reason, require_function, require_output
from retrax.numerics.frozen import Frozen
from retrax.numerics.known import require_each
from retrax.numerics.looks import UserFunction, is_plain
from retrax.numerics.modules import Filled, Held
from retrax.numerics.reads import is_of_library, is_pure

# A function of JAX arrays, of whatever arguments the place that takes it names.
Function = Callable[..., Any]
# The external body covector f(g, xi, t).
Force = Callable[[Element, Coordinates, Float[Array, ""]], Coordinates]


@overload
def as_pytree(function: None) -> None: ...
@overload
def as_pytree(function: Function) -> Function: ...
def as_pytree(function: Function | None) -> Function | None:
    """Return a function that passes through `jax.jit`; modules of retrax stay as they are.

    Arrays held by an `equinox.Module`, the function itself or the object whose method it is, or
    bound in a `jax.tree_util.Partial` are parameters: they can be differentiated and may differ
    between the members of an ensemble. What the user wrote is called as a `UserFunction`, so that
    a program which was made from it is known to be of what it does now. `None` stays `None`.
    """
    if function is None:
        return None
    given: Any = function
    if isinstance(function, MethodType) and isinstance(function.__self__, eqx.Module):
        given = Partial(function.__func__, function.__self__)
    if isinstance(given, Partial):
        func, arguments = _users(given.func), jax.tree.structure((given.args, given.keywords))
        if func is given.func or is_plain(arguments):
            return _share(func, given)
    elif not isinstance(given, eqx.Module):
        return Partial(_users(given))
    elif type(given).__module__.startswith("retrax."):
        return function
    return Partial(UserFunction(Filled(given)), Held(given))


def _share(function: Function, partial: Any) -> Partial:
    """Return a partial function of the same arguments, and of no copy of their dictionary."""
    shared: Any = Partial(function)
    shared.__setstate__((function, partial.args, partial.keywords, {}))
    return shared


def _users(function: Function) -> Function:
    """Return a function of the user's as such; those of retrax's mechanics are what they are."""
    plain = isinstance(function, FunctionType) and not function.__closure__
    if isinstance(function, UserFunction) or (
        plain
        and is_of_library(function)
        and is_pure(function.__globals__["__name__"], function.__name__)
    ):
        return function
    return UserFunction(function)


def arguments(
    group: AbstractLieGroup,
) -> tuple[PyTree[jax.ShapeDtypeStruct], jax.ShapeDtypeStruct, jax.ShapeDtypeStruct]:
    """Return what functions are given, without the numbers: `g`, a vector or covector, and `t`."""
    coordinates = jax.ShapeDtypeStruct((group.dim,), jnp.float64)
    return group.layout(), coordinates, jax.ShapeDtypeStruct((), jnp.float64)


def takes_time(name: str, function: object, of: Sequence[str]) -> bool:
    """Read from its signature whether a function wants the time beside the arguments `of`.

    It does where it has one more parameter without a default, or one that is called `t`.
    """
    if not callable(function):
        return False
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except ValueError:  # some callables of other languages have no signature
        return False
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    places = [p for p in parameters if p.kind in kinds]
    needed = [p.name for p in places if p.default is p.empty]
    if len(needed) > len(of) + 1:
        call = ", ".join(of)
        raise BadInput(
            f"{name} takes the arguments {', '.join(needed)}, but it is called as {name}({call}) "
            f"or {name}({call}, t); bind the others with jax.tree_util.Partial."
        )
    return len(needed) == len(of) + 1 or (len(places) > len(of) and places[len(of)].name == "t")


class Moving(Frozen):
    """An energy that depends on time, of a system whose clock has not been set.

    **Attributes:** `function`: the energy, with the time as its last argument.
    """

    function: Function

    def __call__(self, *given: Any) -> Any:
        raise BadInput(
            "this energy depends on time, so ask system.at_time(t) for momenta, velocities, forces "
            "and energies at the time t."
        )

    def at(self, t: Float[Array, ""]) -> "Stopped":
        """Return the energy at one time."""
        return Stopped(self.function, t)


class Stopped(Frozen):
    """An energy that depends on time, at the time `t`."""

    function: Function
    t: Float[Array, ""]

    def __call__(self, *given: Any) -> Float[Array, ""]:
        return self.function(*given, self.t)


def uses_velocity(force: Force, group: AbstractLieGroup) -> bool:
    """Tell whether an operation of `force(g, xi, t)` reads `xi`."""
    g, xi, t = arguments(group)
    program = jax.make_jaxpr(lambda xi, g, t: jnp.asarray(force(g, xi, t)))(xi, g, t).jaxpr
    velocity = program.invars[0]
    read = [v for equation in program.eqns for v in equation.invars] + list(program.outvars)
    return any(v is velocity for v in read)


def check_energy(
    name: str, energy: object, given: tuple[PyTree, ...], of: Sequence[str]
) -> Function:
    """Return an energy as a pytree if it is a function of `given` that returns a real number.

    Its arguments are called `of`; where it takes the time too, it comes as `Moving`. Reject one
    that is NaN or infinite whatever it is given, and one without a gradient. Where it is undefined
    at some places only, `require_energy` looks at those at which runs start.
    """
    timed = takes_time(name, energy, of)
    given = (*given, jax.ShapeDtypeStruct((), jnp.float64)) if timed else given
    require_output(name, energy, given, ())
    function = as_pytree(require_function(name, energy))
    program = jax.make_jaxpr(lambda *x: jnp.asarray(function(*x)))(*given)
    # The value of a literal depends on nothing.
    value = getattr(program.jaxpr.outvars[0], "val", np.nan if is_never_a_number(program) else 0.0)
    if not np.isfinite(value):
        raise BadInput(f"{name} is {value} everywhere: it must be a number.")
    _require_gradient(name, function, given)
    return Moving(function) if timed else function


def _require_gradient(name: str, energy: Function, given: tuple[PyTree, ...]) -> None:
    """Reject an energy that JAX cannot differentiate: there would be no forces."""
    slope = jax.grad(lambda *x: jnp.asarray(energy(*x)), argnums=tuple(range(len(given))))
    try:
        jax.eval_shape(slope, *given)
    except BadInput:
        raise
    except Exception as cause:
        raise BadInput(
            f"{name} has no gradient, and so there are no forces: {reason(cause)}."
        ) from cause


def require_energy(name: str, value: Float[Array, ""] | Float[np.ndarray, ""]) -> None:
    """Reject a start at which an energy is not finite.

    Its slopes may be finite where it is not, and a run would not notice.
    """

    def check(value: np.ndarray) -> None:
        if not np.isfinite(value).all():
            raise BadInput(
                f"{name} is {value} in this state: it must be a number where a run starts."
            )

    require_each(check, value, fine=finite_rows)
