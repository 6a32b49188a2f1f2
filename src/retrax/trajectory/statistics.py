"""Solver statistics of a run."""

from typing import NamedTuple

from jaxtyping import Array, Float, Int


class Interval(NamedTuple):
    """What happened between two saved states: iterations in all, the rest at its largest."""

    iterations: Int[Array, "*time"]
    residual: Float[Array, "*time"]
    increment: Float[Array, "*time"]
