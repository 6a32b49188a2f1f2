"""A rigid body that turns about a fixed point, or floats freely about its centre of mass."""

from typing import Any, ClassVar

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from retrax.groups.so3 import SO3
from retrax.mechanics.mechanical import AbstractMechanicalSystem, Inertia, checked_inertia
from retrax.mechanics.system import ArrayLike


class AbstractRigidBody(AbstractMechanicalSystem):
    r"""A body with attitude $R \in SO(3)$, body axes to space axes, and constant inertia."""

    inertia: eqx.AbstractVar[Inertia]
    group: ClassVar[SO3] = SO3()
    force: ClassVar[Any] = None
    symmetry: ClassVar[tuple[tuple[float, ...], ...] | None] = None

    @property
    def invariant_inertia(self) -> bool:
        return True

    def inertia_at(self, g: Float[Array, "3 3"]) -> Inertia:
        return self.inertia


class FreeRigidBody(AbstractRigidBody):
    r"""The free rigid body, $L = \tfrac12\,\Omega\cdot I\Omega$: Euler's top.

    **Arguments:** `inertia`: principal moments, or the matrix, about the centre of mass (kg m^2).

    **Invariants:** energy; the spatial angular momentum $R\,I\Omega$.
    """

    inertia: Inertia

    def __init__(self, inertia: ArrayLike, *, physical: bool = True):
        self.inertia = checked_inertia(self.group, inertia, physical)

    @property
    def name(self) -> str:
        return "free rigid body"

    @property
    def free(self) -> bool:
        return True

    def potential_energy(self, g: Float[Array, "3 3"]) -> Float[Array, ""]:
        return jnp.zeros(())
