"""Suslov's and Veselova's problems: bodies that must not turn about one axis."""

from collections.abc import Callable
from typing import ClassVar

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from retrax.mechanics.constraints import Distribution, VelocityConstraint
from retrax.mechanics.functions import as_pytree, require_energy
from retrax.mechanics.mechanical import Inertia, checked_inertia
from retrax.mechanics.state import State
from retrax.mechanics.system import ArrayLike
from retrax.numerics.checks import float64, require_finite, require_output, require_shape
from retrax.numerics.evaluate import evaluate
from retrax.systems.rigid_body import AbstractRigidBody

Potential = Callable[[Float[Array, "3 3"]], ArrayLike]


class Weight(eqx.Module):
    r"""The potential $V(R) = b\cdot R^Te_3$ of a body in gravity: $e_3$ points **up**.

    **Arguments:** `moment`: $b$ in J, the weight times the arm in body axes.
    """

    moment: Float[Array, "3"]

    def __init__(self, moment: ArrayLike):
        self.moment = float64("moment", moment)
        require_shape("moment", self.moment, (3,))
        require_finite("moment", self.moment)

    def __call__(self, g: Float[Array, "3 3"]) -> Float[Array, ""]:
        return g[2] @ self.moment


class AbstractBodyInPotential(AbstractRigidBody):
    """A body about a fixed point whose potential energy, if any, is a function of its attitude."""

    inertia: eqx.AbstractVar[Inertia]
    potential: eqx.AbstractVar[Potential | None]

    @property
    def free(self) -> bool:
        return self.potential is None

    def potential_energy(self, g: Float[Array, "3 3"]) -> Float[Array, ""]:
        return jnp.zeros(()) if self.potential is None else jnp.asarray(self.potential(g))

    def check_energy(self, state: State) -> None:
        if self.potential is not None:
            energy = evaluate(type(self).potential_energy, self, state.g)
            require_energy("potential", energy)


class Suslov(AbstractBodyInPotential):
    r"""A body about a fixed point with $\Omega_3 = 0$ in body axes.

    **Arguments:**

    - `inertia`: principal moments, or the matrix, about the fixed point (kg m^2). Only with
        $I_{13}$ or $I_{23}$ does the free body do more than turn steadily.
    - `potential`: $V(R)$ in J; `Weight(b)` is $b\cdot R^Te_3$.
    - `physical`: whether to reject an inertia that no body can have.

    **Invariants:** energy; with diagonal inertia and the potential $b\cdot R^Te_3$, $b_3 = 0$
    (Kharlamova's case), also $b_1\Pi_1 + b_2\Pi_2$.
    """

    inertia: Inertia
    potential: Potential | None
    constraint: ClassVar[Distribution] = Distribution(((1.0, 0.0, 0.0), (0.0, 1.0, 0.0)))

    def __init__(
        self, inertia: ArrayLike, potential: Potential | None = None, *, physical: bool = True
    ):
        self.inertia = checked_inertia(self.group, inertia, physical)
        require_output("potential", potential, (self.group.layout(),), (), optional=True)
        self.potential = as_pytree(potential)

    @classmethod
    def paper(cls) -> tuple["Suslov", State, float, int]:
        """Return Fig. 1 of the paper on nonholonomic retraction maps: system, state, h, steps.

        No body has these moments; the equations hold all the same.
        """
        system = cls([1.0, 10.0, 100.0], physical=False)
        return system, system.state(np.eye(3), momentum=[1.0, 1.0, 0.0]), 0.01, 180_000

    @classmethod
    def kharlamova(cls) -> tuple["Suslov", State, float, int]:
        """Return a diagonal inertia with a weight in the plane: system, state, h, steps.

        Two invariants, so the motion is quasi-periodic.
        """
        system = cls([1.0, 2.0, 3.0], Weight([0.8, -0.5, 0.0]))
        tilted = evaluate(type(cls.group).exp, cls.group, np.array([0.4, 0.0, 0.0]))
        return system, system.state(tilted, velocity=[0.3, 0.7, 0.0]), 0.02, 20_000

    @property
    def name(self) -> str:
        return "Suslov body"

    def exact_velocity(self, start: ArrayLike, t: ArrayLike) -> Float[Array, "3"]:
        r"""Return the velocity at time `t` of the free body that starts with velocity `start`.

        With $W = (\Omega_1, \Omega_2)$, $D$ the upper block of the inertia, $a = (I_{13}, I_{23})$
        and $J$ the quarter turn, $D\dot W = (a\cdot W)\,JW$. Put $\kappa = (\det D)^{-1/2}$,
        $B = D^{-1}JW_0/\kappa$ and $(a\cdot W_0, a\cdot B) = \rho(\cos\phi, \sin\phi)$; then

        $$ W = \cos\theta\,W_0 + \sin\theta\,B, \qquad \theta = \phi + \arctan\sinh X, \qquad
           X = \kappa\rho t + \operatorname{arsinh}\tan(-\phi), \tag{1} $$

        for $\cos\phi > 0$, and mirrored, $\theta = \phi + \pi - \arctan\sinh X$ with
        $X = \kappa\rho t + \operatorname{arsinh}\tan\phi$, for $\cos\phi < 0$. In the end the
        body turns steadily with $a\cdot W = 0$.
        """
        inertia = jnp.diag(self.inertia) if self.inertia.ndim == 1 else self.inertia
        w0, t = float64("start", start)[:2], float64("t", t)
        (d11, d12), (_, d22) = inertia[0, :2], inertia[1, :2]
        kappa = 1 / jnp.sqrt(d11 * d22 - d12 * d12)
        turned = jnp.stack([-d22 * w0[1] - d12 * w0[0], d12 * w0[1] + d11 * w0[0]])
        b = kappa * turned
        p, q = inertia[2, :2] @ w0, inertia[2, :2] @ b
        rho = jnp.hypot(p, q)
        # tan(phi) = q / p; a body with p = 0 turns steadily from the start.
        steep = q / jnp.where(p == 0, 1.0, p)
        x = kappa * rho * t + jnp.arcsinh(-steep) * jnp.sign(p)
        psi = jnp.arctan(jnp.sinh(x))
        phi = jnp.arctan2(q, p)
        theta = jnp.where(p > 0, phi + psi, phi + jnp.pi - psi)
        w = jnp.where(p == 0, w0, jnp.cos(theta) * w0 + jnp.sin(theta) * b)  # (1)
        return jnp.concatenate([w, jnp.zeros(1)])


def _vertical(g: Float[Array, "3 3"]) -> Float[Array, "1 3"]:
    """Return the row (R^T e3)^T."""
    return g[2:]


class Veselova(AbstractBodyInPotential):
    r"""A body about a fixed point with $\Omega\cdot R^Te_3 = 0$: no turning about the vertical.

    **Arguments:**

    - `inertia`: principal moments, or the matrix, about the fixed point (kg m^2).
    - `potential`: $V(R)$ in J.
    - `physical`: whether to reject an inertia that no body can have.

    **Invariants:** energy; without a potential the horizontal components of $R\,I\Omega$.
    """

    inertia: Inertia
    potential: Potential | None
    constraint: ClassVar[VelocityConstraint] = VelocityConstraint(_vertical)

    def __init__(
        self, inertia: ArrayLike, potential: Potential | None = None, *, physical: bool = True
    ):
        self.inertia = checked_inertia(self.group, inertia, physical)
        require_output("potential", potential, (self.group.layout(),), (), optional=True)
        self.potential = as_pytree(potential)

    @property
    def name(self) -> str:
        return "Veselova body"
