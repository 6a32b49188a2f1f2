r"""The contact of two rods: where they touch, how they slip there, and what forces there do.

$$
\begin{aligned}
R_1 &= \sum\alpha_k r_k, \quad R_2 = \sum\beta_m r_m, \quad d = R_2 - R_1          &&\text{(1)}\\
0 &= \partial_s\,\tfrac12|d|^2 = (-d\cdot R_1',\ d\cdot R_2')                       &&\text{(2)}\\
C &= V_1 - V_2 + \tfrac12(W_1 + W_2)\times d, \qquad
  V_1 = \sum\alpha_k v_k, \quad W_1 = \sum\alpha_k\Lambda_k\omega_k                 &&\text{(3)}\\
\dot s &= -H^{-1}\,\partial_g(2)\cdot(\omega, v), \qquad
  H = \partial_s^2\,\tfrac12|d|^2                                                   &&\text{(4)}
\end{aligned}
$$

and likewise for rod 2. (2) makes $d$ perpendicular to both centrelines; (3) is the velocity with
which the surfaces slip at the contact, half-way between the centrelines. The points of contact are
closest to each other while $H$ is positive definite; for two straight rods at an angle $\theta$
its eigenvalues are proportional to $1 \pm \cos\theta$. These equations keep the gap $|d|$; those
that the paper prints as (8) and (10) do not, and are written apart from the library.
"""

import math
from collections.abc import Callable
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from retrax.errors import BadInput
from retrax.groups.base import AbstractLieGroup
from retrax.groups.product import Product
from retrax.groups.translation import Translation
from retrax.mechanics.constraints import AbstractConstraint
from retrax.mechanics.system import AbstractGroupSystem, ArrayLike, Coordinates
from retrax.nodal.nodes import HostPlacement, Placement
from retrax.numerics.bspline import bends, slopes, weights
from retrax.numerics.newton import NewtonStatus, newton
from retrax.numerics.small_matrices import cross, solve
from retrax.systems.rods.rod import Rod

Vector = Float[Array, "3"]
Nodes = Float[Array, "_nodes 3"]
# Coordinates of one of the rods.
Part = Float[Array, " _part"]
Pair = tuple[Placement, Placement, Float[Array, "2"]]
# On the host: weights of the nodes of a rod with two derivatives, a vector, one matrix a node.
HostWeights = tuple[np.ndarray, np.ndarray, np.ndarray]
HostRow = Float[np.ndarray, "3"]
HostRows = Float[np.ndarray, "_nodes 3 6"]
# Arc lengths and the Hessian $H$, traced or on the host.
Places = Float[Array, "2"] | Float[np.ndarray, "2"]
Hessian = Float[Array, "2 2"] | Float[np.ndarray, "2 2"]
# The least ratio of the smaller eigenvalue of H to their mean: that of straight rods at a quarter
# of a degree.
FLATTEST = 1e-5


class Strand(NamedTuple):
    """One of the rods at a contact: frames, places, and the weights of its nodes."""

    frames: Float[Array, "_nodes 3 3"]
    places: Nodes
    weights: Float[Array, " _nodes"]

    @property
    def point(self) -> Vector:
        return self.weights @ self.places  # (1)

    def mean(self, rows: Nodes) -> Vector:
        return self.weights @ rows

    def turning(self, omega: Nodes) -> Nodes:
        """Return the angular velocities of the nodes, in space."""
        return jax.vmap(jnp.matmul)(self.frames, omega)

    def push(self, force: Vector, torque: Vector) -> Float[Array, " dim"]:
        """Share out a force and a torque in space at the contact among the nodes."""

        def node(frame, weight):
            return jnp.concatenate([weight * (frame.T @ torque), weight * force])

        return jax.vmap(node)(self.frames, self.weights).reshape(-1)


def slip(
    first: Strand, second: Strand, one: tuple[Nodes, Nodes], two: tuple[Nodes, Nodes]
) -> Vector:
    """Return the slip (3), from the velocities (omega, v) of both rods."""
    d = second.point - first.point
    (omega1, v1), (omega2, v2) = one, two
    turning = first.mean(first.turning(omega1)) + second.mean(second.turning(omega2))
    return first.mean(v1) - second.mean(v2) + cross(turning, d) / 2


class AbstractRollingPair(AbstractGroupSystem):
    """Two rods and the points at which they touch; `RodsInContact` has their motion."""

    first: eqx.AbstractVar[Rod]
    second: eqx.AbstractVar[Rod]
    radius: eqx.AbstractVar[Float[Array, ""]]
    width: eqx.AbstractVar[Float[Array, ""]]
    friction: eqx.AbstractVar[Float[Array, ""] | None]
    restitution: eqx.AbstractVar[Float[Array, ""]]
    arcs: eqx.AbstractVar[tuple[Part, Part]]
    unilateral: eqx.AbstractVar[bool]

    @property
    def group(self) -> Product:
        return Product(self.first.group, self.second.group, Translation(2))

    @property
    def rods(self) -> tuple[Rod, Rod]:
        return self.first, self.second

    def split(self, x: Coordinates) -> tuple[Part, Part]:
        """Return the coordinates of each rod."""
        one, two, _ = self.group.split(x)
        return one, two

    def join(self, one: Part, two: Part, s: Float[Array, "2"] | None = None) -> Coordinates:
        """Join the coordinates of both rods and of the points of contact, 0 by default."""
        return jnp.concatenate([one, two, jnp.zeros(2) if s is None else s])

    def strands(self, g: Pair) -> tuple[Strand, Strand]:
        """Return both rods at the contact."""
        one, two, s = g
        alpha = weights(self.arcs[0], s[0], self.first.spacing, self.width)
        beta = weights(self.arcs[1], s[1], self.second.spacing, self.width)
        return Strand(one[0], one[1], alpha), Strand(two[0], two[1], beta)

    def gap_vector(self, g: Pair) -> Float[Array, "3"]:
        r"""Return $d$, from the first centreline to the second at the contact."""
        first, second = self.strands(g)
        return second.point - first.point

    def gap(self, g: Pair) -> Float[Array, ""]:
        d = self.gap_vector(g)
        return jnp.sqrt(d @ d)

    def tangency(self, g: Pair) -> Float[Array, "2"]:
        """Return (2): zero if s are the points closest to each other."""
        first, second = self.strands(g)
        d = second.point - first.point
        one, two = self.tangents(g)
        return jnp.stack([-d @ one, d @ two])

    def tangents(self, g: Pair) -> tuple[Vector, Vector]:
        """Return $R_1'$ and $R_2'$ at the contact."""
        return self._along(slopes, g)

    @staticmethod
    def tangent(at: HostPlacement, weights: HostWeights) -> tuple[HostRow, HostRow, HostRows]:
        """Return $R'$ and $R''$ of a rod on the host, and by how much moves of nodes change $R'$.

        `weights` are those of the nodes with their first and second derivatives. The last result
        has a 3 x 6 matrix for each node: by its turn about its axes, and by its way in space.
        """
        _, slope, curve = weights
        by_way = slope[:, None, None] * np.eye(3)
        return slope @ at[1], curve @ at[1], np.concatenate([0 * by_way, by_way], axis=2)

    def curvature_of_gap(self, g: Pair) -> Float[Array, "2 2"]:
        """Return $H$ of (4): the points of contact are the closest while it is definite."""
        d, (T1, T2), (K1, K2) = self.gap_vector(g), self.tangents(g), self._along(bends, g)
        across = -T1 @ T2
        rows = jnp.stack([T1 @ T1 - d @ K1, across]), jnp.stack([across, T2 @ T2 + d @ K2])
        return jnp.stack(rows)

    def _along(self, rule: Callable[..., Array], g: Pair) -> tuple[Vector, Vector]:
        """Differentiate both centrelines by the arc length; `rule` gives that of the weights."""
        one, two, s = g
        alpha = rule(self.arcs[0], s[0], self.first.spacing, self.width)
        beta = rule(self.arcs[1], s[1], self.second.spacing, self.width)
        return alpha @ one[1], beta @ two[1]

    def touching(
        self, one: Placement, two: Placement, guess: ArrayLike
    ) -> tuple[Float[Array, "2"], NewtonStatus]:
        """Return the arc lengths at which the centrelines are closest, near `guess`."""
        return newton(lambda s: self.tangency((one, two, s)), jnp.asarray(guess), self.radius)

    def slip(self, g: Pair, xi: Coordinates) -> Float[Array, "3"]:
        """Return $C$ of (3): the velocity with which the surfaces slip."""
        one, two = self.split(xi)
        return slip(*self.strands(g), self.first.parts(one), self.second.parts(two))

    def reactions(self, g: Pair) -> tuple[Coordinates, ...]:
        """Return the rows of the constraint: loads of unit multipliers, not those on held nodes."""
        units = jnp.eye(3)
        first, second = self.strands(g)
        d = second.point - first.point
        return tuple(
            self.join(
                self.first.without_held(first.push(units[i], cross(d, units[i]) / 2)),
                self.second.without_held(second.push(-units[i], cross(d, units[i]) / 2)),
            )
            for i in range(3)
        )

    def mobile(self, mu: Coordinates) -> Coordinates:
        """Return the velocities of the nodes; zero for the points of contact."""
        one, two = self.split(mu)
        return self.join(self.first.mobility * one, self.second.mobility * two)

    def yielding(self, rows: tuple[Coordinates, ...]) -> Float[Array, "3 3"]:
        """Return $A M^{-1} A^T$: how fast unit forces at the contact separate the surfaces."""
        moved = [self.mobile(row) for row in rows]
        return jnp.stack([jnp.stack([jnp.sum(a * b) for b in moved]) for a in rows])

    def travel(self, g: Pair, one: Part, two: Part) -> Float[Array, "2"]:
        r"""Return $\dot s$ of (4)."""
        moved = self.group.tangent(g, self.join(one, two))
        _, rate = jax.jvp(self.tangency, (g,), (moved,))
        return -solve(self.curvature_of_gap(g), rate)

    def contact_force(self, g: Pair, lam: Float[Array, "3"]) -> dict[str, Float[Array, "..."]]:
        r"""Return the pressure $N = -\lambda\cdot\hat d$, the tangential part, needed friction."""
        d = self.gap_vector(g)
        axis = d / jnp.sqrt(d @ d)
        along = lam @ axis
        tangential = lam - along * axis
        needed = jnp.sqrt(tangential @ tangential)
        return {"pressure": -along, "tangential": tangential, "friction": -needed / along}


class NoSlip(AbstractConstraint):
    """The three equations $C = 0$: the surfaces of two rods do not slip where they touch."""

    pair: AbstractRollingPair

    def rows(self, g: Pair, t: Float[Array, ""]) -> Float[Array, "3 dim"]:
        return jnp.stack(self.pair.reactions(g))

    def offset(self, g: Pair, t: Float[Array, ""]) -> Float[Array, "3"]:
        return jnp.zeros(3)

    @property
    def driven(self) -> bool:
        return False

    def check(self, group: AbstractLieGroup) -> None:
        if group != self.pair.group:
            raise BadInput(f"the rods move on {self.pair.group.name}, not on {group.name}.")

    def violation(self, g: Pair, xi: Coordinates, t: Float[Array, ""]) -> Float[Array, "3"]:
        return self.pair.slip(g, xi)


def when_and_where(s: Places, t: float, h: float = 0.0) -> str:
    """Return the time and the arc lengths, for steps of size `h` to a tenth of a step."""
    digits = max(0, math.ceil(1 - math.log10(abs(h)))) if h else None
    when = f"{t:.10g}" if digits is None else f"{t:.{digits}f}"
    return f"at t = {when} s, where s = ({float(s[0]):.4g}, {float(s[1]):.4g})"


def degenerate(s: Places, t: float, H: Hessian, h: float = 0.0) -> str:
    """Return the sentence about rods without a single contact, with the eigenvalues of $H$."""
    H = np.asarray(H)
    values = np.linalg.eigvalsh((H + H.T) / 2)
    return (
        f"The rods are too parallel or too strongly curved {when_and_where(s, t, h)}: the Hessian "
        f"of half their squared distance has the eigenvalues {values[0]:.3g} and {values[1]:.3g}; "
        f"the smaller one must be above {FLATTEST:g} of their mean."
    )


def too_flat(H: Hessian) -> bool:
    """Return whether the points of contact are not the closest ones, or hardly so."""
    H = np.asarray(H)
    values = np.linalg.eigvalsh((H + H.T) / 2)
    return not values[0] > FLATTEST * np.mean(values)


def beyond(s: Places, t: float, reach: float, h: float = 0.0) -> str:
    """Return the sentence about a bump that does not lie within the rods."""
    return (
        f"The contact comes closer than {reach:g} m to an end of a rod {when_and_where(s, t, h)}: "
        "some of the nodes that carry it would lie beyond the end."
    )
