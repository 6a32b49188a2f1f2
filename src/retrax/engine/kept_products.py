"""Sums along a kept axis, and products of arrays that have one."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from retrax.engine.entry_rules import kind_of_aval
from retrax.engine.kept import Kept, Loops, Operands, Unscalarisable, shifted
from retrax.engine.kinds import Kind

# What a kept axis may be cut down to and still be taken apart.
FEW = 4
# A sum along a long axis is made of this many, so that none waits for the one before it.
_CHAINS = 8


class Products:
    """What `dot_general` does to arrays of which one or both have a kept axis."""

    def __init__(self, evaluator: Any, equation: Any):
        self.evaluator, self.equation = evaluator, equation
        self.loops: Loops = evaluator.loops

    def folded(self, operation: str, x: Kept) -> Operands:
        """The entries along the kept axis, put together in several chains that do not wait.

        Chain c takes the entries c, c + chains, ...; what is left over joins the first ones.
        """
        chains = min(_CHAINS, x.length)
        rounds, rest = divmod(x.length, chains)
        totals = list(self.loops.scalars(shifted(x, 0, chains)))
        if rounds > 1:
            parts = [shifted(x, chains + c, rounds - 1, chains) for c in range(chains)]

            def add(carried, arrays):
                return [
                    self.both(operation, *pair) for pair in zip(carried, arrays, strict=True)
                ], []

            totals, _ = self.loops.sequential(rounds - 1, add, totals, parts)
        left = self.loops.scalars(shifted(x, x.length - rest, rest)) if rest else ()
        for c, entry in enumerate(left):
            totals[c] = self.both(operation, totals[c], entry)
        while len(totals) > 1:
            half = (len(totals) + 1) // 2
            pairs = zip(totals, totals[half:], strict=False)
            totals = [self.both(operation, a, b) for a, b in pairs] + totals[
                len(totals) - half : half
            ]
        return totals[0]

    @property
    def kind(self) -> Kind:
        """The kind of what is added up; factors are of the same one."""
        equation = self.equation
        if any(v.aval.dtype != equation.outvars[0].aval.dtype for v in equation.invars):
            raise Unscalarisable("it adds up products in another type than that of the factors")
        return kind_of_aval(equation.outvars[0].aval)

    def both(self, operation: str, a: Operands, b: Operands) -> Operands:
        """Two arrays as one, entry by entry."""
        return self.evaluator.entrywise(operation, np.asarray(a, object), np.asarray(b, object))

    def rule_dot_general(self, a: Any, b: Any, *, dimension_numbers, **_):
        (a_sum, b_sum), (a_batch, b_batch) = dimension_numbers
        if _is_matrix_of(a, b, a_sum, b_sum):
            return self.matrix_product(a, a_sum[0], b, first=True)
        if _is_matrix_of(b, a, b_sum, a_sum):
            return self.matrix_product(b, b_sum[0], a, first=False)
        pairs = [*zip(a_sum, b_sum, strict=True), *zip(a_batch, b_batch, strict=True)]
        for i, j in pairs:
            if isinstance(a, Kept) and a.axis == i and not isinstance(b, Kept):
                b = self.loops.keep(b, j)
            if isinstance(b, Kept) and b.axis == j and not isinstance(a, Kept):
                a = self.loops.keep(a, i)
        both = isinstance(a, Kept) and isinstance(b, Kept)
        if both and (a.axis, b.axis) not in pairs:
            raise Unscalarisable("it multiplies two long axes with each other")
        like = a if isinstance(a, Kept) else b

        numbers = (
            (_without(a, a_sum), _without(b, b_sum)),
            (_without(a, a_batch), _without(b, b_batch)),
        )

        def local(x, y):
            return [self.evaluator.dot_general(x, y, numbers, self.kind)]

        (cells,) = self.loops.along(like.length, local, [a, b])
        summed = (isinstance(a, Kept) and a.axis in a_sum) or (
            isinstance(b, Kept) and b.axis in b_sum
        )
        if summed:
            return self.folded("add", Kept(cells, 0, like.length))
        return Kept(cells, self._product_axis(a, b, dimension_numbers), like.length)

    def matrix_product(self, matrix: Operands, summed: int, x: Kept, first: bool) -> Kept:
        """A matrix times an array whose kept axis it sums over; its rows become the kept axis.

        The entries of the array are taken one by one, the columns of the matrix along the loop.
        """
        matrix = np.moveaxis(matrix, summed, 1)
        entries = np.moveaxis(self.loops.scalars(x), x.axis, 0)

        def local(row):
            numbers = (((0,), (0,)), ((), ()))
            return [self.evaluator.dot_general(row, entries, numbers, self.kind)]

        (cells,) = self.loops.along(len(matrix), local, [self.loops.keep(matrix, 0)])
        return Kept(cells, 0 if first else cells.ndim, len(matrix))

    @staticmethod
    def _product_axis(a: Any, b: Any, dimension_numbers) -> int:
        """Where the kept axis of a factor is in the product: batch axes, then free ones."""
        (a_sum, b_sum), (a_batch, b_batch) = dimension_numbers
        if isinstance(a, Kept) and a.axis in a_batch:
            return tuple(a_batch).index(a.axis)
        a_free = [i for i in range(a.ndim) if i not in (*a_sum, *a_batch)]
        if isinstance(a, Kept):
            return len(a_batch) + a_free.index(a.axis)
        b_free = [i for i in range(b.ndim) if i not in (*b_sum, *b_batch)]
        return len(a_batch) + len(a_free) + b_free.index(b.axis)


def _without(x: Any, axes: Sequence[int]) -> tuple[int, ...]:
    """Axes of a factor as they are counted in each round along its kept axis."""
    if not isinstance(x, Kept):
        return tuple(axes)
    return tuple(i - (i > x.axis) for i in axes if i != x.axis)


def _is_matrix_of(a: Any, b: Any, a_sum: Sequence[int], b_sum: Sequence[int]) -> bool:
    """Whether this is a plain matrix of more than a few rows that sums over the kept axis of b."""
    if isinstance(a, Kept) or not isinstance(b, Kept) or a.ndim != 2:
        return False
    return len(a_sum) == 1 and b_sum[0] == b.axis and a.shape[1 - a_sum[0]] >= FEW
