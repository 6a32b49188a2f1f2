"""What an integrator is: one step, its order, and what it preserves."""

import abc
import dataclasses
import difflib
import math
import operator
from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple, TypeAlias, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PyTree

from retrax.errors import BadInput, StepFailed
from retrax.groups.retractions import AbstractRetraction
from retrax.mechanics.holonomic import AbstractHolonomic
from retrax.mechanics.state import State
from retrax.mechanics.system import AbstractGroupSystem, Coordinates
from retrax.numerics.checks import quote, require_instance
from retrax.numerics.fingerprint import Fingerprint
from retrax.numerics.frozen import Frozen, one_line
from retrax.numerics.newton import NewtonStatus
from retrax.numerics.reuse import Reused, signature_of

# A word may stand in `preserves` only if a test measures it; this is the list of those tests.
VOCABULARY: dict[str, str] = {
    "group": "the configuration stays on the group to round-off, at any step size",
    "momentum": "the momentum of every symmetry is conserved to round-off",
    "spatial momentum": "the momentum of every symmetry of space is conserved to round-off",
    "symplectic": "the step preserves the symplectic form; energy errors stay bounded",
    "symmetric": "a step forward followed by a step back returns to the start",
    "constraint": "the velocity is admissible at every step, to round-off",
    "positions": "constraints on positions, and on velocities beside them, hold to round-off",
    "contact": "bodies touch without overlapping and stick without creeping, to round-off",
    "energy": "the energy is conserved to round-off, at any step size",
}

# A step longer than this on the group is too long for the equations of most bodies to be solved.
LONG = 1.0

# What a step hands to the next one: arrays, `()` for most methods.
Memory: TypeAlias = PyTree


class StepInfo(NamedTuple):
    """How one step went. An explicit step has converged, with no residual and no iterations.

    `increment` is the length of the step on the group, the largest component of $h\\xi$;
    `in_chart` says whether the step may be trusted: the retraction still covers a step of that
    length, and no pole of a rational map lies behind it.
    """

    converged: Bool[Array, ""]
    residual: Float[Array, ""]
    iterations: Int[Array, ""]
    increment: Float[Array, ""]
    in_chart: Bool[Array, ""]


def step_info(status: NewtonStatus, move: Coordinates, in_chart: Bool[Array, ""]) -> StepInfo:
    """Return the record of a step that solved for its move on the group."""
    return StepInfo(*status, increment=jnp.max(jnp.abs(move)), in_chart=in_chart)


def explicit_step(move: Coordinates, in_chart: Bool[Array, ""] | bool = True) -> StepInfo:
    """Return the record of a step that solves no equation."""
    nothing_to_solve = NewtonStatus(jnp.asarray(True), jnp.zeros(()), jnp.asarray(0))
    return step_info(nothing_to_solve, move, jnp.asarray(in_chart))


_Record = TypeVar("_Record", NewtonStatus, StepInfo)
_JOINED: dict[str, Callable[[Array, Array], Array]] = {
    "converged": operator.and_,
    "residual": jnp.maximum,
    "iterations": operator.add,
    "increment": jnp.maximum,
    "in_chart": operator.and_,
}


def worse(a: _Record, b: _Record) -> _Record:
    """Combine two solves, or two steps: iterations add up, the rest is as in the worse of them."""
    both = zip(a._fields, a, b, strict=True)
    return a._replace(**{name: _JOINED[name](x, y) for name, x, y in both})


def watch(system: AbstractGroupSystem, new: Any, info: StepInfo) -> StepInfo:
    """Return how a step went, with whether the model of the system still holds at its end.

    `new` is a state, or one with tangent vectors beside it.
    """
    lasts = system.lasts(State(new.g, new.momentum, new.t))
    return info if lasts is None else info._replace(in_chart=info.in_chart & lasts)


class Refusal(NamedTuple):
    """Why a step with `in_chart` false does not count: what happened, why, and a step to try.

    `error` is what the run raises; one under `ContactLost` is an event, not a step too long.
    """

    what: str
    why: str
    h: float
    error: type[StepFailed] = StepFailed


class AbstractIntegrator(Frozen):
    """One step of a numerical method. Frozen: the same inputs give the same step.

    `order` and `preserves` are claims; `retrax.testing.check_integrator` measures each of them.
    """

    order: eqx.AbstractClassVar[int] | eqx.AbstractVar[int]
    preserves: eqx.AbstractClassVar[frozenset[str]] | eqx.AbstractVar[frozenset[str]]
    needs_momentum: ClassVar[bool] = True  # and so cannot step a quadratic field
    counted: ClassVar[str] = "iterations"  # what `StepInfo.iterations` counts
    # Whether a step with the memory of the one before it is the step from its state alone.
    memory_saves_work: ClassVar[bool] = False

    def __check_init__(self) -> None:
        """Reject what was given for a retraction and is not one."""
        if "retraction" in vars(self):
            what = "a retraction; pass an instance, such as Cayley()"
            require_instance("retraction", vars(self)["retraction"], AbstractRetraction, what)

    def __repr__(self) -> str:
        made_for = signature_of(self)
        return super().__repr__() if made_for.avals else _text(*made_for)

    def _repr_html_(self) -> str:
        """Return what a notebook shows."""
        kept = [word for word in VOCABULARY if word in self.preserves]
        return one_line(
            repr(self), {"order": self.order, "preserves": ", ".join(kept) or "nothing"}
        )

    def begin(self, system: AbstractGroupSystem, state: State) -> State:
        """Return the state as a run of this integrator starts from it."""
        return state if state.control is None else State(state.g, state.momentum, state.t)

    def check_run(self, t: float, h: float, steps: int) -> str | None:
        """Reject a run of `steps` steps from the time `t`, or return what it should warn of."""
        return None

    @abc.abstractmethod
    def step(
        self, system: AbstractGroupSystem, state: State, h: Float[Array, ""]
    ) -> tuple[State, StepInfo]:
        """Return the state one step of size `h` later, and how the step went."""

    def memory(self, system: AbstractGroupSystem, state: State) -> Memory:
        """Return what a step from `state` needs besides it, as if a step had just ended there.

        Override it together with `next_step`, where one step can use what the one before it found.
        Whoever repeats steps carries the memory along and stores it with the state.
        """
        return ()

    def next_step(
        self, system: AbstractGroupSystem, state: State, h: Float[Array, ""], memory: Memory
    ) -> tuple[State, StepInfo, Memory]:
        """Take a `step` with the memory of the one before it, and return its own as well."""
        return *self.step(system, state, h), memory

    def check(self, system: AbstractGroupSystem) -> None:
        """Reject, with `BadInput`, a system that this integrator cannot treat."""

    def check_step(self, system: AbstractGroupSystem, state: State, h: float) -> None:
        """Reject a step size at which this method is unstable from `state`, or warn of it."""

    def refusal(self, system: AbstractGroupSystem, state: State, h: float, moved: float) -> Refusal:
        """Explain the step from `state` whose `in_chart` is false; it moves by `moved`."""
        return Refusal(
            "left the chart of its retraction",
            f"The step moves by |h xi| = {moved:.3g} on the group, and the exponential map is "
            "invertible only for rotations of less than 2 pi.",
            shorter_step(h, moved),
        )

    def fault(self, system: AbstractGroupSystem, state: State, h: float) -> str | None:
        """Say why the equations of the step from `state` were not solved, if the method knows."""
        return None

    def integrals_kept(self, system: AbstractGroupSystem) -> tuple:
        """Return which integrals of its steps depend on the numbers of a system, as hashable data.

        Looked up once for a run, outside of traced code, and handed to `exact_integrals`.
        """
        return ()

    def exact_integrals(
        self, system: AbstractGroupSystem, state: State, h: Float[Array, ""], kept: tuple = ()
    ) -> dict[str, Float[Array, ""]]:
        """Return functions of state and step size that steps of this size conserve, by name."""
        return {}

    def refuse_constraint(self, system: AbstractGroupSystem) -> None:
        """Reject a system with a constraint, which the step would ignore."""
        if system.constraint is not None:
            raise BadInput(
                f"{type(self).__name__} knows no constraints, but the {system.name} has one; use "
                "LagrangeDAlembert, HamelMidpoint or DiscreteGradient."
            )

    def order_on(self, system: AbstractGroupSystem) -> int:
        """Return the order on this system, where it is higher there than in general."""
        return self.order


def require_fit(system: AbstractGroupSystem, integrator: AbstractIntegrator) -> None:
    """Reject, with `BadInput`, a system that the integrator cannot step, or would step wrongly."""
    if integrator.needs_momentum and not system.has_momentum:
        raise BadInput(
            f"{integrator!r} steps systems with momenta, but the {system.name} has none; use "
            "Collocation, RKMK or RungeKutta, or Kahan for a quadratic field."
        )
    if isinstance(system.constraint, AbstractHolonomic) and "positions" not in integrator.preserves:
        raise BadInput(
            f"{integrator!r} would let the {system.name} drift off its constraint on positions; "
            "use LieVerlet(), or Composition(LieVerlet(), order=4), 6 or 8."
        )
    if system.contact is not None and "contact" not in integrator.preserves:
        raise BadInput(
            f"{integrator!r} would let the bodies of the {system.name} pass through each other; "
            "use NonsmoothRattle(), or RollingVerlet() for RodsInContact."
        )
    integrator.check(system)


def shorter_step(h: float, moved: float) -> float:
    """Return a step to try where one that moves by `moved` on the group was too long."""
    return h / max(4 * moved / LONG, 2.0) if math.isfinite(moved) else h / 2


@Reused
def _text(tree: Any, avals: tuple, identity: Fingerprint) -> str:
    """Write an integrator without arrays, defaults left out: the label of every run."""
    (integrator,) = jax.tree.unflatten(tree, ())
    values = {field: getattr(integrator, field.name) for field in dataclasses.fields(integrator)}
    given = [f"{f.name}={value!r}" for f, value in values.items() if value != f.default]
    return f"{type(integrator).__name__}({', '.join(given)})"


def as_integrator(value: object, argument: str = "integrator") -> AbstractIntegrator:
    """Return the integrator itself, or the one that `retrax list` calls by this name.

    **Raises:** `BadInput` for anything else, with the names closest to an unknown one.
    """
    if isinstance(value, AbstractIntegrator):
        return value
    if not isinstance(value, str):
        lost = (
            " A file keeps no integrator of your own: give the one that "
            "run.provenance['integrator'] names."
        )
        why = lost if value is None else ""
        raise BadInput(
            f"{argument} = {quote(value)} is not a retrax integrator; an instance is needed, such "
            f'as LieVerlet(), or a name, such as "lie-verlet".{why}'
        )
    from retrax.systems.integrators import INTEGRATORS, TOUCHING  # which loads them all

    ready = INTEGRATORS | TOUCHING
    if value in ready:
        return ready[value]
    near = difflib.get_close_matches(value.lower(), ready, n=3)
    named = " or ".join(map(repr, near))
    answer = f"did you mean {named}? " if near else ""
    raise BadInput(
        f"{argument} = {quote(value)} is not the name of an integrator: {answer}rx.INTEGRATORS "
        "lists them."
    )
