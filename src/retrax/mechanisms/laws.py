r"""What joints ask of the poses of their bodies: equations, and their rows in closed form.

A law knows nothing of mechanisms: it has numbers in body axes, and functions of poses. So equal
laws can be stacked and evaluated side by side.
"""

import abc
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from retrax.mechanisms.pose import Pose, Vector, point, tangent, turning
from retrax.numerics.frozen import Frozen
from retrax.numerics.small_matrices import cross

# One block of rows for each body: k equations, d(d + 1)/2 velocities.
Blocks = tuple[Float[Array, "k dim"], ...]


class AbstractLaw(Frozen):
    r"""Equations $\varphi(\text{poses}) = 0$ between the bodies of a joint."""

    @property
    @abc.abstractmethod
    def count(self) -> int:
        """How many equations there are."""

    @abc.abstractmethod
    def residual(self, *poses: Pose) -> Float[Array, " k"]:
        r"""Return $\varphi$, in metres where it is a distance and else without unit."""

    def rows(self, *poses: Pose) -> Blocks:
        r"""Return the derivatives of $\varphi$ by the velocities of each body, left-trivialised."""

        def slopes(i: int) -> Float[Array, "k dim"]:
            d = poses[i].x.shape[0]

            def moved(xi: Vector) -> Float[Array, " k"]:
                others = [tangent(p, xi) if j == i else jax.tree.map(jnp.zeros_like, p) for j, p in enumerate(poses)]
                return jax.jvp(self.residual, poses, tuple(others))[1]

            return jax.vmap(moved, out_axes=1)(jnp.eye(d * (d + 1) // 2))

        return tuple(slopes(i) for i in range(len(poses)))


class Coincidence(AbstractLaw):
    r"""A point of one body is a point of the other, $x_b + R_bs_b - x_a - R_as_a = 0$."""

    a: Vector
    b: Vector

    @property
    def count(self) -> int:
        return self.a.shape[0]

    def residual(self, *poses: Pose) -> Float[Array, " k"]:
        first, second = poses
        return point(second, self.b) - point(first, self.a)

    def rows(self, *poses: Pose) -> Blocks:
        first, second = poses
        one = jnp.eye(self.count)
        return (
            jnp.concatenate([-turning(first.R, self.a), -one], axis=1),
            jnp.concatenate([turning(second.R, self.b), one], axis=1),
        )


class Perpendicular(AbstractLaw):
    r"""A direction of one body stays at right angles to one of the other, $R_ae\cdot R_bf = 0$."""

    e: Float[Array, "3"]
    f: Float[Array, "3"]

    @property
    def count(self) -> int:
        return 1

    def residual(self, *poses: Pose) -> Float[Array, " k"]:
        first, second = poses
        return jnp.stack([(first.R @ self.e) @ (second.R @ self.f)])

    def rows(self, *poses: Pose) -> Blocks:
        first, second = poses
        seen = first.R.T @ (second.R @ self.f)  # the direction of b, in axes of a
        turned = cross(self.e, seen)
        back = cross(self.f, second.R.T @ (first.R @ self.e))
        still = jnp.zeros(3)
        return jnp.concatenate([turned, still])[None], jnp.concatenate([back, still])[None]


class Several(AbstractLaw):
    """Several laws between the same bodies, one after the other."""

    laws: tuple[AbstractLaw, ...]

    @property
    def count(self) -> int:
        return sum(law.count for law in self.laws)

    def residual(self, *poses: Pose) -> Float[Array, " k"]:
        return jnp.concatenate([law.residual(*poses) for law in self.laws])

    def rows(self, *poses: Pose) -> Blocks:
        parts = [law.rows(*poses) for law in self.laws]
        return tuple(jnp.concatenate(blocks) for blocks in zip(*parts, strict=True))
