"""A random walk, a drift and a bounded error are told apart; chance is not taken for a bias."""

import numpy as np
import pytest

from retrax.analysis import bias, growth_exponent
from retrax.errors import BadInput

T = np.arange(1000.0)


def walks(count):
    return np.cumsum(np.random.default_rng(0).standard_normal((count, len(T))), axis=1)


def test_exponents_of_known_growth():
    seen = [growth_exponent(walk) for walk in walks(200)]
    assert np.mean(seen) == pytest.approx(0.5, abs=0.01)  # measured: 0.496
    assert np.std(seen) < 0.04  # measured: 0.033
    assert growth_exponent(3 * T) == pytest.approx(1, abs=1e-12)
    assert growth_exponent(np.random.default_rng(1).standard_normal(1000)) == pytest.approx(
        0, abs=0.02
    )
    assert growth_exponent(np.zeros(1000)) == 0


def test_a_bias_is_seen_and_chance_is_not():
    """The straight line through a whole random walk would be called significant half the time."""
    ratios = np.array([bias(T, walk).ratio for walk in walks(200)])
    assert np.std(ratios) == pytest.approx(1.07, abs=0.15)  # Student's t of 15 degrees: 1.07
    pushed = np.array([bias(T, walk + 0.2 * T) for walk in walks(200)])
    assert np.mean(pushed[:, 0]) == pytest.approx(0.2, abs=0.01)
    assert np.mean(pushed[:, 0] / pushed[:, 1] > 3) > 0.9


def test_too_few_errors_are_refused():
    with pytest.raises(BadInput, match="at least 32 numbers"):
        growth_exponent(np.zeros(31))
    with pytest.raises(BadInput, match="at least 32 numbers"):
        bias(np.zeros(4), np.zeros(4))
