r"""Whether the saved states of a run follow from each other: nothing else of a file tells that.

What an integrator keeps to round-off is looked at in states spread over the run: the momenta
of symmetries, the energy, constraints. And velocities have to lead from one state to the next,

$$ y_{k+1} \approx \exp\bigl(\tfrac12(t_{k+1} - t_k)(\xi_k + \xi_{k+1})\bigr)\cdot y_k, \tag{1} $$

in most of the pairs between which the motion is short and velocities hardly change: times that
were stretched break it in all of them. Nothing is compiled and no step is taken again.
"""

from functools import lru_cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from retrax.errors import BadInput
from retrax.integrators.adaptive import Adaptive
from retrax.mechanics.remembered import RememberedSystem
from retrax.mechanics.state import State
from retrax.mechanics.symmetry import Symmetries
from retrax.mechanics.system import AbstractGroupSystem
from retrax.numerics.evaluate import Evaluated, evaluate
from retrax.trajectory.trajectory import Trajectory

# So many pairs of states are looked at.
_LOOKED_AT = 32
# What is kept may change by this part of momenta and places, and by the other in each step.
_KEPT, _KEPT_IN_A_STEP = 1e-6, 1e-12
# (1) holds to a few hundredths where rotations are below the first and velocities change by less
# than the second part; it is broken by more than the third. Shorter ways may be rounding errors.
_SHORT, _STEADY, _BROKEN, _STILL = 1.0, 0.3, 0.3, 1e-6
# So many pairs have to be fit for (1), and increments of steps so much smaller than it says.
_FEWEST, _SMALLER = 3, 1.3


def require_consecutive(run: Trajectory, states: State) -> None:
    """Reject a run whose states, velocities and times do not follow from each other.

    `states`: those of its states, from the first on, that what is kept is looked at in.

    **Raises:** `BadInput`.
    """
    system, method = run.system, run.integrator
    if system is None or method is None or isinstance(system, RememberedSystem) or len(run.t) < 2:
        return
    _require_kept(run, system, states, method.preserves)
    if not isinstance(method, Adaptive):  # whose steps between two states may be any number
        _require_led(run, system)


def _require_kept(
    run: Trajectory, system: AbstractGroupSystem, states: State, words: frozenset[str]
) -> None:
    kept: dict[str, Any] = {}
    if "momentum" in words:
        symmetries = system.symmetries()
        if any(len(generators) for generators in symmetries):
            rows = (tuple(map(tuple, generators.tolist())) for generators in symmetries)
            kept |= _momenta(*rows)(system, states)
    if "energy" in words and system.has_energy and system.conservative:
        kept["energy"] = evaluate(_energies, system, states)
    if words & {"constraint", "positions"} and system.constraint is not None:
        kept["velocity across the constraint"] = evaluate(_violations, system, states)
    sizes = [np.max(np.abs(x), initial=1.0) for x in (states.momentum, *jax.tree.leaves(states.g))]
    part = _KEPT + _KEPT_IN_A_STEP * run.completed
    for name, values in kept.items():
        should = 0.0 if name.startswith("velocity across") else float(values[0])
        scale = abs(should) + float(sizes[0] * max(sizes[1:]))
        off = np.abs(values - should)
        if np.any(off > part * scale):
            row = int(np.argmax(off))
            raise BadInput(
                f"its {name} is {values[row]:.6g} at t = {float(states.t[row]):.6g} s, but "
                f"{run.integrator!r} keeps it at {should:.6g}"
            )


def _require_led(run: Trajectory, system: AbstractGroupSystem) -> None:
    first = np.linspace(0, len(run.t) - 2, _LOOKED_AT).astype(int)
    pairs = jax.tree.map(lambda x: np.asarray(x)[np.stack([first, first + 1], 1)], run.states)
    apart, moved, way, turn, speed, change = evaluate(_predict, system, pairs)
    sound = (turn < _SHORT) & (change <= _STEADY * speed) & (moved > _STILL)
    if len(np.unique(first[sound])) < _FEWEST:
        return
    broken = np.median((apart / np.maximum(moved, way))[sound]) > _BROKEN
    if run.save_every > 1:  # a motion that was saved once a period stands still, or seems slow
        increments = np.asarray(run.info.increment)
        told = np.maximum(increments[first + 1], increments[np.minimum(first + 2, len(run.t) - 1)])
        asked = abs(run.h) * np.max(np.abs(evaluate(_velocities, system, pairs)[:, 1]), axis=-1)
        broken &= np.median((asked - _SMALLER * told)[sound]) > 0
    if broken:
        k = first[sound][0]
        raise BadInput(
            f"its velocities do not lead from one saved state to the next: from t = "
            f"{float(run.t[k]):.6g} to {float(run.t[k + 1]):.6g} s they go a way of "
            f"{way[sound][0]:.3g}, but its configuration changes by {moved[sound][0]:.3g} "
            "(relative to its size)"
        )


@lru_cache(maxsize=256)
def _momenta(*rows: tuple) -> Evaluated:
    """Make the function that measures the momenta of symmetries."""
    found = Symmetries(*map(np.array, rows))
    return Evaluated(lambda system, states: jax.vmap(lambda s: system.momenta_of(found, s))(states))


def _energies(system: AbstractGroupSystem, states: State) -> Any:
    return jax.vmap(system.energy)(states)


def _violations(system: AbstractGroupSystem, states: State) -> Any:
    return jax.vmap(system.constraint_violation)(states)


def _velocities(system: AbstractGroupSystem, pairs: State) -> Any:
    return jax.vmap(jax.vmap(system.velocity_at))(pairs)


def _predict(system: AbstractGroupSystem, pairs: State) -> Any:
    """Return by how much (1) fails, the actual way, that of (1), and what bounds the miss."""
    space, angles = system.configuration_space, jnp.asarray(system.group.angles())

    def size(one: Any, other: Any) -> Any:
        parts = zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True)
        return jnp.sqrt(sum(jnp.sum((a - b) ** 2) for a, b in parts))

    def look(pair: State) -> Any:
        xi = jax.vmap(system.velocity_at)(pair)
        start, end = (jax.tree.map(lambda x, k=k: x[k], pair) for k in (0, 1))
        u = (end.t - start.t) * (xi[0] + xi[1]) / 2
        led = space.near(start.g, u)  # (1)
        whole = 1e-300 + size(start.g, jax.tree.map(jnp.zeros_like, start.g))
        ways = [size(a, b) / whole for a, b in ((led, end.g), (start.g, end.g), (start.g, led))]
        turn = jnp.max(jnp.where(angles, jnp.abs(u), 0.0))
        return *ways, turn, jnp.sum(jnp.abs(xi[0] + xi[1])) / 2, jnp.sum(jnp.abs(xi[1] - xi[0]))

    return jax.vmap(look)(pairs)
