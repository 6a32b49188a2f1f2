import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from retrax.show.style import extremes


@settings(deadline=None, max_examples=200)
@given(arrays(np.float64, st.integers(1, 400), elements=st.floats(-1e6, 1e6)), st.integers(4, 120))
def test_extremes_and_ends_are_kept_in_order(values, points):
    kept = extremes(values, points)
    assert len(kept) <= max(points, 4)
    assert kept[0] == 0 and kept[-1] == len(values) - 1
    assert np.all(np.diff(kept) > 0)
    assert np.min(values[kept]) == np.min(values)
    assert np.max(values[kept]) == np.max(values)


@settings(deadline=None, max_examples=50)
@given(st.integers(0, 9_999), st.sampled_from([-1.0, 1.0]))
def test_a_lone_spike_survives(where, sign):
    values = np.sin(np.linspace(0, 50, 10_000)) * 1e-3
    values[where] = sign
    kept = extremes(values, 100)
    assert where in kept
    # Every stretch of time is still there, not only the one with the spike.
    assert np.max(np.diff(kept)) < 2 * 10_000 / 49


def test_a_short_series_is_kept_whole():
    assert extremes(np.arange(10.0), 10).tolist() == list(range(10))
