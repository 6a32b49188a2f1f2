r"""Where capsules come closest: segments $x_a x_{a'}$ and $x_b x_{b'}$ with round ends.

Points $(1-\sigma)x_a + \sigma x_{a'}$ and $(1-\tau)x_b + \tau x_{b'}$ of two segments are closest
either within both of them, where the line between is perpendicular to both,

$$ \sigma = \frac{(d_a\cdot d_b)(d_b\cdot r) - (d_a\cdot r)|d_b|^2}{D}, \qquad
   \tau = \frac{|d_a|^2(d_b\cdot r) - (d_a\cdot d_b)(d_a\cdot r)}{D}, \qquad
   D = |d_a|^2|d_b|^2 - (d_a\cdot d_b)^2, \tag{1} $$

$r = x_a - x_b$, or at an end of one of them. In chains of segments the end of one is the start of
the next, so that three candidates for each pair are enough: (1), the start of the first on the
second, and the start of the second on the first; each counts where the chains around it lead away
from it, so that a contact has one candidate. Segments that are parallel touch along a line, and
then the starts of both carry it.
"""

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

Points = Float[Array, "m 3"]
Numbers = Float[Array, " m"]

# Segments whose angle has a square of the sine below this are parallel.
_PARALLEL = 1e-14
# Squares of distances that differ by less, relative to them, are the same.
_SAME = 1e-14


class Nearest(NamedTuple):
    """Candidates for closest points.

    **Attributes:** `sigma`, `tau`: where on the two segments; `valid`: whether they may touch;
    `lift`: how far apart they have to stay beyond that.
    """

    sigma: Numbers
    tau: Numbers
    valid: Bool[Array, " m"]
    lift: Numbers


def dot(a: Points, b: Points) -> Numbers:
    """Return the products of rows."""
    return a[:, 0] * b[:, 0] + a[:, 1] * b[:, 1] + a[:, 2] * b[:, 2]


def cross_rows(a: Points, b: Points) -> Points:
    """Return the vector products of rows."""
    return jnp.stack(
        [
            a[:, 1] * b[:, 2] - a[:, 2] * b[:, 1],
            a[:, 2] * b[:, 0] - a[:, 0] * b[:, 2],
            a[:, 0] * b[:, 1] - a[:, 1] * b[:, 0],
        ],
        axis=1,
    )


def within(r: Points, da: Points, db: Points) -> Nearest:
    """Return (1), valid where it lies within both segments."""
    aa, bb, ab = dot(da, da), dot(db, db), dot(da, db)
    ar, br = dot(da, r), dot(db, r)
    det = aa * bb - ab * ab
    crossing = det > _PARALLEL * aa * bb
    one = 1 / jnp.where(crossing, det, 1.0)
    sigma, tau = (ab * br - ar * bb) * one, (aa * br - ab * ar) * one
    inside = (sigma > 0) & (sigma < 1) & (tau > 0) & (tau < 1)
    return Nearest(clamp(sigma), clamp(tau), crossing & inside, jnp.zeros_like(sigma))


def foot(r: Points, d: Points) -> tuple[Numbers, Numbers]:
    """Return where on segments `d` the points `r` from their starts are closest, in 0 to 1.

    The second number is the same without these bounds.
    """
    size = dot(d, d)
    there = dot(d, r) / jnp.where(size > 0, size, 1.0)
    return clamp(there), there


def along_axis(
    r: Points, d: Points, axis: Points
) -> tuple[Numbers, Bool[Array, " m"], Bool[Array, " m"]]:
    """Return where on segments `d` they are closest to segments `axis` that start `r` from them.

    The other two: whether that is their start, and their end; both where they are parallel.
    """
    inside = within(-r, d, axis)
    first, last = foot(r, d), foot(r + axis, d)
    none, one, yes = jnp.zeros(len(r)), jnp.ones(len(r)), jnp.ones(len(r), bool)

    def far(sigma: Numbers, tau: Numbers, valid: Bool[Array, " m"]) -> Numbers:
        apart = sigma[:, None] * d - r - tau[:, None] * axis
        return jnp.where(valid, dot(apart, apart), jnp.inf)

    start, end = far(none, foot(-r, axis)[0], yes), far(one, foot(d - r, axis)[0], yes)
    least, there = jnp.minimum(start, end), none
    for sigma, tau, valid in (
        (first[0], none, (first[1] > 0) & (first[1] < 1)),
        (last[0], one, (last[1] > 0) & (last[1] < 1)),
        (inside.sigma, inside.tau, inside.valid),
    ):
        between = far(sigma, tau, valid)
        closer = between < least
        least, there = jnp.where(closer, between, least), jnp.where(closer, sigma, there)
    begins, ends = start <= (1 + _SAME) * least, end <= (1 + _SAME) * least
    return jnp.where(begins, 0.0, jnp.where(ends, 1.0, there)), begins, ends


def clamp(x: Numbers) -> Numbers:
    """Return numbers within 0 and 1."""
    return jnp.minimum(jnp.maximum(x, 0.0), 1.0)


def distance(r: Points, da: Points, db: Points) -> Numbers:
    """Return how far apart segments are whose starts are `r` apart."""

    def far(near: Nearest) -> Numbers:
        apart = r + (near.sigma[:, None] * da - near.tau[:, None] * db)
        return jnp.where(near.valid, dot(apart, apart), jnp.inf)

    zero, one, yes = jnp.zeros(len(r)), jnp.ones(len(r)), jnp.ones(len(r), bool)
    candidates = [
        within(r, da, db),
        Nearest(zero, foot(r, db)[0], yes, zero),
        Nearest(one, foot(r + da, db)[0], yes, zero),
        Nearest(foot(-r, da)[0], zero, yes, zero),
        Nearest(foot(db - r, da)[0], one, yes, zero),
    ]
    least = far(candidates[0])
    for near in candidates[1:]:
        least = jnp.minimum(least, far(near))
    return jnp.sqrt(least)
