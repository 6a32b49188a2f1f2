"""Bodies that roll and slide under no force but the reaction, and checks of their numbers."""

from typing import Any, ClassVar

import jax.numpy as jnp
from jaxtyping import Array, Float

from retrax.mechanics.mechanical import AbstractMechanicalSystem
from retrax.mechanics.system import ArrayLike, Element
from retrax.numerics.checks import finite64, require_above_zero


class AbstractSlidingBody(AbstractMechanicalSystem):
    """A body with constant inertia and no potential: its constraint is all that acts on it."""

    force: ClassVar[Any] = None
    symmetry: ClassVar[tuple[tuple[float, ...], ...] | None] = None

    @property
    def invariant_inertia(self) -> bool:
        return True

    @property
    def free(self) -> bool:
        return True

    def potential_energy(self, g: Element) -> Float[Array, ""]:
        return jnp.zeros(())


def number(name: str, value: ArrayLike) -> Float[Array, ""]:
    """One finite number."""
    return finite64(name, value)


def positive(name: str, value: ArrayLike) -> Float[Array, ""]:
    """One number above zero."""
    array = number(name, value)
    require_above_zero(name, array)
    return array


def stacked(rows: list[list]) -> Float[Array, "m n"]:
    """A matrix from entries, some of them numbers, some arrays."""
    return jnp.stack([jnp.stack([jnp.asarray(x, jnp.float64) for x in row]) for row in rows])
