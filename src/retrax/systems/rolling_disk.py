"""A disk that rolls upright on a plane."""

from typing import ClassVar

import jax.numpy as jnp
from jaxtyping import Array, Float

from retrax.errors import BadInput
from retrax.groups.base import AbstractLieGroup
from retrax.groups.product import Product
from retrax.groups.se2 import SE2
from retrax.groups.translation import Translation
from retrax.mechanics.constraints import AbstractDistribution
from retrax.mechanics.drawing import told
from retrax.mechanics.system import ArrayLike, Element
from retrax.systems.sliding import AbstractSlidingBody, positive, stacked


class UprightRolling(AbstractDistribution):
    r"""$v_1 = r\dot\varphi$, $v_2 = 0$ for velocities $(\dot\theta, v_1, v_2, \dot\varphi)$."""

    radius: Float[Array, ""]

    @property
    def basis(self) -> Float[Array, "2 4"]:
        return stacked([[1.0, 0.0, 0.0, 0.0], [0.0, self.radius, 0.0, 1.0]])

    @property
    def annihilator(self) -> Float[Array, "2 4"]:
        return stacked([[0.0, 1.0, 0.0, -self.radius], [0.0, 0.0, 1.0, 0.0]])

    def check(self, group: AbstractLieGroup) -> None:
        if group.dim != 4:
            raise BadInput(f"a disk that rolls upright moves on SE(2) x R, not on {group.name}.")


class RollingDisk(AbstractSlidingBody):
    r"""A disk that rolls without slipping and stays upright, on $SE(2)\times\mathbb R$.

    The element is heading and point of contact, and the angle $\varphi$ it has rolled through.

    **Arguments:**

    - `mass`: $m$ in kg.
    - `turning`: the moment of inertia about the vertical (kg m^2).
    - `rolling`: the moment of inertia about the axle (kg m^2).
    - `radius`: $r$ in m.

    **Invariants:** energy; $\dot\theta$ and $\dot\varphi$ themselves, so the disk runs in circles.
    """

    mass: Float[Array, ""]
    turning: Float[Array, ""]
    rolling: Float[Array, ""]
    radius: Float[Array, ""]

    group: ClassVar[Product] = Product(SE2(), Translation(1))

    def __init__(self, mass: ArrayLike, turning: ArrayLike, rolling: ArrayLike, radius: ArrayLike):
        self.mass = positive("mass", mass)
        self.turning = positive("turning", turning)
        self.rolling = positive("rolling", rolling)
        self.radius = positive("radius", radius)

    @property
    def name(self) -> str:
        return "rolling disk"

    @property
    def drawing(self) -> str | None:
        """What a picture needs: the radius."""
        return told("disk", radius=(self.radius, 0))

    @property
    def constraint(self) -> UprightRolling:
        return UprightRolling(self.radius)

    def inertia_at(self, g: Element) -> Float[Array, "4"]:
        return jnp.stack([self.turning, self.mass, self.mass, self.rolling])

    def exact_position(
        self, turning: ArrayLike, rolling: ArrayLike, t: ArrayLike
    ) -> Float[Array, "2"]:
        r"""Where the disk is at time `t` after it started at the origin, heading along $e_1$.

        With rates $\dot\theta = \omega \ne 0$ and $\dot\varphi$ it is on the circle
        $(r\dot\varphi/\omega)\,(\sin\omega t,\ 1 - \cos\omega t)$.
        """
        omega, speed = jnp.asarray(turning), self.radius * jnp.asarray(rolling)
        angle = omega * jnp.asarray(t)
        return speed / omega * jnp.stack([jnp.sin(angle), 2 * jnp.sin(angle / 2) ** 2])
