"""Where a system is and how it moves, and where its model ends."""

from collections.abc import Callable
from typing import NamedTuple

import equinox as eqx
import jax
from jaxtyping import Array, Float, PyTree

from retrax.errors import StepFailed
from retrax.numerics.checks import ArrayLike, float64
from retrax.numerics.frozen import Frozen, numbers_of

_HALVINGS = 40


def _time(t: ArrayLike) -> Array:
    return t if isinstance(t, jax.Array) else float64("t", t)


class State(Frozen):
    r"""A point of $T^*G$ in left trivialisation, and the time.

    **Arguments:**

    - `g`: the configuration, stored as its group stores elements.
    - `momentum`: the body momentum $\mu \in \mathfrak g^*$, coordinates of length `dim`.
    - `t`: the time in seconds.

    Make one with `system.state(g, velocity=...)`, which checks it.
    """

    g: PyTree[Float[Array, "..."]]
    momentum: Float[Array, "*time dim"]
    t: Float[Array, "*time"] = eqx.field(converter=_time, default=0.0)

    def __repr__(self) -> str:
        return (
            f"State(g={numbers_of(self.g)}, momentum={numbers_of(self.momentum)}, "
            f"t={numbers_of(self.t)})"
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
