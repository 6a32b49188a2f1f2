"""The order of a method, observed."""

import itertools
import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from retrax.errors import BadInput, CheckFailed
from retrax.groups.base import AbstractLieGroup
from retrax.integrators.base import AbstractIntegrator, as_integrator
from retrax.mechanics.state import State
from retrax.mechanics.system import AbstractGroupSystem
from retrax.numerics.checks import require_number, require_untraced, require_whole
from retrax.numerics.evaluate import Evaluated
from retrax.run.checks import require_run, start_of
from retrax.run.simulate import simulate

# A difference of fewer rounding errors than this would measure arithmetic, not the method.
_CLEAR = 50.0
_MOST_HALVINGS = 30


class Convergence(NamedTuple):
    """End states under refinement.

    **Attributes:**

    - `steps`, `h`: the number of steps and the step size of each run.
    - `differences`: the distance between the ends of each run and the next finer one.
    - `slopes`: the order seen between each difference and the next.
    - `order`: the last slope.
    """

    steps: tuple[int, ...]
    h: tuple[float, ...]
    differences: tuple[float, ...]
    slopes: tuple[float, ...]
    order: float


def convergence(
    system: AbstractGroupSystem,
    integrator: AbstractIntegrator | str,
    state: State,
    *,
    h: float,
    time: float,
    halvings: int = 4,
) -> Convergence:
    r"""Run to the same `time` with $h, h/2, h/4, \dots$ and compare each end with the next.

    With $z_k$ the end of the run with $h\,2^{-k}$,

    $$
    \begin{aligned}
    d_k &= d(z_k, z_{k+1}) = C\,(1 - 2^{-p})\,(h\,2^{-k})^p + \dots             &&\text{(1)}\\
    p_k &= \log_2(d_k/d_{k+1}) \to p                                            &&\text{(2)}
    \end{aligned}
    $$

    so that no reference solution has to be trusted. Distances are measured on the group if the
    method stays on it, else entry by entry.

    **Arguments:**

    - `h`: the coarsest step; `time` must be a multiple of it.
    - `halvings`: how often it is halved, at least 2.

    **Raises:** `CheckFailed` if a difference is so small that it shows rounding errors: choose a
    larger `h` or fewer halvings. `StepFailed` if a run fails.
    """
    require_untraced("convergence", system, integrator, state, h)
    integrator = as_integrator(integrator)
    require_run(system, integrator, start_of(system, state), h, 1, 1)
    h, time = float(h), require_number("time", time, "> 0", "s")
    halvings = require_whole("halvings", halvings, 2, _MOST_HALVINGS)
    first = round(time / h) if h > 0 and math.isfinite(time / h) else 0
    if first < 1 or abs(first * h - time) > 1e-9 * time:
        raise BadInput(f"time = {time} is not a whole number of steps of h = {h}.")
    steps = tuple(first * 2**k for k in range(halvings + 1))
    sizes = tuple(time / n for n in steps)
    ends = [
        simulate(system, integrator, state, h=size, steps=n, save_every=n, progress=False).final
        for n, size in zip(steps, sizes, strict=True)
    ]
    between = _on_group if "group" in integrator.preserves else _entries
    differences = tuple(
        float(between(system.group, a, b))
        for a, b in itertools.pairwise(ends)  # (1)
    )
    floor = _CLEAR * rounding(state, steps[-1])
    if not min(differences) > floor:
        raise CheckFailed(
            f"{integrator!r} on the {system.name}: successive ends differ by "
            f"{min(differences):.1e}, which is rounding (below {floor:.1e}), so no order can be "
            f"read off; take h larger than {h:g} or fewer halvings than {halvings}."
        )
    slopes = tuple(math.log2(a / b) for a, b in itertools.pairwise(differences))  # (2)
    return Convergence(steps, sizes, differences, slopes, slopes[-1])


def rounding(state: State, steps: int) -> float:
    r"""Bound the rounding errors of a run by $\varepsilon\sqrt n\,\max(1, |g|, |\mu|)$."""
    leaves = jax.tree.leaves((state.g, state.momentum))
    size = max(1.0, *(float(np.max(np.abs(leaf))) for leaf in leaves))
    return float(np.finfo(np.float64).eps) * math.sqrt(steps) * size


@Evaluated
def _on_group(group, a: State, b: State):
    return distance(group, a, b)


@Evaluated
def _entries(group, a: State, b: State):
    return entry_distance(a, b)


def distance(group: AbstractLieGroup, a: State, b: State) -> Float[Array, ""]:
    r"""Return $\max(|\log(g_a^{-1}g_b)|_\infty,\ |\mu_a - \mu_b|_\infty)$, for $g$ on the group."""
    between = group.log(group.compose(group.inverse(a.g), b.g))
    return jnp.maximum(jnp.max(jnp.abs(between)), jnp.max(jnp.abs(a.momentum - b.momentum)))


def entry_distance(a: State, b: State) -> Float[Array, ""]:
    r"""Return the largest difference of an entry of $(g, \mu)$: also for states off the group."""
    gaps = jax.tree.map(lambda x, y: jnp.max(jnp.abs(x - y)), (a.g, a.momentum), (b.g, b.momentum))
    return jnp.max(jnp.stack(jax.tree.leaves(gaps)))
