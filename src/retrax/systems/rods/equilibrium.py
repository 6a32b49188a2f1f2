"""A rod at rest under its loads, and how it vibrates about that."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from retrax.errors import NoEquilibrium
from retrax.numerics.checks import require_double_precision
from retrax.numerics.tridiagonal import BlockTridiagonal
from retrax.systems.rods.placed import placed, require_rod
from retrax.systems.rods.tangent_stiffness import Stiffness, tangent_stiffness

_MOST = 100
# No node turns by more than this in one iteration, and no segment is stretched by more.
_LONGEST = 0.3
_ROUNDING = 1e-13
# Stiffnesses below this part of the largest are none; loads that are left over beyond that count.
_SINGULAR, _LEFT_OVER = 1e-13, 1e-3
_MOST_DENSE = 400  # nodes


def equilibrium(rod: Any, g: Any) -> Any:
    r"""The placement near `g` at which no load is left, by Newton's method on the group.

    $$ dF(g_i)\,\delta_i = -F(g_i), \qquad g_{i+1} = g_i\exp\delta_i, \tag{1} $$

    with $F$ all torques and forces on nodes that are not held; long moves are cut short. The
    matrix is block tridiagonal, so an iteration costs a time that grows like the number of nodes.
    Where it is singular, the rod can move without resistance, as a whole or in part: of all moves
    that solve (1) the shortest is taken, by dense least squares.

    **Raises:** `NoEquilibrium` where the iteration does not settle, and where a load acts along a
    move that nothing resists, as weight does on a rod that nobody holds.
    """
    require_double_precision()
    require_rod(rod)
    g = placed(g, rod)
    move, smallest = jax.jit(rod.group.compose), np.inf
    for _ in range(_MOST):
        here = tangent_stiffness(rod, g)
        step = _newton_step(rod, here)
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


def _newton_step(rod: Any, here: Stiffness) -> Float[np.ndarray, "nodes 6"]:
    try:
        matrix = BlockTridiagonal(here.lower, here.diagonal, here.upper)
    except np.linalg.LinAlgError:
        return _shortest(rod, here)
    stiffest, softest = np.abs(here.diagonal).max(), 1 / np.abs(matrix.pivots).max()
    if not softest > _SINGULAR * stiffest:
        return _shortest(rod, here)
    return matrix.solve(-here.loads)


def _shortest(rod: Any, here: Stiffness) -> Float[np.ndarray, "nodes 6"]:
    """The shortest of all solutions of (1), where there is one."""
    n = len(here.loads)
    if n > _MOST_DENSE or not np.isfinite(here.diagonal).all():
        return np.full_like(here.loads, np.inf)
    matrix = np.zeros((n, 6, n, 6))
    for shift, blocks in ((-1, here.lower), (0, here.diagonal), (1, here.upper)):
        for k in range(max(0, -shift), min(n, n - shift)):
            matrix[k, :, k + shift] = blocks[k]
    matrix, loads = matrix.reshape(6 * n, 6 * n), here.loads.reshape(-1)
    step = np.linalg.lstsq(matrix, -loads, rcond=_SINGULAR)[0]
    left = (loads + matrix @ step).reshape(n, 6)
    # Rounding errors of the stresses are all that an equilibrium may leave over.
    if np.abs(left).max() > _LEFT_OVER * max(np.abs(loads).max(), _resistance(rod)):
        raise NoEquilibrium(
            f"The {rod.name} found no equilibrium near the placement given: it can move without "
            f"resistance along a load, whose force adds up to {_listed(left[:, 3:])} N and whose "
            f"torque to {_listed(left[:, :3])} N m over the nodes; hold an end, or take the load "
            "away."
        )
    return step.reshape(n, 6)


def _resistance(rod: Any) -> float:
    """A force that is small for this rod: of a bend by a millionth of a radian."""
    return 1e-6 * float(np.asarray(rod.bending).min()) / float(rod.length) ** 2


def _listed(rows: Float[np.ndarray, "nodes 3"]) -> str:
    return "(" + ", ".join(f"{x:.3g}" for x in rows.sum(axis=0)) + ")"


def _strain_of(rod: Any, step: Float[np.ndarray, "nodes 6"]) -> float:
    return float(np.abs(np.diff(step[:, 3:], axis=0)).max()) / float(rod.spacing)
