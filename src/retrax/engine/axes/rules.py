"""Primitives on arrays with a kept axis.

Work that is alike for all entries joins the loop along the axis. Moving entries about changes
views, and copies only where pieces are joined along the axis. Sums over the axis are loops in
several chains that do not wait for each other.
"""

import math
from collections.abc import Callable, Sequence

import numpy as np
from jax.extend.core import JaxprEqn as Equation
from jax.lax import GatherScatterMode

from retrax.engine.axes.loops import (
    AxisLoops,
    FlatArray,
    KeptArray,
    Operands,
    ProgramArray,
    kind_of_cell,
    slice_axis,
)
from retrax.engine.builder import Builder, same
from retrax.engine.kinds import Kind, Unscalarisable, dtype_of, kind_of_variable
from retrax.engine.program import View
from retrax.engine.trace.arithmetic import Arithmetic, DimensionNumbers
from retrax.engine.trace.indexing import broadcast_in_dim, pad

# What a kept axis may be cut down to and still be taken apart.
_FEW = 4
# From so many entries on, what is looked up keeps its axis.
_LONG = 16
# A sum along a long axis is made of this many, so that none waits for the one before it.
_CHAINS = 8

# An array that is not flat, and the inputs of an equation between such.
Plain = Operands | KeptArray
Inputs = Sequence[Plain]
# What a loop in order carries on, and the cells it makes.
Carried = tuple[list[Operands], list[Operands]]


class KeptRules:
    """What primitives do to arrays of which some have a kept axis.

    `evaluate` evaluates an equation on other inputs than its own, as each round of a loop does.
    """

    def __init__(
        self,
        build: Builder,
        loops: AxisLoops,
        arithmetic: Arithmetic,
        evaluate: Callable[[Equation, list[ProgramArray]], list[ProgramArray]],
    ):
        self.build, self.loops, self.arithmetic = build, loops, arithmetic
        self.evaluate = evaluate

    def alike(self, equation: Equation, ins: Inputs) -> KeptArray:
        """Do the same to every entry, in a loop along the axis."""
        like = _first_kept(ins)
        aligned = [self.align(x, like) for x in ins]

        def local(*arrays: Operands) -> list[ProgramArray]:
            return self.evaluate(equation, list(arrays))

        (cells,) = self.loops.along(like.length, local, aligned)
        return KeptArray(cells, like.axis, like.length)

    def take_apart(self, equation: Equation, ins: Inputs) -> list[ProgramArray]:
        """Use the plain rule of a primitive that has none here, if the arrays are small enough."""
        if not self.is_short(ins):
            name = equation.primitive.name
            raise Unscalarisable(f"the primitive '{name}' has no form along a long axis")
        plain: list[ProgramArray] = [
            self.loops.scalars(x) if isinstance(x, KeptArray) else x for x in ins
        ]
        return self.evaluate(equation, plain)

    def is_short(self, ins: Inputs) -> bool:
        """Tell whether arrays are small enough to be taken apart."""
        return not any(isinstance(x, KeptArray) and math.prod(x.shape) > 16 * _FEW for x in ins)

    def align(self, x: Plain, like: KeptArray) -> Plain:
        """Give an operand the same kept axis; leave single numbers as they are."""
        return x if x.ndim == 0 else self.with_axis(x, like)

    def with_axis(self, x: Plain, like: KeptArray) -> KeptArray:
        if not isinstance(x, KeptArray):
            return self.loops.keep(x, like.axis)
        if (x.axis, x.length) != (like.axis, like.length):
            raise Unscalarisable("it mixes two long axes")
        return x

    def reduce(self, operation: str, x: KeptArray, axes: Sequence[int], kind: Kind) -> Plain:
        others = [a - (a > x.axis) for a in axes if a != x.axis]

        def local(cells: Operands) -> list[Operands]:
            return [self.arithmetic.reduce(operation, cells, others, kind)]

        (cells,) = self.loops.along(x.length, local, [x])
        if x.axis not in axes:
            return KeptArray(cells, x.axis - sum(a < x.axis for a in axes), x.length)
        return self._fold(operation, KeptArray(cells, 0, x.length))

    def total(self, operation: str, x: KeptArray, kind: Kind) -> Operands:
        """Combine all entries into one number."""
        out = self.reduce(operation, x, range(x.ndim), kind)
        assert not isinstance(out, KeptArray)
        return out

    def _fold(self, operation: str, x: KeptArray) -> Operands:
        """Combine the entries along the kept axis, in several chains that do not wait.

        Chain c takes the entries c, c + chains, ...; what is left over joins the first ones.
        """
        chains = min(_CHAINS, x.length)
        rounds, rest = divmod(x.length, chains)
        totals = list(self.loops.scalars(slice_axis(x, 0, chains)))
        if rounds <= _FEW:
            for k in range(1, rounds):
                part = self.loops.scalars(slice_axis(x, k * chains, chains))
                totals = [self._both(operation, *pair) for pair in zip(totals, part, strict=True)]
        else:
            parts = [slice_axis(x, chains + c, rounds - 1, chains) for c in range(chains)]

            def add(carried: Sequence[Operands], arrays: Sequence[Operands]) -> Carried:
                return [
                    self._both(operation, *pair) for pair in zip(carried, arrays, strict=True)
                ], []

            totals, _ = self.loops.sequential(rounds - 1, add, totals, parts)
        left = self.loops.scalars(slice_axis(x, x.length - rest, rest)) if rest else ()
        for c, entry in enumerate(left):
            totals[c] = self._both(operation, totals[c], entry)
        while len(totals) > 1:
            half = (len(totals) + 1) // 2
            pairs = zip(totals, totals[half:], strict=False)
            totals = [self._both(operation, a, b) for a, b in pairs] + totals[
                len(totals) - half : half
            ]
        return totals[0]

    def _both(self, operation: str, a: Operands, b: Operands) -> Operands:
        """Combine two arrays entry by entry."""
        return self.arithmetic.entrywise(operation, np.asarray(a, object), np.asarray(b, object))

    def dot_general(self, equation: Equation, ins: Inputs) -> Plain:
        a, b = ins
        dimension_numbers, kind = equation.params["dimension_numbers"], _kind_of_sum(equation)
        (a_sum, b_sum), (a_batch, b_batch) = dimension_numbers
        if isinstance(b, KeptArray) and not isinstance(a, KeptArray):
            if _is_matrix_of(a, b, a_sum, b_sum):
                return self._matrix_product(a, a_sum[0], b, kind, first=True)
        if isinstance(a, KeptArray) and not isinstance(b, KeptArray):
            if _is_matrix_of(b, a, b_sum, a_sum):
                return self._matrix_product(b, b_sum[0], a, kind, first=False)
        pairs = [*zip(a_sum, b_sum, strict=True), *zip(a_batch, b_batch, strict=True)]
        for i, j in pairs:
            if isinstance(a, KeptArray) and a.axis == i and not isinstance(b, KeptArray):
                b = self.loops.keep(b, j)
            if isinstance(b, KeptArray) and b.axis == j and not isinstance(a, KeptArray):
                a = self.loops.keep(a, i)
        like = _first_kept((a, b))
        if isinstance(a, KeptArray) and isinstance(b, KeptArray) and (a.axis, b.axis) not in pairs:
            raise Unscalarisable("it multiplies two long axes with each other")
        numbers = (
            (_without(a, a_sum), _without(b, b_sum)),
            (_without(a, a_batch), _without(b, b_batch)),
        )

        def local(x: Operands, y: Operands) -> list[Operands]:
            return [self.arithmetic.product(x, y, numbers, kind)]

        (cells,) = self.loops.along(like.length, local, [a, b])
        summed = (isinstance(a, KeptArray) and a.axis in a_sum) or (
            isinstance(b, KeptArray) and b.axis in b_sum
        )
        if summed:
            return self._fold("add", KeptArray(cells, 0, like.length))
        return KeptArray(cells, _product_axis(a, b, dimension_numbers), like.length)

    def _matrix_product(
        self, matrix: Operands, summed: int, x: KeptArray, kind: Kind, first: bool
    ) -> KeptArray:
        """Multiply by a matrix that sums over the kept axis; its rows become the kept axis.

        The entries of the array are taken one by one, the columns of the matrix along the loop.
        """
        matrix = np.moveaxis(matrix, summed, 1)
        entries = np.moveaxis(self.loops.scalars(x), x.axis, 0)

        def local(row: Operands) -> list[Operands]:
            numbers = (((0,), (0,)), ((), ()))
            return [self.arithmetic.product(row, entries, numbers, kind)]

        (cells,) = self.loops.along(len(matrix), local, [self.loops.keep(matrix, 0)])
        return KeptArray(cells, 0 if first else cells.ndim, len(matrix))

    def broadcast_in_dim(
        self,
        x: KeptArray,
        *,
        shape: tuple[int, ...],
        broadcast_dimensions: Sequence[int],
        **_: object,
    ) -> KeptArray:
        axis = broadcast_dimensions[x.axis]
        if shape[axis] != x.length:
            raise Unscalarisable("it repeats along a long axis")
        places = [d - (d > axis) for i, d in enumerate(broadcast_dimensions) if i != x.axis]
        smaller = shape[:axis] + shape[axis + 1 :]
        cells = broadcast_in_dim(x.cells, shape=smaller, broadcast_dimensions=tuple(places))
        return KeptArray(np.array(cells, object), axis, x.length)

    def transpose(self, x: KeptArray, *, permutation: Sequence[int], **_: object) -> KeptArray:
        axis = permutation.index(x.axis)
        order = [p - (p > x.axis) for p in permutation if p != x.axis]
        return KeptArray(x.cells.transpose(order), axis, x.length)

    def expand_dims(self, x: KeptArray, *, dimensions: Sequence[int], **_: object) -> ProgramArray:
        shape = list(x.shape)
        for d in sorted(dimensions):
            shape.insert(d, 1)
        return self.reshape(x, new_sizes=tuple(shape))

    def squeeze(self, x: KeptArray, *, dimensions: Sequence[int], **_: object) -> ProgramArray:
        shape = tuple(n for a, n in enumerate(x.shape) if a not in dimensions)
        return self.reshape(x, new_sizes=shape)

    def reshape(self, x: KeptArray, *, new_sizes: tuple[int, ...], **_: object) -> ProgramArray:
        before = math.prod(x.shape[: x.axis])
        for axis, n in enumerate(new_sizes):
            if n == x.length and math.prod(new_sizes[:axis]) == before:
                smaller = new_sizes[:axis] + new_sizes[axis + 1 :]
                return KeptArray(x.cells.reshape(smaller), axis, n)
        if x.axis == 0 and len(new_sizes) == 1:
            return FlatArray(KeptArray(x.cells.reshape(-1), 0, x.length))
        if x.axis == 0 and x.length % new_sizes[0] == 0:
            n, inner = new_sizes[0], new_sizes[1:]
            width = x.length // n
            columns = [slice_axis(x, c, n, width).cells for c in range(width)]
            return KeptArray(np.stack(columns).reshape(inner), 0, n)
        raise Unscalarisable(f"it reshapes {x.shape} to {tuple(new_sizes)} across a long axis")

    def slice(
        self,
        x: KeptArray,
        *,
        start_indices: Sequence[int],
        limit_indices: Sequence[int],
        strides: Sequence[int] | None,
        **_: object,
    ) -> Plain:
        steps = strides or (1,) * x.ndim
        bounds = list(zip(start_indices, limit_indices, steps, strict=True))
        first, last, step = bounds.pop(x.axis)
        cells = x.cells[tuple(slice(*b) for b in bounds)]
        part = slice_axis(
            KeptArray(cells, x.axis, x.length), first, -(-(last - first) // step), step
        )
        cut_down = part.length <= _FEW and part.length < x.length
        return self.loops.scalars(part) if cut_down else part

    def rev(self, x: KeptArray, *, dimensions: Sequence[int], **_: object) -> KeptArray:
        others = [d - (d > x.axis) for d in dimensions if d != x.axis]
        flipped = KeptArray(
            np.flip(x.cells, tuple(others)) if others else x.cells, x.axis, x.length
        )
        if x.axis not in dimensions:
            return flipped
        return slice_axis(flipped, x.length - 1, x.length, -1)

    def concatenate(self, *arrays: Plain, dimension: int, **_: object) -> KeptArray:
        like = _first_kept(arrays)
        if dimension != like.axis:
            parts = [self.with_axis(x, like) for x in arrays]
            where = dimension - (dimension > like.axis)
            return KeptArray(
                np.concatenate([x.cells for x in parts], where), like.axis, like.length
            )
        return self._concatenate(arrays, like)

    def stack(self, *arrays: Plain, axis: int, **_: object) -> KeptArray:
        like = _first_kept(arrays)
        before = axis <= like.axis
        cells = [self.with_axis(x, like).cells for x in arrays]
        where = axis if before else axis - 1
        return KeptArray(np.stack(cells, where), like.axis + before, like.length)

    def unstack(self, x: KeptArray, *, axis: int, **_: object) -> list[Plain]:
        if axis == x.axis:
            return list(self.loops.scalars(x).swapaxes(0, axis))
        where = axis - (axis > x.axis)
        parts = [np.asarray(part, object) for part in np.moveaxis(x.cells, where, 0)]
        return [KeptArray(part, x.axis - (axis < x.axis), x.length) for part in parts]

    def _concatenate(self, arrays: Sequence[Plain], like: KeptArray) -> KeptArray:
        """Copy pieces one after the other along the kept axis to new buffers."""
        filled = [x for x in arrays if isinstance(x, KeptArray) or x.shape[like.axis]]
        parts = [x if isinstance(x, KeptArray) else self.loops.keep(x, like.axis) for x in filled]
        if any(x.axis != like.axis for x in parts):
            raise Unscalarisable("it mixes two long axes")
        length, columns = sum(x.length for x in parts), [x.cells.ravel() for x in parts]
        cells = np.empty(like.cells.size, object)
        for c, alike in enumerate(zip(*columns, strict=True)):
            # What is the same number for all things needs no memory.
            if any(isinstance(x, View) or not same(x, alike[0]) for x in alike):
                kind = kind_of_cell(like.cells.ravel()[c])
                cells[c] = View(self.build.buffer(length, kind), 0, 1, length)
            else:
                cells[c] = alike[0]
        made = [c for c, cell in enumerate(cells) if isinstance(cell, View)]
        start = 0
        for part, column in zip(parts, columns, strict=True):
            targets = [View(cells[c].buffer, start, 1, part.length) for c in made]
            self.loops.copy(KeptArray(column[made], 0, part.length), targets)
            start += part.length
        return KeptArray(cells.reshape(like.cells.shape), like.axis, length)

    def pad(
        self,
        x: KeptArray,
        value: Operands,
        *,
        padding_config: Sequence[tuple[int, int, int]],
        **_: object,
    ) -> KeptArray:
        others = [c for a, c in enumerate(padding_config) if a != x.axis]
        if any(c != (0, 0, 0) for c in others):
            cells = pad(x.cells, value, padding_config=others)
            x = KeptArray(cells, x.axis, x.length)
        if padding_config[x.axis] == (0, 0, 0):
            return x
        low, high, inner = padding_config[x.axis]
        if inner or low < 0 or high < 0:
            raise Unscalarisable("it pads between the entries of a long axis, or cuts it")
        blank = [
            KeptArray(np.full(x.cells.shape, value[()], object), x.axis, n) for n in (low, high)
        ]
        return self._concatenate([p for p in (blank[0], x, blank[1]) if p.length], x)

    def gather(self, equation: Equation, ins: Inputs) -> list[ProgramArray]:
        """Read at known places along the axis: neighbours as a view, others by looking them up."""
        x, indices = ins
        assert isinstance(x, KeptArray) and not isinstance(indices, KeptArray)
        places = _places_along(equation, x, indices)
        if places is None:
            return self.take_apart(equation, ins)
        offsets = equation.params["dimension_numbers"].offset_dims
        (axis,) = set(range(x.ndim)) - set(offsets)
        x, count = KeptArray(x.cells, 0, x.length), len(places)
        step = int(places[1] - places[0]) if count > 1 else 1
        if step and np.all(np.diff(places) == step):
            part = slice_axis(x, places[0], count, step)
            found: Plain = self.loops.scalars(part) if count <= _FEW else part
        elif count < _LONG:
            found = np.concatenate([self.loops.scalars(slice_axis(x, k, 1)) for k in places])
        elif not step and np.all(places == places[0]):
            found = KeptArray(self.loops.scalars(slice_axis(x, places[0], 1))[0], 0, count)
        else:
            found = self.loops.look_up(x, self.loops.keep(places.astype(object), 0))
        if isinstance(found, KeptArray):
            return [KeptArray(found.cells, axis, count)]
        return [np.moveaxis(found, 0, axis)]

    def split(self, x: KeptArray, *, sizes: Sequence[int], axis: int, **_: object) -> list[Plain]:
        ends = np.cumsum(sizes)
        outs = []
        for size, end in zip(sizes, ends, strict=True):
            starts, stops = [0] * x.ndim, list(x.shape)
            starts[axis], stops[axis] = int(end - size), int(end)
            outs.append(self.slice(x, start_indices=starts, limit_indices=stops, strides=None))
        return outs


def _first_kept(ins: Sequence[Plain]) -> KeptArray:
    return next(x for x in ins if isinstance(x, KeptArray))


def _places_along(equation: Equation, x: KeptArray, indices: Operands) -> np.ndarray | None:
    """List the places that `x[places]` reads along the kept axis; `None` for any other gather."""
    params, axis = equation.params, (x.axis,)
    numbers, sizes = params["dimension_numbers"], list(params["slice_sizes"])
    sizes[x.axis] = x.length
    alone = numbers.start_index_map == axis and numbers.collapsed_slice_dims == axis
    if not alone or indices.ndim != 2 or not len(indices) or tuple(sizes) != x.shape:
        return None
    places = indices[:, 0].astype(int)
    if params["mode"] == GatherScatterMode.CLIP:
        return np.clip(places, 0, x.length - 1)
    return places if np.all((places >= 0) & (places < x.length)) else None


def _kind_of_sum(equation: Equation) -> Kind:
    """Return the kind of what is added up; require factors of the same kind."""
    if any(dtype_of(v) != dtype_of(equation.outvars[0]) for v in equation.invars):
        raise Unscalarisable("it adds up products in another type than that of the factors")
    return kind_of_variable(equation.outvars[0])


def _product_axis(a: Plain, b: Plain, numbers: DimensionNumbers) -> int:
    """Find the kept axis of a factor in the product: batch axes come first, then free ones."""
    (a_sum, b_sum), (a_batch, b_batch) = numbers
    if isinstance(a, KeptArray) and a.axis in a_batch:
        return tuple(a_batch).index(a.axis)
    a_free = [i for i in range(a.ndim) if i not in (*a_sum, *a_batch)]
    if isinstance(a, KeptArray):
        return len(a_batch) + a_free.index(a.axis)
    b_free = [i for i in range(b.ndim) if i not in (*b_sum, *b_batch)]
    return len(a_batch) + len(a_free) + b_free.index(_first_kept((a, b)).axis)


def _without(x: Plain, axes: Sequence[int]) -> tuple[int, ...]:
    """Count the axes of a factor as each round along its kept axis sees them."""
    if not isinstance(x, KeptArray):
        return tuple(axes)
    return tuple(i - (i > x.axis) for i in axes if i != x.axis)


def _is_matrix_of(a: Operands, b: KeptArray, a_sum: Sequence[int], b_sum: Sequence[int]) -> bool:
    """Return whether this is a plain matrix of some rows that sums over the kept axis of b."""
    return a.ndim == 2 and len(a_sum) == 1 and b_sum[0] == b.axis and a.shape[1 - a_sum[0]] >= _FEW
