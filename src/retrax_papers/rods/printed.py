r"""The equations of two rods in contact as the paper prints them.

Its (8) has the third axes of the frames in place of the tangents $R_i'$,

$$ (-d\cdot\sum\alpha_k\Lambda_ke_3,\ d\cdot\sum\beta_m\Lambda_me_3) = 0, \tag{1} $$

and its (10) adds vectors of different body frames,

$$ C = \sum_k\alpha_k\Lambda_k^T\left[v_k - V_2 + \tfrac12\Lambda_k\omega_k\times(R_2 - r_k)
   + \tfrac12\sum_m\beta_m\Lambda_m\omega_m\times(r_m - r_k)\right]. \tag{2} $$

Neither keeps the gap $|d|$; the letters are those of `retrax/systems/rods/contact.py`.

References: [GayBalmazPutkaradze2012].
"""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from retrax.mechanics.system import Coordinates
from retrax.nodal.nodes import HostPlacement
from retrax.numerics.small_matrices import cross
from retrax.systems.rods.contact import HostRow, HostRows, HostWeights, Pair, Strand
from retrax.systems.rods.pair import RodsInContact

_E3 = np.array([0.0, 0.0, 1.0])


class PrintedTangency(RodsInContact, keeps_gap=False):
    """Rods whose points of contact obey (1)."""

    def tangency(self, g: Pair) -> Float[Array, "2"]:
        first, second = self.strands(g)
        d = second.point - first.point
        return jnp.stack([-d @ _axis(first), d @ _axis(second)])

    def curvature_of_gap(self, g: Pair) -> Float[Array, "2 2"]:
        one, two, s = g
        return jax.jacfwd(lambda x: self.tangency((one, two, x)))(s)

    @staticmethod
    def tangent(at: HostPlacement, weights: HostWeights) -> tuple[HostRow, HostRow, HostRows]:
        w, slope, _ = weights
        axes = at[0][:, :, 2]
        hat = np.cross(np.eye(3), _E3)  # rows e_i x e_3: how an axis moves with a turn of its node
        turning = w[:, None, None] * np.einsum("kij,lj->kil", at[0], hat)
        return w @ axes, slope @ axes, np.concatenate([turning, 0 * turning], axis=2)


class PrintedSlip(RodsInContact, keeps_gap=False):
    """Rods whose slip is (2); the multipliers are in the frames of rod 1."""

    def slip(self, g: Pair, xi: Coordinates) -> Float[Array, "3"]:
        (first, second), (one, two) = self.strands(g), self.split(xi)
        (omega1, v1), (omega2, v2) = self.first.parts(one), self.second.parts(two)
        spun = second.turning(omega2)
        there, moved, turned = second.point, second.mean(v2), second.mean(spun)
        swept = second.mean(jax.vmap(cross)(spun, second.places))

        def node(frame, place, omega, v):
            own = cross(frame @ omega, there - place) + swept - cross(turned, place)
            return frame.T @ (v - moved + own / 2)

        return first.mean(jax.vmap(node)(first.frames, first.places, omega1, v1))  # (2)

    def reactions(self, g: Pair) -> tuple[Coordinates, ...]:
        units, rest = jnp.eye(3), jnp.zeros(self.group.dim)
        transposed = jax.linear_transpose(lambda xi: self.slip(g, xi), rest)
        free = self.join(self.first.mobility, self.second.mobility) > 0
        return tuple(jnp.where(free, transposed(units[i])[0], 0.0) for i in range(3))

    def contact_force(self, g: Pair, lam: Float[Array, "3"]) -> dict[str, Float[Array, "..."]]:
        first, _ = self.strands(g)
        turned = jax.vmap(jnp.matmul, (0, None))(first.frames, lam)
        return super().contact_force(g, first.mean(turned))


def _axis(rod: Strand) -> Float[Array, "3"]:
    return rod.weights @ rod.frames[:, :, 2]


def as_printed(kind: type[RodsInContact], pair: RodsInContact) -> RodsInContact:
    """Return the rods of `pair`, in contact by the equations of `kind`."""
    return kind(pair.first, pair.second, radius=pair.radius, width=pair.width)
