"""A system given by any Lagrangian."""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from retrax.groups.base import AbstractLieGroup, require_group
from retrax.mechanics.constraints import AbstractConstraint
from retrax.mechanics.functions import arguments, as_pytree, require_energy, require_not_constant
from retrax.mechanics.hamel import checked_constraint
from retrax.mechanics.legendre import invert
from retrax.mechanics.regular import require_regular
from retrax.mechanics.state import State
from retrax.mechanics.symmetry import declared
from retrax.mechanics.system import AbstractGroupSystem, ArrayLike, Coordinates, Element
from retrax.numerics.checks import require_double_precision, require_output


class LagrangianSystem(AbstractGroupSystem):
    r"""A system from its Lagrangian $L(g, \xi)$, $\xi = g^{-1}\dot g$.

    $L$ must be regular: $\partial^2 L/\partial\xi^2$ invertible, so that $\mu = \partial
    L/\partial\xi$ can be solved for $\xi$. One that is degenerate everywhere is refused; where it
    is so at single states only, the velocity there is NaN and a run stops.

    **Arguments:**

    - `group`: where it moves.
    - `lagrangian`: `lagrangian(g, xi)`, a real number, written in JAX.
    - `force`: `force(g, xi, t)`, an external body covector.
    - `symmetry`: generators of spatial symmetries; found numerically when not given.
    - `constraint`: a `Distribution` or a `VelocityConstraint`.
    """

    group: AbstractLieGroup
    lagrangian: Any
    force: Any
    symmetry: tuple[tuple[float, ...], ...] | None = eqx.field(static=True)
    constraint: Any

    def __init__(
        self,
        group: AbstractLieGroup | Any,
        lagrangian: Callable[[Element, Coordinates], Float[Array, ""]] | Any,
        force: Callable[[Element, Coordinates, Float[Array, ""]], Coordinates] | Any = None,
        *,
        symmetry: ArrayLike | None = None,
        constraint: AbstractConstraint | Any = None,
    ):
        require_double_precision()
        self.group = require_group(group)
        self.constraint = checked_constraint(group, constraint)
        g, xi, t = arguments(group)
        require_output("lagrangian", lagrangian, (g, xi), ())
        require_not_constant("lagrangian", lagrangian, (g, xi))
        require_output("force", force, (g, xi, t), (group.dim,), optional=True)
        require_regular(group, lagrangian)
        self.lagrangian = as_pytree(lagrangian)
        self.force = as_pytree(force)
        self.symmetry = declared(group, symmetry)
        if self.symmetry is not None:
            self.symmetries()

    @property
    def name(self) -> str:
        return f"Lagrangian system on {self.group.name}"

    def momentum(self, g: Element, xi: Coordinates) -> Coordinates:
        return jax.grad(self.lagrangian, argnums=1)(g, xi)

    def velocity(self, g: Element, mu: Coordinates) -> Coordinates:
        return invert(lambda xi: self.momentum(g, xi), mu)

    def differential(self, g: Element, xi: Coordinates, mu: Coordinates) -> Coordinates:
        return self.group.cotangent(g, jax.grad(self.lagrangian, argnums=0)(g, xi))

    def check_energy(self, state: State) -> None:
        # At rest and in motion: a kinetic energy may have no value, or no slope, at rest.
        at_rest, moving = (
            jnp.asarray(self.lagrangian(state.g, jnp.full(self.group.dim, s))) for s in (0.0, 0.3)
        )
        require_energy("lagrangian", jnp.where(jnp.isfinite(at_rest), at_rest, moving))

    def hamiltonian_energy(self, g: Element, mu: Coordinates) -> Float[Array, ""]:
        xi = self.velocity(g, mu)
        return mu @ xi - self.lagrangian(g, xi)
