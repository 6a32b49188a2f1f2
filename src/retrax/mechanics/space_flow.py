"""Flows on homogeneous spaces."""

import abc
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from retrax.errors import BadInput
from retrax.groups.base import AbstractLieGroup, in_words
from retrax.mechanics.functions import as_pytree
from retrax.mechanics.state import State
from retrax.mechanics.symmetry import Symmetries
from retrax.mechanics.system import AbstractGroupSystem, ArrayLike, Coordinates, Derivative
from retrax.numerics.checks import (
    float64,
    reason,
    require_double_precision,
    require_instance,
    require_output,
    shown,
)
from retrax.numerics.known import require_each
from retrax.spaces.base import AbstractHomogeneousSpace, Point, Tangent

Time = Float[Array, ""]

# A field may miss the tangent space by this much, relative to its size, at random points.
_ROUNDING = 1e-9
_POINTS = 12


class AbstractSpaceFlow(AbstractGroupSystem):
    r"""A flow on a homogeneous space, $\dot y = \xi(t, y)\cdot y$ with a generator $\xi$.

    The configuration of a state is the point $y$; its momentum carries nothing and stays zero. A
    run starts from a point, `simulate(flow, integrator, y0, ...)`, or from `flow.at(y0, t)`.
    """

    space: eqx.AbstractVar[AbstractHomogeneousSpace]
    force: ClassVar[Any] = None
    symmetry: ClassVar[Any] = ()
    has_momentum: ClassVar[bool] = False
    has_energy: ClassVar[bool] = False
    flows: ClassVar[bool] = True

    @abc.abstractmethod
    def generator(self, t: Time, y: Point) -> Coordinates:
        r"""$\xi(t, y)$, in the coordinates of the algebra of `space.group`."""

    def invariant_functions(self, y: Point) -> dict[str, Float[Array, ""]]:
        """What the flow conserves at `y`, by name, beside the invariants of the orbits."""
        return {}

    @property
    def group(self) -> AbstractLieGroup:
        return self.space.group

    @property
    def configuration_space(self) -> AbstractHomogeneousSpace:
        return self.space

    @property
    def name(self) -> str:
        return f"flow on {self.space.name}"

    def at(self, y: ArrayLike, t: ArrayLike = 0.0) -> State:
        """The state at the point `y`, checked."""
        return self.state(y, t=t)

    def as_state(self, start: Any) -> Any:
        """A state as it is; points, one or many along a first axis, as states at time zero."""
        if isinstance(start, State):
            return start
        like = self.space.layout()
        if isinstance(like, jax.ShapeDtypeStruct):
            start = float64("state", start)
        leaves, wanted = jax.tree.leaves(start), jax.tree.leaves(like)
        members = len(leaves) == len(wanted) and all(
            np.ndim(leaf) == 1 + len(one.shape) for leaf, one in zip(leaves, wanted, strict=True)
        )
        if not members:
            return self.at(start)
        count = len(leaves[0])
        points = jax.tree.map(lambda x: float64("state", x), start)
        return State(points, jnp.zeros((count, self.group.dim)), jnp.zeros(count))

    def vector_field(self, g: Point, mu: Coordinates, t: Time) -> Derivative:
        return Derivative(self.generator(t, g), jnp.zeros_like(mu))

    def velocity(self, g: Point, mu: Coordinates) -> Coordinates:
        """The generator at time zero."""
        return self.generator(jnp.zeros(()), g)

    def velocity_at(self, state: State) -> Coordinates:
        return self.generator(state.t, state.g)

    def momentum(self, g: Point, xi: Coordinates) -> Coordinates:
        return jnp.zeros_like(xi)

    def differential(self, g: Point, xi: Coordinates, mu: Coordinates) -> Coordinates:
        return jnp.zeros_like(xi)

    def hamiltonian_energy(self, g: Point, mu: Coordinates) -> Float[Array, ""]:
        return jnp.zeros(())

    def symmetries(self) -> Symmetries:
        """None: there is no momentum for a symmetry to conserve."""
        none = np.zeros((0, self.group.dim))
        return Symmetries(none, none)

    def invariants(
        self, state: State, symmetries: Symmetries | None = None
    ) -> dict[str, Float[Array, ""]]:
        """What labels the orbit, and what the flow is declared to conserve, by name."""
        return {**self.space.orbit_invariants(state.g), **self.invariant_functions(state.g)}


class SpaceFlow(AbstractSpaceFlow):
    r"""A flow on a homogeneous space from its generator, or from a field of tangent vectors.

    **Arguments:**

    - `space`: where it flows, such as `Sphere(3)`.
    - `generator`: `generator(t, y)`, coordinates in the algebra of `space.group`, written in JAX.
    - `field`: instead of it `field(t, y)`, the velocity $\dot y$ stored as points are; it is lifted
        by `space.lift`.
    - `invariants`: functions of the point that the flow conserves, by name.

    **Raises:** `BadInput` where the function returns something of another shape, or `field` is not
    tangent to the space at random points.
    """

    space: AbstractHomogeneousSpace
    function: Any
    named: tuple[Any, ...]
    names: tuple[str, ...] = eqx.field(static=True)
    lifted: bool = eqx.field(static=True)

    def __init__(
        self,
        space: AbstractHomogeneousSpace | Any,
        generator: Callable[[Time, Point], Coordinates] | None = None,
        *,
        field: Callable[[Time, Point], Tangent] | None = None,
        invariants: Mapping[str, Callable[[Point], Any]] | None = None,
    ):
        require_double_precision()
        what = "a space; pass one, such as Sphere(3)"
        require_instance("space", space, AbstractHomogeneousSpace, what)
        if (generator is None) == (field is None):
            raise BadInput(
                f"SpaceFlow(space, generator={shown(generator)}, field={shown(field)}) needs "
                "exactly one of generator and field."
            )
        time, like = jax.ShapeDtypeStruct((), jnp.float64), space.layout()
        given = {} if invariants is None else invariants
        require_instance("invariants", given, Mapping, "a dictionary of functions by name")
        for name, function in given.items():
            require_instance("a name of invariants", name, str, "a text")
            require_output(f"invariants[{name!r}]", function, (like,), ())
        if generator is not None:
            require_output("generator", generator, (time, like), (space.group.dim,))
        else:
            _require_points("field", field, (time, like), like)
        self.space, self.lifted = space, generator is None
        self.function = as_pytree(field if generator is None else generator)
        self.names, self.named = tuple(given), tuple(map(as_pytree, given.values()))
        if self.lifted:
            _require_tangent(space, field)

    def generator(self, t: Time, y: Point) -> Coordinates:
        value = self.function(t, y)
        return self.space.lift(y, value) if self.lifted else jnp.asarray(value)

    def invariant_functions(self, y: Point) -> dict[str, Float[Array, ""]]:
        return {
            name: jnp.asarray(function(y))
            for name, function in zip(self.names, self.named, strict=True)
        }


def _require_points(name: str, function: Any, arguments: tuple, like: Any) -> None:
    """Refuse a function that does not return something stored as points are."""
    if isinstance(like, jax.ShapeDtypeStruct):
        require_output(name, function, arguments, like.shape)
        return
    if not callable(function):
        raise BadInput(f"{name} = {shown(function)} must be a function of JAX arrays.")
    try:
        out = jax.eval_shape(lambda *a: function(*a), *arguments)
    except Exception as cause:
        raise BadInput(f"{name} cannot be evaluated on JAX arrays: {reason(cause)}.") from cause
    if jax.tree.map(lambda x: x.shape, out) != jax.tree.map(lambda x: x.shape, like):
        raise BadInput(
            f"{name} returns {in_words(out)}, but a velocity is stored as a point is, "
            f"{in_words(like)}."
        )


def _require_tangent(space: AbstractHomogeneousSpace, field: Any) -> None:
    """Refuse a field that the space cannot follow."""

    def missed(key):
        y = space.random(key)
        v = field(jnp.asarray(0.3), y)
        followed = space.tangent(y, space.lift(y, v))
        gaps = jax.tree.map(lambda a, b: jnp.max(jnp.abs(a - b)), v, followed)
        sizes = jax.tree.map(lambda a: jnp.max(jnp.abs(a)), v)
        return _largest(gaps), _largest(sizes)

    gaps, sizes = jax.jit(jax.vmap(missed))(jax.random.split(jax.random.key(3), _POINTS))

    def check(gaps: np.ndarray, sizes: np.ndarray) -> None:
        worst = int(np.argmax(gaps))
        if not gaps[worst] <= _ROUNDING * max(float(np.max(sizes)), 1.0):
            raise BadInput(
                f"field is not tangent to {space.name}: at a random point it misses the tangent "
                f"space by {float(gaps[worst]):.3g} (its size there is {float(sizes[worst]):.3g}), "
                "which must be zero."
            )

    require_each(check, gaps, sizes)


def _largest(parts: Any) -> Float[Array, ""]:
    return jnp.max(jnp.stack(jax.tree.leaves(parts)))
