r"""Velocity constraints: which velocities a system may have where.

A constraint is $A(g)\,\xi = c(g)$ with $k$ rows. Ideal constraints do no virtual work: the reaction
is $A(g)^T\lambda$, a covector that annihilates the velocities $A(g)\,\xi = 0$.
"""

import abc
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax.tree_util import Partial
from jaxtyping import Array, Float

from retrax.errors import BadInput
from retrax.groups.base import AbstractLieGroup, Coordinates, Element
from retrax.mechanics.functions import as_pytree
from retrax.numerics.checks import (
    is_traced,
    output,
    require_finite,
    require_output,
    require_shape,
    shown,
)
from retrax.numerics.frozen import Frozen
from retrax.numerics.known import require_each
from retrax.numerics.null_space import null_space
from retrax.numerics.precision import float64, host_float64

Rows = Float[Array, "k dim"]
# Rows are dependent where their smallest singular value is this part of their largest.
_DEPENDENT = 1e-10


class AbstractConstraint(Frozen):
    r"""$A(g)\,\xi = c(g)$, with $k$ equations."""

    @abc.abstractmethod
    def rows(self, g: Element) -> Rows:
        """The matrix $A(g)$, one row for each equation."""

    @abc.abstractmethod
    def offset(self, g: Element) -> Float[Array, " k"]:
        """The right side $c(g)$; zero for a linear constraint."""

    @abc.abstractmethod
    def check(self, group: AbstractLieGroup) -> None:
        """Refuse, with `BadInput`, a group on which this is no constraint."""

    def violation(self, g: Element, xi: Coordinates) -> Float[Array, " k"]:
        r"""$A(g)\,\xi - c(g)$: by how much a velocity breaks the constraint."""
        return self.rows(g) @ xi - self.offset(g)


class AbstractDistribution(AbstractConstraint):
    r"""Velocities $\xi = E u$ in one subspace $\mathfrak d \subset \mathfrak g$, whatever $g$."""

    @property
    @abc.abstractmethod
    def basis(self) -> Float[Array, "m dim"]:
        r"""A basis of $\mathfrak d$, one vector a row: $E^T$."""

    @property
    @abc.abstractmethod
    def annihilator(self) -> Rows:
        r"""A basis of the covectors that vanish on $\mathfrak d$, one a row: $A$, $AE = 0$."""

    def rows(self, g: Element) -> Rows:
        return self.annihilator

    def offset(self, g: Element) -> Float[Array, " k"]:
        return jnp.zeros(self.annihilator.shape[0])


class Distribution(AbstractDistribution):
    r"""A left-invariant linear constraint: the body velocity lies in the span of `rows`.

    **Arguments:** `rows`: independent vectors that span the admissible body velocities, one a row;
    any basis will do.

    **Raises:** `BadInput` where the rows are dependent, or span everything or nothing.
    """

    span: tuple[tuple[float, ...], ...] = eqx.field(static=True)
    normals: tuple[tuple[float, ...], ...] = eqx.field(static=True)

    def __init__(self, rows: Any):
        given = _numbers("rows", rows)
        m, n = given.shape
        singular = np.linalg.svd(given, compute_uv=False)
        if not singular[-1] > _DEPENDENT * singular[0] or m > n:
            raise BadInput(
                f"rows = {shown(given.tolist())} are dependent: their smallest singular value "
                f"is {singular[-1] if m <= n else 0.0:.3g}, but a basis of the admissible "
                "velocities is needed."
            )
        if m == n:
            raise BadInput(
                f"rows = {shown(given.tolist())} span all {n} directions: nothing is constrained, "
                "so leave the constraint out."
            )
        self.span = _tuples(given)
        self.normals = _tuples(null_space(given, _DEPENDENT * singular[0]))

    def __repr__(self) -> str:
        return f"Distribution({[list(row) for row in self.span]})"

    @property
    def basis(self) -> Float[Array, "m dim"]:
        return jnp.array(self.span)

    @property
    def annihilator(self) -> Rows:
        return jnp.array(self.normals)

    def check(self, group: AbstractLieGroup) -> None:
        n = len(self.span[0])
        if n != group.dim:
            raise BadInput(
                f"constraint = {self!r} speaks of {n} velocity components, but {group.name} has "
                f"{group.dim}."
            )


def annihilated_by(rows: Any) -> Distribution:
    r"""The velocities with $A\xi = 0$ for a constant $A$ of full rank, whose rows are kept."""
    normals = _numbers("A", rows)
    singular = np.linalg.svd(normals, compute_uv=False)
    made = Distribution(null_space(normals, _DEPENDENT * singular[0]))
    object.__setattr__(made, "normals", _tuples(normals))
    return made


class VelocityConstraint(AbstractConstraint):
    r"""$A(g)\,\xi = c(g)$: linear in the velocity, and affine where `c` is given.

    **Arguments:**

    - `A`: `A(g)`, a $k \times \dim$ matrix written in JAX, of full rank where the system goes; or
        the matrix itself where it is constant.
    - `c`: `c(g)`, a vector of length $k$; zero when not given.
    """

    A: Any
    c: Any

    def __init__(
        self,
        A: Callable[[Element], Rows] | Any,
        c: Callable[[Element], Float[Array, " k"]] | Any = None,
    ):
        rows = _numbers("A", A) if not callable(A) else None
        self.A = as_pytree(A) if rows is None else Partial(_constant, jnp.asarray(rows))
        if c is None or callable(c):
            self.c = as_pytree(c)
            return
        offset = float64("c", c)
        if rows is not None:
            require_shape("c", offset, rows.shape[:1])
        require_finite("c", offset)
        self.c = Partial(_constant, offset)

    def constant(self) -> Rows | None:
        """The matrix $A$ of a linear constraint that is the same everywhere, where it is known."""
        fixed = isinstance(self.A, Partial) and self.A.func is _constant
        if not fixed or self.c is not None or is_traced(self.A):
            return None
        return self.A.args[0]

    def rows(self, g: Element) -> Rows:
        return jnp.asarray(self.A(g))

    def offset(self, g: Element) -> Float[Array, " k"]:
        if self.c is None:
            return jnp.zeros(self.rows(g).shape[0])
        return jnp.asarray(self.c(g))

    def check(self, group: AbstractLieGroup) -> None:
        one, n = group.layout(), group.dim
        out = output("A", self.A, (one,))
        shape = out.shape
        if out.dtype != jnp.float64 or len(shape) != 2 or shape[1] != n or not 1 <= shape[0] < n:
            raise BadInput(
                f"A(g) has shape {shape} of {out.dtype}, but on {group.name} it has {n} "
                f"columns and from 1 to {n - 1} rows, one for each velocity that is taken away."
            )
        require_output("c", self.c, (one,), shape[:1], optional=True)


def smallest_singular_value(constraint: AbstractConstraint, g: Element) -> tuple[float, float]:
    """The smallest and the largest singular value of $A(g)$, on the host."""
    return _extremes(np.asarray(constraint.rows(g)))


def require_full_rank(constraint: AbstractConstraint, g: Element) -> None:
    """Refuse a configuration where the rows of $A(g)$ are dependent."""

    def check(rows: np.ndarray) -> None:
        smallest, largest = _extremes(rows)
        if not smallest > _DEPENDENT * largest:
            raise BadInput(
                f"the constraint loses rank at this g: the smallest singular value of A(g) is "
                f"{smallest:.3g} (the largest is {largest:.3g}), but its rows must be independent."
            )

    def fine(rows: np.ndarray) -> np.ndarray:
        singular = np.linalg.svd(rows, compute_uv=False)
        return singular[:, -1] > _DEPENDENT * singular[:, 0]

    require_each(check, constraint.rows(g), fine=fine)


def _extremes(rows: np.ndarray) -> tuple[float, float]:
    singular = np.linalg.svd(rows, compute_uv=False)
    return float(singular[-1]), float(singular[0])


def _constant(value: Array, g: Element) -> Array:
    return value


def _numbers(name: str, rows: Any) -> Float[np.ndarray, "m n"]:
    """Rows of numbers as a matrix."""
    array = host_float64(name, rows)
    if array.ndim != 2 or array.size == 0:
        raise BadInput(
            f"{name} has shape {array.shape}, but a matrix with at least one row is needed: no row "
            "at all would leave no motion."
        )
    require_finite(name, array)
    return array


def _tuples(matrix: np.ndarray) -> tuple[tuple[float, ...], ...]:
    return tuple(tuple(float(x) for x in row) for row in matrix)
