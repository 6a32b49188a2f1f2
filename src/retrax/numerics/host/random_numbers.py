"""Rules for random numbers: Threefry with 20 rounds, as JAX splits and counts with it."""

from typing import Any

import jax
import numpy as np

from retrax.numerics.host.program import (
    Call,
    Equation,
    HostArray,
    NoRule,
    Rules,
    dtype_of,
    pack_keys,
    unpack_keys,
)

_ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
_PARITY = np.uint32(0x1BD11BDA)


def threefry(key: HostArray, high: HostArray, low: HostArray) -> tuple[HostArray, HostArray]:
    """Scramble pairs of words with keys, two words along the last axis each."""
    first, second = np.moveaxis(np.asarray(key), -1, 0)
    words = [first, second, first ^ second ^ _PARITY]
    x, y = high + words[0], low + words[1]
    for k in range(5):
        for turn in _ROTATIONS[k % 2]:
            x = x + y
            y = x ^ ((y << np.uint32(turn)) | (y >> np.uint32(32 - turn)))
        x, y = x + words[(k + 1) % 3], y + words[(k + 2) % 3] + np.uint32(k + 1)
    return x, y


def _scramble(keys: Any, shape: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
    """Scramble the numbers 0, 1, ... of an array of this shape with each of the keys."""
    count = np.arange(int(np.prod(shape, dtype=np.int64)), dtype=np.uint64).reshape(shape)
    words = unpack_keys(np.asarray(keys))
    words = words.reshape((*words.shape[:-1], *[1] * len(shape), 2))
    high, low = (count >> np.uint64(32)).astype(np.uint32), count.astype(np.uint32)
    x, y = np.broadcast_arrays(*threefry(words, high, low))
    return x, y


def _bits(equation: Equation) -> Call:
    _require_counting()
    width, shape = equation.params["bit_width"], tuple(equation.params["shape"])

    def bits(keys: Any) -> Any:
        high, low = _scramble(keys, shape)
        if width == 64:
            return high.astype(np.uint64) << np.uint64(32) | low
        return (high ^ low).astype(f"u{width // 8}")

    return bits


def _split(equation: Equation) -> Call:
    _require_counting()
    shape = tuple(equation.params["shape"])
    return lambda keys: pack_keys(np.stack(_scramble(keys, shape), -1))


def _fold_in(keys: Any, data: Any) -> Any:
    words, data = unpack_keys(np.asarray(keys)), np.asarray(data)
    seed = unpack_keys(data.astype(np.uint32).astype(np.uint64))
    return pack_keys(np.stack(threefry(words, seed[..., 0], seed[..., 1]), -1))


def _wrap(equation: Equation) -> Call:
    _require_threefry(equation)
    return pack_keys


def _seed(equation: Equation) -> Call:
    _require_threefry(equation)
    width = dtype_of(equation.invars[0]).itemsize * 8
    low = np.uint64(0xFFFFFFFF)
    return lambda x: np.asarray(x).astype(np.uint64) & (low if width <= 32 else ~np.uint64(0))


def _require_threefry(equation: Equation) -> None:
    if "fry" not in str(equation.params["impl"]):
        raise NoRule("keys that are not Threefry's")


def _require_counting() -> None:
    config: Any = jax.config
    if not config.jax_threefry_partitionable:
        raise NoRule("random numbers that are not counted")


RULES: Rules = {
    "random_bits": _bits,
    "random_split": _split,
    "random_fold_in": lambda equation: _fold_in,
    "random_seed": _seed,
    "random_wrap": _wrap,
    "random_unwrap": lambda equation: unpack_keys,
}
