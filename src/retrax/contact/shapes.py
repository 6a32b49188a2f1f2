"""Shapes that touch each other: numbers in the axes of the body that carries them."""

import abc

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from retrax.errors import BadInput
from retrax.numerics.checks import ArrayLike, finite64, positive64
from retrax.numerics.frozen import Frozen

Vector = Float[Array, "3"]


class AbstractSurface(Frozen):
    """A shape on a body; without a `body` it stands still in space.

    **Attributes:** `body`: the number or the name of its body, or `None`; `name`.
    """

    body: eqx.AbstractVar[int | str | None]
    name: eqx.AbstractVar[str]


class Plane(AbstractSurface):
    """Everything below a plane: what touches it stays above.

    **Arguments:** `normal`: the direction that points out of it; `at`: one of its points; `body`:
    what carries it; `name`: what sentences call it.
    """

    normal: Vector
    at: Vector
    body: int | str | None = eqx.field(static=True)
    name: str = eqx.field(static=True)

    def __init__(
        self,
        normal: ArrayLike = (0.0, 0.0, 1.0),
        at: ArrayLike = (0.0, 0.0, 0.0),
        *,
        body: int | str | None = None,
        name: str = "plane",
    ):
        n = np.asarray(finite64("normal", normal, (3,)))
        size = float(np.linalg.norm(n))
        if not size > 0:
            raise BadInput("normal of a Plane is zero, but it must point out of it.")
        self.normal, self.at = jnp.asarray(n / size), finite64("at", at, (3,))
        self.body, self.name = body, name


class Ball(AbstractSurface):
    """A ball.

    **Arguments:** `radius` in m; `at`: its centre in body axes; `body`: what carries it; `name`.
    """

    radius: Float[Array, ""]
    at: Vector
    body: int | str | None = eqx.field(static=True)
    name: str = eqx.field(static=True)

    def __init__(
        self,
        radius: ArrayLike,
        at: ArrayLike = (0.0, 0.0, 0.0),
        *,
        body: int | str | None = None,
        name: str = "ball",
    ):
        self.radius, self.at = positive64("radius", radius), finite64("at", at, (3,))
        self.body, self.name = body, name
