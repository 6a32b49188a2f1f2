r"""A rod at rest under its loads, its stiffness there, and its vibrations."""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from retrax.errors import BadInput, NoEquilibrium
from retrax.groups.arguments import element
from retrax.mechanics.system import AbstractGroupSystem, Element
from retrax.nodal.nodes import HostPlacement, Placement
from retrax.numerics.checks import (
    require_double_precision,
    require_instance,
    require_untraced,
    require_whole,
)
from retrax.numerics.evaluate import Evaluated, as_jax
from retrax.numerics.frozen import numbers_of
from retrax.numerics.meant import explain_keywords
from retrax.systems.rods.mixed import Here, Mixed, free_motions, linearise, stresses, units
from retrax.systems.rods.rod import Rod

_MOST = 100
# The most that a node turns, or a segment is stretched, in one iteration.
_LONGEST = 0.3
_ROUNDING = 1e-13
# Loads along a free motion above this part of the largest one count as left over; and what may be
# left of loads and strains at rest, over what cancels in them.
_LEFT_OVER, _BALANCED = 1e-3, 1e-12
# The Krylov space of `modes`: columns of a block, and the change of an eigenvalue that ends it.
_BLOCK, _TOLERANCE = 6, 1e-13
# What may be left of a mode and of its eigenvalue; and a negative eigenvalue that is no round-off.
_UNSOLVED, _UNSURE, _UNSTABLE = 1e-5, 1e-6, 1e-12
# Round-off of an eigenvalue of (1); how far a placement with modes may be from rest, in rad, and
# how often its stresses are balanced.
_ROUNDED, _AT_REST, _BALANCING = 4e-15, 1e-6, 3


class Stiffness(NamedTuple):
    """Loads on the nodes and their derivatives by the moves of the node before, here and after.

    Each node has six rows and columns: rotation in the body, then translation in space.
    """

    loads: Float[np.ndarray, "nodes 6"]
    lower: Float[np.ndarray, "nodes 6 6"]
    diagonal: Float[np.ndarray, "nodes 6 6"]
    upper: Float[np.ndarray, "nodes 6 6"]


def tangent_stiffness(rod: Rod, g: Placement | HostPlacement) -> Stiffness:
    """Return loads and their derivatives for a rod at rest in `g`; held nodes get the identity.

    A node feels its neighbours only, so all nodes $k = j$ modulo 3 may be moved at once.
    """
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

    def move(colour, part):
        chosen = (jnp.arange(rod.nodes) % 3 == colour).astype(float)
        xi = jnp.outer(chosen, (jnp.arange(6) == part).astype(float)).reshape(-1)
        return jax.jvp(force, (g,), (group.tangent(g, xi),))[1]

    colours, parts = np.divmod(np.arange(18), 6)
    return force(g), jax.lax.map(lambda x: move(*x), (colours, parts))


def as_placement(g: object, system: AbstractGroupSystem) -> Element:
    """Return `g` as a placement of one rod or of a pair; reject anything else."""
    where = system.configuration_space
    placement = element("g", g, where.layout())
    where.check("g", placement)
    return placement


@explain_keywords
def equilibrium(rod: Rod, g: Placement) -> Placement:
    r"""Return the placement near `g` at which no load is left, by Newton's method on the group.

    $$ dF(g_i)\,\delta_i = -F(g_i), \qquad g_{i+1} = g_i\exp\delta_i, \tag{1} $$

    with $F$ all torques and forces on nodes that are not held, and the stresses as unknowns of
    their own (`mixed.py`); long moves are cut short. The matrix is banded, so the time of an
    iteration is proportional to the number of nodes. A rod that can move as a whole without
    resistance takes the move that has no momentum of such a motion.

    **Raises:** `NoEquilibrium` if the iteration does not settle, or if a load acts along a move
    that nothing resists, such as the weight of a rod with two free ends.
    """
    require_double_precision()
    require_instance("rod", rod, Rod, "a Rod")
    require_untraced("equilibrium", rod, g)
    g = as_placement(g, rod)
    smallest, stress = np.inf, stresses(rod, g)
    for _ in range(_MOST):
        step, change = _newton_step(rod, g, linearise(rod, g, stress))
        if not np.all(np.isfinite(step)):
            size = np.inf
            break
        size = max(np.abs(step[:, :3]).max(), _strain_of(rod, step))
        part = min(1.0, _LONGEST / size)
        g, stress = _move(rod, g, part * step.ravel()), stress + part * change
        if size < _ROUNDING or (size < 1e-9 and size > 0.5 * smallest):
            _require_balance(rod, g, stress)
            return jax.tree.map(as_jax, g)
        smallest = min(size, smallest)
    raise NoEquilibrium(
        f"The {rod.name} found no equilibrium near the placement given: after {_MOST} Newton "
        f"iterations it would still move by {size:.2g}; start nearer, or raise the loads little by "
        "little."
    )


@Evaluated
def _move(rod: Rod, g: Placement, delta: Float[Array, " dim"]) -> Placement:
    return rod.group.compose(g, rod.group.exp(delta))


def _newton_step(
    rod: Rod, g: Placement | HostPlacement, here: Here
) -> tuple[Float[np.ndarray, "nodes 6"], Float[np.ndarray, "segments 6"]]:
    """Solve (1) for the moves of the nodes and the changes of the stresses."""
    free = free_motions(rod, g, here)
    solver = Mixed(rod, here, free=free)
    step, change = (x[:, :, 0] for x in solver.solve(here.loads[..., None], here.misfit[..., None]))
    if free is None or not np.isfinite(step).all():
        return step, change
    left = solver.spring @ step[-1]
    # An equilibrium leaves no load but the rounding errors of the stresses.
    if np.abs(left).max() > _LEFT_OVER * max(np.abs(here.loads).max(), _resistance(rod)):
        raise NoEquilibrium(
            f"The {rod.name} found no equilibrium near the placement given: it can move without "
            f"resistance along a load, whose forces add up to {_in_words(left[3:])} N and whose "
            f"torques to {_in_words(left[:3])} N m; hold an end, or take the load away."
        )
    rigid = free.reshape(step.size, -1)
    weighed = rigid * np.asarray(rod.inertia)[:, None]
    along = np.linalg.solve(weighed.T @ rigid, weighed.T @ step.ravel())
    return step - (rigid @ along).reshape(step.shape), change


def _require_balance(
    rod: Rod, g: Placement | HostPlacement, stress: Float[np.ndarray, "segments 6"]
) -> None:
    """Reject loads that are left, and stresses that are not those of the strains."""
    here, (move, torque) = linearise(rod, g, stress), units(rod)
    far = 1 + float(np.abs(np.asarray(g[1])).max()) / float(rod.spacing)
    least = torque * _BALANCED * far
    pressed = float(np.abs(move[::-1] * stress).max())
    loads, strains = np.abs(move * here.loads).max(), np.abs(here.misfit[:, :3]).max()
    bends = float(rod.spacing) * np.abs(here.misfit[:, 3:]).max()
    if not (loads <= _BALANCED * pressed + least and max(strains, bends) <= _BALANCED * far):
        raise NoEquilibrium(
            f"The {rod.name} found no equilibrium near the placement given: moves have settled, "
            f"but of stresses that amount to torques of {pressed:.3g} N m, {loads:.3g} N m are "
            f"not balanced, and strains miss their stresses by {max(strains, bends):.2g}."
        )


def _resistance(rod: Rod) -> float:
    """Return a force that is small for this rod: that of a bend by a millionth of a radian."""
    return 1e-6 * float(np.asarray(rod.bending).min()) / float(rod.length) ** 2


def _in_words(vector: Float[np.ndarray, "3"]) -> str:
    """Return the components of a vector, in words."""
    return "(" + ", ".join(f"{x:.3g}" for x in vector) + ")"


def _strain_of(rod: Rod, step: Float[np.ndarray, "nodes 6"]) -> float:
    """Return the largest strain that the moves `step` cause."""
    return float(np.abs(np.diff(step[:, 3:], axis=0)).max()) / float(rod.spacing)


class Modes(NamedTuple):
    """Angular frequencies in rad/s, lowest first, and the velocities of their modes in rows.

    `errors`: how far each frequency may be off by what is left of its equations, in rad/s; where
    both ends are held, also by the force of a strain of one rounding.
    """

    frequencies: Float[np.ndarray, " mode"]
    shapes: Float[np.ndarray, "mode dim"]
    errors: Float[np.ndarray, " mode"]

    def __repr__(self) -> str:
        return f"<modes with the frequencies {numbers_of(self.frequencies)} rad/s>"


@explain_keywords
def modes(rod: Rod, g: Placement, number: int = 6) -> Modes:
    r"""Return the `number` lowest solutions of $K\phi = \omega^2 M\phi$ about the equilibrium `g`.

    Rigid motions have the frequency 0, unstable ones a negative one, $-|\omega|$. With a shift $s$
    below all $\omega^2$, the symmetric operator

    $$ A = M^{1/2}(K - s M)^{-1}M^{1/2}, \qquad A y = \frac{1}{\omega^2 - s}\,y,
       \qquad y = M^{1/2}\phi, \tag{1} $$

    has these modes at its upper end. A block Krylov space finds them after a few dozen solves, each
    in a time proportional to the number of nodes, of moves and stresses together (`mixed.py`). It
    needs a block, for round sections bend in two planes with the same frequency.

    **Raises:** `BadInput` if `g` is no equilibrium, or if a mode does not solve its equations
    because a load has no potential.
    """
    require_instance("rod", rod, Rod, "a Rod")
    require_untraced("modes", rod, g)
    g = as_placement(g, rod)
    here, shift = _balance(rod, g), -_lowest_estimate(rod)
    mobile = np.asarray(rod.mobility) > 0
    number = require_whole("number", number, 1, int(np.count_nonzero(mobile)))
    while True:
        inverse = _Inverse(rod, here, shift)
        values, vectors, lowest = _largest(inverse, number, mobile)
        if lowest > -_UNSTABLE * values[0]:
            break
        shift *= 16  # an unstable mode below it
    return _check_modes(rod, inverse, values, vectors, mobile)


def _balance(rod: Rod, g: Placement) -> Here:
    """Linearise about the stresses that balance the loads, free of the round-off of places."""
    stress = stresses(rod, g)
    here = linearise(rod, g, stress)
    if not all(np.isfinite(part).all() for part in here):
        raise BadInput("g has no modes: the stiffness of a rod placed like this is not finite.")
    for _ in range(_BALANCING):
        step, change = _newton_step(rod, g, here)
        off = max(np.abs(step[:, :3]).max(), _strain_of(rod, step))
        stress = stress + change
        here = linearise(rod, g, stress)
        if off <= _AT_REST:
            return here
    raise BadInput(
        f"g is no equilibrium of the {rod.name}: it would turn or stretch by {off:.2g} (allowed "
        f"{_AT_REST:.0e}); find one by equilibrium(rod, g)."
    )


class _Inverse:
    """The operator (1) on columns, and how well the last solve met its equations."""

    def __init__(self, rod: Rod, here: Here, shift: float):
        self.shift, self.solver = shift, Mixed(rod, here, shift)
        self.root = np.sqrt(np.asarray(rod.inertia)) * (np.asarray(rod.mobility) > 0)
        self.nodes, self.spacing = rod.nodes, float(rod.spacing)

    def __call__(self, y: Float[np.ndarray, "n m"]) -> Float[np.ndarray, "n m"]:
        return self.root[:, None] * self._solve(y)[1][0].reshape(y.shape)

    def _solve(self, y: np.ndarray) -> tuple[tuple, tuple]:
        loads = (self.root[:, None] * y).reshape(self.nodes, 6, -1)
        sides = loads, np.zeros((self.nodes - 1, 6, y.shape[1]))
        return sides, self.solver.solve(*sides)

    def error(self, y: Float[np.ndarray, "n m"]) -> Float[np.ndarray, " m"]:
        """Return how far $y^TAy$ may be off: the work left over by (1) and (2) of `mixed.py`."""
        sides, found = self._solve(y)
        loads, strains = self.solver.residual(*sides, *found)
        work = np.einsum("kim,kim->m", np.abs(found[0]), loads)
        return work + self.spacing * np.einsum("kim,kim->m", np.abs(found[1]), strains)


def _check_modes(
    rod: Rod, inverse: _Inverse, values: np.ndarray, vectors: np.ndarray, mobile: np.ndarray
) -> Modes:
    """Return the modes of (1); reject those that do not solve it."""
    off = np.linalg.norm(inverse(vectors) - vectors * values, axis=0) / values
    unsure = inverse.error(vectors) / values + off**2 + _ROUNDED
    squares = inverse.shift + 1 / values
    shapes = (vectors * np.sqrt(np.asarray(rod.mobility))[:, None]).T
    doubt = unsure / values
    if not (np.all(off <= _UNSOLVED) and np.all(unsure <= _UNSURE)):
        k = int(np.argmax(np.maximum(off / _UNSOLVED, unsure / _UNSURE)))
        raise BadInput(
            f"mode {k} of the {rod.name} does not solve its equations, of which "
            f"{max(off[k], unsure[k]):.2g} is left (allowed {_UNSOLVED:.0e}): a load without a "
            "potential makes its stiffness unsymmetric, and then there are no such modes."
        )
    doubt = doubt + _by_strain(rod, shapes)
    squares = np.where(np.abs(squares) <= doubt, 0.0, squares)
    sizes = np.sqrt(np.abs(squares))
    errors = np.where(squares == 0, np.sqrt(doubt), doubt / (2 * np.maximum(sizes, 1e-300)))
    return Modes(np.sign(squares) * sizes, shapes, errors)


def _by_strain(rod: Rod, shapes: Float[np.ndarray, "mode dim"]) -> Float[np.ndarray, " mode"]:
    r"""Return how far $\omega^2$ may be off since places are rounded: $EA\,\epsilon\int|r'|^2ds$.

    A rod that is held at both ends is as long as its places say, and a strain of one rounding is a
    force, which a thin rod feels across its axis.
    """
    mobility = np.asarray(rod.mobility).reshape(-1, 6)[:, 3:]
    if np.any(mobility[[0, -1]] > 0):
        return np.zeros(len(shapes))
    slopes = np.diff(shapes.reshape(len(shapes), -1, 6)[:, :, 3:], axis=1) / float(rod.spacing)
    tension = np.finfo(float).eps * np.max(np.asarray(rod.stretching)[..., 2])
    return tension * float(rod.spacing) * np.sum(slopes**2, axis=(1, 2))


def _lowest_estimate(rod: Rod) -> float:
    """Return the square of the lowest bending frequency of a slender rod."""
    mass_per_length = 2 * float(np.asarray(rod.inertia)[-1]) / float(rod.spacing)
    return float(np.min(rod.bending)) / mass_per_length * (np.pi / float(rod.length)) ** 4


def _largest(
    inverse: Callable[[np.ndarray], np.ndarray], number: int, mobile: np.ndarray
) -> tuple[np.ndarray, np.ndarray, float]:
    """Return the largest eigenvalues of a symmetric operator, vectors, and the lowest one."""
    size, free = len(mobile), int(np.count_nonzero(mobile))
    random = np.random.default_rng(0).standard_normal((size, min(_BLOCK, free)))
    basis, _ = np.linalg.qr(np.where(mobile[:, None], random, 0.0))
    images = inverse(basis)
    block, last = images, None
    while True:
        values, vectors = np.linalg.eigh(_symmetric(basis.T @ images))
        lowest = float(values[0])
        values, vectors = values[::-1][:number], vectors[:, ::-1][:, :number]
        done = last is not None and np.all(np.abs(values - last) <= _TOLERANCE * values)
        if basis.shape[1] >= free or (len(values) == number and done):
            return values, basis @ vectors, lowest
        last = values if len(values) == number else None
        for _ in range(2):  # orthogonal to round-off
            block = block - basis @ (basis.T @ block)
            block, _ = np.linalg.qr(block)
        block = block[:, : free - basis.shape[1]]
        basis, images = np.hstack([basis, block]), np.hstack([images, inverse(block)])
        block = images[:, -block.shape[1] :]


def _symmetric(matrix: np.ndarray) -> np.ndarray:
    return (matrix + matrix.T) / 2
