"""A system given by any Lagrangian."""

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from retrax.groups.base import AbstractLieGroup, Coordinates, Element
from retrax.mechanics.constraints import AbstractConstraint
from retrax.mechanics.functions import (
    Force,
    Function,
    Moving,
    arguments,
    check_energy,
    require_energy,
)
from retrax.mechanics.legendre import invert, require_regular
from retrax.mechanics.parts import Where, check_parts
from retrax.mechanics.state import State
from retrax.mechanics.symmetry import Generators
from retrax.mechanics.system import AbstractGroupSystem
from retrax.numerics.checks import ArrayLike
from retrax.numerics.evaluate import as_jax, evaluate

# Regular at one time is regular at most.
_SOME_TIME = 0.37


class LagrangianSystem(AbstractGroupSystem):
    r"""A system from its Lagrangian $L(g, \xi)$ or $L(g, \xi, t)$, $\xi = g^{-1}\dot g$.

    $L$ must be regular: $\partial^2 L/\partial\xi^2$ invertible, so that $\mu = \partial
    L/\partial\xi$ can be solved for $\xi$. One that is degenerate everywhere is rejected; where it
    is so at single states only, the velocity there is NaN and a run stops.

    **Arguments:**

    - `group`: where it moves: a group, a sphere, or a tuple of groups and spheres.
    - `lagrangian`: `lagrangian(g, xi)`, a real number, written in JAX; or `lagrangian(g, xi, t)`,
        for a base that moves. It is given the time where it has a third argument without a default,
        or one that is called `t`.
    - `force`: `force(g, xi, t)`, an external body covector.
    - `symmetry`: generators of spatial symmetries; found numerically when not given.
    - `constraint`: a `Distribution`, a `VelocityConstraint` or a `Holonomic`.
    """

    group: AbstractLieGroup
    lagrangian: Function
    force: Function | None
    symmetry: Generators | None = eqx.field(static=True)
    constraint: AbstractConstraint | None

    def __init__(
        self,
        group: Where,
        lagrangian: Callable[[Element, Coordinates], Float[Array, ""]]
        | Callable[[Element, Coordinates, Float[Array, ""]], Float[Array, ""]],
        force: Force | None = None,
        *,
        symmetry: ArrayLike | None = None,
        constraint: AbstractConstraint | None = None,
    ):
        parts = check_parts(group, force, symmetry, constraint)
        self.group, self.force, self.symmetry, self.constraint = parts
        g, xi, _ = arguments(self.group)
        self.lagrangian = check_energy("lagrangian", lagrangian, (g, xi), ("g", "xi"))
        require_regular(self.group, self.at_time(as_jax(np.asarray(_SOME_TIME))).lagrangian)
        self.require_declared()

    @property
    def name(self) -> str:
        return f"Lagrangian system on {self.configuration_space.name}"

    @property
    def moving(self) -> bool:
        return isinstance(self.lagrangian, Moving)

    def at_time(self, t: Float[Array, ""]) -> "LagrangianSystem":
        moving = self.lagrangian
        return self._with_fields(lagrangian=moving.at(t)) if isinstance(moving, Moving) else self

    def energy_rate(
        self, g: Element, xi: Coordinates, mu: Coordinates, t: Float[Array, ""]
    ) -> Float[Array, ""]:
        return -jax.grad(lambda t: jnp.asarray(self.at_time(t).lagrangian(g, xi)))(t)

    def momentum(self, g: Element, xi: Coordinates) -> Coordinates:
        return jax.grad(self.lagrangian, argnums=1)(g, xi)

    def velocity(self, g: Element, mu: Coordinates) -> Coordinates:
        return invert(lambda xi: self.momentum(g, xi), mu)

    def differential(self, g: Element, xi: Coordinates, mu: Coordinates) -> Coordinates:
        return self.group.cotangent(g, jax.grad(self.lagrangian, argnums=0)(g, xi))

    def check_energy(self, state: State) -> None:
        # At rest and in motion: a kinetic energy may have no value, or no slope, at rest.
        require_energy("lagrangian", evaluate(_somewhere_finite, self.at_time(state.t), state.g))

    def motion(self, g: Element, x: Coordinates) -> tuple[Coordinates, Coordinates]:
        return x, self.momentum(g, x)

    def hamiltonian_energy(self, g: Element, mu: Coordinates) -> Float[Array, ""]:
        return self._energy(g, self.velocity(g, mu), mu)

    def energy(self, state: State, xi: Coordinates | None = None) -> Float[Array, ""]:
        if xi is None:
            return super().energy(state)
        return self.at_time(state.t)._energy(state.g, xi, state.momentum)

    def _energy(self, g: Element, xi: Coordinates, mu: Coordinates) -> Float[Array, ""]:
        return mu @ xi - self.lagrangian(g, xi)


def _somewhere_finite(system: LagrangianSystem, g: Element) -> Float[Array, ""]:
    """Return the Lagrangian at rest, or in motion where it is not finite at rest."""
    at_rest, moving = (
        jnp.asarray(system.lagrangian(g, jnp.full(system.group.dim, s))) for s in (0.0, 0.3)
    )
    return jnp.where(jnp.isfinite(at_rest), at_rest, moving)
