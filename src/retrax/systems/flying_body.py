"""A rigid body that turns and travels under its weight: aircraft with rotors, free flyers."""

from typing import ClassVar

import jax.numpy as jnp
from jaxtyping import Array, Float

from retrax.groups.se3 import SE3
from retrax.groups.so3 import SO3
from retrax.mechanics.functions import Function
from retrax.mechanics.mechanical import AbstractMechanicalSystem, Inertia, checked_inertia
from retrax.mechanics.remembered import Drawing, told
from retrax.mechanics.system import ArrayLike
from retrax.numerics.checks import finite64, float64, positive64
from retrax.numerics.evaluate import evaluate

Pose = tuple[Float[Array, "3 3"], Float[Array, "3"]]


class FlyingBody(AbstractMechanicalSystem):
    r"""A rigid body on $SE(3)$ in a uniform gravity field.

    The configuration is $(R, x)$: body axes to space axes, and where the centre of mass is. $e_3$
    points **up**. Velocities are $(\Omega, v)$ and momenta $(I\Omega, mv)$, both **in body axes**,
    so $\dot x = Rv$:

    $$ L = \tfrac12\,\Omega\cdot I\Omega + \tfrac m2|v|^2 - m g\,e_3\cdot x. \tag{1} $$

    **Arguments:**

    - `inertia`: principal moments, or the matrix, about the centre of mass (kg m^2).
    - `mass`: $m$ in kg.
    - `gravity`: $g$ in m/s^2; 0 for a body that floats.
    - `rotors`: where rotors sit, a row for each in body axes (m). They are drawn.
    - `physical`: whether to reject an inertia that no body can have.

    **Invariants:** energy; the horizontal momentum, and the angular momentum about the vertical;
    without gravity all components of both.

    References: [MarsdenRatiu1999].
    """

    inertia: Inertia
    mass: Float[Array, ""]
    gravity: Float[Array, ""]
    rotors: Float[Array, "n 3"] | None
    force: Function | None = None

    group: ClassVar[SE3] = SE3()
    symmetry: ClassVar[tuple[tuple[float, ...], ...] | None] = None
    e3_points_up: ClassVar[bool] = True

    def __init__(
        self,
        inertia: ArrayLike,
        mass: ArrayLike,
        gravity: ArrayLike = 9.81,
        *,
        rotors: ArrayLike | None = None,
        physical: bool = True,
    ):
        self.inertia = checked_inertia(SO3(), inertia, physical)
        self.mass = positive64("mass", mass)
        self.gravity = finite64("gravity", gravity)
        self.rotors = None
        if rotors is not None:
            places = float64("rotors", rotors)
            self.rotors = finite64("rotors", places, (places.shape[0] if places.ndim else 0, 3))

    @property
    def name(self) -> str:
        return "flying body"

    @property
    def invariant_inertia(self) -> bool:
        return True

    @property
    def free(self) -> bool:
        return False

    @property
    def drawing(self) -> Drawing | None:
        """What a picture needs: the inertia, the mass and the rotors."""
        J = evaluate(jnp.diag, self.inertia) if self.inertia.ndim == 1 else self.inertia
        rotors = jnp.zeros((0, 3)) if self.rotors is None else self.rotors
        return told("flyer", inertia=(J, 2), mass=(self.mass, 0), rotors=(rotors, 2))

    def inertia_at(self, g: Pose) -> Inertia:
        if self.inertia.ndim == 1:
            return jnp.concatenate([self.inertia, jnp.broadcast_to(self.mass, (3,))])
        zero = jnp.zeros((3, 3))
        top = jnp.concatenate([self.inertia, zero], axis=1)
        return jnp.concatenate([top, jnp.concatenate([zero, self.mass * jnp.eye(3)], axis=1)])

    def potential_energy(self, g: Pose) -> Float[Array, ""]:
        return self.mass * self.gravity * g[1][2]
