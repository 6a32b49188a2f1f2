r"""$A^{-1}$ of `strings/drift.py`, applied to momenta and to the nodes that carry bodies.

Without damping $A$ is the mass matrix, factorised when the system is made. Drag adds to its
diagonal, in proportion to $h$; viscosity makes it a matrix of 3 x 3 blocks that changes in every
step.
"""

from typing import TYPE_CHECKING, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from retrax.numerics import tridiagonal
from retrax.systems.strings.chain import Nodes, carriers
from retrax.systems.strings.damping import dashpots
from retrax.systems.strings.turning import eliminated

if TYPE_CHECKING:
    from retrax.systems.strings.string_pendulum import StringPendulum


class Eliminated(NamedTuple):
    r"""$y = A^{-1}p$, the columns $A^{-1}e_b$, their entries $\alpha$, the inertias left over."""

    y: Nodes
    columns: Float[Array, "n b *block"]
    alpha: Float[Array, "b b *block"]
    inertia: Float[Array, "b 3 3"]

    def without(self, w: Float[Array, "b 3"], h: Float[Array, ""]) -> Nodes:
        r"""$d = h\,y - \sum_bA^{-1}e_bw_b$: how far the nodes move."""
        if self.columns.ndim == 2:
            return h * self.y - self.columns @ w
        return h * self.y - jnp.einsum("nbij,bj->ni", self.columns, w)


def eliminate(system: "StringPendulum", r: Nodes, p: Nodes, h: Float[Array, ""]) -> Eliminated:
    """The string eliminated from a step of size `h` at `r`; at `h` = 0, from the mass matrix."""
    if system.damping.viscosity is not None:
        return _by_blocks(system, r, p, h)
    if system.damping.drag is None:
        y = tridiagonal.solve(system.factors, p)
        return Eliminated(y, system.columns, system.carried(system.columns), system.reduced)
    diagonal, below, _ = system.masses
    factors = tridiagonal.factor(diagonal + h / 2 * system.damping.drag, below)
    unit = jnp.asarray(carriers(system.elements, system.nodes))
    both = tridiagonal.solve(factors, jnp.concatenate([p, unit], axis=1))
    columns = both[:, 3:]
    alpha = system.carried(columns)
    return Eliminated(both[:, :3], columns, alpha, eliminated(system.bodies, alpha))


def undamped(system: "StringPendulum", p: Nodes) -> Eliminated:
    """The same with the mass matrix itself: for velocities at an instant."""
    y = tridiagonal.solve(system.factors, p)
    return Eliminated(y, system.columns, system.carried(system.columns), system.reduced)


def _by_blocks(system: "StringPendulum", r: Nodes, p: Nodes, h: Float[Array, ""]) -> Eliminated:
    n, count = system.elements, len(system.nodes)
    diagonal, below, _ = system.masses
    if system.damping.drag is not None:
        diagonal = diagonal + h / 2 * system.damping.drag
    one = jnp.eye(3)
    D = h / 2 * dashpots(r, system.spacing, system.damping.viscosity, system.slack)
    after = jnp.concatenate([D[1:], jnp.zeros_like(D[:1])])
    blocks = jax.vmap(lambda a, here, after: a * one + here + after)(diagonal, D, after)
    coupling = jax.vmap(lambda b, here: b * one - here)(below, D)
    # The right sides: the momenta, then three columns for the node of each body.
    unit = jnp.asarray(carriers(n, system.nodes))
    units = jax.vmap(lambda e: jnp.concatenate([e[b] * one for b in range(count)], axis=1))(unit)
    sides = jnp.concatenate([p[:, :, None], units], axis=2)
    x = tridiagonal.solve_blocks(blocks, coupling, sides)
    parts = [x[:, None, :, 1 + 3 * b : 4 + 3 * b] for b in range(count)]
    columns = jnp.concatenate(parts, axis=1)
    return Eliminated(x[:, :, 0], columns, system.carried(columns), system.inertia)
