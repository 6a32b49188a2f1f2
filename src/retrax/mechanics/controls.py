"""Who chooses the inputs of a driven run: whoever steps it, or a law of feedback."""

import abc
import inspect

import jax.numpy as jnp
import numpy as np
from jax.tree_util import Partial
from jaxtyping import Array, Float, PyTree

from retrax.errors import BadInput
from retrax.groups.base import Coordinates, Element
from retrax.mechanics.actuated import Inputs, Law
from retrax.mechanics.functions import Function, arguments, as_pytree
from retrax.mechanics.state import State
from retrax.mechanics.system import AbstractGroupSystem
from retrax.numerics.checks import ArrayLike, output, require_function
from retrax.numerics.frozen import Frozen
from retrax.numerics.modules import Filled

# What a controller keeps from step to step: `State.control`.
Kept = PyTree[Float[Array | np.ndarray, "..."]] | None


class AbstractControl(Frozen):
    """Chooses the inputs of each step, from the state at its start or, as feedback, within it."""

    @property
    def holds(self) -> bool:
        """Whether inputs are held during a step, and may jump at its end."""
        return True

    @abc.abstractmethod
    def check(self, system: AbstractGroupSystem, count: int) -> None:
        """Reject, with `BadInput`, a system and a number of inputs that this does not fit."""

    def check_run(self, t: float, h: float, steps: int) -> str | None:
        """Reject a run of `steps` steps from `t`, or return what it should warn of."""
        return None

    def blank(self, count: int) -> Kept:
        """Return what is kept with `count` inputs, with zeros for all numbers."""
        return None

    def first(self, system: AbstractGroupSystem, state: State, count: int) -> Kept:
        """Return what is kept at the start of a run; of the form of `blank`."""
        return None

    @abc.abstractmethod
    def during(self, state: State, h: Float[Array, ""]) -> Law:
        """Return the inputs `u(g, xi, t)` during the step of size `h` from `state`."""

    def next(
        self, system: AbstractGroupSystem, new: State, kept: Kept, h: Float[Array, ""]
    ) -> Kept:
        """Return what is kept after a step that has led to `new`."""
        return kept


class Held(AbstractControl):
    """Inputs that whoever steps the plant writes into `State.control`, and that are held."""

    def __repr__(self) -> str:
        return "held inputs"

    def check(self, system: AbstractGroupSystem, count: int) -> None:
        return None

    def blank(self, count: int) -> np.ndarray:
        return np.zeros(count)

    def first(self, system: AbstractGroupSystem, state: State, count: int) -> Inputs:
        return jnp.zeros(count)

    def during(self, state: State, h: Float[Array, ""]) -> Law:
        return hold(jnp.asarray(state.control))


class Feedback(AbstractControl):
    """A law $u = $ `law(g, xi, t)`, which acts within the step, at every instant that it uses.

    **Arguments:** `law`: a function of JAX arrays. The arrays of an `equinox.Module`, or those that
    are bound in a `jax.tree_util.Partial`, are parameters: gains that can be differentiated and may
    differ between the members of an ensemble.
    """

    law: Function

    def __init__(self, law: Law):
        self.law = as_pytree(require_function("law", law))

    @property
    def holds(self) -> bool:
        return False

    def __repr__(self) -> str:
        return f"Feedback({law_name(self.law)})"

    def check(self, system: AbstractGroupSystem, count: int) -> None:
        require_inputs(self, output("law", self.law, arguments(system.group)), count)

    def during(self, state: State, h: Float[Array, ""]) -> Law:
        return Partial(_asked, self.law)


def hold(u: Inputs) -> Law:
    """Return the law of inputs that stay as they are."""
    return Partial(_held, u)


def _held(u: Inputs, g: Element, xi: Coordinates, t: Float[Array, ""]) -> Inputs:
    return u


def _asked(law: Function, g: Element, xi: Coordinates, t: Float[Array, ""]) -> Inputs:
    return inputs_of(law(g, xi, t))


def inputs_of(found: ArrayLike) -> Inputs:
    """Return what a law returns as float64."""
    return jnp.asarray(found).astype(jnp.float64)


def law_name(law: Function) -> str:
    """Return what a law is called."""
    if isinstance(law, Partial):
        return law_name(law.func)
    function = inspect.unwrap(law)
    if isinstance(function, Filled):
        return law_name(function.function)
    return getattr(function, "__name__", type(function).__name__)


def require_inputs(control: AbstractControl, found: object, count: int) -> None:
    """Reject a law that does not return one real number for each input."""
    shape, dtype = getattr(found, "shape", None), getattr(found, "dtype", None)
    kinds = jnp.floating, jnp.integer
    real = dtype is not None and any(jnp.issubdtype(dtype, kind) for kind in kinds)
    if shape != (count,) or not real:
        wanted = "1 input, a vector" if count == 1 else f"{count} inputs, a vector"
        raise BadInput(
            f"the law of {control!r} returns {dtype} of shape {shape}, but this plant has "
            f"{wanted} of shape ({count},) of real numbers."
        )
