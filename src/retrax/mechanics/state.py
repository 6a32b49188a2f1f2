"""Where a system is and how it moves."""

from typing import Any

import equinox as eqx
import jax
from jaxtyping import Array, Float, PyTree

from retrax.numerics.checks import float64
from retrax.numerics.frozen import Frozen


def _time(t: Any) -> Any:
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
