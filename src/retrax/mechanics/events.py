"""What to look out for during a run: zero crossings of functions of the motion."""

from collections.abc import Callable, Mapping
from typing import Any

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from retrax.errors import BadInput
from retrax.groups.base import Coordinates, Element
from retrax.mechanics.functions import Function, as_pytree
from retrax.mechanics.system import AbstractGroupSystem
from retrax.numerics.checks import output, quote, require_choice, require_function
from retrax.numerics.frozen import Frozen

DIRECTIONS = ("both", "rising", "falling")
# A function f(g, xi, t) whose zeros are looked for.
Watched = Callable[[Element, Coordinates, Float[Array, ""]], Float[Array, ""]]


class Event(Frozen):
    """A function `f(g, xi, t)` whose zero crossings are looked for along a run.

    **Arguments:**

    - `function`: of the configuration, the body velocity and the time, written in JAX; its result
        is a number.
    - `direction`: `"rising"` for crossings from below zero, `"falling"` from above, or `"both"`.
    """

    function: Function
    direction: str = eqx.field(static=True)
    stops: bool = eqx.field(static=True)

    def __init__(self, function: Watched, direction: str = "both"):
        self.function = as_pytree(require_function("function", function))
        self.direction = require_choice("direction", direction, DIRECTIONS)
        self.stops = False


class Stop(Frozen):
    """An event that ends the run: its last state is the one of the crossing.

    **Arguments:** as those of `Event`.
    """

    function: Function
    direction: str = eqx.field(static=True)
    stops: bool = eqx.field(static=True)

    def __init__(self, function: Watched, direction: str = "both"):
        self.function = as_pytree(require_function("function", function))
        self.direction = require_choice("direction", direction, DIRECTIONS)
        self.stops = True


def as_events(system: AbstractGroupSystem, events: object) -> dict[str, Event | Stop]:
    """Return events by name, each seen to be a number wherever the system may be.

    **Raises:** `BadInput` where one is no function, or does not return a number.
    """
    if not isinstance(events, Mapping):
        raise BadInput(
            f"events = {quote(events)} must be a dictionary of names and functions f(g, xi, t)."
        )
    found: dict[str, Event | Stop] = {}
    space, dim = system.configuration_space, system.group.dim
    given = (space.layout(), jnp.zeros(dim), jnp.zeros(()))
    for name, event in events.items():
        if not isinstance(name, str) or not name:
            raise BadInput(f"events has the name {quote(name)}, but names are texts.")
        if not isinstance(event, Event | Stop):
            if not callable(event):
                raise BadInput(
                    f"events[{name!r}] = {quote(event)} must be a function f(g, xi, t), an Event "
                    "or a Stop."
                )
            function: Any = event
            event = Event(function)
        out = output(f"events[{name!r}]", event.function, given)
        real = jnp.issubdtype(out.dtype, jnp.floating) or jnp.issubdtype(out.dtype, jnp.integer)
        if out.shape != () or not real:
            raise BadInput(
                f"events[{name!r}] returns {out.dtype} of shape {out.shape}, but an event is one "
                "real number, whose sign changes where it happens."
            )
        found[name] = event
    return found
