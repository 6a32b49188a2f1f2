r"""What takes energy out of a string: drag at its nodes, and its own viscosity.

$$ f_a = -c_a\dot r_a + q_{a+1} - q_a, \qquad q_a = \eta\,(\hat x_a\cdot\dot x_a)\,\hat x_a, \qquad
   \eta = \frac{EA_v}{u}, \tag{1} $$

with $x_a = r_a - r_{a-1}$ and $\hat x_a$ its direction: the Kelvin-Voigt law $EA\,\epsilon +
EA_v\,\dot\epsilon$ for the tension. The viscous forces are central, so they keep the angular
momentum; a slack element has none.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from retrax.errors import BadInput
from retrax.numerics.checks import float64, require_finite, require_shape
from retrax.numerics.frozen import Frozen
from retrax.numerics.known import require_each
from retrax.systems.strings.chain import Nodes, lengths, spans


class StringDamping(Frozen):
    r"""Damping of a string.

    **Arguments:**

    - `drag`: $c_a$ in N s/m, one number for all nodes or one for each.
    - `viscosity`: $EA_v$ in N s.
    """

    drag: Any
    viscosity: Any

    def __init__(self, drag: Any = None, viscosity: Any = None):
        self.drag = _coefficient("drag", drag, "N s/m")
        self.viscosity = _coefficient("viscosity", viscosity, "N s")
        if viscosity is not None:
            require_shape("viscosity", self.viscosity, ())

    def on(self, elements: int) -> "StringDamping":
        """The same, with a drag coefficient for every node."""
        if self.drag is None or self.drag.ndim == 1:
            if self.drag is not None:
                require_shape("drag", self.drag, (elements,))
            return self
        return StringDamping(jnp.broadcast_to(self.drag, (elements,)), self.viscosity)


def _coefficient(name: str, value: Any, unit: str) -> Any:
    if value is None:
        return None
    array = float64(name, value)
    require_finite(name, array)
    if array.ndim > 1 or not array.size:
        raise BadInput(f"{name} has shape {array.shape}, but is one number or one for each node.")

    def check(values: np.ndarray) -> None:
        if float(np.min(values)) < 0:
            raise BadInput(
                f"{name} = {float(np.min(values)):g} {unit} is negative: damping takes energy out, "
                "so it must be >= 0."
            )

    require_each(check, array)
    return array


def dashpots(
    r: Nodes, u: Float[Array, ""], viscosity: Float[Array, ""], slack: bool
) -> Float[Array, "n 3 3"]:
    r"""$\eta\,\hat x_a\hat x_a^T$ of every element."""
    x = spans(r)
    length = lengths(x)
    eta = viscosity / u * jnp.ones_like(length)
    if slack:
        eta = jnp.where(length > u, eta, 0.0)
    return jax.vmap(lambda x, s: s * (x[:, None] * x[None, :]))(x, eta / length**2)


def damped(damping: StringDamping, r: Nodes, v: Nodes, u: Float[Array, ""], slack: bool) -> Nodes:
    """The forces (1) on the nodes, which move with the velocities `v`."""
    f = jnp.zeros_like(v)
    if damping.drag is not None:
        f = f - damping.drag[:, None] * v
    if damping.viscosity is not None:
        q = jax.vmap(jnp.matmul)(dashpots(r, u, damping.viscosity, slack), spans(v))
        f = f + (jnp.concatenate([q[1:], jnp.zeros_like(q[:1])]) - q)
    return f
