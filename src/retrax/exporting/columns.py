"""Copies between buffers that are stored in different orders; see `engine.passes.placement`."""

from collections.abc import Iterator

from retrax.engine.passes.placement import Widths
from retrax.engine.program import Buffer, CodeBlock, Each, Value, View


def rearranging(source: Buffer, target: Buffer, widths: Widths, numbers: Iterator[int]) -> Each:
    """Return the loop that copies a buffer to one that is stored in another order.

    `numbers` are for values that nothing else has.
    """
    width = widths.get(source) or widths.get(target, 1)
    columns = [(c, width, source.length // width) for c in range(width)]
    values = [Value(next(numbers), "float") for _ in columns]
    reads = tuple((v, View(source, *c)) for v, c in zip(values, columns, strict=True))
    writes = tuple((View(target, *c), v) for v, c in zip(values, columns, strict=True))
    return Each(source.length // width, reads, CodeBlock(), writes)
