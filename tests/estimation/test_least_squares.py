"""Searches for the least squares end where they say."""

import numpy as np
import pytest

from retrax.estimation.least_squares import levenberg_marquardt
from retrax.estimation.problem import Linear
from retrax.estimation.unknowns import Point


def search(lowest, start=2.0, target=-1.0):
    """The end of a search for x = `target` where nothing below `lowest` exists."""

    def linear(point):
        x = point.p[0]
        residual = np.array([x - target, 2 * (x - target)])
        return Linear(residual if x > lowest else residual * np.nan, np.array([[1.0], [2.0]]))

    def moved(point, change):
        return point._replace(p=point.p + change)

    point = Point(np.array([start]), None, np.zeros(0))
    return levenberg_marquardt(linear, moved, point, 200, lambda size: 1e-6 * size)


@pytest.mark.parametrize("lowest", [0.0, 1.3, -0.9])
def test_a_search_that_is_stopped_at_an_edge_has_not_converged(lowest):
    found = search(lowest)
    assert not found.converged and found.edge
    assert found.point.p[0] > lowest


def test_a_search_that_passes_an_edge_converges():
    found = search(-1.5)
    assert found.converged and not found.edge
    assert abs(found.point.p[0] + 1.0) < 1e-6
