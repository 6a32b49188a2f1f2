r"""Natural frequencies: the lowest solutions of $K\phi = \omega^2 M\phi$.

$K$ is block tridiagonal and $M$ diagonal. With a shift $\sigma < 0$ below all $\omega^2$, the
symmetric operator

$$ A = M^{1/2}(K - \sigma M)^{-1}M^{1/2}, \qquad A y = \frac{1}{\omega^2 - \sigma}\,y,
   \qquad y = M^{1/2}\phi, \tag{1} $$

has the modes sought at its upper end, and a block Krylov space of it holds them after a few dozen
solves, each of which takes a time that grows like the number of nodes. A block, not a vector:
round sections bend in two planes with the same frequency.
"""

from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float

from retrax.errors import BadInput
from retrax.numerics.checks import require_whole
from retrax.numerics.tridiagonal import BlockTridiagonal
from retrax.systems.rods.placed import placed, require_rod
from retrax.systems.rods.tangent_stiffness import tangent_stiffness

_BLOCK, _TOLERANCE = 6, 1e-13


class Modes(NamedTuple):
    """Angular frequencies in rad/s, lowest first, and the velocities of their modes in rows."""

    frequencies: Float[np.ndarray, " mode"]
    shapes: Float[np.ndarray, "mode dim"]


def modes(rod: Any, g: Any, number: int = 6) -> Modes:
    """The `number` lowest modes about the equilibrium `g`; rigid motions have frequency 0."""
    require_rod(rod)
    here = tangent_stiffness(rod, placed(g, rod))
    mobile = np.asarray(rod.mobility).reshape(-1, 6)
    free = int(np.count_nonzero(mobile))
    number = require_whole("number", number, 1, free)
    shift = -_lowest_estimate(rod)
    mass = np.asarray(rod.inertia).reshape(-1, 6)
    # (1); held parts have a stiffness of one and take no part.
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


def _lowest_estimate(rod: Any) -> float:
    """The square of the lowest bending frequency of a slender rod."""
    mass_per_length = 2 * float(np.asarray(rod.inertia)[-1]) / float(rod.spacing)
    return float(np.min(rod.bending)) / mass_per_length * (np.pi / float(rod.length)) ** 4


def _largest(
    inverse: Any, size: int, number: int, free: int, mobile: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The largest eigenvalues of a symmetric operator and their vectors, from a Krylov space."""
    random = np.random.default_rng(0).standard_normal((size, min(_BLOCK, free)))
    basis, _ = np.linalg.qr(np.where(mobile[:, None], random, 0.0))
    images = inverse(basis)
    if not np.isfinite(images).all():
        raise BadInput("g has no modes: the stiffness of the rod placed there is not finite.")
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
