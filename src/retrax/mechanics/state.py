"""Where a system is and how it moves."""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree

from retrax.numerics.frozen import Frozen


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
    t: Float[Array, "*time"] = eqx.field(converter=jnp.asarray, default=0.0)
