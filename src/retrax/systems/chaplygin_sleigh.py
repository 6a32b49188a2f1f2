"""The Chaplygin sleigh: a body in the plane on a skate."""

from typing import ClassVar

import jax.numpy as jnp
from jaxtyping import Array, Float

from retrax.groups.se2 import SE2, Motion
from retrax.mechanics.constraints import Distribution
from retrax.mechanics.remembered import Drawing, told
from retrax.mechanics.system import ArrayLike
from retrax.systems.sliding import AbstractSlidingBody, number, positive, stacked


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
        self.mass = positive("mass", mass)
        self.inertia = positive("inertia", inertia)
        self.arm = number("arm", arm)

    @property
    def name(self) -> str:
        return "Chaplygin sleigh"

    @property
    def drawing(self) -> Drawing | None:
        """What a picture needs: the arm, and the radius of gyration as the size of the board."""
        size = jnp.sqrt(self.inertia / self.mass)
        return told("sleigh", arm=(self.arm, 0), size=(size, 0))

    def inertia_at(self, g: Motion) -> Float[Array, "3 3"]:
        m, ma = self.mass, self.mass * self.arm
        return stacked([[self._turning(), 0.0, ma], [0.0, m, 0.0], [ma, 0.0, m]])

    def _turning(self) -> Float[Array, ""]:
        return self.inertia + self.mass * self.arm**2

    def exact(self, omega: ArrayLike, v: ArrayLike, t: ArrayLike) -> Float[Array, "3"]:
        r"""$(\omega, v_1, \theta)$ at time `t` after a start with $\omega$, $v$ and $\theta = 0$.

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
        omega, v, t = number("omega", omega), number("v", v), number("t", t)
        ratio = jnp.sqrt(self._turning() / self.mass)
        fastest = jnp.hypot(v, ratio * omega)
        start = jnp.arctanh(v / fastest)
        chi = self.arm * fastest / ratio**2 * t + start
        turning = jnp.sign(omega) * fastest / ratio / jnp.cosh(chi)  # (1)
        swept = jnp.arctan(jnp.sinh(chi)) - jnp.arctan(jnp.sinh(start))
        theta = jnp.sign(omega) * ratio * swept / self.arm  # (2)
        return jnp.stack([turning, fastest * jnp.tanh(chi), theta])
