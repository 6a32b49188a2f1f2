"""Kinetic minus potential energy: the systems most people have."""

import abc
from collections.abc import Callable, Sequence
from functools import partial
from typing import ClassVar, overload

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from retrax.errors import BadInput
from retrax.groups.base import AbstractLieGroup, Coordinates, Element
from retrax.mechanics.constraints import AbstractConstraint
from retrax.mechanics.contact import AbstractContacts, require_contacts
from retrax.mechanics.functions import (
    Force,
    Function,
    Moving,
    arguments,
    as_pytree,
    check_energy,
    require_energy,
)
from retrax.mechanics.inertia import plainly_a_body, require_body, require_positive
from retrax.mechanics.parts import Where, check_parts
from retrax.mechanics.shape import Shape, shapes_of
from retrax.mechanics.state import State
from retrax.mechanics.symmetry import Generators
from retrax.mechanics.system import AbstractGroupSystem
from retrax.numerics.checks import (
    ArrayLike,
    float64,
    output,
    require_double_precision,
    require_finite,
    require_flag,
    require_real,
)
from retrax.numerics.evaluate import evaluate
from retrax.numerics.known import require_each
from retrax.numerics.small_matrices import solve

Inertia = Float[Array, " dim"] | Float[Array, "dim dim"]
# V(g), or V(g, t).
Potential = (
    Callable[[Element], Float[Array, ""]] | Callable[[Element, Float[Array, ""]], Float[Array, ""]]
)


class AbstractMechanicalSystem(AbstractGroupSystem):
    r"""$L(g,\xi) = \tfrac12\langle \mathbb I(g)\xi, \xi\rangle - V(g)$.

    A subclass says what the inertia and the potential are at $g$; the force $-dV$ follows by
    differentiating the scalar $V$ alone.
    """

    quadratic: ClassVar[bool] = True

    @abc.abstractmethod
    def inertia_at(self, g: Element) -> Inertia:
        """Return the inertia at `g`: principal values as a vector, or a matrix."""

    @abc.abstractmethod
    def potential_energy(self, g: Element) -> Float[Array, ""]:
        """Return the potential energy $V(g)$."""

    @property
    @abc.abstractmethod
    def invariant_inertia(self) -> bool:
        """Whether the inertia is the same at every `g`."""

    @property
    @abc.abstractmethod
    def free(self) -> bool:
        """Whether there is no potential."""

    def momentum(self, g: Element, xi: Coordinates) -> Coordinates:
        return _apply(self.inertia_at(g), xi)

    def velocity(self, g: Element, mu: Coordinates) -> Coordinates:
        inertia = self.inertia_at(g)
        return mu / inertia if inertia.ndim == 1 else solve(inertia, mu)

    def differential(self, g: Element, xi: Coordinates, mu: Coordinates) -> Coordinates:
        def lagrangian(k: Element) -> Float[Array, ""]:
            kinetic = 0.0 if self.invariant_inertia else xi @ _apply(self.inertia_at(k), xi) / 2
            return kinetic - self.potential_energy(k)

        if self.free and self.invariant_inertia:
            return jnp.zeros_like(xi)
        return self.group.cotangent(g, jax.grad(lagrangian)(g))

    def kinetic_energy(self, state: State) -> Float[Array, ""]:
        return state.momentum @ self.velocity_at(state) / 2

    def hamiltonian_energy(self, g: Element, mu: Coordinates) -> Float[Array, ""]:
        return mu @ self.velocity(g, mu) / 2 + self.potential_energy(g)


def inertia_at_identity(system: AbstractMechanicalSystem) -> np.ndarray:
    """Return the inertia at the identity, on the host."""
    return np.asarray(evaluate(_at_identity, system))


def _at_identity(system: AbstractMechanicalSystem) -> Inertia:
    return system.inertia_at(system.group.identity())


class MechanicalSystem(AbstractMechanicalSystem):
    r"""A system from its inertia and potential, $L = \tfrac12\langle\mathbb I\xi,\xi\rangle - V$.

    **Arguments:**

    - `group`: where it moves: a group, a sphere, or a tuple of groups and spheres.
    - `inertia`: principal moments as a vector, a symmetric matrix, or a function of `g` that
        returns either.
    - `potential`: $V(g)$ in joules, a function of the group element written in JAX; or $V(g, t)$,
        of the time as well: a function with a second argument without a default, or one that is
        called `t`.
    - `force`: `force(g, xi, t)`, a body covector, for loads, control and damping.
    - `symmetry`: generators of spatial symmetries, one per row. Found numerically when not given,
        checked when given.
    - `physical`: whether to insist that the inertia is one that a body can have.
    - `constraint`: a `Distribution`, a `VelocityConstraint` or, on positions, a `Holonomic`; a
        notice is given where a distribution is a subalgebra, and so constrains positions as well.
    - `contact`: what must not overlap, such as `rx.Contacts`.
    - `draw`: how it looks: shapes of `rx.draw`, each on its body, or a function of `g`, or of `g`
        and `t`, that returns shapes in space. A file keeps shapes, but not a function.

    **Raises:** `BadInput` where the inertia is not positive definite or not that of a body, or
    where a function does not return what it must.
    """

    group: AbstractLieGroup
    inertia: Inertia | Function
    potential: Function | None
    force: Function | None
    symmetry: Generators | None = eqx.field(static=True)
    constraint: AbstractConstraint | None
    contact: AbstractContacts | None
    draw: tuple[Shape, ...] | Callable[..., object] | None = eqx.field(static=True, default=None)

    def __init__(
        self,
        group: Where,
        inertia: ArrayLike | Callable[[Element], Inertia],
        potential: Potential | None = None,
        force: Force | None = None,
        *,
        symmetry: ArrayLike | None = None,
        physical: bool = True,
        constraint: AbstractConstraint | None = None,
        contact: AbstractContacts | None = None,
        draw: Shape | Sequence[Shape] | Callable[..., object] | None = None,
    ):
        parts = check_parts(group, force, symmetry, constraint)
        self.group, self.force, self.symmetry, self.constraint = parts
        self.draw = draw if draw is None or callable(draw) else shapes_of("draw", draw)
        self.inertia = checked_inertia(self.group, inertia, physical)
        g, _, _ = arguments(self.group)
        self.potential = (
            None if potential is None else check_energy("potential", potential, (g,), ("g",))
        )
        self.require_declared()
        self.contact = None if contact is None else require_contacts(contact).on(self)

    @property
    def name(self) -> str:
        return f"mechanical system on {self.configuration_space.name}"

    def for_storage(self) -> "MechanicalSystem":
        return self._with_fields(draw=None) if callable(self.draw) else self

    @property
    def drawing(self) -> dict[str, object] | None:
        """The shapes on its bodies, where it has such: those it is given, or those that touch."""
        if self.draw is None and self.contact is not None:
            seen = self.contact.drawn
            return {"shapes": seen.shapes, "planes": seen.planes} if seen.shapes else None
        return None if self.draw is None or callable(self.draw) else {"shapes": self.draw}

    @property
    def invariant_inertia(self) -> bool:
        return not callable(self.inertia)

    @property
    def free(self) -> bool:
        return self.potential is None

    @property
    def moving(self) -> bool:
        return isinstance(self.potential, Moving)

    def at_time(self, t: Float[Array, ""]) -> "MechanicalSystem":
        moving = self.potential
        return self._with_fields(potential=moving.at(t)) if isinstance(moving, Moving) else self

    def energy_rate(
        self, g: Element, xi: Coordinates, mu: Coordinates, t: Float[Array, ""]
    ) -> Float[Array, ""]:
        return jax.grad(lambda t: self.at_time(t).potential_energy(g))(t)

    def inertia_at(self, g: Element) -> Inertia:
        return jnp.asarray(self.inertia(g)) if callable(self.inertia) else self.inertia

    def potential_energy(self, g: Element) -> Float[Array, ""]:
        return jnp.zeros(()) if self.potential is None else jnp.asarray(self.potential(g))

    def check_energy(self, state: State) -> None:
        if self.potential is not None:
            energy = evaluate(type(self).potential_energy, self.at_time(state.t), state.g)
            require_energy("potential", energy)


@overload
def checked_inertia(
    group: AbstractLieGroup, inertia: ArrayLike, physical: bool = True
) -> Inertia: ...
@overload
def checked_inertia(
    group: AbstractLieGroup, inertia: Function, physical: bool = True
) -> Function: ...
def checked_inertia(
    group: AbstractLieGroup, inertia: object, physical: object = True
) -> Inertia | Function:
    """Return the inertia as a float64 array or a pytree function if a body can have it."""
    require_double_precision()
    physical = require_flag("physical", physical)
    if callable(inertia):
        kept = as_pytree(inertia)
        like = output("inertia", kept, (group.layout(),))
        _require_inertia_shape(group, like.shape)
        require_real("inertia", like, like.shape)
        sample = evaluate(lambda group: jnp.asarray(kept(group.identity())), group)
        require_finite("inertia at the identity", sample)
    else:
        sample = kept = float64("inertia", inertia)
        _require_inertia_shape(group, sample.shape)
        require_finite("inertia", sample)

    def check(sample: np.ndarray) -> None:
        require_positive(sample)
        if physical:
            require_body(group, sample)

    require_each(check, sample, fine=partial(plainly_a_body, group))
    return kept


def _apply(inertia: Inertia, xi: Coordinates) -> Coordinates:
    return inertia * xi if inertia.ndim == 1 else inertia @ xi


def _require_inertia_shape(group: AbstractLieGroup, shape: tuple[int, ...]) -> None:
    n = group.dim
    if shape not in ((n,), (n, n)):
        raise BadInput(
            f"inertia has shape {shape}, but on {group.name} it is a vector of {n} principal "
            f"moments or a {n} x {n} matrix."
        )
