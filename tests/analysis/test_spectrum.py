"""Spectra: lines where they are, nothing where there is nothing."""

import numpy as np
import pytest

import retrax as rx
from retrax_papers.rods.runs import frozen_lines, motion

spectrum = rx.analysis.spectrum


def test_two_lines_are_found_with_their_heights_and_nothing_between():
    t = 0.05 * np.arange(12_001)
    found = spectrum(t, 3.0 + np.cos(1.2345 * t) + 0.1 * np.sin(2.7182 * t))
    peaks = found.peaks()
    assert np.max(np.abs(peaks[:, 0] - [1.2345, 2.7182])) < 2e-4  # bins are 0.0105 apart
    assert np.max(np.abs(peaks[:, 1] - [0.0, -20.0])) < 0.6
    assert found.fraction(1.2345) == pytest.approx(1 / 1.01, abs=1e-3)
    assert found.floor() < -100
    assert np.sum(found.power) == pytest.approx(1.0, abs=1e-12)


def test_noise_has_a_floor():
    t = 0.05 * np.arange(12_001)
    noise = 1e-3 * np.random.default_rng(1).normal(size=len(t))
    # The window is 2.0044 bins wide; exponentially distributed power has the median log 2.
    expected = 10 * np.log10(1e-6 * 4 * 2.0044 / len(t) * np.log(2))
    assert spectrum(t, np.cos(1.2345 * t) + noise).floor() == pytest.approx(expected, abs=0.3)


def test_the_lines_of_strings():
    """No contact: one line. Frozen: its own lines. Moving: the gaps are filled."""
    free = motion(0.0, 64, (2.0, 2.0), touching=False).spectrum
    assert len(free.peaks()) == 1 and free.fraction(1.0) > 0.9999
    frozen, moving = (motion(G, 64, (2.0, 2.6)).spectrum for G in (0.0, 0.8))
    exact = frozen_lines(2.0, 2.6)
    for line in (0.785247, 1.0, 1.319976, 1.664754):  # by another program
        assert min(abs(line - x) for x in exact) < 1e-6
    lines = frozen.peaks()
    assert len(lines) == 4
    assert max(min(abs(w - x) / x for x in exact) for w in lines[:, 0]) < 0.015  # n = 64
    assert len(moving.peaks()) > 8
    assert frozen.floor(4.0) < -100 and -70 < moving.floor(4.0) < -40


def test_signals_without_a_spectrum_are_refused():
    t = np.arange(100.0)
    with pytest.raises(rx.BadInput, match="equally spaced"):
        spectrum(t**2, np.sin(t))
    with pytest.raises(rx.BadInput, match="at least 16"):
        spectrum(t[:5], t[:5])
    with pytest.raises(rx.BadInput, match="do not change"):
        spectrum(t, np.ones(100))
