"""Rules that move entries: shapes, slices, gathers, scatters, order."""

from collections.abc import Sequence
from typing import Any, SupportsIndex

import numpy as np

from retrax.numerics.host.program import (
    Axes,
    Call,
    Equation,
    NoRule,
    Rule,
    Rules,
    dtype_of,
    shape_of,
)


def _plain(function: Call) -> Rule:
    return lambda equation: function


def _broadcast(equation: Equation) -> Call:
    shape = tuple(equation.params["shape"])
    dims = [int(d) for d in equation.params["broadcast_dimensions"]]
    inner = [1] * len(shape)
    for axis, size in zip(dims, shape_of(equation.invars[0]), strict=True):
        inner[axis] = size

    def broadcast(x: Any, *sizes: Any) -> Any:
        return np.broadcast_to(np.reshape(x, inner), shape)

    return broadcast


def _reshape(equation: Equation) -> Call:
    if equation.params.get("dimensions") is not None:
        raise NoRule("reshape")
    shape = tuple(equation.params["new_sizes"])
    return lambda x: np.reshape(x, shape)


def _transpose(equation: Equation) -> Call:
    order = tuple(int(i) for i in equation.params["permutation"])
    return lambda x: np.transpose(x, order)


def _squeeze(equation: Equation) -> Call:
    shape = shape_of(equation.outvars[0])
    return lambda x: np.reshape(x, shape)


def _concatenate(equation: Equation) -> Call:
    axis = equation.params["dimension"]
    return lambda *parts: np.concatenate(parts, axis)


def _pad(equation: Equation) -> Call:
    """Put padding at both ends and between entries; below zero it takes entries away."""
    config, shape = equation.params["padding_config"], shape_of(equation.outvars[0])
    place, part = [], []
    for (low, _, inside), size, length in zip(
        config, shape_of(equation.invars[0]), shape, strict=True
    ):
        stride = inside + 1
        first = max(0, -(low // stride)) if low < 0 else 0
        at = low + first * stride
        count = max(0, min(size - first, -(-(length - at) // stride)))
        part.append(slice(first, first + count))
        place.append(slice(at, at + (count - 1) * stride + 1, stride) if count else slice(0, 0))

    def pad(x: Any, value: Any) -> Any:
        out = np.full(shape, value, x.dtype)
        out[tuple(place)] = x[tuple(part)]
        return out

    return pad


def _reverse(equation: Equation) -> Call:
    axes = tuple(equation.params["dimensions"])
    return lambda x: np.flip(x, axes)


def _slice(equation: Equation) -> Call:
    p = equation.params
    begin, end = p["start_indices"], p["limit_indices"]
    strides = p["strides"] or (1,) * len(begin)
    where = tuple(slice(*of) for of in zip(begin, end, strides, strict=True))
    return lambda x: x[where]


def _split(equation: Equation) -> Call:
    ends = np.cumsum(equation.params["sizes"])[:-1]
    axis = equation.params["axis"]
    return lambda x: np.split(x, ends, axis)


def _iota(equation: Equation) -> Call:
    p = equation.params
    shape, axis = tuple(p["shape"]), p["dimension"]
    along = [1] * len(shape)
    along[axis] = shape[axis]
    values = np.arange(shape[axis]).astype(p["dtype"]).reshape(along)
    return lambda: np.broadcast_to(values, shape)


def _starts(starts: Sequence[Any], shape: Sequence[int], sizes: Sequence[int]) -> list[int]:
    """Return where a slice begins, moved so that it lies inside."""
    return [
        min(max(int(start), 0), n - size)
        for start, n, size in zip(starts, shape, sizes, strict=True)
    ]


def _dynamic_slice(equation: Equation) -> Call:
    sizes = tuple(equation.params["slice_sizes"])

    def take(x: Any, *starts: Any) -> Any:
        begin = _starts(starts, x.shape, sizes)
        return x[tuple(slice(a, a + n) for a, n in zip(begin, sizes, strict=True))]

    return take


def _dynamic_update_slice(x: Any, new: Any, *starts: Any) -> Any:
    begin = _starts(starts, np.shape(x), np.shape(new))
    out = np.array(x)
    out[tuple(slice(a, a + n) for a, n in zip(begin, np.shape(new), strict=True))] = new
    return out


class _Windows:
    """Where windows of an array lie: an index for each of its axes, and which windows fit.

    The axes of an index are those of the places, then those of the window.
    """

    def __init__(
        self,
        shape: tuple[int, ...],
        sizes: Axes,
        index_map: Axes,
        along: Sequence[tuple[SupportsIndex, SupportsIndex]],
    ):
        self.shape, self.sizes = shape, [int(n) for n in sizes]
        self.index_map = [int(d) for d in index_map]
        self.along = {int(mine): int(theirs) for mine, theirs in along}

    def at(
        self, places: np.ndarray, kept: Sequence[int]
    ) -> tuple[list[np.ndarray | np.integer], np.ndarray]:
        """Return the indices, and whether each window lies inside; `kept` axes are not dropped."""
        batch = places.shape[:-1]
        inside = np.ones(batch, bool)
        indices = []
        for axis, (n, size) in enumerate(zip(self.shape, self.sizes, strict=True)):
            start = np.zeros(batch, np.int64)
            if axis in self.index_map:
                given = places[..., self.index_map.index(axis)].astype(np.int64)
                inside &= (given >= 0) & (given <= n - size)
                start = np.clip(given, 0, n - size)
            elif axis in self.along:
                theirs = self.along[axis]
                lengths = [1] * len(batch)
                lengths[theirs] = batch[theirs]
                start = np.broadcast_to(np.arange(batch[theirs]).reshape(lengths), batch)
            start = start.reshape(batch + (1,) * len(kept))
            if axis in kept:
                lengths = [1] * len(kept)
                lengths[kept.index(axis)] = size
                start = start + np.arange(size).reshape(lengths)
            indices.append(start)
        return indices, inside


def _gather(equation: Equation) -> Call:
    numbers, p = equation.params["dimension_numbers"], equation.params
    shape, out = shape_of(equation.invars[0]), shape_of(equation.outvars[0])
    dropped = {int(d) for d in (*numbers.collapsed_slice_dims, *numbers.operand_batching_dims)}
    kept = [d for d in range(len(shape)) if d not in dropped]
    along = zip(numbers.operand_batching_dims, numbers.start_indices_batching_dims, strict=True)
    windows = _Windows(shape, p["slice_sizes"], numbers.start_index_map, list(along))
    offset = [int(d) for d in numbers.offset_dims]
    others = [d for d in range(len(out)) if d not in offset]
    order = np.argsort([*others, *offset])
    fills = "FILL" in str(p["mode"])
    dtype = dtype_of(equation.outvars[0])
    nothing = p["fill_value"]
    if fills and nothing is None:
        nothing = _nothing(dtype)

    def gather(x: Any, places: Any) -> Any:
        indices, inside = windows.at(np.asarray(places), kept)
        found = np.asarray(x[tuple(indices)])
        if fills and not inside.all():
            found = np.where(inside.reshape(inside.shape + (1,) * len(kept)), found, nothing)
        return np.transpose(found, order)

    return gather


def _nothing(dtype: np.dtype) -> Any:
    """Return the placeholder of a missing entry."""
    if np.issubdtype(dtype, np.inexact):
        return np.nan
    if dtype.kind == "b":
        return True
    info = np.iinfo(dtype)
    return info.min if np.issubdtype(dtype, np.signedinteger) else info.max


def _scatter(combine: Any) -> Rule:
    """Put windows into a copy of an array; `combine` them with what is there, or replace it."""

    def rule(equation: Equation) -> Call:
        numbers, mode = equation.params["dimension_numbers"], str(equation.params["mode"])
        shape, updates = shape_of(equation.invars[0]), shape_of(equation.invars[2])
        dropped = {int(d) for d in (*numbers.inserted_window_dims, *numbers.operand_batching_dims)}
        kept = [d for d in range(len(shape)) if d not in dropped]
        window = [int(d) for d in numbers.update_window_dims]
        sizes = [1] * len(shape)
        for axis, own in zip(kept, window, strict=True):
            sizes[axis] = updates[own]
        along = zip(
            numbers.operand_batching_dims, numbers.scatter_indices_batching_dims, strict=True
        )
        index_map = numbers.scatter_dims_to_operand_dims
        windows = _Windows(shape, sizes, index_map, list(along))
        order = [d for d in range(len(updates)) if d not in window] + window
        clips = "CLIP" in mode

        def scatter(x: Any, places: Any, new: Any) -> Any:
            out = np.array(x)
            indices, inside = windows.at(np.asarray(places), kept)
            new = np.transpose(new, order)
            if not (clips or inside.all()):
                full = [np.broadcast_to(i, new.shape) for i in indices]
                indices, new = [i[inside] for i in full], new[inside]
            if combine is None:
                out[tuple(indices)] = new
            else:
                combine.at(out, tuple(indices), new)
            return out

        return scatter

    return rule


def _sort(equation: Equation) -> Call:
    axis, keys = equation.params["dimension"], equation.params["num_keys"]

    def sort(*arrays: Any) -> list[Any]:
        if len(arrays) == 1:
            return [np.sort(arrays[0], axis, kind="stable")]
        order = np.lexsort(arrays[:keys][::-1], axis)
        return [np.take_along_axis(x, order, axis) for x in arrays]

    return sort


def _same(*arrays: Any) -> Any:
    return list(arrays)


def _bits(equation: Equation) -> Call:
    new = np.dtype(equation.params["new_dtype"])
    old = dtype_of(equation.invars[0])
    if old.itemsize != new.itemsize:
        raise NoRule("bitcast_convert_type")
    return lambda x: np.ascontiguousarray(x).view(new).reshape(np.shape(x))


def _stack(equation: Equation) -> Call:
    axis = equation.params["axis"]
    return lambda *parts: np.stack(parts, axis)


def _unstack(equation: Equation) -> Call:
    axis = equation.params["axis"]
    return lambda x: list(np.moveaxis(x, axis, 0))


def _identity(x: Any) -> Any:
    return x


RULES: Rules = {
    "broadcast_in_dim": _broadcast,
    "reshape": _reshape,
    "transpose": _transpose,
    "squeeze": _squeeze,
    "expand_dims": _squeeze,
    "concatenate": _concatenate,
    "pad": _pad,
    "rev": _reverse,
    "slice": _slice,
    "split": _split,
    "stack": _stack,
    "unstack": _unstack,
    "iota": _iota,
    "dynamic_slice": _dynamic_slice,
    "dynamic_update_slice": _plain(_dynamic_update_slice),
    "gather": _gather,
    "scatter": _scatter(None),
    "scatter-add": _scatter(np.add),
    "scatter_add": _scatter(np.add),
    "scatter-mul": _scatter(np.multiply),
    "scatter_mul": _scatter(np.multiply),
    "scatter-min": _scatter(np.minimum),
    "scatter_min": _scatter(np.minimum),
    "scatter-max": _scatter(np.maximum),
    "scatter_max": _scatter(np.maximum),
    "sort": _sort,
    "bitcast_convert_type": _bits,
    "copy": _plain(_identity),
    "copy_p": _plain(_identity),
    "name": _plain(_identity),
    "stop_gradient": _plain(_identity),
    "optimization_barrier": _plain(_same),
}
