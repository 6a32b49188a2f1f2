"""Strict in tests, plain in use: no silent promotion of types or ranks anywhere in retrax."""

import ctypes
import os
import sys
from importlib.metadata import version

# Most of the time of the tests is XLA compiling programs that run once: let it compile quickly.
QUICK = ["--xla_backend_optimization_level=0"]
if version("jax") < "0.11":  # later versions stop at a flag that they do not know
    QUICK.append("--xla_cpu_use_fusion_emitters=false")
os.environ.setdefault("XLA_FLAGS", " ".join(QUICK))

import jax
import pytest

from retrax.numerics.checks import require_double_precision
from retrax.numerics.reuse import forget

require_double_precision()
jax.config.update("jax_numpy_dtype_promotion", "strict")
jax.config.update("jax_numpy_rank_promotion", "raise")


@pytest.fixture
def key():
    return jax.random.key(0)


@pytest.fixture(scope="module", autouse=True)
def _forget_programs():
    """Release what a module has compiled: a process that keeps all runs out of memory maps."""
    yield
    forget()
    if sys.platform == "linux":  # the C library keeps freed memory until it is asked
        ctypes.CDLL(None).malloc_trim(0)
