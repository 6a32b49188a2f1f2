"""What strings in contact are made from, checked."""

from typing import Any

import jax.numpy as jnp
from jaxtyping import Array, Float

from retrax.errors import BadInput
from retrax.numerics.checks import require_finite, require_shape
from retrax.numerics.precision import float64
from retrax.systems.strings.bump import HALF_SUPPORT

ENDS = ("fixed", "periodic")
# Fewer segments than this leave no room between a contact and the ends.
_FEWEST = 17


def pair(name: str, value: Any) -> Float[Array, "2"]:
    """Two finite numbers."""
    array = float64(name, value)
    require_shape(name, array, (2,))
    require_finite(name, array)
    return array


def couplings(G: Any) -> Float[Array, "2"]:
    """The pair (G1, G2), the second like the first where one number is given."""
    array = float64("G", G)
    return pair("G", jnp.stack([array, array]) if array.ndim == 0 else array)


def lattice(n: Any, ends: Any, degree: Any, width: Any) -> tuple[int, str, int, int]:
    """Segments, ends and bump, where they fit together."""
    if ends not in ENDS:
        raise BadInput(f"ends = {ends!r} must be one of {', '.join(ENDS)}.")
    if degree not in HALF_SUPPORT:
        raise BadInput(f"degree = {degree!r} of the bump must be 5 or 3.")
    if not isinstance(n, int) or n < _FEWEST:
        raise BadInput(f"n = {n!r} segments: a whole number of at least {_FEWEST} is needed.")
    widest = max(1, n // (4 * HALF_SUPPORT[degree]))
    if not isinstance(width, int) or not 1 <= width <= widest:
        raise BadInput(
            f"width = {width!r} segments between knots makes a bump that does not fit the string: "
            f"a whole number from 1 to {widest} is needed for n = {n}."
        )
    return n, ends, degree, width
