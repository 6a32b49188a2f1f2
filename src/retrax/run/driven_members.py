"""Ensembles of driven bodies: one plant and one controller for all, or one for each member."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeVar

import jax
import numpy as np

from retrax.errors import BadInput, warn
from retrax.integrators.base import AbstractIntegrator
from retrax.integrators.driven import Driven, alone
from retrax.mechanics.actuated import Actuated, Actuators
from retrax.mechanics.controls import AbstractControl
from retrax.mechanics.signal import Signal
from retrax.mechanics.state import State
from retrax.mechanics.system import AbstractGroupSystem
from retrax.numerics.checks import output, shape_and_dtype
from retrax.numerics.evaluate import evaluate
from retrax.run.drive import require_control, unwrap
from retrax.run.member_checks import stack_systems

T = TypeVar("T")


class DrivenMembers(NamedTuple):
    """What moves and how, of all members.

    **Attributes:** `system`; `integrator`; `own`: whether the arrays of the integrator have a first
    axis of members.
    """

    system: Any
    integrator: AbstractIntegrator
    own: bool

    @property
    def one(self) -> AbstractIntegrator:
        """The integrator of the first member."""
        return first_of(self.integrator) if self.own else self.integrator


def stack_plants(plants: Sequence[Any]) -> Any:
    """Return plants of one kind as one, its arrays stacked along a first axis."""
    given = [plant.dense() if isinstance(plant, Actuated) else plant for plant in plants]
    return stack_systems(given)


def driven_members(
    plant: object,
    integrator: AbstractIntegrator,
    control: object,
    states: object,
    several: bool,
) -> DrivenMembers:
    """Unwrap the plants and controllers of an ensemble; `several`: one plant for each member."""
    if control is None or not isinstance(plant, Actuated) or not isinstance(states, State):
        one = control[0] if isinstance(control, list | tuple) and control else control
        return DrivenMembers(*unwrap(plant, integrator, one), own=False)
    members = len(np.atleast_1d(states.t))
    drives, listed = _stack(control, members)
    own_actuators = several or _has_own_actuators(plant, members)
    actuators = first_of(plant.actuators) if own_actuators else plant.actuators
    system = plant.system
    own_control = listed or _has_own(system, drives, actuators.count, members)
    one = first_of(drives) if own_control else drives
    one.check(system, actuators.count)
    if not own_actuators and not own_control:
        return DrivenMembers(*unwrap(plant, integrator, drives), own=False)
    both = Driven(
        integrator,
        plant.actuators if own_actuators else spread(plant.actuators, members),
        drives if own_control else spread(drives, members),
    )
    return DrivenMembers(system, _with_spread_base(both, members), own=True)


def _with_spread_base(driven: Driven, members: int) -> Driven:
    """Return the same with a first axis of members also for the arrays of its integrator."""
    base = spread(driven.integrator, members)
    return Driven(base, driven.actuators, driven.control)


def _stack(control: object, members: int) -> tuple[AbstractControl, bool]:
    """Return the controllers as one, and whether there is one for each member."""
    if not isinstance(control, list | tuple):
        return require_control(control), False
    drives = [require_control(one) for one in control]
    if len(drives) != members:
        raise BadInput(
            f"control is a list of {len(drives)} controllers, but there are {members} states: one "
            "for each member is needed, or one for all."
        )
    return stack_systems(drives, "controllers"), True


def _has_own_actuators(plant: Actuated, members: int) -> bool:
    """Tell whether the matrix of inputs is one for each member."""
    matrix, layout = plant.actuators.matrix, (plant.system.group.layout(),)
    wanted = (plant.system.group.dim, plant.count)

    def fits(matrix: Any) -> bool:
        return output("inputs", matrix, layout).shape == wanted

    return _is_own(matrix, members, fits) or _bounds_are_own(plant.actuators)


def _bounds_are_own(actuators: Actuators) -> bool:
    return actuators.lower is not None and np.ndim(actuators.lower) == 2


def _has_own(
    system: AbstractGroupSystem, control: AbstractControl, count: int, members: int
) -> bool:
    """Tell whether a controller is one for each member: it fits the plant only member by member."""

    def fits(control: AbstractControl) -> bool:
        control.check(system, count)
        return True

    return _is_own(control, members, fits)


def _is_own(tree: T, members: int, fits: Callable[[T], bool]) -> bool:
    """Tell whether all arrays have a first axis of members, and fit only without it."""
    leaves = jax.tree.leaves(tree)
    if not leaves or any(np.shape(x)[:1] != (members,) for x in leaves):
        return False
    return not _fits(tree, fits) and _fits(first_of(tree), fits)


def _fits(tree: T, fits: Callable[[T], bool]) -> bool:
    try:
        return fits(tree)
    except Exception:  # whatever a function says of arrays that are not its own
        return False


def check_runs(parts: DrivenMembers, t: np.ndarray, h: float, steps: int) -> None:
    """Reject members that cannot run so, or warn of the first doubt."""
    if type(parts.one).check_run is AbstractIntegrator.check_run:
        return
    driven = parts.one if isinstance(parts.one, Driven) else None
    each = parts.own and driven is not None and isinstance(driven.control, Signal)
    times = t if each else np.unique(t)
    for k, begin in enumerate(times):
        integrator = _member(parts.integrator, k) if each else parts.one
        doubt = integrator.check_run(float(begin), h, steps)
        if doubt is not None:
            warn(f"member {k if each else int(np.argmax(t == begin))}: {doubt}")
            return


def begin_members(parts: DrivenMembers, states: State, shared: bool) -> State:
    """Return the starts of all members, with what their controllers keep."""
    if not isinstance(parts.integrator, Driven) or not isinstance(parts.one, Driven):
        return alone(states)
    count, members = parts.one.actuators.count, len(states.t)
    blank = parts.one.control.blank(count)
    if blank is None:
        return alone(states)
    like = jax.tree.map(lambda x: np.broadcast_to(x, (members, *x.shape)), blank)
    kinds = [
        (jax.tree.structure(x), [shape_and_dtype(leaf) for leaf in jax.tree.leaves(x)])
        for x in (states.control, like)
    ]
    if kinds[0] == kinds[1]:
        return states
    start = jax.tree.map(np.asarray, alone(states))
    control = parts.integrator.control
    axes = (0 if parts.own else None, None if shared else 0, 0)

    def first(control: AbstractControl, system: AbstractGroupSystem, state: State) -> Any:
        return control.first(system, state, count)

    kept = evaluate(jax.vmap(first, axes), control, parts.system, start)
    return State(start.g, start.momentum, start.t, kept)


def spread(tree: T, members: int) -> T:
    """Return one thing as many, with a first axis of members for all its arrays."""
    return jax.tree.map(lambda x: np.broadcast_to(np.asarray(x), (members, *np.shape(x))), tree)


def first_of(tree: T) -> T:
    """Return the first of things with a first axis of members."""
    return _member(tree, 0)


def _member(tree: T, k: int) -> T:
    return jax.tree.map(lambda x: x[k], tree)
