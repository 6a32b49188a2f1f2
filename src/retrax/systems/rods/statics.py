r"""A rod at rest under its loads, its stiffness there, and its vibrations.

A node feels its neighbours only, so the derivative of the loads by the moves of the nodes is a
block tridiagonal matrix. All nodes $k \equiv j$ modulo 3 may be moved at once: three times six
directional derivatives give every block.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from retrax.errors import BadInput, NoEquilibrium
from retrax.groups.arguments import element
from retrax.mechanics.system import AbstractGroupSystem, Element
from retrax.numerics.checks import require_double_precision, require_instance, require_whole
from retrax.numerics.evaluate import Evaluated, as_jax
from retrax.numerics.meant import explain_keywords
from retrax.numerics.tridiagonal import BlockTridiagonal
from retrax.systems.rods.nodes import HostPlacement, Placement
from retrax.systems.rods.rod import Rod

_MOST = 100
# The most that a node turns, or a segment is stretched, in one iteration.
_LONGEST = 0.3
_ROUNDING = 1e-13
# Stiffnesses below the first part of the largest one count as zero; loads above the second part of
# the largest one count as left over.
_SINGULAR, _LEFT_OVER = 1e-13, 1e-3
_MOST_DENSE = 400  # nodes
# The Krylov space of `modes`: columns of a block, and the change of an eigenvalue that ends it.
_BLOCK, _TOLERANCE = 6, 1e-13


class Stiffness(NamedTuple):
    """Loads on the nodes and their derivatives by the moves of the node before, here and after.

    Each node has six rows and columns: rotation in the body, then translation in space.
    """

    loads: Float[np.ndarray, "nodes 6"]
    lower: Float[np.ndarray, "nodes 6 6"]
    diagonal: Float[np.ndarray, "nodes 6 6"]
    upper: Float[np.ndarray, "nodes 6 6"]


def tangent_stiffness(rod: Rod, g: Placement | HostPlacement) -> Stiffness:
    """Loads and their derivatives for a rod at rest in `g`; held nodes get the identity."""
    loads, moved = _derivatives(rod, g)
    moved = np.asarray(moved).reshape(3, 6, rod.nodes, 6)
    nodes = np.arange(rod.nodes)
    # Column c of the block of the neighbour k + shift: how moving its colour loads node k.
    before, here, after = (
        moved[(nodes + shift) % 3, :, nodes].transpose(0, 2, 1) for shift in (-1, 0, 1)
    )
    held = (np.asarray(rod.mobility) == 0).reshape(-1, 6)
    for block in (before, here, after):
        block[held] = 0.0
    before[0], after[-1] = 0.0, 0.0
    node, part = np.nonzero(held)
    here[node, part, part] = -1.0
    return Stiffness(np.asarray(loads).reshape(-1, 6), before, here, after)


@Evaluated
def _derivatives(
    rod: Rod, g: Placement | HostPlacement
) -> tuple[Float[Array, " dim"], Float[Array, "18 dim"]]:
    group, rest = rod.group, jnp.zeros(rod.group.dim)

    def force(x):
        return rod.total_force(x, rest, rest, jnp.zeros(()))

    def moved(colour, part):
        chosen = (jnp.arange(rod.nodes) % 3 == colour).astype(float)
        xi = jnp.outer(chosen, (jnp.arange(6) == part).astype(float)).reshape(-1)
        return jax.jvp(force, (g,), (group.tangent(g, xi),))[1]

    colours, parts = np.divmod(np.arange(18), 6)
    return force(g), jax.lax.map(lambda x: moved(*x), (colours, parts))


def placed(g: object, system: AbstractGroupSystem) -> Element:
    """`g` as a placement of one rod or of a pair; anything else is rejected."""
    where = system.configuration_space
    placement = element("g", g, where.layout())
    where.check("g", placement)
    return placement


@explain_keywords
def equilibrium(rod: Rod, g: Placement) -> Placement:
    r"""The placement near `g` at which no load is left, by Newton's method on the group.

    $$ dF(g_i)\,\delta_i = -F(g_i), \qquad g_{i+1} = g_i\exp\delta_i, \tag{1} $$

    with $F$ all torques and forces on nodes that are not held; long moves are cut short. The
    matrix is block tridiagonal, so the time of an iteration is proportional to the number of nodes.
    A rod with a singular matrix can move without resistance, as a whole or in part: then dense
    least squares give the shortest of all moves that solve (1).

    **Raises:** `NoEquilibrium` if the iteration does not settle, or if a load acts along a move
    that nothing resists, such as the weight of a rod with two free ends.
    """
    require_double_precision()
    require_instance("rod", rod, Rod, "a Rod")
    g = placed(g, rod)
    smallest = np.inf
    for _ in range(_MOST):
        here = tangent_stiffness(rod, g)
        step = _newton_step(rod, here)
        if not np.all(np.isfinite(step)):
            size = np.inf
            break
        size = max(np.abs(step[:, :3]).max(), _strain_of(rod, step))
        delta = step.ravel() * min(1.0, _LONGEST / size)
        g = _moved(rod, g, delta)
        if size < _ROUNDING or (size < 1e-9 and size > 0.5 * smallest):
            return jax.tree.map(as_jax, g)
        smallest = min(size, smallest)
    raise NoEquilibrium(
        f"The {rod.name} found no equilibrium near the placement given: after {_MOST} Newton "
        f"iterations it would still move by {size:.2g}; start nearer, or raise the loads little by "
        "little."
    )


@Evaluated
def _moved(rod: Rod, g: Placement, delta: Float[Array, " dim"]) -> Placement:
    return rod.group.compose(g, rod.group.exp(delta))


def _newton_step(rod: Rod, here: Stiffness) -> Float[np.ndarray, "nodes 6"]:
    """Solve (1) for the moves of the nodes."""
    try:
        matrix = BlockTridiagonal(here.lower, here.diagonal, here.upper)
    except np.linalg.LinAlgError:
        return _shortest(rod, here)
    stiffest, softest = np.abs(here.diagonal).max(), 1 / np.abs(matrix.pivots).max()
    if not softest > _SINGULAR * stiffest:
        return _shortest(rod, here)
    return matrix.solve(-here.loads)


def _shortest(rod: Rod, here: Stiffness) -> Float[np.ndarray, "nodes 6"]:
    """The shortest solution of (1); infinite moves if there are too many nodes for it."""
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
    # An equilibrium leaves no load but the rounding errors of the stresses.
    if np.abs(left).max() > _LEFT_OVER * max(np.abs(loads).max(), _resistance(rod)):
        raise NoEquilibrium(
            f"The {rod.name} found no equilibrium near the placement given: it can move without "
            f"resistance along a load, whose forces add up to {_listed(left[:, 3:])} N and whose "
            f"torques to {_listed(left[:, :3])} N m; hold an end, or take the load away."
        )
    return step.reshape(n, 6)


def _resistance(rod: Rod) -> float:
    """A force that is small for this rod: that of a bend by a millionth of a radian."""
    return 1e-6 * float(np.asarray(rod.bending).min()) / float(rod.length) ** 2


def _listed(rows: Float[np.ndarray, "nodes 3"]) -> str:
    """The sum over the nodes, in words."""
    return "(" + ", ".join(f"{x:.3g}" for x in rows.sum(axis=0)) + ")"


def _strain_of(rod: Rod, step: Float[np.ndarray, "nodes 6"]) -> float:
    """The largest strain that the moves `step` cause."""
    return float(np.abs(np.diff(step[:, 3:], axis=0)).max()) / float(rod.spacing)


class Modes(NamedTuple):
    """Angular frequencies in rad/s, lowest first, and the velocities of their modes in rows."""

    frequencies: Float[np.ndarray, " mode"]
    shapes: Float[np.ndarray, "mode dim"]


@explain_keywords
def modes(rod: Rod, g: Placement, number: int = 6) -> Modes:
    r"""The `number` lowest solutions of $K\phi = \omega^2 M\phi$ about the equilibrium `g`.

    Rigid motions have the frequency 0. $K$ is block tridiagonal and $M$ diagonal. With a shift
    $\sigma < 0$ below all $\omega^2$, the symmetric operator

    $$ A = M^{1/2}(K - \sigma M)^{-1}M^{1/2}, \qquad A y = \frac{1}{\omega^2 - \sigma}\,y,
       \qquad y = M^{1/2}\phi, \tag{1} $$

    has these modes at its upper end. A block Krylov space finds them after a few dozen solves, each
    in a time proportional to the number of nodes. It needs a block, for round sections bend in two
    planes with the same frequency.
    """
    require_instance("rod", rod, Rod, "a Rod")
    here = tangent_stiffness(rod, placed(g, rod))
    mobile = np.asarray(rod.mobility).reshape(-1, 6)
    free = int(np.count_nonzero(mobile))
    number = require_whole("number", number, 1, free)
    shift = -_lowest_estimate(rod)
    mass = np.asarray(rod.inertia).reshape(-1, 6)
    # (1); held nodes have the stiffness one, and no motion.
    diagonal = -here.diagonal - shift * mass[:, :, None] * np.eye(6)
    matrix = BlockTridiagonal(-here.lower, diagonal, -here.upper)
    root = np.where(mobile > 0, np.sqrt(mass), 0.0)[:, :, None]

    def inverse(y):
        return (root * matrix.solve(root * y.reshape(len(mass), 6, -1))).reshape(6 * len(mass), -1)

    values, vectors = _largest(inverse, 6 * len(mass), number, free, np.asarray(mobile).ravel() > 0)
    squares = shift + 1 / values
    shapes = vectors.T.reshape(number, len(mass), 6) * np.sqrt(mobile)
    frequencies = np.sign(squares) * np.sqrt(np.abs(squares))
    return Modes(frequencies, shapes.reshape(number, -1))


def _lowest_estimate(rod: Rod) -> float:
    """The square of the lowest bending frequency of a slender rod."""
    mass_per_length = 2 * float(np.asarray(rod.inertia)[-1]) / float(rod.spacing)
    return float(np.min(rod.bending)) / mass_per_length * (np.pi / float(rod.length)) ** 4


def _largest(
    inverse: Callable[[np.ndarray], np.ndarray],
    size: int,
    number: int,
    free: int,
    mobile: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    """The largest eigenvalues of a symmetric operator and their vectors, from a Krylov space."""
    random = np.random.default_rng(0).standard_normal((size, min(_BLOCK, free)))
    basis, _ = np.linalg.qr(np.where(mobile[:, None], random, 0.0))
    images = inverse(basis)
    if not np.isfinite(images).all():
        raise BadInput("g has no modes: the stiffness of a rod placed like this is not finite.")
    block, last = images, None
    while True:
        values, vectors = np.linalg.eigh(_symmetric(basis.T @ images))
        values, vectors = values[::-1][:number], vectors[:, ::-1][:, :number]
        done = last is not None and np.all(np.abs(values - last) <= _TOLERANCE * values)
        if basis.shape[1] >= free or (len(values) == number and done):
            return values, basis @ vectors
        last = values if len(values) == number else None
        for _ in range(2):  # orthogonal to round-off
            block = block - basis @ (basis.T @ block)
            block, _ = np.linalg.qr(block)
        block = block[:, : free - basis.shape[1]]
        basis, images = np.hstack([basis, block]), np.hstack([images, inverse(block)])
        block = images[:, -block.shape[1] :]


def _symmetric(matrix: np.ndarray) -> np.ndarray:
    return (matrix + matrix.T) / 2
