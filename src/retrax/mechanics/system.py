"""A mechanical system on a Lie group, before any time step."""

import abc
import dataclasses
from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, PyTree

from retrax.errors import BadInput
from retrax.groups.base import AbstractLieGroup
from retrax.mechanics.constraints import require_full_rank
from retrax.mechanics.ending import Ending
from retrax.mechanics.reactions import admissible, multipliers
from retrax.mechanics.state import State
from retrax.mechanics.symmetry import Symmetries, find_symmetries
from retrax.numerics.checks import is_traced, require_finite, require_shape
from retrax.numerics.frozen import Frozen
from retrax.numerics.one_line import one_line
from retrax.numerics.precision import float64, require_double_precision
from retrax.spaces.base import AbstractHomogeneousSpace
from retrax.spaces.group_itself import GroupItself

Element = PyTree[Float[Array, "..."]]
Coordinates = Float[Array, " dim"]
# What a user may hand in: numbers, nested lists, NumPy or JAX arrays. Checked when it is taken in.
ArrayLike = Any

# A velocity may miss the constraint by this much, relative to its components along the rows.
ALLOWED_VIOLATION = 1e-10


class Derivative(NamedTuple):
    """The vector field at a state: body velocity and rate of the body momentum."""

    velocity: Coordinates
    momentum_rate: Coordinates


class AbstractGroupSystem(Frozen):
    r"""A system with configuration $g \in G$, velocity $\xi = g^{-1}\dot g$ and momentum $\mu$.

    Its motion is the left-trivialised Euler-Lagrange equation with an external body force $f$,

    $$
    \begin{aligned}
    \dot g &= g\,\hat\xi, & \mu &= \partial L/\partial\xi                            &&\text{(1)}\\
    \dot\mu &= \mathrm{ad}^*_\xi\mu + dL(g,\xi) + f(g, \xi, t),                      &&&&\text{(2)}
    \end{aligned}
    $$

    where $dL_i = \frac{d}{d\epsilon} L(g\exp(\epsilon e_i), \xi)$ is the left-trivialised
    differential in $g$; in terms of the energy $H(g,\mu)$ it is $-dH$. Under an ideal constraint
    $A(g)\,\xi = c(g)$ the reaction joins the forces; momenta are those of admissible velocities:

    $$ \dot\mu = \mathrm{ad}^*_\xi\mu + dL(g,\xi) + f(g, \xi, t) + A(g)^T\lambda. \tag{3} $$
    """

    group: eqx.AbstractVar[AbstractLieGroup]
    force: eqx.AbstractVar[Any]
    symmetry: eqx.AbstractVar[tuple[tuple[float, ...], ...] | None]
    constraint: ClassVar[Any] = None
    has_momentum: ClassVar[bool] = True  # or else a flow of first order, whose momenta are zero
    units: ClassVar[dict[str, str]] = {}
    quadratic: ClassVar[bool] = False  # in the momentum, so that the velocity is linear in it
    regular: ClassVar[bool] = True  # or else some velocities have no momentum of their own

    def __check_init__(self):
        """Refuse a system some of whose numbers, made from those given, are no numbers."""
        for field in dataclasses.fields(self):
            value = getattr(self, field.name, None)
            if isinstance(value, jax.Array) and not is_traced(value):
                if not np.isfinite(np.asarray(value)).all():
                    raise BadInput(
                        f"{field.name} of this {type(self).__name__} is not finite: it was made "
                        "from numbers that are too large or too small to compute with."
                    )

    @property
    def configuration_space(self) -> AbstractHomogeneousSpace:
        """Where configurations lie, and how a generator moves them: the group, from the right."""
        return GroupItself(self.group)

    @property
    @abc.abstractmethod
    def name(self) -> str:
        """What the system is called in tables and figures."""

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        fields = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        arrays = {key: x for key, x in fields.items() if isinstance(x, jax.Array)}
        return one_line(self.name, {"on": self.configuration_space.name, **arrays})

    @abc.abstractmethod
    def momentum(self, g: Element, xi: Coordinates) -> Coordinates:
        r"""The Legendre transform $\mu = \partial L/\partial\xi$."""

    @abc.abstractmethod
    def velocity(self, g: Element, mu: Coordinates) -> Coordinates:
        r"""The inverse Legendre transform $\xi = \partial H/\partial\mu$."""

    @abc.abstractmethod
    def differential(self, g: Element, xi: Coordinates, mu: Coordinates) -> Coordinates:
        r"""$dL = -dH$ at $g$, the generalised force of the energies, from velocity and momentum.

        Each system uses of the two what its own energy is a function of.
        """

    @abc.abstractmethod
    def hamiltonian_energy(self, g: Element, mu: Coordinates) -> Float[Array, ""]:
        r"""The energy $H(g, \mu)$."""

    def total_force(
        self, g: Element, xi: Coordinates, mu: Coordinates, t: Float[Array, ""]
    ) -> Coordinates:
        r"""$dL + f$: what the energies and the external force do to the body."""
        conservative = self.differential(g, xi, mu)
        if self.force is None:
            return conservative
        return conservative + jnp.asarray(self.force(g, xi, t))

    def vector_field(self, g: Element, mu: Coordinates, t: Float[Array, ""]) -> Derivative:
        r"""$(\xi, \dot\mu)$ of equations (1), (2) and, under a constraint, (3)."""
        xi = self.velocity(g, mu)
        rate = self.group.coad(xi, mu) + self.total_force(g, xi, mu, t)  # (2)
        if self.constraint is None:
            return Derivative(xi, rate)
        lam = multipliers(self, self.constraint, g, mu, rate)
        return Derivative(xi, rate + lam @ self.constraint.rows(g))  # (3)

    def multipliers(self, state: State) -> Float[Array, " k"]:
        r"""The multipliers $\lambda$ of (3); none where there is no constraint."""
        if self.constraint is None:
            return jnp.zeros(0)
        g, mu = state.g, state.momentum
        xi = self.velocity(g, mu)
        rate = self.group.coad(xi, mu) + self.total_force(g, xi, mu, state.t)
        return multipliers(self, self.constraint, g, mu, rate)

    def reaction(self, state: State) -> Coordinates:
        r"""The reaction $A(g)^T\lambda$ of the constraint, a body covector."""
        if self.constraint is None:
            return jnp.zeros_like(state.momentum)
        return self.multipliers(state) @ self.constraint.rows(state.g)

    def constraint_violation(self, state: State) -> Float[Array, ""]:
        r"""$\max|A(g)\,\xi - c(g)|$; zero where there is no constraint."""
        if self.constraint is None:
            return jnp.zeros(())
        xi = self.velocity(state.g, state.momentum)
        return jnp.max(jnp.abs(self.constraint.violation(state.g, xi)))

    def lasts(self, state: State) -> Bool[Array, ""] | None:
        """Whether the model still holds at a state; `None` where it holds everywhere.

        Every step of every integrator is tested at its end, in the loop that takes it.
        """
        return None

    def ending(self, step: Callable[[float], State], h: float) -> Ending | None:
        """Where `lasts` fails within a step of size `h`; `step` takes shorter ones from its start.

        `None` where it does not.
        """
        return None

    def overlooked(self, states: Any) -> str | None:
        """A sentence about what saved states show and the model does not know, if they do.

        A run warns of it when it ends.
        """
        return None

    def as_state(self, start: Any) -> Any:
        """What a run may start from, as a state; systems without momenta also take points."""
        return start

    def velocity_at(self, state: State) -> Coordinates:
        r"""The velocity $\xi$ of a state."""
        return self.velocity(state.g, state.momentum)

    def energy(self, state: State) -> Float[Array, ""]:
        return self.hamiltonian_energy(state.g, state.momentum)

    def state(
        self,
        g: ArrayLike,
        *,
        velocity: ArrayLike | None = None,
        momentum: ArrayLike | None = None,
        t: ArrayLike = 0.0,
        project: bool = False,
    ) -> State:
        """The state at `g` with the given body velocity or body momentum, checked.

        A velocity that breaks the constraint of the system is refused, or, with `project`, replaced
        by the admissible one that is nearest in the metric of the kinetic energy.
        """
        require_double_precision()
        where = self.configuration_space
        g = element("g", g, where.layout())
        where.check("g", g)
        if (velocity is None) == (momentum is None):
            raise BadInput(
                f"state(g, velocity={velocity}, momentum={momentum}) needs exactly one of "
                "velocity and momentum."
            )
        name, vector = ("velocity", velocity) if momentum is None else ("momentum", momentum)
        vector = float64(name, vector)
        require_shape(name, vector, (self.group.dim,))
        require_finite(name, vector)
        t = float64("t", t)
        require_shape("t", t, ())
        require_finite("t", t)
        mu = self.momentum(g, vector) if momentum is None else vector
        if self.constraint is not None:
            mu = self._on_constraint(g, mu, project)
        return State(g=g, momentum=mu, t=t)

    def _on_constraint(self, g: Element, mu: Coordinates, project: bool) -> Coordinates:
        traced = is_traced(self, g, mu)
        if not traced:
            require_full_rank(self.constraint, g)
        if project:
            return admissible(self, self.constraint, g, mu)[0]
        if not traced:
            xi = self.velocity(g, mu)
            broken = float(jnp.max(jnp.abs(self.constraint.violation(g, xi))))
            size = float(jnp.max(jnp.abs(self.constraint.rows(g)) @ jnp.abs(xi)))
            if not broken <= ALLOWED_VIOLATION * max(size, 1.0):
                raise BadInput(
                    f"velocity = {[float(x) for x in xi]} breaks the constraint of the "
                    f"{self.name}: max |A xi - c| = {broken:.3g}, allowed "
                    f"{ALLOWED_VIOLATION:.0e}; with project=True the nearest admissible velocity "
                    "is taken."
                )
        return mu

    def symmetries(self) -> Symmetries:
        """The symmetries declared, or else found numerically, with their momentum maps."""
        return find_symmetries(self)

    def invariants(
        self, state: State, symmetries: Symmetries | None = None
    ) -> dict[str, Float[Array, ""]]:
        """The energy, the momentum of every symmetry and what else is conserved, by name.

        Looking for symmetries costs more than looking at a state: pass them where there are many.
        """
        symmetries = self.symmetries() if symmetries is None else symmetries
        momenta = symmetries.momenta(self.group, state)
        return {"energy": self.energy(state), **momenta, **self.further_invariants(state)}

    def observables(self, state: State) -> dict[str, Float[Array, "..."]]:
        """What else can be measured at a state, by name; `units` has a unit for each."""
        return {}

    def further_invariants(self, state: State) -> dict[str, Float[Array, ""]]:
        """Conserved quantities that are neither the energy nor the momentum of a symmetry."""
        return {}


def element(name: str, value: ArrayLike, like: PyTree[jax.ShapeDtypeStruct]) -> Any:
    """`value` with every leaf a float64 array, lists of numbers included."""
    if isinstance(like, tuple) and isinstance(value, tuple | list) and len(value) == len(like):
        return tuple(element(name, v, part) for v, part in zip(value, like, strict=True))
    return value if isinstance(like, tuple) else float64(name, value)
