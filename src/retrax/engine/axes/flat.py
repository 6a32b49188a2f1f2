"""Primitives on flat arrays.

A flat array has one axis that is made of many alike things: all numbers of the first node, then
those of the second. Work on it that is alike for all entries, sums over all of them and the way
back to one row a node are done node by node. Anything else sees it as one plain buffer.
"""

import math
from collections.abc import Sequence

from jax.extend.core import JaxprEqn as Equation

from retrax.engine.axes.loops import FlatArray, KeptArray, ProgramArray, slice_axis, stack_columns
from retrax.engine.axes.rules import KeptRules, Plain
from retrax.engine.kinds import kind_of_variable


class FlatRules:
    """What primitives do to arrays of which some are flat, by what they do along a kept axis."""

    def __init__(self, kept: KeptRules):
        self.kept = kept

    def alike(self, equation: Equation, ins: list[ProgramArray]) -> FlatArray:
        """Do the same to every entry, thing by thing."""
        things = _first_flat(ins).things
        return FlatArray(self.kept.alike(equation, [self._along_things(x, things) for x in ins]))

    def reshape(self, equation: Equation, ins: list[ProgramArray]) -> list[ProgramArray]:
        """Go back to one thing after the other, or to any shape by way of a plain buffer."""
        things = _first_flat(ins).things
        first, *others = equation.params["new_sizes"]
        if first == things.length and math.prod(others) == things.cells.size:
            return [KeptArray(things.cells.reshape(others), 0, first)]
        return self.as_plain(equation, ins)

    def reduce(self, operation: str, equation: Equation, ins: list[ProgramArray]) -> Plain:
        kind = kind_of_variable(equation.outvars[0])
        return self.kept.reduce(operation, _first_flat(ins).things, (0, 1), kind)

    def as_plain(self, equation: Equation, ins: list[ProgramArray]) -> list[ProgramArray]:
        """Evaluate any other primitive with flat arrays as one plain buffer each."""
        return self.kept.evaluate(equation, [self.kept.loops.plain(x) for x in ins])

    def _along_things(self, x: ProgramArray, things: KeptArray) -> Plain:
        """Put the things of an operand along its first axis; leave single numbers as they are."""
        if isinstance(x, FlatArray) and x.things.length != things.length:
            x = self.kept.loops.plain(x)
        if isinstance(x, FlatArray):
            return x.things
        if isinstance(x, KeptArray):
            width = things.cells.size
            return stack_columns([slice_axis(x, c, things.length, width) for c in range(width)])
        return x if x.ndim == 0 else self.kept.loops.keep(x.reshape(things.length, -1), 0)


def _first_flat(ins: Sequence[ProgramArray]) -> FlatArray:
    return next(x for x in ins if isinstance(x, FlatArray))
