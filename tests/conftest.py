"""Strict in tests, plain in use: no silent promotion of types or ranks anywhere in retrax."""

import os
from importlib.metadata import version

# Most of the time of the tests is XLA compiling programs that run once: let it compile quickly.
QUICK = ["--xla_backend_optimization_level=0"]
if version("jax") < "0.11":  # later versions stop at a flag that they do not know
    QUICK.append("--xla_cpu_use_fusion_emitters=false")
os.environ.setdefault("XLA_FLAGS", " ".join(QUICK))

import jax
import pytest

from retrax.numerics.checks import require_double_precision

require_double_precision()
jax.config.update("jax_numpy_dtype_promotion", "strict")
jax.config.update("jax_numpy_rank_promotion", "raise")


@pytest.fixture
def key():
    return jax.random.key(0)
