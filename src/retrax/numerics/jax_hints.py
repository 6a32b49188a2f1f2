"""Hints to compilers: which axis to keep as a loop, and which programs to compile quickly."""

from collections.abc import Callable
from functools import cache, wraps
from typing import Any

import jax
from jax.ad_checkpoint import checkpoint_name

from retrax.numerics.reuse import Jitted

KEPT_AXIS = "retrax: kept axis"


def keep_axis(tree: Any) -> Any:
    """The same arrays, whose first axis the native back end is to keep as a loop, in vector lanes.

    Elsewhere this does nothing. Long axes are kept without being asked; this is for short ones,
    such as the stages of a step, for which all work is alike.
    """
    return jax.tree.map(lambda x: checkpoint_name(x, KEPT_AXIS), tree)


# The optimiser and the newer of the two code generators for the CPU take most of the time that
# compiling a step takes; without them the program comes in a quarter of it and runs half as fast.
_QUICK: dict[str, Any] = {"xla_backend_optimization_level": 0, "xla_cpu_use_fusion_emitters": False}


def compiled_once(function: Callable) -> Callable:
    """`Jitted` for a function whose compilation costs more than its use."""

    @cache
    def compiled() -> Callable:
        return Jitted(function, compiler_options=_known_options())

    @wraps(function)
    def call(*arguments: Any) -> Any:
        return compiled()(*arguments)

    return call


@cache
def _known_options() -> dict[str, Any]:
    """The options, or none where this version of JAX does not know them."""
    try:
        jax.jit(lambda x: x, compiler_options=_QUICK)(0.0)
    except Exception:
        return {}
    return _QUICK
