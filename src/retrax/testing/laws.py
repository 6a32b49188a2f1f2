"""How laws are measured: many samples at once, errors relative to what is compared."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key, PyTree

from retrax.errors import BadInput, CheckFailed
from retrax.groups.base import AbstractLieGroup
from retrax.numerics.checks import quote
from retrax.numerics.evaluate import Evaluated, evaluate

SAMPLES = 4
SCALES = (2.0, 1e-5, 1e-9)  # of xi; two more mix a small half with a large one
SMALL_HALF = 5e-6


class Batched:
    """An object whose methods take a batch of samples."""

    def __init__(self, one: AbstractLieGroup, size: int):
        self._one, self._size, self._methods = one, size, {}

    def __getattr__(self, name: str) -> Callable:
        if name not in self._methods:
            self._methods[name] = on_batches(getattr(self._one, name))
        return self._methods[name]

    def identity(self) -> PyTree:
        one = evaluate(type(self._one).identity, self._one)
        return jax.tree.map(lambda leaf: np.stack([leaf] * self._size), one)


def on_batches(function: Callable) -> Callable:
    """Map `function` of one sample over batches; NumPy out unless JAX is tracing."""

    def run_batches(*arguments):
        return jax.vmap(function)(*arguments)

    return Evaluated(run_batches)


def slope(function: Callable, at: PyTree, along: PyTree) -> tuple[PyTree, PyTree]:
    """Return values of a function of batches, and its derivatives by JAX along another."""
    return evaluate(lambda at, along: jax.jvp(function, (at,), (along,)), at, along)


def generator(key: Key[Array, ""] | None) -> np.random.Generator:
    """Return a NumPy generator seeded by a JAX key; the same one for `None` every time."""
    require_key(key)
    return np.random.default_rng(0 if key is None else np.asarray(jax.random.key_data(key)))


def require_key(key: object) -> None:
    """Reject anything but `None` and one key."""
    if key is None:
        return
    array = isinstance(key, jax.Array)
    if not (array and jnp.issubdtype(key.dtype, jax.dtypes.prng_key) and key.shape == ()):
        raise BadInput(f"key = {quote(key)} is not a key, as jax.random.key(0) makes one.")


def algebra_samples(group: AbstractLieGroup, rng: np.random.Generator) -> Float[np.ndarray, "m n"]:
    """Return algebra vectors in random directions at every scale, `SAMPLES` of each."""
    first = np.arange(group.dim) < max(1, group.dim // 2)
    patterns = [np.full(group.dim, scale) for scale in SCALES]
    patterns += [np.where(first, SMALL_HALF, 1.0), np.where(first, 1.0, SMALL_HALF)]
    scale = np.tile(patterns, (SAMPLES, 1))
    directions = rng.standard_normal(scale.shape)
    return scale * directions / np.linalg.norm(directions, axis=1, keepdims=True)


def gap(a: PyTree, b: PyTree, scale: float | np.ndarray = 1.0) -> float:
    """Find the largest difference of two batches, relative to `scale` or their size, if larger."""
    size = np.maximum(magnitude(a), magnitude(b))
    return float(np.max(_difference(a, b) / np.maximum(size, scale)))


def relative_gap(a: PyTree, b: PyTree) -> float:
    """Return the largest difference of two batches, relative to their size, however small."""
    return gap(a, b, scale=np.finfo(float).tiny)


def magnitude(batch: PyTree) -> Float[np.ndarray, " m"]:
    """Return the largest number of each sample."""
    return np.max(np.abs(_rows(batch)), axis=1)


def times(matrices: Float[np.ndarray, "m n n"], vectors: Float[np.ndarray, "m n"]) -> np.ndarray:
    return np.einsum("mij,mj->mi", matrices, vectors)


def pair(a: PyTree, b: PyTree) -> Float[np.ndarray, "m 1"]:
    """Return the sum of products of two batches, sample by sample."""
    return np.sum(_rows(a) * _rows(b), axis=1, keepdims=True)


def judge(who: str, errors: dict[str, float], allowed: float) -> dict[str, float]:
    """Return `errors`; raise `CheckFailed` for the first that is more than `allowed`."""
    for law, error in errors.items():
        if not error <= allowed:
            raise CheckFailed(
                f"{who} breaks the law '{law}': error {error:.1e}, allowed {allowed:.0e}."
            )
    return errors


def _difference(a: PyTree, b: PyTree) -> Float[np.ndarray, " m"]:
    return np.max(np.abs(_rows(a) - _rows(b)), axis=1)


def _rows(batch: PyTree) -> Float[np.ndarray, "m n"]:
    leaves = [np.asarray(leaf) for leaf in jax.tree.leaves(batch)]
    return np.concatenate([leaf.reshape(len(leaf), -1) for leaf in leaves], axis=1)
