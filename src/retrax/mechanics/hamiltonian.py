"""A system given by any Hamiltonian."""

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
from retrax.mechanics.state import State
from retrax.mechanics.symmetry import declared
from retrax.mechanics.system import AbstractGroupSystem, ArrayLike, Coordinates, Element
from retrax.numerics.checks import require_double_precision, require_output


class HamiltonianSystem(AbstractGroupSystem):
    r"""A system from its Hamiltonian $H(g, \mu)$, $\mu$ the body momentum.

    $$ \dot g = g\,\hat\xi, \qquad \xi = \partial H/\partial\mu, \qquad
       \dot\mu = \mathrm{ad}^*_\xi\mu - dH + f. $$

    Methods that work with momenta (`CotangentLift`, `RKMK`) use $H$ alone. `LieVerlet` needs the
    inverse Legendre transform and so a regular $H$.

    **Arguments:**

    - `group`: where it moves.
    - `hamiltonian`: `hamiltonian(g, mu)`, a real number, written in JAX.
    - `force`: `force(g, xi, t)`, an external body covector.
    - `symmetry`: generators of spatial symmetries; found numerically when not given.
    - `constraint`: a `Distribution` or a `VelocityConstraint`.
    """

    group: AbstractLieGroup
    hamiltonian: Any
    force: Any
    symmetry: tuple[tuple[float, ...], ...] | None = eqx.field(static=True)
    constraint: Any

    def __init__(
        self,
        group: AbstractLieGroup | Any,
        hamiltonian: Callable[[Element, Coordinates], Float[Array, ""]] | Any,
        force: Callable[[Element, Coordinates, Float[Array, ""]], Coordinates] | Any = None,
        *,
        symmetry: ArrayLike | None = None,
        constraint: AbstractConstraint | Any = None,
    ):
        require_double_precision()
        self.group = require_group(group)
        self.constraint = checked_constraint(group, constraint)
        g, xi, t = arguments(group)
        require_output("hamiltonian", hamiltonian, (g, xi), ())
        require_not_constant("hamiltonian", hamiltonian, (g, xi))
        require_output("force", force, (g, xi, t), (group.dim,), optional=True)
        self.hamiltonian = as_pytree(hamiltonian)
        self.force = as_pytree(force)
        self.symmetry = declared(group, symmetry)
        if self.symmetry is not None:
            self.symmetries()

    @property
    def name(self) -> str:
        return f"Hamiltonian system on {self.group.name}"

    def velocity(self, g: Element, mu: Coordinates) -> Coordinates:
        return jax.grad(self.hamiltonian, argnums=1)(g, mu)

    def momentum(self, g: Element, xi: Coordinates) -> Coordinates:
        return invert(lambda mu: self.velocity(g, mu), xi)

    def differential(self, g: Element, xi: Coordinates, mu: Coordinates) -> Coordinates:
        return -self.group.cotangent(g, jax.grad(self.hamiltonian, argnums=0)(g, mu))

    def check_energy(self, state: State) -> None:
        require_energy("hamiltonian", jnp.asarray(self.hamiltonian(state.g, state.momentum)))

    def hamiltonian_energy(self, g: Element, mu: Coordinates) -> Float[Array, ""]:
        return self.hamiltonian(g, mu)
