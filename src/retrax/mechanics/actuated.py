r"""Systems with inputs: what motors, thrusters and wheels can do to a body.

Inputs $u \in \mathbb R^m$ act as the body covector $B(g)\,u$, beside all other forces.
"""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax.tree_util import Partial
from jaxtyping import Array, Float

from retrax.errors import BadInput
from retrax.groups.base import Coordinates, Element
from retrax.mechanics.functions import Function, as_pytree
from retrax.mechanics.system import AbstractGroupSystem
from retrax.numerics.checks import ArrayLike, finite64, output, require_instance
from retrax.numerics.frozen import Frozen

# u(g, xi, t) during a step.
Inputs = Float[Array, " m"]
Law = Callable[[Element, Coordinates, Float[Array, ""]], Inputs]


class Actuators(Frozen):
    r"""The matrix $B(g)$ of inputs, and the bounds at which they saturate.

    **Attributes:** `matrix`: `matrix(g)`, of `dim` rows and `count` columns; `count`; `lower`,
    `upper`: the bounds, or `None` where there are none.
    """

    matrix: Function
    lower: Inputs | None
    upper: Inputs | None

    def limited(self, u: Inputs) -> Inputs:
        """Return what the actuators make of an input that is asked of them."""
        return u if self.lower is None else jnp.clip(u, self.lower, self.upper)

    def covector(self, g: Element, u: Inputs) -> Coordinates:
        """$B(g) u$, with inputs within their bounds."""
        return jnp.asarray(self.matrix(g)) @ self.limited(u)


class Actuated(Frozen):
    r"""A system with inputs $u$, which act as the body covector $B(g)\,u$.

    Everything that can be asked of the system can be asked of this: `plant.state(...)`,
    `plant.group`, `plant.energy(state)`.

    **Arguments:**

    - `system`: what moves.
    - `inputs`: the matrix $B$, a column for each input, or a function of `g` that returns it.
    - `bounds`: `(lower, upper)`, numbers or one for each input, at which the inputs saturate.
    """

    system: AbstractGroupSystem
    actuators: Actuators
    count: int = eqx.field(static=True)

    def __init__(
        self,
        system: AbstractGroupSystem,
        inputs: ArrayLike | Callable[[Element], Float[Array, "dim m"]],
        bounds: tuple[ArrayLike, ArrayLike] | None = None,
    ):
        what = "a retrax system"
        self.system = require_instance("system", system, AbstractGroupSystem, what)
        matrix = inputs
        if not callable(inputs):
            given = np.asarray(inputs, float)
            matrix = Partial(_constant, finite64("inputs", inputs, given.shape))
        function = as_pytree(matrix)
        shape = output("inputs", function, (system.group.layout(),)).shape
        if len(shape) != 2 or shape[0] != system.group.dim or shape[1] < 1:
            raise BadInput(
                f"inputs has shape {shape}, but on {system.group.name} it is a matrix of "
                f"{system.group.dim} rows with a column for each input."
            )
        self.count = shape[1]
        lower = upper = None
        if bounds is not None:
            lower, upper = (jnp.broadcast_to(jnp.asarray(b, float), (self.count,)) for b in bounds)
        self.actuators = Actuators(function, lower, upper)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name in ("system", "actuators", "count"):
            raise AttributeError(name)
        return getattr(self.system, name)


def _constant(value: Array, g: Element) -> Array:
    return value
