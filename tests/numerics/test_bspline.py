"""The cardinal B-splines, against SciPy and their own derivatives."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.interpolate import BSpline

from retrax.numerics.bspline import bends, bspline, slopes, weights


@pytest.mark.parametrize("degree, half", [(5, 3), (3, 2)])
def test_it_is_the_cardinal_spline_and_reproduces_lines(degree, half):
    y = np.linspace(-half - 0.5, half + 0.5, 701)
    theirs = BSpline.basis_element(np.arange(-half, half + 1.0), extrapolate=False)(y)
    ours = np.asarray(bspline(jnp.asarray(y), degree))
    assert np.max(np.abs(ours - np.nan_to_num(theirs))) < 3e-16 * 10
    nodes, place = np.arange(-8.0, 9.0), 0.3137
    values = np.asarray(bspline(jnp.asarray(place - nodes), degree))
    assert abs(values.sum() - 1) < 1e-15 and abs(values @ nodes - place) < 2e-15


def test_weights_reproduce_lines():
    arc = jnp.linspace(0.0, 2.0, 41)
    for s in (0.31, 0.9, 1.234567):
        for width in (0.05, 0.1):
            alpha = weights(arc, jnp.asarray(s), jnp.asarray(0.05), jnp.asarray(width))
            assert float(jnp.sum(alpha)) == pytest.approx(1, abs=2e-15)
            assert float(alpha @ arc) == pytest.approx(s, abs=5e-15)
            assert float(jnp.min(alpha)) >= 0


def test_it_has_four_derivatives_at_its_knots():
    def derivative(x):
        return bspline(x[None])[0]

    for _ in range(4):
        derivative = jax.grad(derivative)
    for knot in (-2.0, -1.0, 0.0, 1.0, 2.0, 3.0):
        left, right = (float(derivative(jnp.asarray(knot + e))) for e in (-1e-9, 1e-9))
        assert left == pytest.approx(right, abs=1e-7)


@pytest.mark.parametrize("degree", [3, 5])
def test_its_derivatives_are_those_of_its_values_also_in_the_middle(degree):
    x = jnp.asarray([-2.3, -1.0, -0.4, 0.0, 0.4, 1.7])
    for order in (0, 1):
        slope = jax.vmap(jax.grad(lambda x, order=order: bspline(x, degree, order)))(x)
        np.testing.assert_allclose(slope, bspline(x, degree, order + 1), rtol=0, atol=2e-15)


def test_slopes_and_bends_are_the_derivatives_of_the_weights():
    nodes, s = jnp.linspace(0.0, 2.0, 41), jnp.asarray(1.2345)
    spacing, width = jnp.asarray(0.05), jnp.asarray(0.1)
    first = jax.jacfwd(lambda s: weights(nodes, s, spacing, width))
    np.testing.assert_allclose(slopes(nodes, s, spacing, width), first(s), atol=1e-13)
    np.testing.assert_allclose(bends(nodes, s, spacing, width), jax.jacfwd(first)(s), atol=1e-11)
