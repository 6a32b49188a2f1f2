"""What strings in contact are made from, checked."""

from typing import Any

import jax.numpy as jnp
from jaxtyping import Array, Float

from retrax.errors import BadInput
from retrax.numerics.bspline import HALF_SUPPORT
from retrax.numerics.checks import MOST_NODES, finite64, float64, shown

ENDS = ("fixed", "periodic")
# Fewer segments than this leave no room between a contact and the ends.
_FEWEST = 17


def pair(name: str, value: Any) -> Float[Array, "2"]:
    """Two finite numbers."""
    return finite64(name, value, (2,))


def couplings(G: Any) -> Float[Array, "2"]:
    """The pair (G1, G2), the second like the first where one number is given."""
    array = float64("G", G)
    return pair("G", jnp.stack([array, array]) if array.ndim == 0 else array)


def lattice(n: Any, ends: Any, degree: Any, width: Any) -> tuple[int, str, int, int]:
    """Segments, ends and bump, where they fit together."""
    if not isinstance(ends, str) or ends not in ENDS:
        raise BadInput(f"ends = {shown(ends)} must be one of {', '.join(ENDS)}.")
    if type(degree) is not int or degree not in HALF_SUPPORT:
        raise BadInput(f"degree = {shown(degree)} of the bump must be 5 or 3.")
    if type(n) is not int or not _FEWEST <= n <= MOST_NODES:
        raise BadInput(
            f"n = {shown(n)} segments: a whole number of at least {_FEWEST} is needed, and at most "
            f"{MOST_NODES}."
        )
    widest = max(1, n // (4 * HALF_SUPPORT[degree]))
    if type(width) is not int or not 1 <= width <= widest:
        raise BadInput(
            f"width = {shown(width)} segments between knots makes a bump that does not fit the "
            f"string: a whole number from 1 to {widest} is needed for n = {n}."
        )
    return n, ends, degree, width
