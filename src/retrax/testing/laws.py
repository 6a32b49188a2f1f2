"""How laws are measured: many samples at once, errors relative to what is compared."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import PyTree

from retrax.errors import CheckFailed


class Batched:
    """An object whose methods take `size` samples at once, each compiled when first used."""

    def __init__(self, one: Any, size: int):
        self._one, self._size, self._compiled = one, size, {}

    def __getattr__(self, name: str) -> Callable:
        method = getattr(self._one, name)
        if name not in self._compiled:
            self._compiled[name] = jax.jit(jax.vmap(lambda *arguments: method(*arguments)))
        return self._compiled[name]

    def identity(self) -> PyTree:
        return jax.tree.map(lambda leaf: jnp.stack([leaf] * self._size), self._one.identity())


def gap(a: PyTree, b: PyTree) -> float:
    """The largest difference of two batches, relative to 1 or to their size, if larger."""
    a, b = _rows(a), _rows(b)
    size = np.maximum(np.max(np.abs(a), axis=1), np.max(np.abs(b), axis=1))
    return float(np.max(np.max(np.abs(a - b), axis=1) / np.maximum(size, 1.0)))


def relative_gap(a: PyTree, b: PyTree) -> float:
    """The largest difference of two batches, relative to their size, however small."""
    a, b = _rows(a), _rows(b)
    size = np.maximum(np.max(np.abs(a), axis=1), np.max(np.abs(b), axis=1))
    return float(np.max(np.max(np.abs(a - b), axis=1) / size))


def judge(who: str, errors: dict[str, float], allowed: float) -> dict[str, float]:
    """Return `errors`; raise `CheckFailed` for the first that is more than `allowed`."""
    for law, error in errors.items():
        if not error <= allowed:
            raise CheckFailed(
                f"{who} breaks the law '{law}': error {error:.1e}, allowed {allowed:.0e}."
            )
    return errors


def _rows(batch: PyTree) -> np.ndarray:
    """One row of numbers a sample."""
    leaves = [np.asarray(leaf) for leaf in jax.tree.leaves(batch)]
    return np.concatenate([leaf.reshape(len(leaf), -1) for leaf in leaves], axis=1)
