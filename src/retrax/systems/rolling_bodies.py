"""Bodies that roll on a plane: an upright disk, Chaplygin's ball, a ball on a turntable."""

from typing import ClassVar

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from retrax.errors import BadInput
from retrax.groups.base import AbstractLieGroup
from retrax.groups.product import Product
from retrax.groups.se2 import SE2
from retrax.groups.so3 import SO3
from retrax.groups.translation import Translation
from retrax.mechanics.constraints import AbstractDistribution, VelocityConstraint
from retrax.mechanics.mechanical import Inertia, checked_inertia
from retrax.mechanics.remembered import Drawing, told
from retrax.mechanics.state import State
from retrax.mechanics.system import ArrayLike, Element
from retrax.numerics.checks import finite64, float64, positive64
from retrax.numerics.evaluate import evaluate_in_jax
from retrax.systems.sliding_bodies import AbstractSlidingBody, stack_rows

# The attitude of a ball, and where it touches the plane.
BallConfiguration = tuple[Float[Array, "3 3"], Float[Array, "2"]]


class UprightRolling(AbstractDistribution):
    r"""$v_1 = r\dot\varphi$, $v_2 = 0$ for velocities $(\dot\theta, v_1, v_2, \dot\varphi)$."""

    radius: Float[Array, ""]

    @property
    def basis(self) -> Float[Array, "2 4"]:
        return stack_rows([[1.0, 0.0, 0.0, 0.0], [0.0, self.radius, 0.0, 1.0]])

    @property
    def annihilator(self) -> Float[Array, "2 4"]:
        return stack_rows([[0.0, 1.0, 0.0, -self.radius], [0.0, 0.0, 1.0, 0.0]])

    def check(self, group: AbstractLieGroup) -> None:
        if group.dim != 4:
            raise BadInput(f"an upright disk rolls on SE(2) x R, not on {group.name}.")


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
        self.mass = positive64("mass", mass)
        self.turning = positive64("turning", turning)
        self.rolling = positive64("rolling", rolling)
        self.radius = positive64("radius", radius)

    @property
    def name(self) -> str:
        return "rolling disk"

    @property
    def drawing(self) -> Drawing | None:
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
        r"""Return where the disk is at time `t` after a start at the origin, along $e_1$.

        With rates $\dot\theta = \omega \ne 0$ and $\dot\varphi$ it is on the circle
        $(r\dot\varphi/\omega)\,(\sin\omega t,\ 1 - \cos\omega t)$.
        """
        omega, speed = jnp.asarray(turning), self.radius * jnp.asarray(rolling)
        angle = omega * jnp.asarray(t)
        return speed / omega * jnp.stack([jnp.sin(angle), 2 * jnp.sin(angle / 2) ** 2])


class Rolling(eqx.Module):
    r"""The rows of $v - r\,\omega\times e_3$, $\omega = R\Omega$, for velocities $(\Omega, v)$."""

    radius: Float[Array, ""]

    def __call__(self, g: BallConfiguration) -> Float[Array, "2 5"]:
        rotation, _ = g
        turning = self.radius * jnp.stack([-rotation[1], rotation[0]])
        return jnp.concatenate([turning, jnp.eye(2)], axis=1)


class Turntable(eqx.Module):
    r"""The velocity $\Omega_t\,(-y, x)$ of the table under the ball."""

    rate: Float[Array, ""]

    def __call__(self, g: BallConfiguration) -> Float[Array, "2"]:
        _, place = g
        return self.rate * jnp.stack([-place[1], place[0]])


class AbstractRollingBall(AbstractSlidingBody):
    r"""A ball with its centre of mass in the middle, on $SO(3)\times\mathbb R^2$; $e_3$ points up.

    The element is the attitude and the place of the point of contact; velocities are $\Omega$ in
    body axes and $v$ in space.
    """

    mass: eqx.AbstractVar[Float[Array, ""]]
    radius: eqx.AbstractVar[Float[Array, ""]]

    group: ClassVar[Product] = Product(SO3(), Translation(2))

    def velocity_of(self, g: BallConfiguration, omega: ArrayLike) -> Float[Array, "5"]:
        """Return the admissible velocity of a ball that turns with the body velocity `omega`."""
        return evaluate_in_jax(_rolling_velocity, self, g, float64("omega", omega))


def _rolling_velocity(
    ball: AbstractRollingBall, g: BallConfiguration, spin: Float[Array, "3"]
) -> Float[Array, "5"]:
    always = jnp.zeros(())
    rows, offset = ball.constraint.rows(g, always), ball.constraint.offset(g, always)
    return jnp.concatenate([spin, offset - rows[:, :3] @ spin])


class ChaplyginBall(AbstractRollingBall):
    r"""Chaplygin's ball: balanced, but with any moments of inertia, rolling on a table at rest.

    **Arguments:**

    - `inertia`: principal moments, or the matrix, about the centre (kg m^2).
    - `mass`: $m$ in kg.
    - `radius`: $r$ in m.
    - `physical`: whether to reject an inertia that no body can have.

    **Invariants:** energy; the angular momentum $R\,I\Omega + m r\,e_3\times v$ about the point of
    contact, all three components.
    """

    inertia: Inertia
    mass: Float[Array, ""]
    radius: Float[Array, ""]

    def __init__(
        self, inertia: ArrayLike, mass: ArrayLike, radius: ArrayLike, *, physical: bool = True
    ):
        self.inertia = checked_inertia(SO3(), inertia, physical)
        self.mass = positive64("mass", mass)
        self.radius = positive64("radius", radius)

    @property
    def name(self) -> str:
        return "Chaplygin ball"

    @property
    def drawing(self) -> Drawing | None:
        """What a picture needs: the radius."""
        return told("ball", radius=(self.radius, 0))

    @property
    def constraint(self) -> VelocityConstraint:
        return VelocityConstraint(Rolling(self.radius))

    def inertia_at(self, g: BallConfiguration) -> Inertia:
        if self.inertia.ndim == 1:
            return jnp.concatenate([self.inertia, jnp.stack([self.mass, self.mass])])
        top = jnp.concatenate([self.inertia, jnp.zeros((3, 2))], axis=1)
        return jnp.concatenate(
            [top, jnp.concatenate([jnp.zeros((2, 3)), self.mass * jnp.eye(2)], axis=1)]
        )


class BallOnTurntable(AbstractRollingBall):
    r"""A homogeneous ball that rolls on a table turning at a constant rate: an affine constraint.

    **Arguments:**

    - `mass`: $m$ in kg.
    - `radius`: $r$ in m.
    - `rate`: $\Omega_t$ of the table in rad/s.

    **Invariants:** the moving energy $E - \Omega_t L_z$, with the vertical angular momentum $L_z$.
    The energy itself is not conserved, for the table drives the ball.
    """

    mass: Float[Array, ""]
    radius: Float[Array, ""]
    rate: Float[Array, ""]

    def __init__(self, mass: ArrayLike, radius: ArrayLike, rate: ArrayLike):
        self.mass = positive64("mass", mass)
        self.radius = positive64("radius", radius)
        self.rate = finite64("rate", rate)

    @property
    def name(self) -> str:
        return "ball on a turntable"

    @property
    def drawing(self) -> Drawing | None:
        """What a picture needs: the radius, and how fast the table turns."""
        return told("ball", radius=(self.radius, 0), rate=(self.rate, 0))

    @property
    def constraint(self) -> VelocityConstraint:
        return VelocityConstraint(Rolling(self.radius), Turntable(self.rate))

    def inertia_at(self, g: BallConfiguration) -> Float[Array, "5"]:
        spin, m = 2 / 5 * self.mass * self.radius**2, self.mass
        return jnp.stack([spin, spin, spin, m, m])

    def further_invariants(self, state: State) -> dict[str, Float[Array, ""]]:
        (rotation, place), mu = state.g, state.momentum
        vertical = rotation[2] @ mu[:3] + place[0] * mu[4] - place[1] * mu[3]
        return {"moving energy": self.energy(state) - self.rate * vertical}

    def exact_place(self, place: ArrayLike, v: ArrayLike, t: ArrayLike) -> Float[Array, "2"]:
        r"""Return the point of contact at time `t`: it runs in a circle, $v(t) = e^{\omega tJ}v$.

        $J$ is the quarter turn and $\omega = \tfrac27\Omega_t$ for every start.
        """
        omega = 2 / 7 * self.rate
        v, angle = jnp.asarray(v, jnp.float64), omega * jnp.asarray(t, jnp.float64)
        turned = jnp.stack([-v[1], v[0]])
        swept = jnp.sin(angle) / omega * v + 2 * jnp.sin(angle / 2) ** 2 / omega * turned
        return jnp.asarray(place, jnp.float64) + swept
