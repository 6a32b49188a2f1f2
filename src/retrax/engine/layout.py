"""What lies where in the memory of a run: inputs in order, and rows for what happened."""

from collections.abc import Sequence
from itertools import accumulate
from typing import Any, NamedTuple

from retrax.engine.program import Row, Value
from retrax.integrators.base import StepInfo

# The first step that failed and how it went; and what happened since the last saved state.
FAILURE = ("step", *StepInfo._fields)
INTERVAL = ("iterations", "residual", "increment")


class Layout(NamedTuple):
    """How many inputs of a step are parameters, and how many state, its time last; then comes h.

    An input is a number, or a row of numbers where an axis is kept.
    """

    params: int
    state: int

    def split(self, inputs: Sequence) -> tuple[Sequence, Sequence, Any]:
        return inputs[: self.params], inputs[self.params : self.params + self.state], inputs[-1]


def length(item: Value | Row) -> int:
    """How many numbers an input is."""
    return item.length if isinstance(item, Row) else 1


def places(items: Sequence) -> list[tuple[int, Any]]:
    """Each item with the place of its first number."""
    ends = accumulate(length(x) for x in items)
    return [(end - length(x), x) for end, x in zip(ends, items, strict=True)]
