"""Lines, arrows and trails."""

import numpy as np

from retrax.errors import BadInput
from retrax.mechanics.shape import Shape, require_colour, triple
from retrax.numerics.checks import ArrayLike, host_float64
from retrax.numerics.meant import explain_keywords


@explain_keywords
def line(points: ArrayLike, colour: str = "") -> Shape:
    """Return a line through points, as wide everywhere however near one looks at it.

    **Arguments:** `points`: one a row, three numbers each, or two in the plane; `colour`: a name of
    the palette, or `#rrggbb`.
    """
    rows = host_float64("points", points)
    if rows.ndim != 2 or len(rows) < 2:
        raise BadInput(f"points has shape {rows.shape}; a line goes through two points or more.")
    return Shape("line", points=tuple(triple("a point", row) for row in rows),
                 colour=require_colour(colour))  # fmt: skip


@explain_keywords
def arrow(start: ArrayLike, vector: ArrayLike, colour: str = "orange") -> Shape:
    """Return an arrow that begins at `start` and goes along `vector`, as long as the vector is."""
    first = triple("start", start)
    last = tuple((np.array(first) + np.array(triple("vector", vector))).tolist())
    return Shape("arrow", points=(first, last), colour=require_colour(colour))


@explain_keywords
def trail(point: ArrayLike, colour: str = "sky") -> Shape:
    """Return the path that a point leaves behind: one of a body, or one that a function returns."""
    return Shape("trail", points=(triple("point", point),), colour=require_colour(colour))
