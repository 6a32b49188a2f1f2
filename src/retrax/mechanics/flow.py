"""Flows of first order, on groups and on homogeneous spaces."""

import abc
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, Key, PyTree

from retrax.errors import BadInput
from retrax.groups.arguments import in_words
from retrax.groups.base import AbstractLieGroup, Coordinates, Element, require_group
from retrax.mechanics.functions import Function, as_pytree
from retrax.mechanics.state import State
from retrax.mechanics.symmetry import Generators, Symmetries
from retrax.mechanics.system import AbstractGroupSystem, Derivative
from retrax.numerics.checks import (
    ArrayLike,
    float64,
    outputs,
    quote,
    require_double_precision,
    require_instance,
    require_output,
)
from retrax.numerics.evaluate import evaluate
from retrax.numerics.known import require_each
from retrax.spaces.base import AbstractHomogeneousSpace, Point, Tangent

Time = Float[Array, ""]

# A field may miss the tangent space by this much, relative to its size, at random points.
_ROUNDING = 1e-9
_POINTS = 12


class AbstractFlow(AbstractGroupSystem):
    """A flow of first order: a place tells its velocity, and momentum and energy are zero."""

    force: ClassVar[None] = None
    symmetry: ClassVar[Generators] = ()
    flows: ClassVar[bool] = True

    def momentum(self, g: Element, xi: Coordinates) -> Coordinates:
        return jnp.zeros_like(xi)

    def differential(self, g: Element, xi: Coordinates, mu: Coordinates) -> Coordinates:
        return jnp.zeros_like(xi)

    def hamiltonian_energy(self, g: Element, mu: Coordinates) -> Float[Array, ""]:
        return jnp.zeros(())


class GroupFlow(AbstractFlow):
    r"""The flow $\dot g = g\,\hat\xi(g)$ of a field of body velocities: kinematics, no inertia.

    It has neither momentum nor energy: both are zero and stay zero. A field that depends on time
    becomes one that does not, on the product of the group with `Translation(1)`.

    **Arguments:**

    - `group`: where it flows.
    - `field`: `field(g)`, the body velocity at `g`, written in JAX.
    """

    group: AbstractLieGroup
    field: Function
    has_energy: ClassVar[bool] = False

    def __init__(self, group: AbstractLieGroup, field: Callable[[Element], Coordinates]):
        require_double_precision()
        self.group = require_group(group)
        require_output("field", field, (group.layout(),), (group.dim,))
        self.field = as_pytree(field)

    def at(self, g: ArrayLike, t: ArrayLike = 0.0) -> State:
        """Make the state at `g`."""
        return self.state(g, t=t)

    @property
    def name(self) -> str:
        return f"flow on {self.group.name}"

    def velocity(self, g: Element, mu: Coordinates) -> Coordinates:
        return jnp.asarray(self.field(g))


class AbstractSpaceFlow(AbstractFlow):
    r"""A flow on a homogeneous space, $\dot y = \xi(t, y)\cdot y$ with a generator $\xi$.

    The configuration of a state is the point $y$; its momentum carries nothing and stays zero. A
    run starts from a point, `simulate(flow, integrator, y0, ...)`, or from `flow.at(y0, t)`.
    """

    space: eqx.AbstractVar[AbstractHomogeneousSpace]
    has_momentum: ClassVar[bool] = False
    has_energy: ClassVar[bool] = False

    @abc.abstractmethod
    def generator(self, t: Time, y: Point) -> Coordinates:
        r"""Return $\xi(t, y)$, in the coordinates of the algebra of `space.group`."""

    def invariant_functions(self, y: Point) -> dict[str, Float[Array, ""]]:
        """Return what the flow conserves at `y`, by name, beside the invariants of the orbits."""
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
        """Make the state at the point `y`, and check it."""
        return self.state(y, t=t)

    def as_state(self, start: Any) -> State:
        """Return a state as it is, and points, one or many along a first axis, at time zero."""
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
        """Return the generator at time zero."""
        return self.generator(jnp.zeros(()), g)

    def velocity_at(self, state: State) -> Coordinates:
        return self.generator(state.t, state.g)

    def symmetries(self) -> Symmetries:
        """Return no symmetries: there is no momentum for them to conserve."""
        return Symmetries.none(self.group.dim)

    def invariants(
        self,
        state: State,
        symmetries: Symmetries | None = None,
        energy: Float[Array, ""] | None = None,
    ) -> dict[str, Float[Array, ""]]:
        """Return what labels the orbit, and what the flow is declared to conserve, by name."""
        return {
            **self.space.orbit_invariants(state.g),
            **self.invariant_functions(state.g),
        }


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
    function: Function
    named: tuple[Function, ...]
    names: tuple[str, ...] = eqx.field(static=True)
    lifted: bool = eqx.field(static=True)

    def __init__(
        self,
        space: AbstractHomogeneousSpace,
        generator: Callable[[Time, Point], Coordinates] | None = None,
        *,
        field: Callable[[Time, Point], Tangent] | None = None,
        invariants: Mapping[str, Callable[[Point], Float[Array, ""]]] | None = None,
    ):
        require_double_precision()
        what = "a space; pass one, such as Sphere(3)"
        require_instance("space", space, AbstractHomogeneousSpace, what)
        if (generator is None) == (field is None):
            raise BadInput(
                f"SpaceFlow(space, generator={quote(generator)}, field={quote(field)}) needs "
                "exactly one of generator and field."
            )
        time, like = jax.ShapeDtypeStruct((), jnp.float64), space.layout()
        given = {} if invariants is None else invariants
        require_instance("invariants", given, Mapping, "a dictionary of functions by name")
        for name, function in given.items():
            require_instance("a name of invariants", name, str, "a text")
            require_output(f"invariants[{name!r}]", function, (like,), ())
        self.space, self.lifted = space, generator is None
        if generator is not None:
            require_output("generator", generator, (time, like), (space.group.dim,))
            self.function = as_pytree(generator)
        elif field is not None:
            _require_points("field", field, (time, like), like)
            self.function = as_pytree(field)
            _require_tangent(space, field)
        self.names, self.named = tuple(given), tuple(map(as_pytree, given.values()))

    def generator(self, t: Time, y: Point) -> Coordinates:
        value = self.function(t, y)
        return self.space.lift(y, value) if self.lifted else jnp.asarray(value)

    def invariant_functions(self, y: Point) -> dict[str, Float[Array, ""]]:
        return {
            name: jnp.asarray(function(y))
            for name, function in zip(self.names, self.named, strict=True)
        }


def _require_points(
    name: str, function: object, arguments: tuple[PyTree, ...], like: PyTree[jax.ShapeDtypeStruct]
) -> None:
    """Reject a function that does not return something stored as points are."""
    if isinstance(like, jax.ShapeDtypeStruct):
        require_output(name, function, arguments, like.shape)
        return
    out = outputs(name, function, arguments)
    if jax.tree.map(lambda x: x.shape, out) != jax.tree.map(lambda x: x.shape, like):
        raise BadInput(
            f"{name} returns {in_words(out)}, but a velocity is stored as a point is, "
            f"{in_words(like)}."
        )


def _require_tangent(
    space: AbstractHomogeneousSpace, field: Callable[[Time, Point], Tangent]
) -> None:
    """Reject a field that is not tangent to the space at random points."""

    def miss(key: Key[Array, ""]) -> tuple[Float[Array, ""], Float[Array, ""]]:
        y = space.random(key)
        v = field(jnp.asarray(0.3), y)
        followed = space.tangent(y, space.lift(y, v))
        gaps = jax.tree.map(lambda a, b: jnp.max(jnp.abs(a - b)), v, followed)
        sizes = jax.tree.map(lambda a: jnp.max(jnp.abs(a)), v)
        return _largest(gaps), _largest(sizes)

    def everywhere(
        seed: int | Int[Array, ""],
    ) -> tuple[Float[Array, " point"], Float[Array, " point"]]:
        return jax.vmap(miss)(jax.random.split(jax.random.key(seed), _POINTS))

    gaps, sizes = evaluate(everywhere, 3)

    def check(gaps: np.ndarray, sizes: np.ndarray) -> None:
        worst = int(np.argmax(gaps))
        if not gaps[worst] <= _ROUNDING * max(float(np.max(sizes)), 1.0):
            raise BadInput(
                f"field is not tangent to {space.name}: at a random point it misses the tangent "
                f"space by {float(gaps[worst]):.3g} (its size there is {float(sizes[worst]):.3g}), "
                "which must be zero."
            )

    require_each(check, gaps, sizes)


def _largest(parts: PyTree[Array]) -> Float[Array, ""]:
    return jnp.max(jnp.stack(jax.tree.leaves(parts)))
