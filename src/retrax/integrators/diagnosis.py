"""Why a step failed, found out on the host: a constraint that loses rank, or a step too long."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from retrax.integrators.base import AbstractIntegrator
from retrax.mechanics.constraints import AbstractConstraint, Rows
from retrax.mechanics.state import State
from retrax.mechanics.system import AbstractGroupSystem

_SAMPLES, _HALVINGS = 33, 20

Takes = Callable[[float], bool]


def diagnose(system: AbstractGroupSystem, state: State, h: float, takes: Takes) -> str:
    """Say in one sentence why the step of size `h` from `state` could not be taken.

    `takes` says whether a step of another size can be.
    """
    state = jax.tree.map(jnp.asarray, state)
    if system.constraint is not None:
        least, first = _singular_values(system, system.constraint, state, h)
        if not least > 0.05 * first:
            return (
                f"The constraint loses rank on the way: the smallest singular value of A falls "
                f"from {first:.3g} to {least:.3g} within the step, and must stay above 0."
            )
    longest = bisected(takes, h)
    if longest == 0:
        return f"No step from there can be solved, down to h = {h / 2**_HALVINGS:.1g}."
    moved = abs(float(jnp.max(jnp.abs(system.velocity_at(state)))) * longest)
    return (
        f"The longest step that can be solved from there is h = {longest:.3g} "
        f"(it moves by |h xi| = {moved:.2g} on the group)."
    )


def advised_step(first: float, h: float, takes: Takes) -> float | None:
    """A step shorter than `h`, as it is printed, that was seen to work; `first` is tried first."""
    for size in (first, *(h / 2**k for k in range(1, _HALVINGS + 1))):
        printed = float(f"{size:.2g}")
        if 0 < abs(printed) < abs(h) and takes(printed):
            return printed
    return None


def longest_step(
    system: AbstractGroupSystem, integrator: AbstractIntegrator, state: State, h: float
) -> float:
    """The longest step below `h` that can be taken from `state`, by bisection."""

    @jax.jit
    def solved(size: Float[Array, ""]) -> Bool[Array, ""]:
        end, info = integrator.step(system, state, size)
        finite = [jnp.all(jnp.isfinite(leaf)) for leaf in jax.tree.leaves(end)]
        return info.converged & info.in_chart & jnp.all(jnp.stack(finite))

    return bisected(lambda size: bool(solved(jnp.asarray(size))), h)


def bisected(takes: Takes, h: float) -> float:
    """The longest step below `h` that can be taken, to a millionth of it."""
    low, high = 0.0, float(h)
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if takes(middle) else (low, middle)
    return low


def _singular_values(
    system: AbstractGroupSystem, constraint: AbstractConstraint, state: State, h: float
) -> tuple[float, float]:
    """The smallest singular value of A(g) along the step, and at its start."""
    group = system.group
    xi = system.velocity_at(state)

    def rows(part: Float[Array, ""]) -> Rows:
        g = group.compose(state.g, group.exp(part * h * xi))
        return constraint.rows(g, state.t + part * h)

    along = jax.vmap(rows)(jnp.linspace(0.0, 1.0, _SAMPLES))
    smallest = np.linalg.svd(np.asarray(along), compute_uv=False)[:, -1]
    return float(np.min(smallest)), float(smallest[0])
