r"""Where two rods touch, and how they move there.

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

and the like for rod 2. (2) makes $d$ perpendicular to both centrelines, (3) is the velocity with
which the surfaces slip at the contact half-way between the centrelines. As printed in the paper:
its (8) has the third axes of the frames in place of $R_i'$, and its (10) adds up vectors of
different body frames,

$$ C = \sum_k\alpha_k\Lambda_k^T\left[v_k - V_2 + \tfrac12\Lambda_k\omega_k\times(R_2 - r_k)
   + \tfrac12\sum_m\beta_m\Lambda_m\omega_m\times(r_m - r_k)\right]. \tag{5} $$

With either, the gap $|d|$ is not kept.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from retrax.numerics.small_matrices import cross

Vector = Float[Array, "3"]
Nodes = Float[Array, "_nodes 3"]


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
        """Angular velocities in space."""
        return jax.vmap(jnp.matmul)(self.frames, omega)

    def pushed(self, force: Vector, torque: Vector) -> Float[Array, " dim"]:
        """A force and a torque in space at the contact, shared out to the nodes."""

        def node(frame, weight):
            return jnp.concatenate([weight * (frame.T @ torque), weight * force])

        return jax.vmap(node)(self.frames, self.weights).reshape(-1)

    @property
    def axis(self) -> Vector:
        return self.weights @ self.frames[:, :, 2]


def slip(
    first: Strand, second: Strand, one: tuple[Nodes, Nodes], two: tuple[Nodes, Nodes]
) -> Vector:
    """(3), from the velocities (omega, v) of both rods."""
    d = second.point - first.point
    (omega1, v1), (omega2, v2) = one, two
    turning = first.mean(first.turning(omega1)) + second.mean(second.turning(omega2))
    return first.mean(v1) - second.mean(v2) + cross(turning, d) / 2


def printed_slip(
    first: Strand, second: Strand, one: tuple[Nodes, Nodes], two: tuple[Nodes, Nodes]
) -> Vector:
    """(5)."""
    (omega1, v1), (omega2, v2) = one, two
    spun = second.turning(omega2)
    there, moved, turned = second.point, second.mean(v2), second.mean(spun)
    swept = second.mean(jax.vmap(cross)(spun, second.places))

    def node(frame, place, omega, v):
        own = cross(frame @ omega, there - place) + swept - cross(turned, place)
        return frame.T @ (v - moved + own / 2)

    return first.mean(jax.vmap(node)(first.frames, first.places, omega1, v1))
