"""The bodies of a sweep: every one built and checked before anything runs."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import numpy as np

from retrax.errors import BadInput, RetraxError
from retrax.mechanics.state import State
from retrax.mechanics.system import AbstractGroupSystem
from retrax.numerics.known import BadMember
from retrax.simulate.sweeping.axes import MEMBER, Axes
from retrax.simulate.sweeping.closures import opened
from retrax.simulate.validate import started
from retrax.simulate.validate_members import stacked_systems


class Bodies(NamedTuple):
    """One system for all members, or one for each along the first axis, and their states."""

    system: Any
    states: Any
    shared: bool

    def some(self, members: np.ndarray) -> "Bodies":
        """Those of the members with these numbers."""
        system = self.system
        if not self.shared:
            system = jax.tree.map(lambda x: np.asarray(x)[members], system)
        states = jax.tree.map(lambda x: np.asarray(x)[members], self.states)
        return Bodies(system, states, self.shared)


def bodies(make: Callable[..., Any], axes: Axes) -> Bodies:
    """What `make` returns for every member: all at once by `jax.vmap`, or else one by one."""
    first = _made(make, axes.row(0), axes.named(0))
    together = None
    if all(column.dtype.kind != "U" for column in axes.columns.values()):
        try:
            together = _all_at_once(make, axes)
        except BadMember as refusal:  # made alone, it says so with its parameters
            _made(make, axes.row(refusal.member), axes.named(refusal.member))
    systems, states = together or _one_by_one(make, axes, first)
    systems, states = jax.tree.map(np.asarray, (systems, states))
    if all((leaf == leaf[:1]).all() for leaf in jax.tree.leaves(systems)):
        return Bodies(jax.tree.map(lambda x: x[0], systems), states, True)
    return Bodies(systems, states, False)


def bodies_from(system: Any, states: Any) -> tuple[Axes, Bodies]:
    """One system and a state for each member."""
    states = started(system, states)
    if not isinstance(states, State):
        raise BadInput(
            f"states = {states!r} is not a State whose arrays have a first axis of members, as "
            "jax.vmap(lambda v: system.state(g, velocity=v))(velocities) gives."
        )
    states = jax.tree.map(np.asarray, states)
    lengths = {leaf.shape[0] if leaf.ndim else 0 for leaf in jax.tree.leaves(states)}
    count = max(lengths)
    labels = {MEMBER: ((MEMBER,), np.arange(count))}
    system = jax.tree.map(np.asarray, opened(system))
    return Axes({MEMBER: count}, {}, labels), Bodies(system, states, True)


def _made(make: Callable[..., Any], row: dict[str, Any], name: str) -> tuple[Any, Any]:
    """The system and the state of one member, its functions opened."""
    try:
        made = make(**row)
    except BadMember:
        raise
    except RetraxError as refusal:
        raise BadInput(f"make({name}): {refusal}") from refusal
    except Exception as cause:
        raise BadInput(f"make({name}) raised {type(cause).__name__}: {cause}") from cause
    if not (isinstance(made, tuple) and len(made) == 2):
        raise BadInput(f"make({name}) must return a system and a state, but returned {made!r}.")
    system, state = made
    if not isinstance(system, AbstractGroupSystem):
        raise BadInput(f"make({name}) returned {system!r} as the system, which is none of retrax.")
    state = started(system, state)
    if not isinstance(state, State):
        raise BadInput(
            f"make({name}) returned {state!r} as the state; make one with system.state(...)."
        )
    return opened(system), state


def _all_at_once(make: Callable[..., Any], axes: Axes) -> tuple[Any, Any] | None:
    """All members by `jax.vmap`, or nothing where `make` needs to see the numbers."""

    def member(row):
        return _made(make, row, "...")

    try:
        systems, states = jax.vmap(member)(axes.columns)
        one = jax.tree.map(lambda x: x[0], (systems, states))
        # Numbers that make has hidden where jax.vmap does not see them come to light here.
        jax.eval_shape(lambda system, s: system.vector_field(s.g, s.momentum, s.t), *one)
    except BadMember:
        raise
    except Exception:
        return None
    return systems, states


def _one_by_one(make: Callable[..., Any], axes: Axes, first: tuple) -> tuple[Any, Any]:
    made = [first, *(_made(make, axes.row(k), axes.named(k)) for k in range(1, axes.members))]
    systems, states = zip(*made, strict=True)
    return stacked_systems(systems), jax.tree.map(lambda *xs: np.stack(xs), *states)
