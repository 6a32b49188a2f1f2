"""A body in space that moves along one of its own axes only: a blade."""

from typing import ClassVar

import jax.numpy as jnp
from jaxtyping import Array, Float

from retrax.groups.se3 import SE3
from retrax.groups.so3 import SO3
from retrax.mechanics.constraints import Distribution
from retrax.mechanics.mechanical import Inertia, checked_inertia
from retrax.mechanics.remembered import Drawing, told
from retrax.mechanics.system import ArrayLike, Element
from retrax.numerics.checks import float64, require_finite, require_shape
from retrax.systems.sliding import AbstractSlidingBody, positive

_AXES = tuple(tuple(float(i == j) for j in range(6)) for i in range(4))


class Blade(AbstractSlidingBody):
    r"""A rigid body on $SE(3)$ with $v_2 = v_3 = 0$ at its origin, free to turn.

    **Arguments:**

    - `inertia`: principal moments, or the matrix, about the centre of mass (kg m^2).
    - `mass`: $m$ in kg.
    - `centre`: the centre of mass in body axes (m).
    - `physical`: whether to insist that the inertia is one that a body can have.

    **Invariants:** energy.
    """

    inertia: Inertia
    mass: Float[Array, ""]
    centre: Float[Array, "3"]

    group: ClassVar[SE3] = SE3()
    constraint: ClassVar[Distribution] = Distribution(_AXES)

    def __init__(
        self, inertia: ArrayLike, mass: ArrayLike, centre: ArrayLike, *, physical: bool = True
    ):
        self.inertia = checked_inertia(SO3(), inertia, physical)
        self.mass = positive("mass", mass)
        self.centre = float64("centre", centre)
        require_shape("centre", self.centre, (3,))
        require_finite("centre", self.centre)

    @property
    def name(self) -> str:
        return "blade"

    @property
    def drawing(self) -> Drawing | None:
        """What a picture needs: the mass, where its centre is and the inertia about it."""
        J = jnp.diag(self.inertia) if self.inertia.ndim == 1 else self.inertia
        return told("body", mass=(self.mass, 0), arm=(self.centre, 1), inertia=(J, 2))

    def inertia_at(self, g: Element) -> Float[Array, "6 6"]:
        about_centre = jnp.diag(self.inertia) if self.inertia.ndim == 1 else self.inertia
        arm = SO3().hat(self.centre)
        turning = jnp.concatenate([about_centre - self.mass * arm @ arm, self.mass * arm], axis=1)
        moving = jnp.concatenate([-self.mass * arm, self.mass * jnp.eye(3)], axis=1)
        return jnp.concatenate([turning, moving])
