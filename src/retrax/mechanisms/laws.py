r"""What joints ask of the poses of their bodies: equations, and their rows in closed form.

A law knows nothing of mechanisms: it has numbers in body axes, and functions of poses. So equal
laws can be stacked and evaluated side by side.

Some equations also hold at a place where the joint would be put together the wrong way round, for
example a hinge with its pin reversed. `side` tells these places apart: its numbers are positive on
the side on which the joint was drawn. No motion leads from one side to the other.
"""

import abc

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from retrax.mechanisms.measures import Travel, Turn
from retrax.mechanisms.pose import Matrix, Pose, Row, Vector, moment, point, tangent, turning
from retrax.numerics.frozen import Frozen
from retrax.numerics.small_matrices import cross

# One block of rows for each body: k equations, d(d + 1)/2 velocities.
Blocks = tuple[Float[Array, "k dim"], ...]
Residual = Float[Array, " k"]
Side = Float[Array, " sides"]


class AbstractLaw(Frozen):
    r"""Equations $\varphi(\text{poses}) = 0$ between the bodies of a joint."""

    @property
    @abc.abstractmethod
    def count(self) -> int:
        """How many equations there are."""

    @abc.abstractmethod
    def residual(self, *poses: Pose) -> Residual:
        r"""Return $\varphi$, in metres where it is a distance and else without unit."""

    def rows(self, *poses: Pose) -> Blocks:
        r"""Return the derivatives of $\varphi$ by the velocities of each body, left-trivialised."""
        return differentiate(self, *poses)

    def side(self, *poses: Pose) -> Side:
        """Return numbers that are positive where the joint is put together as it was drawn."""
        return jnp.zeros(0)


def differentiate(law: AbstractLaw, *poses: Pose) -> Blocks:
    """Return the rows of a law by automatic differentiation."""

    def slopes(i: int) -> Float[Array, "k dim"]:
        d = poses[i].x.shape[0]

        def move(xi: Row) -> Residual:
            still = [jax.tree.map(jnp.zeros_like, pose) for pose in poses]
            still[i] = tangent(poses[i], xi)
            return jax.jvp(law.residual, poses, tuple(still))[1]

        return jax.vmap(move, out_axes=1)(jnp.eye(d * (d + 1) // 2))

    return tuple(slopes(i) for i in range(len(poses)))


class Coincidence(AbstractLaw):
    r"""A point of one body is a point of the other, $x_b + R_bs_b - x_a - R_as_a = 0$."""

    a: Vector
    b: Vector

    @property
    def count(self) -> int:
        return self.a.shape[0]

    def residual(self, *poses: Pose) -> Residual:
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

    def residual(self, *poses: Pose) -> Residual:
        first, second = poses
        return jnp.stack([(first.R @ self.e) @ (second.R @ self.f)])

    def rows(self, *poses: Pose) -> Blocks:
        first, second = poses
        seen = first.R.T @ (second.R @ self.f)
        back = second.R.T @ (first.R @ self.e)
        still = jnp.zeros(3)
        return (
            jnp.concatenate([cross(self.e, seen), still])[None],
            jnp.concatenate([cross(self.f, back), still])[None],
        )


class Aligned(AbstractLaw):
    r"""A direction $f$ of the second body stays along the axis of the first.

    $R_ae_i\cdot R_bf = 0$ for the two rows $e_i$ of `e`, which make a right-handed triple with the
    axis.
    """

    e: Float[Array, "2 3"]
    f: Float[Array, "3"]

    @property
    def count(self) -> int:
        return 2

    def _look(self, first: Pose, second: Pose) -> Float[Array, "3"]:
        return first.R.T @ (second.R @ self.f)

    def residual(self, *poses: Pose) -> Residual:
        return self.e @ self._look(*poses)

    def rows(self, *poses: Pose) -> Blocks:
        first, second = poses
        seen, back, still = self._look(*poses), second.R.T @ first.R, jnp.zeros(3)

        def pair(e: Float[Array, "3"]) -> tuple[Row, Row]:
            return (
                jnp.concatenate([cross(e, seen), still]),
                jnp.concatenate([cross(self.f, back @ e), still]),
            )

        (one, other), (one2, other2) = pair(self.e[0]), pair(self.e[1])
        return jnp.stack([one, one2]), jnp.stack([other, other2])

    def side(self, *poses: Pose) -> Side:
        return jnp.stack([cross(self.e[0], self.e[1]) @ self._look(*poses)])


class Unturned(AbstractLaw):
    r"""The second body is not turned against the first, $Q = R_a^TR_bC = 1$.

    In space the equations are $Q_{12} = Q_{23} = Q_{31} = 0$, in the plane $Q_{21} = 0$.
    """

    C: Matrix

    @property
    def count(self) -> int:
        return 3 if self.C.shape[0] == 3 else 1

    def _turn(self, first: Pose, second: Pose) -> Matrix:
        return first.R.T @ second.R @ self.C

    def residual(self, *poses: Pose) -> Residual:
        Q = self._turn(*poses)
        return jnp.stack([Q[0, 1], Q[1, 2], Q[2, 0]] if self.count == 3 else [Q[1, 0]])

    def rows(self, *poses: Pose) -> Blocks:
        Q = self._turn(*poses)
        if self.count == 1:
            # The sine of an angle has its cosine as slope.
            still = jnp.zeros(2)
            row = jnp.concatenate([Q[:1, 0], still])[None]
            return -row, row
        e, turned, still = jnp.eye(3), [], jnp.zeros((3, 3))
        for i, j in ((0, 1), (1, 2), (2, 0)):
            turned.append(cross(e[i], Q[:, j]))
        seen = jnp.stack(turned)
        # Both bodies at one angular velocity leave Q as it is.
        first, second = poses
        back = -seen @ (first.R.T @ second.R)
        return jnp.concatenate([seen, still], axis=1), jnp.concatenate([back, still], axis=1)

    def side(self, *poses: Pose) -> Side:
        Q = self._turn(*poses)
        # Where the equations hold, the diagonal is 1, 0 or -1.
        return (jnp.stack([Q[0, 0], Q[1, 1], Q[2, 2]]) if self.count == 3 else Q[0, :1]) - 0.5


class InPlanes(AbstractLaw):
    r"""A point of the second body stays in planes of the first, one for each row $n_i$ of `n`.

    $R_an_i\cdot(x_b + R_bs_b - x_a) = n_i\cdot s_a$: one plane, or two for a line in space.
    """

    n: Float[Array, "k d"]
    a: Vector
    b: Vector

    @property
    def count(self) -> int:
        return self.n.shape[0]

    def residual(self, *poses: Pose) -> Residual:
        first, second = poses
        return self.n @ (first.R.T @ (point(second, self.b) - first.x) - self.a)

    def rows(self, *poses: Pose) -> Blocks:
        both = [Travel(self.n[i], self.a, self.b).distance(*poses) for i in range(self.count)]
        return jnp.stack([m.first for m in both]), jnp.stack([m.second for m in both])


class Apart(AbstractLaw):
    r"""Two points keep their distance: $(|d|^2 - \ell^2)/2\ell = 0$, $d$ from one to the other."""

    a: Vector
    b: Vector
    length: Float[Array, ""]

    @property
    def count(self) -> int:
        return 1

    def residual(self, *poses: Pose) -> Residual:
        first, second = poses
        d = point(second, self.b) - point(first, self.a)
        return jnp.stack([(d @ d - self.length * self.length) / (2 * self.length)])

    def rows(self, *poses: Pose) -> Blocks:
        first, second = poses
        u = (point(second, self.b) - point(first, self.a)) / self.length
        return (
            -jnp.concatenate([moment(self.a, first.R.T @ u), u])[None],
            jnp.concatenate([moment(self.b, second.R.T @ u), u])[None],
        )


class Threaded(AbstractLaw):
    r"""A travel $x$ follows an angle $\theta$, $\rho\sin(x/\rho - \theta) = 0$.

    The angle is between the first two bodies, the travel between the last two. The sine makes the
    law absolute: it needs no count of turns.

    **Attributes:** `turn`, `travel`: what is measured; `lead`: $\rho$, the travel per radian.
    """

    turn: Turn
    travel: Travel
    lead: Float[Array, ""]

    @property
    def count(self) -> int:
        return 1

    def residual(self, *poses: Pose) -> Residual:
        c, s = self.turn.cosine(*poses[:2]), self.turn.sine(*poses[:2])
        wound = self.travel.distance(*poses[2:]).value / self.lead
        return jnp.stack([self.lead * (jnp.sin(wound) * c.value - jnp.cos(wound) * s.value)])

    def rows(self, *poses: Pose) -> Blocks:
        c, s = self.turn.cosine(*poses[:2]), self.turn.sine(*poses[:2])
        x = self.travel.distance(*poses[2:])
        C, S = jnp.cos(x.value / self.lead), jnp.sin(x.value / self.lead)
        near = C * c.value + S * s.value
        p, q = self.lead * S, self.lead * C
        return (
            (p * c.first - q * s.first)[None],
            (p * c.second - q * s.second)[None],
            (near * x.first)[None],
            (near * x.second)[None],
        )

    def side(self, *poses: Pose) -> Side:
        c, s = self.turn.cosine(*poses[:2]), self.turn.sine(*poses[:2])
        wound = self.travel.distance(*poses[2:]).value / self.lead
        return jnp.stack([jnp.cos(wound) * c.value + jnp.sin(wound) * s.value])


class Screwed(AbstractLaw):
    """`Threaded`, with angle and travel between the same two bodies."""

    thread: Threaded

    @property
    def count(self) -> int:
        return 1

    def residual(self, *poses: Pose) -> Residual:
        return self.thread.residual(*poses, *poses)

    def rows(self, *poses: Pose) -> Blocks:
        a, b, a_too, b_too = self.thread.rows(*poses, *poses)
        return a + a_too, b + b_too

    def side(self, *poses: Pose) -> Side:
        return self.thread.side(*poses, *poses)


class Geared(AbstractLaw):
    r"""Two angles keep a ratio of whole numbers, $\sin(n_1\theta_1 + n_2\theta_2)/N = 0$.

    The first angle is between the first two bodies, the second between the last two; $N$ is the
    larger of $|n_1|$, $|n_2|$. Whole turns of either leave the law as it is.
    """

    first: Turn
    second: Turn
    teeth: Float[Array, "2"]

    @property
    def count(self) -> int:
        return 1

    def _phase(self, *poses: Pose) -> Float[Array, ""]:
        one, two = self.first.angle(*poses[:2]), self.second.angle(*poses[2:])
        return self.teeth[0] * one.value + self.teeth[1] * two.value

    def residual(self, *poses: Pose) -> Residual:
        return jnp.stack([jnp.sin(self._phase(*poses)) / jnp.max(jnp.abs(self.teeth))])

    def rows(self, *poses: Pose) -> Blocks:
        one, two = self.first.angle(*poses[:2]), self.second.angle(*poses[2:])
        phase = self.teeth[0] * one.value + self.teeth[1] * two.value
        p, q = jnp.cos(phase) / jnp.max(jnp.abs(self.teeth)) * self.teeth
        return (
            (p * one.first)[None],
            (p * one.second)[None],
            (q * two.first)[None],
            (q * two.second)[None],
        )

    def side(self, *poses: Pose) -> Side:
        return jnp.stack([jnp.cos(self._phase(*poses))])


class Several(AbstractLaw):
    """Several laws between the same bodies, one after the other."""

    laws: tuple[AbstractLaw, ...]

    @property
    def count(self) -> int:
        return sum(law.count for law in self.laws)

    def residual(self, *poses: Pose) -> Residual:
        return jnp.concatenate([law.residual(*poses) for law in self.laws])

    def rows(self, *poses: Pose) -> Blocks:
        parts = [law.rows(*poses) for law in self.laws]
        return tuple(jnp.concatenate(blocks) for blocks in zip(*parts, strict=True))

    def side(self, *poses: Pose) -> Side:
        return jnp.concatenate([law.side(*poses) for law in self.laws])
