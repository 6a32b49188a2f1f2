"""A free rigid body seen on the sphere of its momenta."""

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from retrax.groups.so3 import SO3
from retrax.mechanics.flow import AbstractSpaceFlow
from retrax.mechanics.mechanical import checked_inertia
from retrax.mechanics.state import State
from retrax.mechanics.system import ArrayLike
from retrax.numerics.checks import float64, require_above_zero, require_shape
from retrax.spaces.sphere import Sphere
from retrax.systems.euler_solution import exact_momentum
from retrax.systems.euler_top import EulerTop

Vector = Float[Array, "3"]
Scalar = Float[Array, ""]


class BodyOnSphere(AbstractSpaceFlow):
    r"""The direction $y = m/|m|$ of the momentum of a free rigid body, in its principal axes.

    $$ \dot m = m\times\mathbb I^{-1}m, \qquad
       \dot y = \xi\times y, \quad \xi = -|m|\,\mathbb I^{-1}y. \tag{1} $$

    **Arguments:**

    - `inertia`: the principal moments (kg m^2).
    - `length`: $|m|$ in kg m^2/s.

    **Invariants:** the energy $\tfrac12|m|^2\,y\cdot\mathbb I^{-1}y$; $|y| = 1$ by construction.

    References: [MarsdenRatiu1999].
    """

    inertia: Vector
    length: Scalar

    def __init__(self, inertia: ArrayLike, length: ArrayLike = 1.0):
        self.inertia = checked_inertia(SO3(), inertia, physical=False)
        require_shape("inertia", self.inertia, (3,))
        self.length = float64("length", length)
        require_shape("length", self.length, ())
        require_above_zero("length", self.length, "of the momentum must be positive")

    @classmethod
    def example(cls) -> tuple["BodyOnSphere", State, float, int]:
        """Moments 2.3, 1.7, 1 far from every axis: system, state, h, steps."""
        body = cls([2.3, 1.7, 1.0], 2.0)
        return body, body.at(body.space.project(jnp.array([1.2, -0.8, 2.0]))), 0.05, 2_000

    @property
    def space(self) -> Sphere:
        return Sphere(3)

    @property
    def name(self) -> str:
        return "free body on the sphere"

    def generator(self, t: Scalar, y: Vector) -> Vector:
        return -self.length * y / self.inertia  # (1)

    def invariant_functions(self, y: Vector) -> dict[str, Scalar]:
        return {"energy": self.length**2 * (y @ (y / self.inertia)) / 2}

    def exact(self, start: ArrayLike, t: ArrayLike) -> np.ndarray:
        """The points at the times `t`, one row a time, by Jacobi's elliptic functions."""
        length = float(self.length)
        top = EulerTop(self.inertia, physical=False)
        return exact_momentum(top, length * np.asarray(start, dtype=float), t) / length
