"""Contacts that meet in a step, and contacts that slip on through it."""

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

Scalar = Float[Array, ""]
Numbers = Float[Array, " m"]

# What slips this many times faster than the friction of a stage can stop it goes on slipping.
_FAST = 8.0


def approach(gap: Numbers, start: Numbers, end: Numbers, h: Scalar) -> Numbers:
    """Return the speeds at which contacts meet: between those at both ends of a step.

    `end` is the speed that there would be at its end without contact. The part of the step until
    they meet is that of their gap in the way on which they close.
    """
    way = -h * (start + end) / 2
    part = jnp.where(way > gap, gap / jnp.where(way > gap, way, 1.0), 1.0)
    return start + part * (end - start)


def goes_on(
    slip: Float[Array, "m 2"], push: Numbers, friction: Numbers, answer: Numbers
) -> Bool[Array, " m"]:
    """Return which contacts slip too fast for friction to stop them in this step.

    **Arguments:** `slip`: at its start; `push`: how hard they push in it, nearly; `answer`: the
    speed that a unit of friction changes.
    """
    stops = _FAST * friction * push * answer
    return (push > 0) & (jnp.sum(slip**2, axis=1) > stops**2)
