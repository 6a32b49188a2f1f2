"""What can be read off the states of a run."""

from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from retrax.mechanics.symmetry import Symmetries
from retrax.numerics.reuse import Jitted

if TYPE_CHECKING:
    from retrax.mechanics.state import State
    from retrax.mechanics.system import AbstractGroupSystem

# States are looked at in blocks of this many, so that a long run needs no more memory than its own.
_BLOCK = 8192


class Observations(NamedTuple):
    """Body velocity, invariants by name, and distance from the group, along time.

    Under a constraint also the multipliers and the reaction they make, in continuous time at each
    state, and by how much the velocity breaks the constraint; empty and zero without one. What
    else the system can measure is in `observables`, by name. `energy` is there for every system
    that has one; `power` is its rate, and `None` where the energy is an invariant.
    """

    velocity: Any
    invariants: dict[str, Any]
    defect: Any
    multipliers: Any
    reaction: Any
    violation: Any
    observables: dict[str, Any]
    energy: Any = None
    power: Any = None


def observe(
    system: "AbstractGroupSystem",
    states: "State",
    integrator: Any = None,
    h: Any = None,
    owner: np.ndarray | None = None,
) -> Observations:
    """Everything that `Observations` holds, of every state.

    With `integrator` and `h` the integrals of the steps themselves join the invariants. With
    `owner` the arrays of `system` have a first axis, and it says which row is that of each state;
    symmetries are then those of the first.
    """
    one = system if owner is None else jax.tree.map(lambda x: jnp.asarray(x[0]), system)
    found = one.symmetries()
    rows_of = (tuple(map(tuple, generators.tolist())) for generators in found)
    # Members with systems of their own may differ in what depends on their numbers.
    kept = () if integrator is None or owner is not None else integrator.integrals_kept(one)
    look = _look(*rows_of, owner is not None, kept).program(system, integrator)
    size = None if h is None else jnp.asarray(h, jnp.float64)

    count = len(np.asarray(states.t))
    block = min(_BLOCK, count)
    parts = []
    for first in range(0, count, block):
        # The last block is filled up by repeating the last state: one compiled shape for all.
        rows = np.minimum(np.arange(first, first + block), count - 1)
        here = jax.tree.map(lambda x, rows=rows: jnp.asarray(x[rows]), states)
        own = system
        if owner is not None:
            own = jax.tree.map(lambda x, at=owner[rows]: jnp.asarray(x)[at], system)
        part = look(own, here, integrator, size)
        parts.append(jax.tree.map(np.asarray, part))
    return Observations(*jax.tree.map(lambda *xs: np.concatenate(xs)[:count], *parts))


def observe_traced(
    system: "AbstractGroupSystem",
    states: "State",
    integrator: Any = None,
    h: Any = None,
    symmetries: Symmetries | None = None,
) -> Observations:
    """The same of states that JAX is tracing, as arrays of JAX.

    Without `symmetries` there are no invariants: to look for them takes numbers, which `jax.jit`
    hides.
    """
    look = _looking(symmetries)
    size = None if h is None else jnp.asarray(h, jnp.float64)
    seen = jax.vmap(lambda state: look(system, state, integrator, size))(
        jax.tree.map(jnp.asarray, states)
    )
    return Observations(*seen)


@lru_cache(maxsize=256)
def _look(space: tuple, body: tuple, each: bool, kept: tuple) -> Jitted:
    """The function that looks at states, compiled once for systems of one kind.

    Depends on the symmetries, on whether each state has a system of its own, and on the integrals
    of the steps that the numbers of the system bring.
    """
    look = _looking(Symmetries(np.array(space), np.array(body)), kept)
    return Jitted(jax.vmap(look, in_axes=(0 if each else None, 0, None, None)))


def _looking(symmetries: Symmetries | None, kept: tuple = ()) -> Callable:
    """The function that looks at one state; without symmetries it leaves the invariants out."""

    def look(system, state, integrator, size):
        exact = {} if integrator is None else integrator.exact_integrals(system, state, size, kept)
        return (
            system.velocity_at(state),
            {} if symmetries is None else system.invariants(state, symmetries) | exact,
            system.configuration_space.defect(state.g),
            system.multipliers(state),
            system.reaction(state),
            system.constraint_violation(state),
            system.observables(state),
            system.energy(state) if system.has_energy else None,
            None if system.conservative else system.power(state),
        )

    return look
