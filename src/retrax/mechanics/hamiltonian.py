"""A system given by any Hamiltonian."""

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
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
from retrax.mechanics.legendre import invert
from retrax.mechanics.parts import Where, check_parts
from retrax.mechanics.state import State
from retrax.mechanics.symmetry import Generators
from retrax.mechanics.system import AbstractGroupSystem
from retrax.numerics.checks import ArrayLike
from retrax.numerics.evaluate import evaluate


class HamiltonianSystem(AbstractGroupSystem):
    r"""A system from its Hamiltonian $H(g, \mu)$ or $H(g, \mu, t)$, $\mu$ the body momentum.

    $$ \dot g = g\,\hat\xi, \qquad \xi = \partial H/\partial\mu, \qquad
       \dot\mu = \mathrm{ad}^*_\xi\mu - dH + f. $$

    Methods that work with momenta (`CotangentLift`, `RKMK`) use $H$ alone. `LieVerlet` needs the
    inverse Legendre transform and so a regular $H$.

    **Arguments:**

    - `group`: where it moves: a group, a sphere, or a tuple of groups and spheres.
    - `hamiltonian`: `hamiltonian(g, mu)`, a real number, written in JAX; or
        `hamiltonian(g, mu, t)`: it is given the time where it has a third argument without a
        default, or one that is called `t`.
    - `force`: `force(g, xi, t)`, an external body covector.
    - `symmetry`: generators of spatial symmetries; found numerically when not given.
    - `constraint`: a `Distribution`, a `VelocityConstraint` or a `Holonomic`.
    """

    group: AbstractLieGroup
    hamiltonian: Function
    force: Function | None
    symmetry: Generators | None = eqx.field(static=True)
    constraint: AbstractConstraint | None

    def __init__(
        self,
        group: Where,
        hamiltonian: Callable[[Element, Coordinates], Float[Array, ""]]
        | Callable[[Element, Coordinates, Float[Array, ""]], Float[Array, ""]],
        force: Force | None = None,
        *,
        symmetry: ArrayLike | None = None,
        constraint: AbstractConstraint | None = None,
    ):
        parts = check_parts(group, force, symmetry, constraint)
        self.group, self.force, self.symmetry, self.constraint = parts
        g, mu, _ = arguments(self.group)
        self.hamiltonian = check_energy("hamiltonian", hamiltonian, (g, mu), ("g", "mu"))
        self.require_declared()

    @property
    def name(self) -> str:
        return f"Hamiltonian system on {self.configuration_space.name}"

    @property
    def moving(self) -> bool:
        return isinstance(self.hamiltonian, Moving)

    def at_time(self, t: Float[Array, ""]) -> "HamiltonianSystem":
        moving = self.hamiltonian
        return self._with_fields(hamiltonian=moving.at(t)) if isinstance(moving, Moving) else self

    def energy_rate(
        self, g: Element, xi: Coordinates, mu: Coordinates, t: Float[Array, ""]
    ) -> Float[Array, ""]:
        return jax.grad(lambda t: self.at_time(t).hamiltonian_energy(g, mu))(t)

    def velocity(self, g: Element, mu: Coordinates) -> Coordinates:
        return jax.grad(self.hamiltonian, argnums=1)(g, mu)

    def momentum(self, g: Element, xi: Coordinates) -> Coordinates:
        return invert(lambda mu: self.velocity(g, mu), xi)

    def differential(self, g: Element, xi: Coordinates, mu: Coordinates) -> Coordinates:
        return -self.group.cotangent(g, jax.grad(self.hamiltonian, argnums=0)(g, mu))

    def check_energy(self, state: State) -> None:
        now = self.at_time(state.t)
        energy = evaluate(type(self).hamiltonian_energy, now, state.g, state.momentum)
        require_energy("hamiltonian", energy)

    def hamiltonian_energy(self, g: Element, mu: Coordinates) -> Float[Array, ""]:
        return jnp.asarray(self.hamiltonian(g, mu))
