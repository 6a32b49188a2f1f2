"""A mechanical system on a Lie group, before any time step."""

import abc
import dataclasses
from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar, NamedTuple, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from retrax.errors import BadInput
from retrax.groups.arguments import element
from retrax.groups.base import AbstractLieGroup, Coordinates, Element
from retrax.mechanics.constraints import require_full_rank
from retrax.mechanics.contact import require_apart
from retrax.mechanics.functions import Function, arguments, as_pytree
from retrax.mechanics.holonomic import AbstractHolonomic
from retrax.mechanics.own_states import look_at_states
from retrax.mechanics.placement import (
    assemble,
    place_near,
    require_consistent,
    require_placed,
)
from retrax.mechanics.reactions import (
    ALLOWED_VIOLATION,
    admissible,
    multipliers,
    require_admissible,
)
from retrax.mechanics.state import Ending, State
from retrax.mechanics.symmetry import Generators, Symmetries, find_symmetries
from retrax.numerics.checks import (
    ArrayLike,
    finite64,
    finite_rows,
    is_traced,
    quote,
    require_double_precision,
    require_flag,
    require_output,
)
from retrax.numerics.evaluate import as_jax, evaluate_in_jax
from retrax.numerics.frozen import Frozen, one_line
from retrax.numerics.known import require_each
from retrax.numerics.meant import explain_keywords
from retrax.spaces.base import AbstractHomogeneousSpace
from retrax.spaces.group_itself import GroupItself

System = TypeVar("System", bound="AbstractGroupSystem")


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
    $A(g, t)\,\xi = c(g, t)$ the reaction joins the forces; momenta are those of admissible
    velocities:

    $$ \dot\mu = \mathrm{ad}^*_\xi\mu + dL(g,\xi) + f(g, \xi, t) + A(g, t)^T\lambda. \tag{3} $$
    """

    group: eqx.AbstractVar[AbstractLieGroup]
    force: eqx.AbstractVar[Function | None]
    symmetry: eqx.AbstractVar[Generators | None]
    constraint: ClassVar[Any] = None  # an AbstractConstraint, here or in the fields of a subclass
    contact: ClassVar[Any] = None  # an AbstractContacts, likewise
    has_momentum: ClassVar[bool] = True  # or else a flow of first order, whose momenta are zero
    has_energy: ClassVar[bool] = True  # or else a field that was given without one
    flows: ClassVar[bool] = False  # of first order: a state is a place, and its momentum is zero
    units: ClassVar[dict[str, str]] = {}
    quadratic: ClassVar[bool] = False  # in the momentum, so that the velocity is linear in it
    regular: ClassVar[bool] = True  # or else some velocities have no momentum of their own
    # What to run instead where inputs are to be driven.
    driven_as: ClassVar[str] = "rx.Actuated(system, inputs=B), with a column of B for each input"

    def __init_subclass__(cls, **options: Any):
        super().__init_subclass__(**options)
        if cls.__module__.startswith("retrax."):
            look_at_states(cls)

    def __check_init__(self):
        """Reject non-finite parameters; set fields that a constructor left at their default."""
        for field in dataclasses.fields(self):
            if field.name not in vars(self) and getattr(self, field.name, self) is field.default:
                object.__setattr__(self, field.name, field.default)
            value = getattr(self, field.name, None)
            if isinstance(value, jax.Array):
                require_each(partial(self._require_finite, field.name), value, fine=finite_rows)

    def _require_finite(self, name: str, value: np.ndarray) -> None:
        if not np.isfinite(value).all():
            raise BadInput(
                f"{name} of this {type(self).__name__} is not finite: the numbers it was made from "
                "are too large or too small to compute with."
            )

    @property
    def configuration_space(self) -> AbstractHomogeneousSpace:
        """Where configurations lie, and how a generator moves them: the group, from the right.

        For mechanics on spheres it is the spheres, as parts of the group around them.
        """
        where = getattr(self.constraint, "space", None)
        return GroupItself(self.group) if where is None else where

    @property
    @abc.abstractmethod
    def name(self) -> str:
        """What the system is called in tables and figures."""

    def _repr_html_(self) -> str:
        """Return what a notebook shows."""
        fields = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        arrays = {key: x for key, x in fields.items() if isinstance(x, jax.Array)}
        return one_line(self.name, {"on": self.configuration_space.name, **arrays})

    @abc.abstractmethod
    def momentum(self, g: Element, xi: Coordinates) -> Coordinates:
        r"""Return the Legendre transform $\mu = \partial L/\partial\xi$."""

    @abc.abstractmethod
    def velocity(self, g: Element, mu: Coordinates) -> Coordinates:
        r"""Return the inverse Legendre transform $\xi = \partial H/\partial\mu$."""

    @abc.abstractmethod
    def differential(self, g: Element, xi: Coordinates, mu: Coordinates) -> Coordinates:
        r"""Return $dL = -dH$ at $g$, the generalised force, from velocity and momentum.

        Each system uses of the two what its own energy is a function of.
        """

    @abc.abstractmethod
    def hamiltonian_energy(self, g: Element, mu: Coordinates) -> Float[Array, ""]:
        r"""Return the energy $H(g, \mu)$."""

    def total_force(
        self, g: Element, xi: Coordinates, mu: Coordinates, t: Float[Array, ""]
    ) -> Coordinates:
        r"""Return $dL + f$: what the energies and the external force do to the body."""
        conservative = self.at_time(t).differential(g, xi, mu)
        if self.force is None:
            return conservative
        return conservative + jnp.asarray(self.force(g, xi, t))

    def with_force(self, force: Function) -> "AbstractGroupSystem":
        """Return the same system under another external force `force(g, xi, t)`."""
        if "force" not in {field.name for field in dataclasses.fields(self)}:
            raise BadInput(f"the {self.name} takes no external force, and so no inputs.")
        if not issubclass(type(force), Frozen):  # then it is not one of retrax
            require_output("force", force, arguments(self.group), (self.group.dim,))
        return self._with_fields(force=as_pytree(force))

    def _with_fields(self: System, **fields: object) -> System:
        """Return the same system with other fields, which are not checked."""
        other = object.__new__(type(self))
        for name, value in (vars(self) | fields).items():
            object.__setattr__(other, name, value)
        return other

    def for_storage(self: System) -> System:
        """Return the system as a file keeps it: without a function that only draws it."""
        return self

    @property
    def moving(self) -> bool:
        """Whether an energy of the system depends on time."""
        return False

    def at_time(self: System, t: Float[Array, ""]) -> System:
        """Return the system as it is at one time: itself where no energy depends on time."""
        return self

    def energy_rate(
        self, g: Element, xi: Coordinates, mu: Coordinates, t: Float[Array, ""]
    ) -> Float[Array, ""]:
        r"""Return $\partial H/\partial t = -\partial L/\partial t$: what moving energies gain."""
        return jnp.zeros(())

    def vector_field(self, g: Element, mu: Coordinates, t: Float[Array, ""]) -> Derivative:
        r"""Return $(\xi, \dot\mu)$ of equations (1), (2) and, under a constraint, (3)."""
        xi = self.at_time(t).velocity(g, mu)
        rate = self.group.coad(xi, mu) + self.total_force(g, xi, mu, t)  # (2)
        if self.constraint is None:
            return Derivative(xi, rate)
        lam = multipliers(self, self.constraint, g, mu, t, rate)
        return Derivative(xi, rate + lam @ self.constraint.rows(g, t))  # (3)

    def multipliers(self, state: State) -> Float[Array, " k"]:
        r"""Return the multipliers $\lambda$ of (3); empty without a constraint."""
        if self.constraint is None:
            return jnp.zeros(0)
        g, mu = state.g, state.momentum
        xi = self.velocity_at(state)
        rate = self.group.coad(xi, mu) + self.total_force(g, xi, mu, state.t)
        return multipliers(self, self.constraint, g, mu, state.t, rate)

    def reaction(self, state: State) -> Coordinates:
        r"""Return the reaction $A(g, t)^T\lambda$ of the constraint, a body covector."""
        if self.constraint is None:
            return jnp.zeros_like(state.momentum)
        return self.multipliers(state) @ self.constraint.rows(state.g, state.t)

    def constraint_violation(self, state: State) -> Float[Array, ""]:
        r"""Return $\max|A(g, t)\,\xi - c(g, t)|$, or $\max|\varphi(g, t)|$ if larger; else zero."""
        if self.constraint is None:
            return jnp.zeros(())
        xi = self.velocity_at(state)
        broken = jnp.max(jnp.abs(self.constraint.violation(state.g, xi, state.t)))
        if isinstance(self.constraint, AbstractHolonomic):
            broken = jnp.maximum(broken, self.constraint.gap(state.g, state.t))
        return broken

    def lasts(self, state: State) -> Bool[Array, ""] | None:
        """Tell whether the model still holds at a state; `None` if it holds everywhere.

        Every step of every integrator is tested at its end, in the loop that takes it.
        """
        return None

    def ending(self, step: Callable[[float], State], h: float) -> Ending | None:
        """Find where `lasts` fails within a step of size `h`; `None` if it does not.

        `step` takes shorter steps from the same start.
        """
        return None

    def find_overlooked(self, states: State) -> str | None:
        """Return a sentence about what saved states show and the model does not know, if any.

        A run warns of it when it ends.
        """
        return None

    def as_state(self, start: object) -> object:
        """Return as a state what a run starts from; systems without momenta also take points."""
        return start

    def velocity_at(self, state: State) -> Coordinates:
        r"""Return the velocity $\xi$ of a state."""
        g, mu, t = jax.tree.map(jnp.asarray, (state.g, state.momentum, state.t))
        return self.at_time(t).velocity(g, mu)

    def energy(self, state: State, xi: Coordinates | None = None) -> Float[Array, ""]:
        """Return the energy of a state; `xi` is its velocity, where that is known already."""
        return self.at_time(state.t).hamiltonian_energy(state.g, state.momentum)

    def motion(self, g: Element, x: Coordinates) -> tuple[Coordinates, Coordinates]:
        """Return a velocity and its momentum: one of them is `x`, whichever costs less."""
        return self.velocity(g, x), x

    @explain_keywords
    def state(
        self,
        g: ArrayLike,
        *,
        velocity: ArrayLike | None = None,
        momentum: ArrayLike | None = None,
        t: ArrayLike = 0.0,
        project: bool = False,
    ) -> State:
        """Make the state at `g` with the given body velocity or body momentum, and check it.

        Reject a velocity that breaks the constraint of the system or, with `project`, replace it by
        the admissible one that is nearest in the metric of the kinetic energy. A flow of first
        order takes neither.
        """
        require_double_precision()
        project = require_flag("project", project)
        where = self.configuration_space
        g = element("g", g, where.layout())
        where.check("g", g)
        if self.flows and velocity is not None:
            raise BadInput(
                f"velocity = {quote(velocity)}: the field of the {self.name} gives its velocity; "
                "write state(g)."
            )
        if self.flows and momentum is None:
            momentum = np.zeros(self.group.dim)
        if (velocity is None) == (momentum is None):
            raise BadInput(
                f"state(g, velocity={velocity}, momentum={momentum}) needs exactly one of "
                "velocity and momentum."
            )
        name, vector = ("velocity", velocity) if momentum is None else ("momentum", momentum)
        vector, t = finite64(name, vector, (self.group.dim,)), finite64("t", t)
        mu = vector if velocity is None else evaluate_in_jax(_momentum_at, self, g, vector, t)
        require_each(partial(self._require_momentum, name), vector, mu)
        if project and self.constraint is not None:
            if isinstance(self.constraint, AbstractHolonomic):
                require_placed(self, self.constraint, g, t)
            else:
                require_full_rank(self.constraint, g, t)
            mu = evaluate_in_jax(type(self).project_momentum, self, g, mu, t)
            if isinstance(self.constraint, AbstractHolonomic):
                require_consistent(self, self.constraint, g, mu, t)
        state = State(g=g, momentum=mu, t=t)
        self.check_state(state)
        self.check_energy(state)
        if not project:
            self.require_admissible(state)
        return state

    def assembled(self, g: ArrayLike, t: ArrayLike = 0.0) -> Element:
        """Return a place on the constraint on positions, found from `g`, near it where it can be.

        Moves go the shortest way in the metric of the kinetic energy. Under `jax.grad`, `jax.vmap`
        and `jax.jit` only places close by are found, and others are NaN; they have derivatives.
        Without such a constraint every place will do.

        **Raises:** `BadInput`, with what is left of which equation, where none was found.
        """
        require_double_precision()
        g, t = element("g", g, self.group.layout()), finite64("t", t)
        self.group.check("g", g)
        if not isinstance(self.constraint, AbstractHolonomic):
            return g
        if is_traced(self, g, t):
            rest = self.at_time(t).momentum(g, jnp.zeros(self.group.dim))
            return place_near(self, self.constraint, g, rest, t)
        return jax.tree.map(as_jax, assemble(self, self.constraint, g, t))

    def _require_momentum(self, name: str, vector: np.ndarray, mu: np.ndarray) -> None:
        if not np.isfinite(mu).all():
            raise BadInput(
                f"{name} = {vector.tolist()} has no finite momentum on the {self.name}: its energy "
                "is not regular there, or these numbers are too large."
            )

    def check_state(self, state: State) -> None:
        """Reject, with `BadInput`, a state in which this system cannot be."""
        if isinstance(self.constraint, AbstractHolonomic):
            require_placed(self, self.constraint, state.g, state.t)
        elif self.constraint is not None:
            require_full_rank(self.constraint, state.g, state.t)
        if self.contact is not None:
            require_apart(self.contact, state.g)

    def check_energy(self, state: State) -> None:
        """Reject, with `BadInput`, a start at which a function of the user's is not finite."""

    def project_momentum(self, g: Element, mu: Coordinates, t: Float[Array, ""]) -> Coordinates:
        """Return the momentum of the admissible velocity nearest in the kinetic metric."""
        return admissible(self, self.constraint, g, mu, t)[0]

    def require_admissible(self, state: State, allowed: float = ALLOWED_VIOLATION) -> None:
        """Reject a state whose velocity breaks the constraint by more than `allowed`.

        That is relative to the components of the velocity along the rows, where these exceed 1.
        """
        if self.constraint is not None:
            require_admissible(self, self.constraint, state, allowed)

    def verlet_step(self) -> type | None:
        """Return the class of the step that `LieVerlet` takes of this system, if it has its own.

        An integrator, made with the `retraction`, the `order` and `preserves` of `LieVerlet`.
        """
        return None

    @property
    def conservative(self) -> bool:
        """Whether nothing does work: no force, contact, driven constraint or energy that moves.

        A system with damping of its own says so by overriding this.
        """
        driven = self.constraint is not None and self.constraint.driven
        return self.force is None and self.contact is None and not driven and not self.moving

    def power(self, state: State) -> Float[Array, ""]:
        r"""Return the rate of the energy: the work of forces, damping and driven constraints.

        $$ \dot H = \langle f, \xi\rangle + \langle A^T\lambda, \xi\rangle + \partial_tH
            = \langle f, \xi\rangle + \lambda\cdot c + \partial_tH \tag{4} $$

        Beside contacts, on which they depend, the forces of a constraint are left out.
        """
        if self.conservative:
            return jnp.zeros(())
        g, mu, t, xi = state.g, state.momentum, state.t, self.velocity_at(state)
        outside = self.total_force(g, xi, mu, t) - self.at_time(t).differential(g, xi, mu)
        if self.contact is None or self.constraint is None:
            outside = outside + self.reaction(state)
        work = outside @ xi  # (4)
        return work + self.energy_rate(g, xi, mu, t) if self.moving else work

    def require_declared(self) -> None:
        """Reject a declared generator that is not a symmetry."""
        if self.symmetry is not None:
            self.symmetries()

    def symmetries(self) -> Symmetries:
        """Return the declared symmetries, or find them numerically."""
        return find_symmetries(self)

    def momenta_of(self, symmetries: Symmetries, state: State) -> dict[str, Float[Array, ""]]:
        """Return the momenta of symmetries, by name."""
        return symmetries.momenta(self.group, state)

    def invariants(
        self,
        state: State,
        symmetries: Symmetries | None = None,
        energy: Float[Array, ""] | None = None,
    ) -> dict[str, Float[Array, ""]]:
        """Return the energy, the momentum of every symmetry and what else is conserved, by name.

        The energy is among them where the system has one and is `conservative`. Looking for
        symmetries costs more than looking at a state: pass them where there are many, and the
        energy where it is known.
        """
        symmetries = self.symmetries() if symmetries is None else symmetries
        momenta = self.momenta_of(symmetries, state)
        kept = {}
        if self.has_energy and self.conservative:
            kept["energy"] = self.energy(state) if energy is None else energy
        return {**kept, **momenta, **self.further_invariants(state)}

    def unit_of(self, observable: str) -> str:
        """Return the unit of an observable; empty if it has none."""
        return self.units.get(observable, "")

    def observables(self, state: State) -> dict[str, Float[Array, "..."]]:
        """Return what else can be measured at a state, by name; `units` has a unit for each."""
        return {}

    def further_invariants(self, state: State) -> dict[str, Float[Array, ""]]:
        """Return conserved quantities other than the energy and the momenta of symmetries."""
        return {}


look_at_states(AbstractGroupSystem)


def _momentum_at(
    system: AbstractGroupSystem, g: Element, xi: Coordinates, t: Float[Array, ""]
) -> Coordinates:
    return system.at_time(t).momentum(g, xi)


def refuse_overrides(cls: type, fixed: tuple[str, ...], instead: str) -> None:
    """Reject a subclass that defines one of the names in `fixed` anew.

    Its methods would be passed over, for the steps use forces that are written out by hand.

    **Raises:** `BadInput`, when the class is made.
    """
    for name in fixed:
        if name in vars(cls):
            raise BadInput(
                f"{cls.__name__}.{name} would have no effect, or only with some integrators: the "
                f"steps of a {cls.__mro__[1].__name__} use forces that are written out by hand; "
                f"{instead}."
            )
