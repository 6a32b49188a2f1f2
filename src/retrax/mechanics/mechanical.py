"""Kinetic minus potential energy: the systems most people have."""

import abc
from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.tree_util import Partial
from jaxtyping import Array, Float

from retrax.errors import BadInput
from retrax.groups.base import AbstractLieGroup, require_group
from retrax.mechanics.constraints import AbstractConstraint
from retrax.mechanics.functions import arguments, as_pytree, require_energy, require_not_constant
from retrax.mechanics.hamel import checked_constraint
from retrax.mechanics.inertia import plainly_a_body, require_body, require_positive
from retrax.mechanics.state import State
from retrax.mechanics.symmetry import declared
from retrax.mechanics.system import AbstractGroupSystem, ArrayLike, Coordinates, Element
from retrax.numerics.checks import (
    float64,
    is_traced,
    output,
    require_double_precision,
    require_finite,
    require_flag,
    require_output,
    require_real,
)
from retrax.numerics.known import require_each
from retrax.numerics.small_matrices import solve

Inertia = Float[Array, " dim"] | Float[Array, "dim dim"]


class AbstractMechanicalSystem(AbstractGroupSystem):
    r"""$L(g,\xi) = \tfrac12\langle \mathbb I(g)\xi, \xi\rangle - V(g)$.

    A subclass says what the inertia and the potential are at $g$; the force $-dV$ follows by
    differentiating the scalar $V$ alone.
    """

    quadratic: ClassVar[bool] = True

    @abc.abstractmethod
    def inertia_at(self, g: Element) -> Inertia:
        """The inertia at `g`: principal values as a vector, or a matrix."""

    @abc.abstractmethod
    def potential_energy(self, g: Element) -> Float[Array, ""]:
        """The potential energy $V(g)$."""

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
        def lagrangian(k):
            kinetic = 0.0 if self.invariant_inertia else xi @ _apply(self.inertia_at(k), xi) / 2
            return kinetic - self.potential_energy(k)

        if self.free and self.invariant_inertia:
            return jnp.zeros_like(xi)
        return self.group.cotangent(g, jax.grad(lagrangian)(g))

    def kinetic_energy(self, state: State) -> Float[Array, ""]:
        return state.momentum @ self.velocity(state.g, state.momentum) / 2

    def hamiltonian_energy(self, g: Element, mu: Coordinates) -> Float[Array, ""]:
        return mu @ self.velocity(g, mu) / 2 + self.potential_energy(g)


class MechanicalSystem(AbstractMechanicalSystem):
    r"""A system from its inertia and potential, $L = \tfrac12\langle\mathbb I\xi,\xi\rangle - V$.

    **Arguments:**

    - `group`: where it moves.
    - `inertia`: principal moments as a vector, a symmetric matrix, or a function of `g` that
        returns either.
    - `potential`: $V(g)$ in joules, a function of the group element written in JAX.
    - `force`: `force(g, xi, t)`, a body covector, for loads, control and damping.
    - `symmetry`: generators of spatial symmetries, one per row. Found numerically when not given,
        checked when given.
    - `physical`: whether to insist that the inertia is one that a body can have.
    - `constraint`: a `Distribution` or a `VelocityConstraint`; a notice is given where it is a
        subalgebra, for then it constrains positions as well.

    **Raises:** `BadInput` where the inertia is not positive definite or not that of a body, or
    where a function does not return what it must.
    """

    group: AbstractLieGroup
    inertia: Any
    potential: Any
    force: Any
    symmetry: tuple[tuple[float, ...], ...] | None = eqx.field(static=True)
    constraint: Any

    def __init__(
        self,
        group: AbstractLieGroup | Any,
        inertia: ArrayLike | Callable[[Element], Inertia],
        potential: Callable[[Element], Float[Array, ""]] | Any = None,
        force: Callable[[Element, Coordinates, Float[Array, ""]], Coordinates] | Any = None,
        *,
        symmetry: ArrayLike | None = None,
        physical: bool = True,
        constraint: AbstractConstraint | Any = None,
    ):
        self.group = require_group(group)
        self.constraint = checked_constraint(group, constraint)
        self.inertia = checked_inertia(group, inertia, physical)
        g, xi, t = arguments(group)
        require_output("potential", potential, (g,), (), optional=True)
        if potential is not None:
            require_not_constant("potential", potential, (g,))
        require_output("force", force, (g, xi, t), (group.dim,), optional=True)
        self.potential = as_pytree(potential)
        self.force = as_pytree(force)
        self.symmetry = declared(group, symmetry)
        if self.symmetry is not None:
            self.symmetries()

    @property
    def name(self) -> str:
        return f"mechanical system on {self.group.name}"

    @property
    def invariant_inertia(self) -> bool:
        return not isinstance(self.inertia, Partial | eqx.Module)

    @property
    def free(self) -> bool:
        return self.potential is None

    def inertia_at(self, g: Element) -> Inertia:
        return self.inertia if self.invariant_inertia else jnp.asarray(self.inertia(g))

    def potential_energy(self, g: Element) -> Float[Array, ""]:
        return jnp.zeros(()) if self.potential is None else jnp.asarray(self.potential(g))

    def check_energy(self, state: State) -> None:
        if self.potential is not None:
            require_energy("potential", self.potential_energy(state.g))


def checked_inertia(group: AbstractLieGroup, inertia: Any, physical: bool = True) -> Any:
    """The inertia as a float64 array or a pytree function, refused where it is not one."""
    require_double_precision()
    physical = require_flag("physical", physical)
    if callable(inertia):
        inertia = as_pytree(inertia)
        like = output("inertia", inertia, (group.layout(),))
        _require_inertia_shape(group, like.shape)
        require_real("inertia", like, like.shape)
        sample = inertia(group.identity())
        require_finite("inertia at the identity", sample)
    else:
        inertia = inertia if is_traced(inertia) else float64("inertia", inertia)
        _require_inertia_shape(group, inertia.shape)
        require_finite("inertia", inertia)
        sample = inertia

    def check(sample: np.ndarray) -> None:
        require_positive(sample)
        if physical:
            require_body(group, sample)

    require_each(check, sample, fine=partial(plainly_a_body, group))
    return inertia


def _apply(inertia: Inertia, xi: Coordinates) -> Coordinates:
    return inertia * xi if inertia.ndim == 1 else inertia @ xi


def _require_inertia_shape(group: AbstractLieGroup, shape: tuple[int, ...]) -> None:
    n = group.dim
    if shape not in ((n,), (n, n)):
        raise BadInput(
            f"inertia has shape {shape}, but on {group.name} it is a vector of {n} principal "
            f"moments or a {n} x {n} matrix."
        )
