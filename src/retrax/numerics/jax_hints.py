"""Hints to compilers: which axis to keep as a loop, and which programs to compile quickly."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache, wraps
from typing import TypeVar

import jax
from jax.ad_checkpoint import checkpoint_name
from jaxtyping import PyTree

from retrax.numerics.reuse import Jitted

T = TypeVar("T")
KEPT_AXIS = "retrax: kept axis"


def keep_axis(tree: T) -> T:
    """Ask the native back end to keep the first axis of these arrays as a loop, in vector lanes.

    Elsewhere this does nothing. Long axes are kept without being asked; this is for short ones,
    such as the stages of a step, for which all work is alike.
    """
    return jax.tree.map(lambda x: checkpoint_name(x, KEPT_AXIS), tree)


# The optimiser and the newer of the two code generators for the CPU take most of the time that
# compiling a step takes; without them the program comes in a quarter of it and runs half as fast.
_QUICK: dict[str, int] = {
    "xla_backend_optimization_level": 0,
    "xla_cpu_use_fusion_emitters": False,
}


def compile_once(function: Callable[..., T]) -> Callable[..., T]:
    """Compile, as `Jitted` does, a function whose compilation costs more than its use.

    Inside a program that is being traced by `jax.jit` the function becomes a part of that program:
    JAX takes options for whole programs only.
    """

    @cache
    def compile_now() -> Callable[..., T]:
        return Jitted(function, compiler_options=_known_options())

    @wraps(function)
    def call(*arguments: PyTree) -> T:
        try:
            return compile_now()(*arguments)
        except ValueError as cause:
            if "compiler_options" not in str(cause):
                raise
            return function(*arguments)

    return call


@cache
def _known_options() -> dict[str, int]:
    """Return the options that this version of JAX knows: all of them or none."""
    try:
        jax.jit(lambda x: x, compiler_options=_QUICK)(0.0)
    except Exception:
        return {}
    return _QUICK


_matrix_free: ContextVar[bool] = ContextVar("matrix_free", default=False)


@contextmanager
def matrix_free() -> Iterator[None]:
    """Trace derivatives of solutions without the matrices of their equations.

    Matrices of all stages of a step are too large for a scalar program.
    """
    token = _matrix_free.set(True)
    try:
        yield
    finally:
        _matrix_free.reset(token)


def is_matrix_free() -> bool:
    """Tell whether derivatives are traced inside `matrix_free`."""
    return _matrix_free.get()
