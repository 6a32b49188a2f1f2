"""Why a step failed, found out on the host: a constraint that loses rank, or a step too long."""

import math
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from retrax.errors import BadInput
from retrax.integrators.base import AbstractIntegrator
from retrax.mechanics.constraints import AbstractConstraint, Rows
from retrax.mechanics.holonomic import AbstractHolonomic
from retrax.mechanics.placement import assemble
from retrax.mechanics.reactions import mobility
from retrax.mechanics.state import State
from retrax.mechanics.system import AbstractGroupSystem

_SAMPLES, _HALVINGS = 33, 20
# A step is clearly shorter than one of which it is less than this part.
_CLEARLY = 0.9
# An advised step is tried until it has passed the time of the one that failed, or so often.
_TRIES = 100
# Pivots, which are at most 1: of equations that others say already, at a singular place, near one.
_REDUNDANT, _SINGULAR, _NEAR_SINGULAR = 1e-13, 1e-7, 1e-2

# Whether so many steps of a size can be taken from where a run stopped.
Takes = Callable[[float, int], bool]


def fault_of_constraint(system: AbstractGroupSystem, state: State, h: float) -> str | None:
    """Say in one sentence why the constraint forbids a step of size `h`, if it is that."""
    state, constraint = jax.tree.map(jnp.asarray, state), system.constraint
    if isinstance(constraint, AbstractHolonomic):
        found = _singular(system, constraint, state, h)
        return found or _contradiction(system, constraint, state, h)
    if constraint is None:
        return None
    least, first = _singular_values(system, constraint, state, h)
    if least > 0.05 * first:
        return None
    return (
        f"The constraint loses rank on the way: the smallest singular value of A falls "
        f"from {first:.3g} to {least:.3g} within the step, and must stay above 0."
    )


def reach(
    system: AbstractGroupSystem, state: State, h: float, takes: Takes, advice: float | None
) -> str | None:
    """Say in one sentence how long a step from `state` can be, `h` being too long.

    Nothing is said where none was found, or the longest is not clearly shorter than `h`, or
    shorter than the one that is advised: then length is not what decides.
    """
    longest = bisect(lambda size: takes(size, 1), h)
    if longest == 0 or longest / h > _CLEARLY or (advice is not None and longest / h < advice / h):
        return None
    state = jax.tree.map(jnp.asarray, state)
    moved = abs(float(jnp.max(jnp.abs(system.velocity_at(state)))) * longest)
    return (
        f"The longest step that can be solved from there is h = {longest:.3g} "
        f"(it moves by |h xi| = {moved:.2g} on the group)."
    )


def _singular(
    system: AbstractGroupSystem, constraint: AbstractHolonomic, state: State, h: float
) -> str | None:
    """Say which equation comes to depend on the others within the step, if one does."""
    matrices = np.asarray(_mobilities(system, constraint, state, jnp.asarray(h)))
    if not np.isfinite(matrices).all():
        return None
    along = [_pivots(matrix) for matrix in matrices]
    rank = int(np.sum(along[0][0] > _REDUNDANT))
    last = [pivots[rank - 1] for pivots, _ in along]
    k = int(np.argmin(last))
    falls = last[k] <= (0.5 if last[k] <= _NEAR_SINGULAR else 0.05) * last[0]
    if not falls and last[k] > _SINGULAR:
        return None
    name = constraint.equation(int(along[k][1][rank - 1]))
    return (
        f"The constraint loses rank on the way: the pivot of {name} falls from {last[0]:.3g} to "
        f"{last[k]:.3g} of its diagonal within the step, and must stay above 0. The place is "
        "singular, as where a linkage lies stretched out, and the motion beyond it not determined."
    )


@jax.jit
def _mobilities(
    system: AbstractGroupSystem, constraint: AbstractHolonomic, state: State, h: Float[Array, ""]
) -> Float[Array, "sample k k"]:
    """Return how impulses along the rows change velocities across them, along the step."""
    group, xi = system.group, system.velocity_at(state)

    def there(part: Float[Array, ""]) -> Float[Array, "k k"]:
        g, t = group.compose(state.g, group.exp(part * h * xi)), state.t + part * h
        return mobility(system.at_time(t), constraint.rows(g, t), g, state.momentum)

    return jax.vmap(there)(jnp.linspace(0.0, 1.0, _SAMPLES))


def _pivots(S: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the pivots of a symmetric matrix, the largest first, and the equations they are of.

    The matrix is scaled to ones on its diagonal: a pivot is the part of an equation that those
    before it do not say already.
    """
    diagonal = np.sqrt(np.maximum(np.diag(S), np.finfo(float).tiny))
    S, left = S / np.outer(diagonal, diagonal), np.arange(len(S))
    pivots, order = [], []
    while len(left):
        k = int(np.argmax(np.diag(S)))
        pivots.append(S[k, k])
        order.append(left[k])
        if S[k, k] > 0:
            S = S - np.outer(S[:, k], S[k]) / S[k, k]
        keep = np.arange(len(left)) != k
        S, left = S[np.ix_(keep, keep)], left[keep]
    return np.array(pivots), np.array(order)


def _contradiction(
    system: AbstractGroupSystem, constraint: AbstractHolonomic, state: State, h: float
) -> str | None:
    """Say which equation is left over where no place nearby satisfies them all, if one is."""
    t = state.t + h
    try:
        assemble(system, constraint, state.g, t)
    except BadInput as why:
        return f"No place was found for it at t = {float(t):.6g} s: {why}"
    return None


def advised_step(first: float, h: float, takes: Takes) -> float | None:
    """Return a step shorter than `h`, as it is printed, seen to lead past the end of that one.

    `first` is tried first.
    """
    for size in (first, *(h / 2**k for k in range(1, _HALVINGS + 1))):
        printed = float(f"{size:.2g}")
        if not abs(shortest(h)) / 2 < abs(printed) < abs(h):  # shorter ones lead nowhere
            continue
        if takes(printed, min(math.ceil(h / printed), _TRIES)):
            return printed
    return None


def shortest(h: float) -> float:
    """Return the shortest step that is tried in place of one of size `h`."""
    return h / 2**_HALVINGS


def longest_step(
    system: AbstractGroupSystem, integrator: AbstractIntegrator, state: State, h: float
) -> float:
    """Return the longest step below `h` that can be taken from `state`, by bisection."""

    @jax.jit
    def solves(size: Float[Array, ""]) -> Bool[Array, ""]:
        end, info = integrator.step(system, state, size)
        finite = [jnp.all(jnp.isfinite(leaf)) for leaf in jax.tree.leaves(end)]
        return info.converged & info.in_chart & jnp.all(jnp.stack(finite))

    return bisect(lambda size: bool(solves(jnp.asarray(size))), h)


def bisect(takes: Callable[[float], bool], h: float) -> float:
    """Return the longest step below `h` that can be taken, to a millionth of it."""
    low, high = 0.0, float(h)
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if takes(middle) else (low, middle)
    return low


def _singular_values(
    system: AbstractGroupSystem, constraint: AbstractConstraint, state: State, h: float
) -> tuple[float, float]:
    """Return the smallest singular value of A(g) along the step, and at its start."""
    group = system.group
    xi = system.velocity_at(state)

    def rows(part: Float[Array, ""]) -> Rows:
        g = group.compose(state.g, group.exp(part * h * xi))
        return constraint.rows(g, state.t + part * h)

    along = jax.vmap(rows)(jnp.linspace(0.0, 1.0, _SAMPLES))
    smallest = np.linalg.svd(np.asarray(along), compute_uv=False)[:, -1]
    return float(np.min(smallest)), float(smallest[0])
