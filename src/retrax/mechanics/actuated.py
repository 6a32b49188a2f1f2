r"""Systems with inputs: what motors, thrusters and wheels can do to a body.

Inputs $u \in \mathbb R^m$ act as the body covector $B(g)\,u$, beside all other forces.
"""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key

from retrax.errors import BadInput
from retrax.groups.base import AbstractLieGroup, Coordinates, Element
from retrax.mechanics.functions import Function, as_pytree
from retrax.mechanics.system import AbstractGroupSystem
from retrax.numerics.checks import (
    ArrayLike,
    float64,
    is_traced,
    output,
    quote,
    require_instance,
    require_real,
)
from retrax.numerics.evaluate import Evaluated, evaluate_in_jax
from retrax.numerics.frozen import Frozen, numbers_of
from retrax.numerics.known import nothing_is_traced, require_each

# u(g, xi, t) during a step.
Inputs = Float[Array, " m"]
Law = Callable[[Element, Coordinates, Float[Array, ""]], Inputs]

# At so many random places a matrix that depends on where the system is is looked at.
_PLACES = 4


class Actuators(Frozen):
    r"""The matrix $B(g)$ of inputs, and the bounds at which they saturate.

    **Attributes:** `matrix`: `matrix(g)`, of `dim` rows and `count` columns; `lower`, `upper`: the
    bounds, or `None` if nothing is bounded; `count`: the number of inputs.
    """

    matrix: Function
    lower: Inputs | None
    upper: Inputs | None
    count: int = eqx.field(static=True)

    def __check_init__(self) -> None:
        """Reject a count that is not that of the matrix and the bounds, as one of a file may be."""
        several = self.matrix.shape[1] if isinstance(self.matrix, ConstantMatrix) else self.count
        bounds = [np.shape(x)[-1:] for x in (self.lower, self.upper) if x is not None]
        if several != self.count or any(shape != (self.count,) for shape in bounds):
            raise BadInput(f"count = {quote(self.count)} is not that of the inputs.")

    @property
    def may_rest(self) -> bool:
        """Whether the bounds allow inputs of zero."""
        if self.lower is None or self.upper is None or is_traced(self.lower, self.upper):
            return True
        return bool(np.all(np.asarray(self.lower) <= 0) and np.all(np.asarray(self.upper) >= 0))

    def limit(self, u: Inputs) -> Inputs:
        """Return what the actuators make of an input that is asked of them."""
        return u if self.lower is None else jnp.clip(u, self.lower, self.upper)

    def covector(self, g: Element, u: Inputs) -> Coordinates:
        """Return $B(g) u$, with inputs within their bounds."""
        if isinstance(self.matrix, ConstantMatrix):
            return self.matrix.times(self.limit(u))
        return jnp.asarray(self.matrix(g)) @ self.limit(u)

    def dense(self) -> "Actuators":
        """Return the same in the form that all matrices of one shape have."""
        matrix = self.matrix
        if isinstance(matrix, ConstantMatrix):
            matrix = ConstantMatrix.of(matrix.whole(), dense=True)
        return Actuators(matrix, self.lower, self.upper, self.count)

    def rates(self, g: Element, xi: Coordinates) -> Float[Array, " m"]:
        r"""Return the velocities $B(g)^T\xi$ on which the inputs do work."""
        return jnp.asarray(self.matrix(g)).T @ xi


# Row and column of an entry of a matrix.
Place = tuple[int, int]


class ConstantMatrix(Frozen):
    """A matrix of inputs that is the same wherever the system is.

    A product with it is part of every step, so nothing is multiplied by its zeros and ones.

    **Attributes:** `entries`: those that are neither zero nor one; `places`: where they are;
    `ones`: where it is one; `shape`.
    """

    entries: Float[Array, " k"]
    places: tuple[Place, ...] = eqx.field(static=True)
    ones: tuple[Place, ...] = eqx.field(static=True)
    shape: Place = eqx.field(static=True)

    @classmethod
    def of(cls, matrix: Float[Array, "dim m"], dense: bool = False) -> "ConstantMatrix":
        """Make one; of numbers that JAX is tracing none is known, and none where it is `dense`."""
        known = np.full(matrix.shape, np.nan) if dense or is_traced(matrix) else np.asarray(matrix)
        places, ones = _where((known != 0) & (known != 1)), _where(known == 1)
        rows, columns = np.array(places, int).reshape(-1, 2).T
        dim, count = matrix.shape
        entries = evaluate_in_jax(lambda matrix: matrix[rows, columns], matrix)
        return cls(entries, places, ones, (dim, count))

    def __call__(self, g: Element) -> Float[Array, "dim m"]:
        return self.whole()

    def whole(self) -> Float[Array, "dim m"]:
        """Return the matrix."""
        rows, columns = np.array(self.places, int).reshape(-1, 2).T
        known = np.zeros(self.shape)
        for place in self.ones:
            known[place] = 1.0
        return jnp.asarray(known).at[rows, columns].set(self.entries)

    def times(self, u: Inputs) -> Coordinates:
        """Return the product with a vector."""
        parts = {place: self.entries[k] * u[place[1]] for k, place in enumerate(self.places)}
        parts |= {place: u[place[1]] for place in self.ones}
        rows: list[list[Array]] = [[] for _ in range(self.shape[0])]
        for place in sorted(parts):
            rows[place[0]].append(parts[place])
        return jnp.stack([sum(row[1:], row[0]) if row else jnp.zeros(()) for row in rows])


def _where(chosen: np.ndarray) -> tuple[Place, ...]:
    rows, columns = np.nonzero(chosen)
    return tuple(zip(rows.tolist(), columns.tolist(), strict=True))


class Actuated(Frozen):
    r"""A system with inputs $u$, which act as the body covector $B(g)\,u$.

    Everything that can be asked of the system can be asked of this: `plant.state(...)`,
    `plant.group`, `plant.energy(state)`.

    **Arguments:**

    - `system`: what moves.
    - `inputs`: the matrix $B$, a column for each input, or a function of `g` that returns it.
    - `bounds`: `(lower, upper)`, numbers or one for each input, at which the inputs saturate.
        `numpy.inf` is no bound.

    **Attributes:** `system`; `actuators`: the matrix and the bounds; `count`: how many inputs.
    """

    system: AbstractGroupSystem
    actuators: Actuators

    def __init__(
        self,
        system: AbstractGroupSystem,
        inputs: ArrayLike | Callable[[Element], Float[Array, "dim m"]],
        bounds: tuple[ArrayLike, ArrayLike] | None = None,
    ):
        if isinstance(system, Actuated):
            raise BadInput(
                f"system is an Actuated {system.name}, which has inputs already: give the columns "
                "of all inputs in one matrix, rx.Actuated(plant.system, inputs=B)."
            )
        what = "a retrax system"
        self.system = require_instance("system", system, AbstractGroupSystem, what)
        if not system.has_momentum:
            raise BadInput(f"the {system.name} has no momenta that inputs could change.")
        system.with_force(_nothing)
        group = system.group
        matrix: Function
        if callable(inputs):
            matrix, constant = as_pytree(inputs), None
            shape = _shape(matrix, group)
        else:
            constant = float64("inputs", inputs)
            matrix, shape = _nothing, constant.shape
        if len(shape) != 2 or shape[0] != group.dim or shape[1] < 1:
            raise BadInput(
                f"inputs has shape {shape}, but on {group.name} it is a matrix of {group.dim} rows "
                "with a column for each input."
            )
        matrix = matrix if constant is None else ConstantMatrix.of(constant)
        _require_columns(group, matrix)
        lower, upper = (None, None) if bounds is None else _bounds(bounds, shape[1])
        self.actuators = Actuators(matrix, lower, upper, shape[1])

    def __repr__(self) -> str:
        bounds = self.actuators.lower, self.actuators.upper
        sides = [f"{name} {numbers_of(x)}" for name, x in zip(("from", "to"), bounds, strict=True)]
        within = "" if bounds[0] is None else f" {' '.join(sides)}"
        several = "s" if self.count > 1 else ""
        return f"<{self.system.name} with {self.count} input{several}{within}>"

    @property
    def count(self) -> int:
        """How many inputs there are."""
        return self.actuators.count

    def dense(self) -> "Actuated":
        """Return the same plant, whose matrix may be stacked with any other of its shape."""
        other = object.__new__(type(self))
        object.__setattr__(other, "system", self.system)
        object.__setattr__(other, "actuators", self.actuators.dense())
        return other

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name in ("system", "actuators"):
            raise AttributeError(name)
        return getattr(self.system, name)


def _shape(inputs: object, group: AbstractLieGroup) -> tuple[int, ...]:
    """Return the shape of what a function of `g` returns, seen to be real numbers."""
    found = output("inputs", inputs, (group.layout(),))
    require_real("inputs", found, found.shape)
    return found.shape


def _nothing(g: Element, xi: Coordinates, t: Float[Array, ""]) -> Coordinates:
    return jnp.zeros_like(xi)


def _require_columns(group: AbstractLieGroup, matrix: Function) -> None:
    """Reject a matrix that is not finite, and inputs that do nothing wherever they are tried."""
    if nothing_is_traced():
        _require_matrices(np.asarray(_tried(group, matrix)))
    else:
        require_each(_require_matrices, _at_places(group, matrix))


def _at_places(group: AbstractLieGroup, matrix: Function) -> Float[Array, "place dim m"]:
    """Return the matrix at random places."""

    def at(key: Key[Array, ""]) -> Float[Array, "dim m"]:
        return jnp.asarray(matrix(group.random(key)))

    return jax.vmap(at)(jax.random.split(jax.random.key(5), _PLACES))


_tried = Evaluated(_at_places)


def _require_matrices(matrices: Float[np.ndarray, "place dim m"]) -> None:
    if not np.isfinite(matrices).any(axis=0).all():
        raise BadInput("inputs holds numbers that are not finite.")
    idle = np.flatnonzero(~np.nan_to_num(matrices).any(axis=(0, 1)))
    if len(idle):
        raise BadInput(f"column {idle[0]} of inputs is zero: that input would move nothing.")


def _bounds(bounds: object, count: int) -> tuple[Inputs, Inputs]:
    if not isinstance(bounds, tuple | list) or len(bounds) != 2:
        raise BadInput(f"bounds = {quote(bounds)} must be a pair (lower, upper).")
    found = [float64(f"bounds[{k}]", bound) for k, bound in enumerate(bounds)]
    for bound in found:
        if bound.shape not in ((), (count,)):
            raise BadInput(
                f"bounds has an entry of shape {bound.shape}, but there "
                f"{'is one input' if count == 1 else f'are {count} inputs'}: give a number, or one "
                "for each."
            )
    lower, upper = (jnp.broadcast_to(bound, (count,)) for bound in found)
    require_each(_require_room, lower, upper)
    return lower, upper


def _require_room(lower: np.ndarray, upper: np.ndarray) -> None:
    crossed = np.flatnonzero(~(lower <= upper))
    if len(crossed):
        k = crossed[0]
        raise BadInput(
            f"the bounds of input {k} leave it no room: lower = {lower[k]:g}, upper = {upper[k]:g}."
        )
    endless = np.flatnonzero((lower == np.inf) | (upper == -np.inf))
    if len(endless):
        k = endless[0]
        raise BadInput(
            f"the bounds of input {k} leave it no finite number: lower = {lower[k]:g}, upper = "
            f"{upper[k]:g}; no bound is lower = -inf, upper = inf."
        )
