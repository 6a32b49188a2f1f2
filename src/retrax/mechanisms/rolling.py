r"""What rolls or glides on a plane: velocities at the point of contact.

With $\rho$ from the centre of mass of a body to the point of contact and $t_i$ directions of the
plane, rolling is

$$ t_i\cdot(v + \omega\times\rho) = 0. \tag{1} $$
"""

import abc

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from retrax.groups.base import AbstractLieGroup, Coordinates, Element
from retrax.mechanics.constraints import AbstractConstraint, Rows, Time
from retrax.mechanisms.laws import AbstractLaw, Blocks, Residual
from retrax.mechanisms.pose import Pose, Vector, moment
from retrax.numerics.frozen import Frozen
from retrax.numerics.small_matrices import cross

# A wheel whose axle makes a smaller angle with the normal (in radians) lies flat.
FLAT = 1e-2


class AbstractContact(Frozen):
    """Equations between the velocities of one body, from where it touches a plane."""

    @property
    @abc.abstractmethod
    def count(self) -> int:
        """How many equations there are."""

    @abc.abstractmethod
    def rows(self, pose: Pose) -> Float[Array, "k dim"]:
        """Return the rows that velocities of the body obey."""

    def upright(self, pose: Pose) -> Float[Array, ""]:
        """Return the sine of the angle between its axle and the normal; above `FLAT` it rolls."""
        return jnp.ones(())


class WheelContact(AbstractContact):
    r"""A wheel: a circle of radius $r$ about an axle $a$ that does not slip.

    It touches the plane at $\rho = s - r(\nu - za)/w$ in body axes, with $\nu = R^Tn$, $z =
    \nu\cdot a$ and $w = \sqrt{1 - z^2}$.

    **Attributes:** `centre`: $s$, from the centre of mass; `axle`: $a$; `radius`; `normal`: $n$ of
    the plane; `ways`: $t_i$.
    """

    centre: Float[Array, "3"]
    axle: Float[Array, "3"]
    radius: Float[Array, ""]
    normal: Float[Array, "3"]
    ways: Float[Array, "2 3"]

    @property
    def count(self) -> int:
        return 2

    def upright(self, pose: Pose) -> Float[Array, ""]:
        return jnp.sqrt(1 - ((pose.R.T @ self.normal) @ self.axle) ** 2)

    def rows(self, pose: Pose) -> Float[Array, "k dim"]:
        nu = pose.R.T @ self.normal
        z = nu @ self.axle
        arm = self.centre - self.radius / jnp.sqrt(1 - z * z) * (nu - z * self.axle)
        return slips(arm, self.ways, pose)  # (1)


class BallContact(AbstractContact):
    r"""A ball, or a wheel in the plane, that does not slip: $\rho = Rs - rn$.

    **Attributes:** `centre`: $s$; `radius`: $r$; `normal`: $n$; `ways`: $t_i$, two or, in the
    plane, one.
    """

    centre: Vector
    radius: Float[Array, ""]
    normal: Vector
    ways: Float[Array, "k d"]

    @property
    def count(self) -> int:
        return self.ways.shape[0]

    def rows(self, pose: Pose) -> Float[Array, "k dim"]:
        arm = self.centre - self.radius * (pose.R.T @ self.normal)
        return slips(arm, self.ways, pose)  # (1)


class BladeContact(AbstractContact):
    r"""A knife edge: its point does not move sideways.

    Sideways is $n\times Rd$, in the plane at right angles to $Rd$.

    **Attributes:** `at`: the point; `direction`: $d$ of the blade; `normal`: $n$, which the plane
    has no use for.
    """

    at: Vector
    direction: Vector
    normal: Vector | None

    @property
    def count(self) -> int:
        return 1

    def _aside(self, pose: Pose) -> Vector:
        """Return the direction sideways in body axes, as long as the blade is level."""
        if self.normal is None:
            return jnp.stack([-self.direction[1], self.direction[0]])
        return cross(pose.R.T @ self.normal, self.direction)

    def upright(self, pose: Pose) -> Float[Array, ""]:
        aside = self._aside(pose)
        return jnp.sqrt(aside @ aside)

    def rows(self, pose: Pose) -> Float[Array, "k dim"]:
        aside = self._aside(pose)
        if self.normal is not None:
            aside = aside / jnp.sqrt(aside @ aside)
        return jnp.concatenate([moment(self.at, aside), pose.R @ aside])[None]


def slips(arm: Vector, ways: Float[Array, "k d"], pose: Pose) -> Float[Array, "k dim"]:
    """Return the rows (1), with the arm in body axes."""
    count = ways.shape[0]
    rows = [jnp.concatenate([moment(arm, pose.R.T @ ways[i]), ways[i]]) for i in range(count)]
    return jnp.stack(rows)


class WheelHeight(AbstractLaw):
    r"""The lowest point of a wheel lies in the plane: $n\cdot(x + Rs) - c - rw = 0$.

    **Attributes:** `wheel`: how it rolls, with $s$, $r$, $n$ and $w$; `level`: $c = n\cdot p$ for
    the points $p$ of the plane.
    """

    wheel: WheelContact
    level: Float[Array, ""]

    @property
    def count(self) -> int:
        return 1

    def residual(self, *poses: Pose) -> Residual:
        (pose,), wheel = poses, self.wheel
        high = wheel.normal @ (pose.x + pose.R @ wheel.centre) - self.level
        return jnp.stack([high - wheel.radius * wheel.upright(pose)])

    def rows(self, *poses: Pose) -> Blocks:
        (pose,), wheel = poses, self.wheel
        nu = pose.R.T @ wheel.normal
        z = nu @ wheel.axle
        arm = wheel.centre + wheel.radius * z / jnp.sqrt(1 - z * z) * wheel.axle
        return (jnp.concatenate([moment(arm, nu), wheel.normal])[None],)


class Touching(Frozen):
    """A contact, and which body of a mechanism it belongs to.

    **Attributes:** `contact`; `body`: its index; `name`; `kind`: its class as users write it.
    """

    contact: AbstractContact
    body: int = eqx.field(static=True)
    name: str = eqx.field(static=True)
    kind: str = eqx.field(static=True)

    def pose(self, g: Element) -> Pose:
        """Return where its body is."""
        R, x = g
        return Pose(R[self.body], x[self.body])


class Rolling(AbstractConstraint):
    """The wheels, balls and blades of a mechanism as one constraint on velocities.

    **Attributes:** `contacts`: one for each; `n`: how many bodies the mechanism has.
    """

    contacts: tuple[Touching, ...]
    n: int = eqx.field(static=True)

    def rows(self, g: Element, t: Time) -> Rows:
        whole = []
        for one in self.contacts:
            block = one.contact.rows(one.pose(g))
            still = jnp.zeros_like(block)
            parts = [block if i == one.body else still for i in range(self.n)]
            whole.append(jnp.concatenate(parts, axis=1))
        return jnp.concatenate(whole)

    def offset(self, g: Element, t: Time) -> Float[Array, " k"]:
        return jnp.zeros(sum(one.contact.count for one in self.contacts))

    @property
    def driven(self) -> bool:
        return False

    def violation(self, g: Element, xi: Coordinates, t: Time) -> Float[Array, " k"]:
        each = xi.reshape(self.n, -1)
        return jnp.concatenate([c.contact.rows(c.pose(g)) @ each[c.body] for c in self.contacts])

    def upright(self, g: Element) -> Float[Array, " wheels"]:
        """Return how far each is from lying flat."""
        return jnp.stack([one.contact.upright(one.pose(g)) for one in self.contacts])

    def stands(self, g: Element) -> Bool[Array, ""]:
        """Tell whether no wheel lies flat."""
        return jnp.all(self.upright(g) > FLAT)

    def check(self, group: AbstractLieGroup) -> None:
        """Do nothing: `Mechanism.system` makes the group and its wheels together."""
