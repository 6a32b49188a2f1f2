"""Where a system is and how it moves, and where its model ends."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
from jaxtyping import Array, Float, PyTree

from retrax.errors import StepFailed
from retrax.numerics.checks import ArrayLike, float64, require_instance
from retrax.numerics.frozen import Frozen, numbers_of
from retrax.numerics.meant import no_attribute, resolve_name

_HALVINGS = 40


def _time(t: ArrayLike) -> Array:
    return t if isinstance(t, jax.Array) else float64("t", t)


def as_state(state: object) -> "State":
    """Reject what is not a state."""
    return require_instance("state", state, State, "a State, as system.state(g, ...) makes it")


class State(Frozen):
    r"""A point of $T^*G$ in left trivialisation, and the time.

    **Arguments:**

    - `g`: the configuration, stored as its group stores elements.
    - `momentum`: the body momentum $\mu \in \mathfrak g^*$, coordinates of length `dim`.
    - `t`: the time in seconds.
    - `control`: what a controller keeps from one step to the next, in a driven run: the inputs that
        it holds, and a state of its own. `None` otherwise.

    Make one with `system.state(g, velocity=...)`, which checks it.
    """

    g: PyTree[Float[Array, "..."]]
    momentum: Float[Array, "*time dim"]
    control: PyTree[Float[Array, "..."]] | None
    t: Float[Array, "*time"]  # the last of the numbers, for loops

    def __init__(
        self,
        g: PyTree[Float[Array, "..."]],
        momentum: Float[Array, "*time dim"],
        t: ArrayLike = 0.0,
        control: PyTree[Float[Array, "..."]] | None = None,
    ):
        self.g, self.momentum, self.t, self.control = g, momentum, _time(t), control

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            if resolve_name(name, ("velocity",)):
                raise AttributeError(f"a state has no {name!r}: see system.velocity_at(state).")
            raise no_attribute("a state", name, ("g", "momentum", "t", "control"))

    def __repr__(self) -> str:
        held = "" if self.control is None else f", control={numbers_of(self.control)}"
        return (
            f"State(g={numbers_of(self.g)}, momentum={numbers_of(self.momentum)}, "
            f"t={numbers_of(self.t)}{held})"
        )


class Ending(NamedTuple):
    """An event that no smaller step size would avoid: where a model ends.

    **Attributes:** `what`: what happened; `why`; `error`: what the run raises; `state`: the last
    state at which the model holds.
    """

    what: str
    why: str
    error: type[StepFailed]
    state: State


def bracket(lasts: Callable[[float], bool], h: float) -> tuple[float, float]:
    """Return the longest step at whose end the model holds, and the shortest where it does not.

    By bisection between 0 and `h`, down to round-off: the event lies between them.
    """
    first, last = 0.0, h
    for _ in range(_HALVINGS):
        middle = (first + last) / 2
        first, last = (middle, last) if lasts(middle) else (first, middle)
    return first, last
