"""First-order flows on a group."""

from collections.abc import Callable
from typing import Any, ClassVar

import jax.numpy as jnp
from jaxtyping import Array, Float

from retrax.groups.base import AbstractLieGroup, require_group
from retrax.mechanics.functions import as_pytree
from retrax.mechanics.state import State
from retrax.mechanics.system import AbstractGroupSystem, ArrayLike, Coordinates, Element
from retrax.numerics.checks import require_double_precision, require_output


class GroupFlow(AbstractGroupSystem):
    r"""The flow $\dot g = g\,\hat\xi(g)$ of a field of body velocities: kinematics, no inertia.

    A flow has neither momentum nor energy: both are zero and stay zero. A field that depends on
    time becomes one that does not on the product of the group with `Translation(1)`.

    **Arguments:**

    - `group`: where it flows.
    - `field`: `field(g)`, the body velocity at `g`, written in JAX.
    """

    group: AbstractLieGroup
    field: Any
    force: ClassVar[Any] = None
    symmetry: ClassVar[Any] = ()
    flows: ClassVar[bool] = True
    has_energy: ClassVar[bool] = False

    def __init__(
        self, group: AbstractLieGroup | Any, field: Callable[[Element], Coordinates] | Any
    ):
        require_double_precision()
        self.group = require_group(group)
        require_output("field", field, (group.layout(),), (group.dim,))
        self.field = as_pytree(field)

    def at(self, g: ArrayLike, t: ArrayLike = 0.0) -> State:
        """The state at `g`."""
        return self.state(g, t=t)

    @property
    def name(self) -> str:
        return f"flow on {self.group.name}"

    def velocity(self, g: Element, mu: Coordinates) -> Coordinates:
        return jnp.asarray(self.field(g))

    def momentum(self, g: Element, xi: Coordinates) -> Coordinates:
        return jnp.zeros_like(xi)

    def differential(self, g: Element, xi: Coordinates, mu: Coordinates) -> Coordinates:
        return jnp.zeros_like(xi)

    def hamiltonian_energy(self, g: Element, mu: Coordinates) -> Float[Array, ""]:
        return jnp.zeros(())
