"""Placements of rods: straight, and as their rest shape bends them."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from retrax.errors import BadInput
from retrax.groups.so3 import SO3
from retrax.mechanics.system import ArrayLike
from retrax.nodal.nodes import Placement
from retrax.numerics.checks import finite64, finite_rows, is_traced, quote, require_number
from retrax.numerics.evaluate import evaluate_in_jax
from retrax.numerics.known import require_each
from retrax.numerics.small_matrices import solve
from retrax.systems.rods.strain import Rotation, Vector

Scalar = Float[Array, ""]


def first_frame(direction: ArrayLike, normal: ArrayLike | None) -> Rotation:
    """Return the frame with its third axis along `direction` and its first one near `normal`."""
    along = finite64("direction", direction, (3,))
    across = None if normal is None else finite64("normal", normal, (3,))
    frame = evaluate_in_jax(_frame, along, across)

    def check(frame: np.ndarray) -> None:
        if not np.isfinite(frame).all():
            raise BadInput(
                f"direction = {quote(direction)} and normal = {quote(normal)} must not be "
                "parallel, and neither may be zero or too long to be squared."
            )

    require_each(check, frame, fine=finite_rows)
    return frame


def straight(
    nodes: int,
    spacing: Scalar,
    direction: ArrayLike,
    normal: ArrayLike | None,
    start: ArrayLike,
    stretch: float | Scalar,
) -> Placement:
    """Return all nodes with one frame, in a row along its third axis."""
    frame = first_frame(direction, normal)
    if not is_traced(stretch):
        stretch = require_number("stretch", stretch, "> 0")
    begin = finite64("start", start, (3,))
    return evaluate_in_jax(partial(_lay_out, nodes), frame, begin, stretch, spacing)


def relax(
    kind: str,
    spacing: Scalar,
    stretch: Float[Array, "segments 3"],
    curvature: Float[Array, "segments 3"],
    frame: Rotation,
    start: Vector,
) -> Placement:
    """Return the placement with these strains of kind `kind`, node after node."""

    def one(before: tuple[Rotation, Vector], strain: tuple[Vector, Vector]):
        R, r = before
        gamma, omega = strain
        eta = spacing * omega
        if kind == "mid":
            x = eta / (1 + jnp.sqrt(1 + eta @ eta / 4))
            q = gamma + SO3().caym1(x) @ gamma
        elif kind == "cay":
            q = solve(jnp.eye(3) - SO3().hat(eta) / 2, gamma)
        else:
            q = gamma
        after = SO3().advance(R, SO3().caym1(eta)), r + spacing * (R @ q)
        return after, after

    _, (frames, places) = jax.lax.scan(one, (frame, start), (stretch, curvature))
    return jnp.concatenate([frame[None], frames]), jnp.concatenate([start[None], places])


def _frame(t: Vector, across: Vector | None) -> Rotation:
    t = t / jnp.sqrt(t @ t)
    near = jnp.where(jnp.abs(t[0]) < 0.9, jnp.eye(3)[0], jnp.eye(3)[1])
    a = near if across is None else across
    a = a - (a @ t) * t
    a = a / jnp.sqrt(a @ a)
    return jnp.stack([a, jnp.cross(t, a), t], axis=1)


def _lay_out(
    nodes: int, frame: Rotation, start: Vector, stretch: float | Scalar, spacing: Scalar
) -> Placement:
    along = stretch * spacing * jnp.arange(nodes, dtype=float)
    places = start[None] + jnp.outer(along, frame[:, 2])
    return jnp.broadcast_to(frame, (nodes, 3, 3)), places
