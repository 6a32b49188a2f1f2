r"""Velocity constraints: which velocities a system may have where and when.

A constraint is $A(g, t)\,\xi = c(g, t)$ with $k$ rows. Ideal constraints do no virtual work: the
reaction is $A^T\lambda$, a covector that annihilates the velocities $A\,\xi = 0$. Its power is
$\lambda\cdot c$: it does work only where $c$ is not zero.
"""

import abc
from collections.abc import Callable

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax.tree_util import Partial
from jaxtyping import Array, Float

from retrax.errors import BadInput
from retrax.groups.base import AbstractLieGroup, Coordinates, Element
from retrax.mechanics.functions import Function, arguments, as_pytree, takes_time
from retrax.numerics.checks import (
    ArrayLike,
    float64,
    host_float64,
    is_traced,
    output,
    quote,
    require_finite,
    require_output,
    require_shape,
)
from retrax.numerics.evaluate import evaluate
from retrax.numerics.frozen import Frozen
from retrax.numerics.known import require_each
from retrax.numerics.small_matrices import null_space

Rows = Float[Array, "k dim"]
Time = Float[Array, ""]
# Rows are dependent where their smallest singular value is this part of their largest.
_DEPENDENT = 1e-10


class AbstractConstraint(Frozen):
    r"""$A(g, t)\,\xi = c(g, t)$, with $k$ equations."""

    @abc.abstractmethod
    def rows(self, g: Element, t: Time) -> Rows:
        """Return the matrix $A(g, t)$, one row for each equation."""

    @abc.abstractmethod
    def offset(self, g: Element, t: Time) -> Float[Array, " k"]:
        """Return the right side $c(g, t)$; zero for a linear constraint."""

    @property
    def driven(self) -> bool:
        """Whether $c$ may differ from zero, so that the reaction does work."""
        return True

    @abc.abstractmethod
    def check(self, group: AbstractLieGroup) -> None:
        """Reject, with `BadInput`, a group that this constraint does not fit."""

    @property
    def moving(self) -> bool:
        """Whether the constraint depends on time."""
        return False

    @property
    def distribution(self) -> "AbstractDistribution | None":
        """The same constraint as one subspace of velocities, where it is known to be one."""
        return None

    def violation(self, g: Element, xi: Coordinates, t: Time) -> Float[Array, " k"]:
        r"""Return $A(g, t)\,\xi - c(g, t)$: by how much a velocity breaks the constraint."""
        return self.rows(g, t) @ xi - self.offset(g, t)

    def reach(self, g: Element, xi: Coordinates, t: Time) -> Float[Array, " k"]:
        r"""Return $|A(g, t)||\xi|$: the size of the terms that cancel in each equation."""
        return jnp.abs(self.rows(g, t)) @ jnp.abs(xi)


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

    @property
    def distribution(self) -> "AbstractDistribution":
        return self

    def rows(self, g: Element, t: Time) -> Rows:
        return self.annihilator

    def offset(self, g: Element, t: Time) -> Float[Array, " k"]:
        return jnp.zeros(self.annihilator.shape[0])

    @property
    def driven(self) -> bool:
        return False


class Distribution(AbstractDistribution):
    r"""A left-invariant linear constraint: the body velocity lies in the span of `rows`.

    **Arguments:** `rows`: independent vectors that span the admissible body velocities, one a row;
    any basis will do.

    **Raises:** `BadInput` where the rows are dependent, or span everything or nothing.
    """

    span: tuple[tuple[float, ...], ...] = eqx.field(static=True)
    normals: tuple[tuple[float, ...], ...] = eqx.field(static=True)

    def __init__(self, rows: ArrayLike):
        given = _numbers("rows", rows)
        m, n = given.shape
        singular = np.linalg.svd(given, compute_uv=False)
        if not singular[-1] > _DEPENDENT * singular[0] or m > n:
            raise BadInput(
                f"rows = {quote(given.tolist())} are dependent: their smallest singular value "
                f"is {singular[-1] if m <= n else 0.0:.3g}, but they must be a basis of the "
                "admissible velocities."
            )
        if m == n:
            raise BadInput(
                f"rows = {quote(given.tolist())} span all {n} directions: nothing is constrained, "
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
                f"constraint = {self!r} has {n} velocity components, but {group.name} has "
                f"{group.dim}."
            )


class VelocityConstraint(AbstractConstraint):
    r"""$A(g, t)\,\xi = c(g, t)$: linear in the velocity, and affine where `c` is given.

    **Arguments:**

    - `A`: `A(g)` or `A(g, t)`, a $k \times \dim$ matrix written in JAX, of full rank where the
        system goes; or the matrix itself where it is constant.
    - `c`: `c(g)` or `c(g, t)`, a vector of length $k$, or the vector itself; zero when not given.

    A function is given the time where it has a second argument without a default, or one that is
    called `t`.
    """

    A: Function
    c: Function | None
    timed: tuple[bool, bool] = eqx.field(static=True)

    def __init__(
        self,
        A: Callable[[Element], Rows] | Callable[[Element, Time], Rows] | ArrayLike,
        c: Callable[[Element], Array] | Callable[[Element, Time], Array] | ArrayLike | None = None,
    ):
        self.timed = (takes_time("A", A, ("g",)), takes_time("c", c, ("g",)))
        shape = None
        if callable(A):
            self.A = as_pytree(A)
        else:
            rows = _numbers("A", A)
            _require_independent(rows)
            self.A, shape = Partial(_constant, jnp.asarray(rows)), rows.shape[:1]
        if c is None or callable(c):
            self.c = as_pytree(c)
        else:
            offset = float64("c", c)
            require_shape("c", offset, offset.shape if shape is None else shape)
            require_finite("c", offset)
            self.c = Partial(_constant, offset)

    @property
    def moving(self) -> bool:
        return any(self.timed)

    @property
    def driven(self) -> bool:
        return self.c is not None

    @property
    def distribution(self) -> Distribution | None:
        rows = constant_value(self.A)
        if rows is None or self.c is not None or is_traced(rows) or len(rows) >= rows.shape[1]:
            return None
        matrix = np.asarray(rows)
        return Distribution(null_space(matrix, _DEPENDENT * float(np.linalg.norm(matrix))))

    def rows(self, g: Element, t: Time) -> Rows:
        return jnp.asarray(self.A(g, t) if self.timed[0] else self.A(g))

    def offset(self, g: Element, t: Time) -> Float[Array, " k"]:
        if self.c is None:
            return jnp.zeros(self.rows(g, t).shape[0])
        return jnp.asarray(self.c(g, t) if self.timed[1] else self.c(g))

    def check(self, group: AbstractLieGroup) -> None:
        one, _, t = arguments(group)
        of, n = [(one, t) if timed else (one,) for timed in self.timed], group.dim
        out = output("A", self.A, of[0])
        shape = out.shape
        if out.dtype != jnp.float64 or len(shape) != 2 or shape[1] != n or not 1 <= shape[0] < n:
            raise BadInput(
                f"A(g{', t' if self.timed[0] else ''}) has shape {shape} of {out.dtype}, but on "
                f"{group.name} it has {n} columns and from 1 to {n - 1} rows, one for each "
                "velocity that is taken away."
            )
        require_output("c", self.c, of[1], shape[:1], optional=True)


def smallest_singular_value(
    constraint: AbstractConstraint, g: Element, t: Time
) -> tuple[float, float]:
    """Return the smallest and the largest singular value of $A(g, t)$, on the host."""
    return _extremes(np.asarray(evaluate(type(constraint).rows, constraint, g, t)))


def require_full_rank(constraint: AbstractConstraint, g: Element, t: Time) -> None:
    """Reject a configuration where the rows of $A(g, t)$ are dependent."""

    def check(rows: np.ndarray, t: np.ndarray) -> None:
        smallest, largest = _extremes(rows)
        if not smallest > _DEPENDENT * largest:
            when = f" at t = {float(t):g} s" if constraint.moving else ""
            raise BadInput(
                f"the constraint loses rank at this g{when}: the smallest singular value of A is "
                f"{smallest:.3g} (the largest is {largest:.3g}), but its rows must be independent."
            )

    def fine(rows: np.ndarray, t: np.ndarray) -> np.ndarray:
        singular = np.linalg.svd(rows, compute_uv=False)
        return singular[:, -1] > _DEPENDENT * singular[:, 0]

    rows = evaluate(type(constraint).rows, constraint, g, t)
    require_each(check, rows, t, fine=fine)


def _extremes(rows: np.ndarray) -> tuple[float, float]:
    singular = np.linalg.svd(rows, compute_uv=False)
    return float(singular[-1]), float(singular[0])


def _require_independent(rows: np.ndarray) -> None:
    """Reject constant rows that depend on each other."""
    singular = np.linalg.svd(rows, compute_uv=False)
    smallest = float(singular[-1]) if len(rows) <= rows.shape[1] else 0.0
    if not smallest > _DEPENDENT * singular[0]:
        raise BadInput(
            f"A = {quote(rows.tolist())} has dependent rows: their smallest singular value is "
            f"{smallest:.3g}, but each row must take one velocity away."
        )


def constant_value(function: object) -> Array | None:
    """Return the numbers that were given in place of a function of the configuration, if any."""
    if isinstance(function, Partial) and function.func is _constant:
        return function.args[0]
    return None


def _constant(value: Array, g: Element) -> Array:
    return value


def _numbers(name: str, rows: object) -> Float[np.ndarray, "m n"]:
    """Return rows of numbers as a matrix."""
    array = host_float64(name, rows)
    if array.ndim != 2 or array.size == 0:
        raise BadInput(
            f"{name} has shape {array.shape}, but must be a matrix with at least one row."
        )
    require_finite(name, array)
    return array


def _tuples(matrix: np.ndarray) -> tuple[tuple[float, ...], ...]:
    return tuple(tuple(float(x) for x in row) for row in matrix)
