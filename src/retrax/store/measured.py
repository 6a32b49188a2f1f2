"""Measure a run that was read from a file anew, and compare: a file may tell anything."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from retrax.errors import BadInput, printable_lines
from retrax.mechanics.remembered import RememberedSystem
from retrax.mechanics.state import State
from retrax.mechanics.system import AbstractGroupSystem
from retrax.numerics.checks import quote
from retrax.numerics.evaluate import evaluate
from retrax.store.consecutive import require_consecutive
from retrax.trajectory.observe import Observations, along
from retrax.trajectory.trajectory import Trajectory

# So many states are measured, spread over the run.
_MOST = 1024
# What two machines compute may differ by this part of its size and the motion's. Measured between
# XLA and NumPy on the catalogue: 1.5e-16 of both, 3.8e-14 of its size where that is small; strains
# of 1e-5 are known to 1e-11. What equations are solved for (measured: 4e-14) may be worse.
_APART, _APART_SOLVED = 1e-10, 1e-6
_SOLVED = ("multipliers", "reaction", "violation")
# A configuration that is this far from the space where it should lie is none.
_ALLOWED_DEFECT = 1e-6
# So many momenta are tried at a state.
_TRIED = 16


def require_measured(run: Trajectory) -> None:
    """Reject a run whose numbers are not what its system makes of its states.

    Velocities, invariants, the distance from the group and all else that a file tells beside the
    states are measured at states that are spread over the run. Where it was written without the
    functions of its system and tells less than that measures, all is measured when it is asked for.

    **Raises:** `BadInput`, which tells the first that differs, and the time.
    """
    system, named = run.system, {"system": run.system, "integrator": run.integrator}
    if system is None:
        return
    for name, made in named.items():
        words = made.name if isinstance(made, AbstractGroupSystem) else repr(made)
        if made is not None and run.provenance[name] not in (printable_lines(words), repr(made)):
            raise BadInput(
                f"it was made by the {name} {quote(run.provenance[name])}, but holds the {name} "
                f"{words}"
            )
    names = {printable_lines(x.name) for x in (system.configuration_space, system.group)}
    if run.provenance.get("group", system.group.name) not in names:
        raise BadInput(
            f"it was made on {quote(run.provenance['group'])}, but holds the system {system.name} "
            f"on {system.configuration_space.name}"
        )
    rows = np.unique(np.linspace(0, len(run.t) - 1, min(len(run.t), _MOST)).astype(int))
    states = jax.tree.map(lambda x: np.asarray(x)[rows], run.states)
    require_place(system, states)
    require_consecutive(run, states)
    if not run.measured:
        return
    fresh = run.measure_again(rows).observations
    told = jax.tree.map(lambda x: np.asarray(x)[rows], run.observations)
    if told.energy is not None and fresh.energy is None:
        fresh = fresh._replace(energy=fresh.invariants.get("energy"))
    partly = isinstance(system, RememberedSystem) or run.integrator is None
    _compare(told, fresh, states, partly)
    if any(one is None and other is not None for one, other in _pairs(told, fresh).values()):
        run.forget_observations()


def measure_at(system: AbstractGroupSystem, state: State) -> Float[np.ndarray, " number"]:
    """Return what a checkpoint keeps to compare a system with: velocity and energy at a state."""
    if isinstance(system, RememberedSystem):
        return np.append(system.velocities(np.asarray(state.momentum)[None])[0], np.nan)
    return np.asarray(evaluate(_measure, system, state))


def require_start(run: Trajectory, told: Float[np.ndarray, " number"]) -> None:
    """Reject a run whose system measures another velocity or energy at its start than stored.

    **Raises:** `BadInput`.
    """
    if run.system is None:
        return
    first = jax.tree.map(lambda x: np.asarray(x)[0], run.states)
    found = measure_at(run.system, first)
    moving = 1 + float(np.sum(np.abs(first.momentum))) + np.nanmax(np.abs(found), initial=0.0)
    unknown = np.isnan(found) & (np.isnan(told) | isinstance(run.system, RememberedSystem))
    if found.shape != told.shape or not np.all(unknown | (np.abs(found - told) <= _APART * moving)):
        raise BadInput(
            f"at its start velocity and energy were {_few(told)}, but its system measures "
            f"{_few(found)} there"
        )


def _measure(system: AbstractGroupSystem, state: State) -> Any:
    xi = system.velocity_at(state)
    energy = system.energy(state, xi) if system.has_energy else jnp.nan
    return jnp.append(xi, energy)


def require_place(system: AbstractGroupSystem, states: State) -> None:
    """Reject states that do not lie where the system moves, and inertias that are not positive."""
    space = system.configuration_space
    defect = np.asarray(along(lambda state: space.defect(state.g), states))
    if not np.all(defect <= _ALLOWED_DEFECT):
        worst = int(np.argmax(np.where(np.isnan(defect), np.inf, defect)))
        raise BadInput(
            f"its configuration at t = {float(np.asarray(states.t)[worst]):.6g} s is "
            f"{defect[worst]:.1g} off {space.name}, on which the {system.name} moves"
        )
    if not (
        system.quadratic is True
        and system.has_momentum
        and not isinstance(system, RememberedSystem)
    ):
        return
    first = jax.tree.map(lambda x: np.asarray(x)[0], states)
    dim = system.group.dim
    chosen = np.eye(dim) if dim <= _TRIED else np.random.default_rng(0).normal(size=(_TRIED, dim))
    if np.any(np.asarray(evaluate(_works, system, first, chosen)) < 0):
        raise BadInput(
            f"the inertia of its {system.name} is not positive: some motion has less "
            "kinetic energy than rest"
        )


def _works(system: AbstractGroupSystem, state: State, momenta: Any) -> Any:
    """Return twice the kinetic energies of momenta."""
    still = system.velocity_at(State(state.g, 0 * state.momentum, state.t))

    def work(mu: Any) -> Any:
        return mu @ (system.velocity_at(State(state.g, mu, state.t)) - still)

    return jax.vmap(work)(momenta)


def _compare(told: Observations, fresh: Observations, states: State, partly: bool) -> None:
    momenta, t = np.asarray(states.momentum), np.asarray(states.t)
    velocity = np.asarray(fresh.velocity)
    moving = 1 + sum(
        float(np.nanmax(np.abs(x), initial=0.0))
        for x in (momenta, velocity, np.sum(momenta * velocity, axis=-1))
    )
    for name, (one, other) in _pairs(told, fresh).items():
        if one is None or other is None:
            if one is not None and not partly:
                raise BadInput(f"it tells of {name}, but its system measures none")
            continue
        one, other = np.asarray(one, float), np.asarray(other, float)
        if one.shape != other.shape:
            if partly and not other.size:  # of a constraint whose functions are not in the file
                continue
            raise BadInput(
                f"its {name} have the shape {one.shape}, but its system measures {other.shape}"
            )
        if not one.size:
            continue
        size = np.nanmax(np.abs(other), initial=0.0)
        same = (one == other) | (np.isnan(one) & np.isnan(other))
        same |= np.isnan(other) & partly
        apart = _APART_SOLVED if name in _SOLVED else _APART
        same |= np.abs(one - other) <= apart * size + _APART * moving
        if not np.all(same):
            row = int(np.argwhere(~same)[0, 0])
            raise BadInput(
                f"its {name} at t = {float(t[row]):.6g} s is {_few(one[row])}, but its system "
                f"measures {_few(other[row])} on the state there"
            )


def _pairs(told: Observations, fresh: Observations) -> dict[str, tuple[Any, Any]]:
    """Return pairs of stored and measured values, by name."""
    pairs = {}
    for name, one, other in zip(Observations._fields, told, fresh, strict=True):
        if isinstance(one, dict) and isinstance(other, dict):
            for key in {**one, **other}:
                pairs[key] = one.get(key), other.get(key)
        else:
            pairs[name.replace("defect", "group defect")] = one, other
    return pairs


def _few(values: np.ndarray | np.generic) -> str:
    numbers = ", ".join(f"{x:.10g}" for x in np.ravel(values)[:4])
    return (
        numbers if np.size(values) == 1 else f"[{numbers}{', ...' if np.size(values) > 4 else ''}]"
    )
