"""A mechanism as a system on its group."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from retrax.groups.base import AbstractLieGroup, Coordinates, Element
from retrax.mechanics.functions import Function
from retrax.mechanics.mechanical import AbstractMechanicalSystem, Inertia
from retrax.mechanics.symmetry import Generators
from retrax.mechanisms.joined import Joints
from retrax.numerics.small_matrices import solve


class MechanismSystem(AbstractMechanicalSystem):
    r"""Rigid bodies with joints. Make one with `Mechanism.system()`.

    The configuration is a rotation and a centre of mass for each body; velocities are the angular
    velocity in body axes and the velocity of the centre in space axes, so that the kinetic energy
    has no mixed terms,

    $$ T = \sum_i\tfrac12\Omega_i\cdot J_i\Omega_i + \tfrac12m_i|v_i|^2. \tag{1} $$

    **Attributes:** `group`: `Power(Product(SO3, Translation(3)), n)`, or of `SO2` and
    `Translation(2)`; `mass`, `inertia`: of each body; `gravity`; `constraint`: the joints;
    `reference`: the configuration as it was drawn; `names`: of the bodies.
    """

    group: AbstractLieGroup
    mass: Float[Array, " n"]
    inertia: Float[Array, "n turns turns"]
    gravity: Float[Array, " d"]
    constraint: Joints | None
    force: Function | None
    symmetry: Generators | None = eqx.field(static=True)
    reference: Element
    names: tuple[str, ...] = eqx.field(static=True)

    def __init__(
        self,
        group: AbstractLieGroup,
        mass: Float[Array, " n"],
        inertia: Float[Array, "n turns turns"],
        gravity: Float[Array, " d"],
        constraint: Joints | None,
        force: Function | None,
        reference: Element,
        names: tuple[str, ...],
    ):
        self.group, self.mass, self.inertia, self.gravity = group, mass, inertia, gravity
        self.constraint, self.force, self.symmetry = constraint, force, None
        self.reference, self.names = reference, names

    @property
    def name(self) -> str:
        joints = 0 if self.constraint is None else len(self.constraint.connections)
        return f"mechanism of {len(self.names)} bodies and {joints} joints"

    @property
    def invariant_inertia(self) -> bool:
        return True

    @property
    def free(self) -> bool:
        return False

    def split(self, xi: Coordinates) -> tuple[Float[Array, "n turns"], Float[Array, "n d"]]:
        """Return the parts of a velocity or momentum that turn and that travel, a row a body."""
        each = xi.reshape(len(self.names), -1)
        turns = self.inertia.shape[1]
        return each[:, :turns], each[:, turns:]

    def inertia_at(self, g: Element) -> Inertia:
        d = self.gravity.shape[0]
        blocks = [
            b
            for i in range(len(self.names))
            for b in (self.inertia[i], self.mass[i] * jnp.eye(d))
        ]
        return jax.scipy.linalg.block_diag(*blocks)

    def momentum(self, g: Element, xi: Coordinates) -> Coordinates:
        turns, travels = self.split(xi)
        spin = jnp.einsum("nij,nj->ni", self.inertia, turns)
        return jnp.concatenate([spin, self.mass[:, None] * travels], axis=1).reshape(-1)

    def velocity(self, g: Element, mu: Coordinates) -> Coordinates:
        turns, travels = self.split(mu)
        spin = jax.vmap(solve)(self.inertia, turns)
        return jnp.concatenate([spin, travels / self.mass[:, None]], axis=1).reshape(-1)

    def potential_energy(self, g: Element) -> Float[Array, ""]:
        return -jnp.sum(self.mass * (g[1] @ self.gravity))

    def differential(self, g: Element, xi: Coordinates, mu: Coordinates) -> Coordinates:
        turns, _ = self.split(xi)
        weight = self.mass[:, None] * self.gravity[None]
        return jnp.concatenate([jnp.zeros_like(turns), weight], axis=1).reshape(-1)
