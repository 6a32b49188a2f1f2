r"""Where a run leaves the band of energies that its integrator keeps to.

A symplectic step keeps the energy within a band for as long as it resolves the motion. The step
that does not, for example through a collision under $1/r$, lands on another energy and stays there:
all looks well that follows. With kinetic energies $T$ and $V = H - T$ a state has left if

$$ |H - H_0| > \tfrac12\max(s, s_0, \tilde s), \qquad s = T + |V|, \tag{1} $$

where $\tilde s$ is the median of $s$. Of a long run 64 states are looked at. What places that are
rounded change in the energy, by the forces there, is no escape: bodies at rest where the potential
vanishes have nothing else.
"""

from typing import TYPE_CHECKING

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from retrax.integrators.driven import Driven
from retrax.mechanics.remembered import RememberedSystem
from retrax.mechanics.state import State
from retrax.mechanics.system import AbstractGroupSystem
from retrax.numerics.checks import is_traced
from retrax.numerics.evaluate import Evaluated
from retrax.numerics.looks import HasChanged

if TYPE_CHECKING:
    from retrax.trajectory.trajectory import Trajectory

_LOOKED_AT = 64
# The part of (1); and by how much momenta must have grown for energies to be looked at.
_BAND, _GROWN = 0.5, 2.0
# By how much places may be off, relative to them.
_ROUNDED = 1e-12
_KEEP = frozenset({"symplectic", "energy"})


def escape(run: "Trajectory") -> str | None:
    """Warn, in one sentence, of an energy that has left its band; `None` without one."""
    system, integrator = run.system, run.integrator
    if system is None or integrator is None or isinstance(system, RememberedSystem):
        return None
    keeps = _KEEP & integrator.preserves and not isinstance(integrator, Driven)
    if not (keeps and system.has_momentum and system.conservative) or len(run.t) < 2:
        return None
    some = np.unique(np.linspace(0, len(run.t) - 1, _LOOKED_AT).astype(int))
    states = run.states_at(some)
    if is_traced(states.momentum):
        return None
    sizes = np.max(np.abs(np.reshape(states.momentum, (len(some), -1))), axis=1, initial=0.0)
    if not sizes.max() > _GROWN * sizes[0]:  # what has not become faster keeps its energy
        return None
    try:
        energies, sizes = _energies_at(states, system, len(some))
        scale = np.maximum(sizes, max(sizes[0], float(np.median(sizes))))
        out = np.abs(energies - energies[0]) > _BAND * scale  # (1)
        if out.any():
            out &= np.abs(energies - energies[0]) > _ROUNDED * _work_at(states, system, len(some))
    except HasChanged:  # of a run that keeps its functions, where nobody asked for energies before
        return None
    if not out.any():
        return None
    k = int(np.argmax(out))
    before, after = (float(run.t[some[j]]) for j in (k - 1, k))
    return (
        f"the energy of the {system.name} has left its band: {energies[0]:.4g} J at the start, "
        f"{energies[k - 1]:.4g} J at t = {before:.6g} s and {energies[k]:.4g} J at t = {after:.6g} "
        f"s, though {type(integrator).__name__} keeps it bounded where its steps resolve the "
        f"motion. In between, steps of h = {abs(run.h):g} s did not: what follows is another "
        "motion."
    )


def _energies_at(
    states: State, system: AbstractGroupSystem, count: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return energies at some states, and the size of their terms: $T + |V|$."""
    picked = _pad(states, count)
    energy, kinetic = (np.asarray(x)[:count] for x in _measure(picked, system))
    return energy, np.abs(kinetic) + np.abs(energy - kinetic)


def _work_at(states: State, system: AbstractGroupSystem, count: int) -> np.ndarray:
    """Return the work of the forces at some states over the way to the origin."""
    return np.asarray(_measure_work(_pad(states, count), system))[:count]


def _pad(states: State, count: int) -> State:
    """Repeat the last state, so that one program serves all runs."""
    full = np.minimum(np.arange(_LOOKED_AT), count - 1)
    return jax.tree.map(lambda x: np.asarray(x)[full], states)


@Evaluated
def _measure(states: State, system: AbstractGroupSystem) -> tuple[Array, Array]:
    def one(state: State) -> tuple[Array, Array]:
        return system.energy(state), jnp.dot(state.momentum, system.velocity_at(state)) / 2

    return jax.vmap(one)(states)


@Evaluated
def _measure_work(states: State, system: AbstractGroupSystem) -> Array:
    def one(state: State) -> Array:
        xi = system.velocity_at(state)
        force = system.at_time(state.t).differential(state.g, xi, state.momentum)
        reach = jnp.max(jnp.stack([jnp.max(jnp.abs(x)) for x in jax.tree.leaves(state.g)]))
        return reach * jnp.sum(jnp.abs(force))

    return jax.vmap(one)(states)
