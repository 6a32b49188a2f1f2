"""Veselova's problem: a body that may not turn about an axis fixed in space."""

from typing import Any, ClassVar

import jax.numpy as jnp
from jaxtyping import Array, Float

from retrax.mechanics.constraints import VelocityConstraint
from retrax.mechanics.functions import as_pytree, require_energy
from retrax.mechanics.mechanical import Inertia, checked_inertia
from retrax.mechanics.state import State
from retrax.mechanics.system import ArrayLike
from retrax.numerics.checks import require_output
from retrax.systems.rigid_body import AbstractRigidBody


def _vertical(g: Float[Array, "3 3"]) -> Float[Array, "1 3"]:
    """The row (R^T e3)^T."""
    return g[2:]


class Veselova(AbstractRigidBody):
    r"""A body about a fixed point with $\Omega\cdot R^Te_3 = 0$: no turning about the vertical.

    **Arguments:**

    - `inertia`: principal moments, or the matrix, about the fixed point (kg m^2).
    - `potential`: $V(R)$ in J.
    - `physical`: whether to insist that the inertia is one that a body can have.

    **Invariants:** energy; without a potential the horizontal components of $R\,I\Omega$.
    """

    inertia: Inertia
    potential: Any
    constraint: ClassVar[VelocityConstraint] = VelocityConstraint(_vertical)

    def __init__(self, inertia: ArrayLike, potential: Any = None, *, physical: bool = True):
        self.inertia = checked_inertia(self.group, inertia, physical)
        require_output("potential", potential, (self.group.layout(),), (), optional=True)
        self.potential = as_pytree(potential)

    @property
    def name(self) -> str:
        return "Veselova body"

    @property
    def free(self) -> bool:
        return self.potential is None

    def potential_energy(self, g: Float[Array, "3 3"]) -> Float[Array, ""]:
        return jnp.zeros(()) if self.potential is None else jnp.asarray(self.potential(g))

    def check_energy(self, state: State) -> None:
        if self.potential is not None:
            require_energy("potential", self.potential_energy(state.g))
