"""A rod at rest under its loads, and how it vibrates about that."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from retrax.errors import NoEquilibrium
from retrax.numerics.block_tridiagonal import BlockTridiagonal
from retrax.numerics.precision import require_double_precision
from retrax.systems.rods.placed import placed, require_rod
from retrax.systems.rods.tangent_stiffness import tangent_stiffness

_MOST = 100
# No node turns by more than this in one iteration, and no segment is stretched by more.
_LONGEST = 0.3
_ROUNDING = 1e-13


def equilibrium(rod: Any, g: Any) -> Any:
    r"""The placement near `g` at which no load is left, by Newton's method on the group.

    $$ dF(g_i)\,\delta_i = -F(g_i), \qquad g_{i+1} = g_i\exp\delta_i, \tag{1} $$

    with $F$ all torques and forces on nodes that are not held; long moves are cut short. The
    matrix is block tridiagonal, so an iteration costs a time that grows like the number of nodes.

    **Raises:** `NoEquilibrium` where the iteration does not settle.
    """
    require_double_precision()
    require_rod(rod)
    g = placed(g, rod)
    move, smallest = jax.jit(rod.group.compose), np.inf
    for _ in range(_MOST):
        here = tangent_stiffness(rod, g)
        step = _newton_step(here)
        if not np.all(np.isfinite(step)):
            size = np.inf
            break
        size = max(np.abs(step[:, :3]).max(), _strain_of(rod, step))
        delta = step.ravel() * min(1.0, _LONGEST / size)
        g = move(g, rod.group.exp(jnp.asarray(delta)))
        if size < _ROUNDING or (size < 1e-9 and size > 0.5 * smallest):
            return g
        smallest = min(size, smallest)
    raise NoEquilibrium(
        f"The {rod.name} found no equilibrium near the placement given: after {_MOST} Newton "
        f"iterations the next would still move it by {size:.2g}; start nearer, or raise the loads "
        "little by little."
    )


def _newton_step(here: Any) -> Float[np.ndarray, "nodes 6"]:
    try:
        matrix = BlockTridiagonal(here.lower, here.diagonal, here.upper)
        return matrix.solve(-here.loads)
    except np.linalg.LinAlgError:
        return np.full_like(here.loads, np.inf)


def _strain_of(rod: Any, step: Float[np.ndarray, "nodes 6"]) -> float:
    return float(np.abs(np.diff(step[:, 3:], axis=0)).max()) / float(rod.spacing)
