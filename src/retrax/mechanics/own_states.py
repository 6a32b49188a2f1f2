"""States handed to the methods of a system, which are states of that system."""

import inspect
from collections.abc import Callable
from functools import wraps
from typing import Any

import jax
import numpy as np

from retrax.errors import BadInput
from retrax.groups.arguments import in_words
from retrax.mechanics.state import as_state

# Methods that also take states stacked along time.
_STACKED = {"pose"}


def look_at_states(kind: type) -> None:
    """Make the public methods that a class defines reject the states of other systems."""
    for name, method in list(vars(kind).items()):
        if inspect.isfunction(method) and not name.startswith("_"):
            names = list(inspect.signature(method).parameters)
            if "state" in names:
                setattr(kind, name, _looking(method, names.index("state") - 1))


def _looking(method: Callable[..., Any], place: int) -> Callable[..., Any]:
    @wraps(method)
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        if len(args) > place or "state" in kwargs:  # or else Python says what is missing
            state = args[place] if len(args) > place else kwargs["state"]
            require_own(self, state, stacked=method.__name__ in _STACKED)
        return method(self, *args, **kwargs)

    return call


def require_own(system: Any, state: object, stacked: bool = False) -> None:
    """Reject what is not a state of the system, by its shapes, which JAX knows of what it traces.

    With `stacked` more axes may come first.
    """
    given, where = as_state(state), system.configuration_space
    if not hasattr(where, "layout"):  # a space of the user's that only moves points
        return
    like = where.layout()
    axes = np.ndim(given.momentum) - 1 if stacked else 0
    leaves, tree = jax.tree.flatten(given.g)
    wanted, expected = jax.tree.flatten(like)
    shapes = [np.shape(x)[axes:] for x in (*leaves, given.momentum)]
    if tree != expected or shapes != [*(x.shape for x in wanted), (system.group.dim,)]:
        raise BadInput(
            f"state is not one of the {system.name}: its g is {in_words(given.g)} and its momentum "
            f"{in_words(given.momentum)}, but must be {in_words(like)} and an array of shape "
            f"{(system.group.dim,)}."
        )
