"""Rigid bodies on SO(3): the free body, the heavy top and the 3D pendulum."""

from typing import ClassVar

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from retrax.groups.so3 import SO3
from retrax.mechanics.functions import Function
from retrax.mechanics.mechanical import AbstractMechanicalSystem, Inertia, checked_inertia
from retrax.mechanics.remembered import Drawing, told
from retrax.mechanics.solids import about_centre
from retrax.mechanics.state import State
from retrax.mechanics.system import ArrayLike
from retrax.numerics.checks import finite64, is_traced, require_above_zero
from retrax.numerics.evaluate import evaluate_in_jax


class AbstractRigidBody(AbstractMechanicalSystem):
    r"""A body with attitude $R \in SO(3)$, body axes to space axes, and constant inertia."""

    inertia: eqx.AbstractVar[Inertia]
    group: ClassVar[SO3] = SO3()
    force: Function | None = eqx.field(default=None, kw_only=True)
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


class AbstractHeavyBody(AbstractRigidBody):
    r"""A body about a fixed point in gravity, $V = m g\,u\cdot R\chi$.

    $u$ is the direction that points up: $e_3$ for `HeavyTop`, $-e_3$ for `Pendulum3D`.

    **Arguments:**

    - `inertia`: principal moments, or the matrix, about the fixed point (kg m^2).
    - `mass`: $m$ in kg.
    - `arm`: $\chi$, from the fixed point to the centre of mass in body axes (m).
    - `gravity`: $g$ in m/s^2.
    - `physical`: whether to reject an inertia that no body can have.

    **Invariants:** energy; the vertical angular momentum $e_3\cdot R\mu$.
    """

    inertia: eqx.AbstractVar[Inertia]
    mass: eqx.AbstractVar[Float[Array, ""]]
    arm: eqx.AbstractVar[Float[Array, "3"]]
    gravity: eqx.AbstractVar[Float[Array, ""]]

    e3_points_up: eqx.AbstractClassVar[bool]

    @property
    def free(self) -> bool:
        return False

    @property
    def drawing(self) -> Drawing | None:
        """What a picture needs: the arm, the mass and the inertia about the centre of mass."""
        many = self.arm.ndim != 1 or self.mass.ndim != 0 or self.inertia.shape not in ((3,), (3, 3))
        if is_traced(self) or many:
            return None
        J = np.asarray(self.inertia)
        central = about_centre(np.diag(J) if J.ndim == 1 else J, float(self.mass), self.arm)
        return told("body", mass=(self.mass, 0), arm=(self.arm, 1), inertia=(central, 2))

    def weight_arm(self) -> Float[Array, "3"]:
        r"""Return the vector $w$ with $V = w\cdot R^Te_3$."""
        weight = self.mass * self.gravity
        return (weight if self.e3_points_up else -weight) * self.arm

    def upright(self) -> State:
        """Return the body at rest with its centre of mass straight above the fixed point."""
        return self._at_rest(1.0 if self.e3_points_up else -1.0)

    def hanging(self) -> State:
        """Return the body at rest with its centre of mass straight below the fixed point."""
        return self._at_rest(-1.0 if self.e3_points_up else 1.0)

    def _at_rest(self, along: float) -> State:
        return self.state(evaluate_in_jax(_turn_to, self.arm, along), velocity=np.zeros(3))

    def potential_energy(self, g: Float[Array, "3 3"]) -> Float[Array, ""]:
        weight = self.mass * self.gravity
        return (weight if self.e3_points_up else -weight) * (g[2] @ self.arm)


class HeavyTop(AbstractHeavyBody):
    r"""The heavy top, $V = m g\,e_3\cdot R\chi$: $e_3$ points **up**, against gravity.

    `AbstractHeavyBody` explains the arguments.
    """

    inertia: Inertia
    mass: Float[Array, ""]
    arm: Float[Array, "3"]
    gravity: Float[Array, ""]

    e3_points_up: ClassVar[bool] = True

    def __init__(
        self,
        inertia: ArrayLike,
        mass: ArrayLike,
        arm: ArrayLike,
        gravity: ArrayLike = 9.81,
        *,
        physical: bool = True,
    ):
        self.inertia = checked_inertia(self.group, inertia, physical)
        self.mass, self.arm, self.gravity = _check_weight(mass, arm, gravity)

    @property
    def name(self) -> str:
        return "heavy top"


class Pendulum3D(AbstractHeavyBody):
    r"""The 3D pendulum, $V = -m g\,e_3\cdot R\chi$: $e_3$ points **down**, along gravity.

    It is the system of `HeavyTop` with the other convention, that of the literature on pendula.
    `AbstractHeavyBody` explains the arguments.
    """

    inertia: Inertia
    mass: Float[Array, ""]
    arm: Float[Array, "3"]
    gravity: Float[Array, ""]

    e3_points_up: ClassVar[bool] = False

    def __init__(
        self,
        inertia: ArrayLike,
        mass: ArrayLike,
        arm: ArrayLike,
        gravity: ArrayLike = 9.81,
        *,
        physical: bool = True,
    ):
        self.inertia = checked_inertia(self.group, inertia, physical)
        self.mass, self.arm, self.gravity = _check_weight(mass, arm, gravity)

    @classmethod
    def paper(cls) -> tuple["Pendulum3D", State, float, int]:
        """Return the example of the geometric pseudospectral paper (Table I), with h and steps.

        The moments are about the pivot. No body has them together with this arm, for the moments
        about its centre of mass would be (0, 1.8, 2); the equations hold all the same.
        """
        system = cls(inertia=[1.0, 2.8, 2.0], mass=1.0, arm=[0.0, 0.0, 1.0])
        return system, system.state(np.eye(3), velocity=[0.5, -0.5, 0.4]), 0.05, 600

    @property
    def name(self) -> str:
        return "3D pendulum"


def _turn_to(arm: Float[Array, "3"], along: Float[Array, ""]) -> Float[Array, "3 3"]:
    """Return the least rotation that takes `arm` to `along` times e3, about an axis across both."""
    length = jnp.sqrt(arm @ arm)
    a = arm / jnp.where(length > 0, length, 1.0)
    b = along * jnp.array([0.0, 0.0, 1.0])
    # Half a turn about a, then half a turn about what bisects a and b; any axis where b = -a.
    c = a + b
    between = jnp.where(c @ c > 1e-24, c, _across(a))
    n = between / jnp.sqrt(between @ between)
    turned = (2 * jnp.outer(n, n) - jnp.eye(3)) @ (2 * jnp.outer(a, a) - jnp.eye(3))
    return jnp.where(length > 0, turned, jnp.eye(3))


def _across(a: Float[Array, "3"]) -> Float[Array, "3"]:
    """Return a vector across `a`."""
    return jnp.cross(a, jnp.eye(3)[jnp.argmin(jnp.abs(a))])


def _check_weight(
    mass: object, arm: object, gravity: object
) -> tuple[Float[Array, ""], Float[Array, "3"], Float[Array, ""]]:
    """Return mass, arm and gravity as arrays; the mass must be positive."""
    checked = finite64("mass", mass), finite64("arm", arm, (3,)), finite64("gravity", gravity)
    require_above_zero("mass", checked[0], "kg is not positive: a body has mass")
    return checked
