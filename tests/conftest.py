"""Strict in tests, plain in use: no silent promotion of types or ranks anywhere in retrax."""

import jax
import pytest

import retrax  # noqa: F401  (switches JAX to float64)

jax.config.update("jax_numpy_dtype_promotion", "strict")
jax.config.update("jax_numpy_rank_promotion", "raise")


@pytest.fixture
def key():
    return jax.random.key(0)
