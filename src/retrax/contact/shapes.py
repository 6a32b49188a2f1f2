"""Shapes that touch: their numbers, in the axes of the body that carries them.

A shape is a core and a radius around it: a ball is a point, a capsule a segment, a rounded box a
smaller box.
"""

from collections import Counter
from collections.abc import Hashable, Iterable
from functools import partial
from itertools import count
from typing import Protocol

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from retrax.errors import BadInput
from retrax.mechanics.shape import rotation_matrix
from retrax.numerics.checks import (
    ArrayLike,
    float64,
    is_traced,
    positive64,
    quote,
    require_direction,
    require_finite,
    require_whole,
)
from retrax.numerics.evaluate import evaluate_in_jax
from retrax.numerics.frozen import Frozen
from retrax.numerics.known import require_each

Scalar = Float[Array, ""]
Vector = Float[Array, "3"]


class Named(Protocol):
    """Something with a name, as a body of a mechanism."""

    @property
    def name(self) -> str: ...


Carrier = int | str | Named | None
_ORIGIN, _UP = (0.0, 0.0, 0.0), (0.0, 0.0, 1.0)


class AbstractSurface(Frozen):
    """A shape on a body; without a `body` it stands still in space.

    **Attributes:** `at`: its place; `body`: the number or the name of its body, or `None`; `name`:
    what sentences call it.
    """

    at: eqx.AbstractVar[Vector]
    body: eqx.AbstractVar[int | str | None]
    name: eqx.AbstractVar[str]


def content_of(shape: AbstractSurface) -> Hashable:
    """Return what is the same of two shapes that are one, where JAX does not hide their numbers."""
    if is_traced(shape):
        return id(shape)
    leaves, tree = jax.tree.flatten(shape)
    return tree, *(np.asarray(leaf).tobytes() for leaf in leaves)


def number_names(names: Iterable[str]) -> tuple[str, ...]:
    """Return names with numbers where several are the same."""
    times = Counter(given := list(names))
    free = {x: (f"{x} {k}" for k in count(1) if f"{x} {k}" not in times) for x in times}
    return tuple(name if times[name] == 1 else next(free[name]) for name in given)


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
        normal: ArrayLike = _UP,
        at: ArrayLike = _ORIGIN,
        *,
        body: Carrier = None,
        name: str = "plane",
    ):
        self.normal, self.at = _direction("normal", normal), _place(at)
        self.body, self.name = _carrier(body), _display_name(name)


class Ball(AbstractSurface):
    """A ball.

    **Arguments:** `radius` in m; `at`: its centre; `body`: what carries it; `name`: what sentences
    call it.
    """

    radius: Scalar
    at: Vector
    body: int | str | None = eqx.field(static=True)
    name: str = eqx.field(static=True)

    def __init__(
        self,
        radius: ArrayLike,
        at: ArrayLike = _ORIGIN,
        *,
        body: Carrier = None,
        name: str = "ball",
    ):
        self.radius, self.at = positive64("radius", radius), _place(at)
        self.body, self.name = _carrier(body), _display_name(name)


class Capsule(AbstractSurface):
    """A rod with round ends.

    **Arguments:** `radius` in m; `length`: between the centres of its ends; `axis`: its direction;
    `at`: its middle; `body`: what carries it; `name`: what sentences call it.
    """

    radius: Scalar
    length: Scalar
    axis: Vector
    at: Vector
    body: int | str | None = eqx.field(static=True)
    name: str = eqx.field(static=True)

    def __init__(
        self,
        radius: ArrayLike,
        length: ArrayLike,
        axis: ArrayLike = _UP,
        at: ArrayLike = _ORIGIN,
        *,
        body: Carrier = None,
        name: str = "capsule",
    ):
        self.radius, self.length = positive64("radius", radius), positive64("length", length)
        self.axis, self.at = _direction("axis", axis), _place(at)
        self.body, self.name = _carrier(body), _display_name(name)


class Cylinder(AbstractSurface):
    """A cylinder with flat ends and sharp rims.

    **Arguments:** `radius` and `length` in m; `axis`: its direction; `at`: its middle; `body`: what
    carries it; `name`: what sentences call it.
    """

    radius: Scalar
    length: Scalar
    axis: Vector
    at: Vector
    body: int | str | None = eqx.field(static=True)
    name: str = eqx.field(static=True)

    def __init__(
        self,
        radius: ArrayLike,
        length: ArrayLike,
        axis: ArrayLike = _UP,
        at: ArrayLike = _ORIGIN,
        *,
        body: Carrier = None,
        name: str = "cylinder",
    ):
        self.radius, self.length = positive64("radius", radius), positive64("length", length)
        self.axis, self.at = _direction("axis", axis), _place(at)
        self.body, self.name = _carrier(body), _display_name(name)


class Box(AbstractSurface):
    """A box, whose edges and corners may be round.

    **Arguments:** `size`: its three sides in m, or one for a cube; `radius`: of its edges, at most
    half of the shortest side; `at`: its centre; `turned`: the rotation from its own axes, a matrix
    or an axis times an angle; `body`: what carries it; `name`: what sentences call it.
    """

    size: Vector
    radius: Scalar
    at: Vector
    turned: Float[Array, "3 3"]
    body: int | str | None = eqx.field(static=True)
    name: str = eqx.field(static=True)

    def __init__(
        self,
        size: ArrayLike,
        radius: ArrayLike = 0.0,
        at: ArrayLike = _ORIGIN,
        turned: ArrayLike | None = None,
        *,
        body: Carrier = None,
        name: str = "box",
    ):
        sides = float64("size", size)
        sides = jnp.broadcast_to(sides, (3,)) if sides.ndim == 0 else sides
        self.size, self.radius = positive64("size", sides, (3,)), float64("radius", radius)
        require_each(_require_rounding, self.size, self.radius)
        self.at = _place(at)
        self.turned = float64("turned", np.eye(3) if turned is None else rotation_matrix(turned))
        self.body, self.name = _carrier(body), _display_name(name)

    @property
    def half(self) -> Vector:
        """Half of the sides of its core."""
        return self.size / 2 - self.radius


def _require_rounding(size: np.ndarray, radius: np.ndarray) -> None:
    if radius.shape != () or not 0 <= radius <= np.min(size) / 2:
        raise BadInput(
            f"radius = {quote(radius.tolist())} m of the edges of a Box must be from 0 to half of "
            f"its shortest side, which is {np.min(size):g} m."
        )


def _place(at: ArrayLike) -> Vector:
    """Return a point: three numbers, or two in the plane."""
    array = float64("at", at)
    if array.shape not in ((2,), (3,)):
        raise BadInput(f"at has shape {array.shape}; it has three numbers, or two in the plane.")
    require_finite("at", array)
    return evaluate_in_jax(_in_space, array)


def _direction(name: str, given: ArrayLike) -> Vector:
    """Return a unit vector along three numbers, or two in the plane."""
    array = float64(name, given)
    if array.shape not in ((2,), (3,)):
        raise BadInput(
            f"{name} has shape {array.shape}; it has three numbers, or two in the plane."
        )
    require_finite(name, array)
    require_each(partial(require_direction, name), array)
    return evaluate_in_jax(lambda x: _in_space(x) / jnp.sqrt(jnp.sum(x * x)), array)


def _in_space(array: Array) -> Vector:
    """Return three numbers, the third zero where two are given."""
    return array if len(array) == 3 else jnp.concatenate([array, jnp.zeros(1)])


def _carrier(body: Carrier) -> int | str | None:
    """Return the number or the name of a body."""
    if body is None or (isinstance(body, str) and body.strip()):
        return body
    name = None if isinstance(body, type | Frozen) else getattr(body, "name", None)
    if isinstance(name, str):
        return name
    try:
        return require_whole("body", body, 0)
    except BadInput as cause:
        raise BadInput(
            f"body = {quote(body)} must be the number of a body, counted from 0, or its name."
        ) from cause


def _display_name(name: str) -> str:
    if not isinstance(name, str) or not name.strip():
        raise BadInput(f"name = {quote(name)} must be a text that is not empty.")
    return name
