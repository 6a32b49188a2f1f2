"""Bodies that slide along their own axis only: Chaplygin's sleigh, and a blade in space."""

from typing import ClassVar

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from retrax.groups.se2 import SE2, Motion
from retrax.groups.se3 import SE3
from retrax.groups.so3 import SO3
from retrax.mechanics.constraints import Distribution
from retrax.mechanics.functions import Function
from retrax.mechanics.mechanical import AbstractMechanicalSystem, Inertia, checked_inertia
from retrax.mechanics.remembered import Drawing, told
from retrax.mechanics.system import ArrayLike, Element
from retrax.numerics.checks import finite64, positive64
from retrax.numerics.evaluate import evaluate


class AbstractSlidingBody(AbstractMechanicalSystem):
    """A body with constant inertia that moves under its constraint, without any other force."""

    force: Function | None = eqx.field(default=None, kw_only=True)
    symmetry: ClassVar[tuple[tuple[float, ...], ...] | None] = None

    @property
    def invariant_inertia(self) -> bool:
        return True

    @property
    def free(self) -> bool:
        return True

    def potential_energy(self, g: Element) -> Float[Array, ""]:
        return jnp.zeros(())


def stack_rows(rows: list[list[float | Float[Array, ""]]]) -> Float[Array, "m n"]:
    """Return a matrix from entries that are numbers or arrays."""
    return jnp.stack([jnp.stack([jnp.asarray(x, jnp.float64) for x in row]) for row in rows])


class ChaplyginSleigh(AbstractSlidingBody):
    r"""A body that slides along its skate only: $v_2 = 0$ at the point where the skate touches.

    Velocities are $(\omega, v_1, v_2)$ at that point; the centre of mass lies `arm` ahead of it.

    **Arguments:**

    - `mass`: $m$ in kg.
    - `inertia`: $J$ about the centre of mass (kg m^2).
    - `arm`: $a$ in m. With $a > 0$ the body comes to glide straight ahead.

    **Invariants:** energy.
    """

    mass: Float[Array, ""]
    inertia: Float[Array, ""]
    arm: Float[Array, ""]

    group: ClassVar[SE2] = SE2()
    constraint: ClassVar[Distribution] = Distribution(((1.0, 0.0, 0.0), (0.0, 1.0, 0.0)))

    def __init__(self, mass: ArrayLike, inertia: ArrayLike, arm: ArrayLike):
        self.mass = positive64("mass", mass)
        self.inertia = positive64("inertia", inertia)
        self.arm = finite64("arm", arm)

    @property
    def name(self) -> str:
        return "Chaplygin sleigh"

    @property
    def drawing(self) -> Drawing | None:
        """What a picture needs: the arm, and the radius of gyration as the size of the board."""
        size = evaluate(lambda inertia, mass: jnp.sqrt(inertia / mass), self.inertia, self.mass)
        return told("sleigh", arm=(self.arm, 0), size=(size, 0))

    def inertia_at(self, g: Motion) -> Float[Array, "3 3"]:
        m, ma = self.mass, self.mass * self.arm
        return stack_rows([[self._turning(), 0.0, ma], [0.0, m, 0.0], [ma, 0.0, m]])

    def _turning(self) -> Float[Array, ""]:
        return self.inertia + self.mass * self.arm**2

    def exact(self, omega: ArrayLike, v: ArrayLike, t: ArrayLike) -> Float[Array, "3"]:
        r"""Return $(\omega, v_1, \theta)$ at time `t` from $\omega$, $v$ and $\theta = 0$ on.

        With $\tilde J = J + ma^2$ and $v_\infty^2 = v^2 + \tilde J\omega^2/m$,

        $$
        \begin{aligned}
        v_1 &= v_\infty\tanh\chi, \qquad
            \omega = \pm\sqrt{m/\tilde J}\,v_\infty\operatorname{sech}\chi, \qquad
            \chi = (a v_\infty m/\tilde J)\,t + \operatorname{artanh}(v/v_\infty)    &&\text{(1)}\\
        \theta &= \pm\sqrt{\tilde J/m}\,\frac{\arctan\sinh\chi - \arctan\sinh\chi_0}{a} &&\text{(2)}
        \end{aligned}
        $$

        for $\omega \ne 0$ and $a > 0$.
        """
        omega, v, t = finite64("omega", omega), finite64("v", v), finite64("t", t)
        ratio = jnp.sqrt(self._turning() / self.mass)
        fastest = jnp.hypot(v, ratio * omega)
        start = jnp.arctanh(v / fastest)
        chi = self.arm * fastest / ratio**2 * t + start
        turning = jnp.sign(omega) * fastest / ratio / jnp.cosh(chi)  # (1)
        swept = jnp.arctan(jnp.sinh(chi)) - jnp.arctan(jnp.sinh(start))
        theta = jnp.sign(omega) * ratio * swept / self.arm  # (2)
        return jnp.stack([turning, fastest * jnp.tanh(chi), theta])


# The velocities that a blade can have: three of rotation, and one along its axis.
_AXES = tuple(tuple(float(i == j) for j in range(6)) for i in range(4))


class Blade(AbstractSlidingBody):
    r"""A rigid body on $SE(3)$ with $v_2 = v_3 = 0$ at its origin, free to turn.

    **Arguments:**

    - `inertia`: principal moments, or the matrix, about the centre of mass (kg m^2).
    - `mass`: $m$ in kg.
    - `centre`: the centre of mass in body axes (m).
    - `physical`: whether to reject an inertia that no body can have.

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
        self.mass = positive64("mass", mass)
        self.centre = finite64("centre", centre, (3,))

    @property
    def name(self) -> str:
        return "blade"

    @property
    def drawing(self) -> Drawing | None:
        """What a picture needs: the mass, where its centre is and the inertia about it."""
        one = self.inertia.ndim == 1
        J = evaluate(jnp.diag, self.inertia) if one else self.inertia
        return told("body", mass=(self.mass, 0), arm=(self.centre, 1), inertia=(J, 2))

    def inertia_at(self, g: Element) -> Float[Array, "6 6"]:
        about_centre = jnp.diag(self.inertia) if self.inertia.ndim == 1 else self.inertia
        arm = SO3().hat(self.centre)
        turning = jnp.concatenate([about_centre - self.mass * arm @ arm, self.mass * arm], axis=1)
        moving = jnp.concatenate([-self.mass * arm, self.mass * jnp.eye(3)], axis=1)
        return jnp.concatenate([turning, moving])
