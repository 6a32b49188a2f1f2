"""The errors that a fit claims are those it makes: many draws of the noise."""

import numpy as np
import pytest
from pendulums import GUESS, TRUE, attitudes, motion, pendulum

import retrax as rx
from retrax.numerics.reuse import forget


def draws(count, samples, noise):
    """Parameters found from `count` records, and the covariance that the first fit claims."""
    run = motion(np.linspace(0.0, 10.0 * samples / 1000, samples + 1))
    found, claimed = [], None
    for seed in range(count):
        if seed % 10 == 0:  # programs of fits take memory maps
            forget()
        data = rx.Measurements(run.t, attitudes(run, noise, seed), noise=noise)
        fit = rx.fit(pendulum, data, GUESS)
        assert fit.converged
        claimed = fit.covariance if claimed is None else claimed
        found.append(fit.values)
    return np.array(found), claimed


def compare(found, claimed):
    """The largest ratio of variances along principal axes less 1, and the bias in its errors."""
    truth = np.array([TRUE[name] for name in ("J2", "J3", "mgl")])
    root = np.linalg.inv(np.linalg.cholesky(claimed))
    white = (found - truth) @ root.T
    ratios = np.linalg.eigvalsh(np.cov(white.T))
    bias = np.mean(white, axis=0) * np.sqrt(len(found))
    return float(np.max(np.abs(ratios - 1))), float(np.max(np.abs(bias)))


@pytest.mark.campaign
def test_errors_are_those_of_cramer_and_rao():
    """Few draws; run as a script, this file takes 1000 draws of 1000 attitudes."""
    count = 60
    apart, bias = compare(*draws(count, 200, 0.01))
    assert apart < 4 * np.sqrt(2 / count)  # the extreme of three variances of that many draws
    assert bias < 3.5


if __name__ == "__main__":
    print(compare(*draws(1000, 1000, 0.01)))
