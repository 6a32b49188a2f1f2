"""Operations that only move array entries, done on arrays of operands when the program is built."""

from collections.abc import Callable
from typing import Any

import numpy as np

# Each takes the equation's parameters and object arrays, and returns one array or several.
Rule = Callable[..., Any]


def _broadcast_in_dim(x, *, shape, broadcast_dimensions, **_):
    expanded = [1] * len(shape)
    for source, target in enumerate(broadcast_dimensions):
        expanded[target] = x.shape[source]
    return np.broadcast_to(x.reshape(expanded), shape)


def _slice(x, *, start_indices, limit_indices, strides, **_):
    steps = strides or (1,) * x.ndim
    return x[
        tuple(slice(a, b, s) for a, b, s in zip(start_indices, limit_indices, steps, strict=True))
    ]


def _pad(x, value, *, padding_config, **_):
    shape = [
        lo + hi + n + max(n - 1, 0) * mid
        for n, (lo, hi, mid) in zip(x.shape, padding_config, strict=True)
    ]
    out = np.empty(shape, object)
    out[...] = value[()]
    # Negative padding cuts: entries that fall outside are left out.
    for index in np.ndindex(*x.shape):
        place = tuple(
            lo + i * (mid + 1) for i, (lo, _, mid) in zip(index, padding_config, strict=True)
        )
        if all(0 <= p < n for p, n in zip(place, shape, strict=True)):
            out[place] = x[index]
    return out


def _split(x, *, sizes, axis, **_):
    return np.split(x, np.cumsum(sizes)[:-1], axis=axis)


def _stack(*arrays, axis=0, **_):
    return np.stack(arrays, axis=axis)


def _unstack(x, *, axis=0, **_):
    parts = np.moveaxis(x, axis, 0)
    return [parts[i, ...] for i in range(len(parts))]


def _reshape(x, *, new_sizes, dimensions=None, **_):
    moved = x if dimensions is None else x.transpose(dimensions)
    return moved.reshape(new_sizes)


RULES: dict[str, Rule] = {
    "broadcast_in_dim": _broadcast_in_dim,
    "concatenate": lambda *arrays, dimension, **_: np.concatenate(arrays, axis=dimension),
    "expand_dims": lambda x, *, dimensions, **_: np.expand_dims(x, dimensions),
    "pad": _pad,
    "reshape": _reshape,
    "rev": lambda x, *, dimensions, **_: np.flip(x, dimensions),
    "slice": _slice,
    "split": _split,
    "squeeze": lambda x, *, dimensions, **_: np.squeeze(x, axis=tuple(dimensions)),
    "stack": _stack,
    "transpose": lambda x, *, permutation, **_: x.transpose(permutation),
    "unstack": _unstack,
}
