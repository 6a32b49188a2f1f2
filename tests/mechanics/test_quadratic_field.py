"""Quadratic fields from functions and from coefficients; what is not quadratic is refused."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import retrax as rx

RNG = np.random.default_rng(3)
Q, B, C = RNG.standard_normal((4, 4, 4)), RNG.standard_normal((4, 4)), RNG.standard_normal(4)
X, Y = RNG.standard_normal((2, 4))


def general(x):
    return jnp.einsum("ijk,j,k->i", Q, x, x) + B @ x + C


def test_a_function_and_its_coefficients_are_the_same_field():
    field = rx.QuadraticField(general)
    again = rx.QuadraticField(tuple(field.coefficients()))
    assert field.dim == again.dim == 4
    expected = np.einsum("ijk,j,k->i", Q, X, X) + B @ X + C
    for each in (field, again):
        np.testing.assert_allclose(each.field(jnp.asarray(X)), expected, rtol=0, atol=2e-14)
    np.testing.assert_allclose(field.coefficients().Q, (Q + Q.swapaxes(1, 2)) / 2, atol=1e-15)


def test_the_polarised_form_is_symmetric_and_gives_the_field_back():
    field = rx.QuadraticField(general)
    x, y = jnp.asarray(X), jnp.asarray(Y)
    symmetric = (Q + Q.swapaxes(1, 2)) / 2
    expected = np.einsum("ijk,j,k->i", symmetric, X, Y) + B @ (X + Y) / 2 + C
    np.testing.assert_allclose(field.polarise(x, y), expected, rtol=0, atol=2e-14)
    np.testing.assert_allclose(field.polarise(y, x), expected, rtol=0, atol=2e-14)
    np.testing.assert_allclose(field.polarise(x, x), field.field(x), rtol=0, atol=1e-14)


@pytest.mark.parametrize(
    "field, dim, sentence",
    [
        (lambda x: x**3 * jnp.ones(2), None, r"misses its second Taylor polynomial by [1-9]"),
        (lambda x: jnp.abs(x) * x * jnp.ones(2), None, "is not quadratic"),
        (lambda x: x * x, None, "give one as dim"),
        (lambda x: x * x * jnp.ones(3), 2, "field cannot be evaluated on JAX arrays"),
        (lambda x: jnp.ones(2) @ x, None, "maps no space to itself"),
        (3.0, None, "must be a function"),
        ((np.ones((2, 3, 3)), None, None), None, r"Q has shape \(2, 3, 3\)"),
        ((np.ones((2, 2, 2)), np.ones(2), None), None, "B has shape"),
        ((np.full((2, 2, 2), np.nan), None, None), None, "Q must be finite"),
    ],
)
def test_what_is_not_a_quadratic_field_is_refused(field, dim, sentence):
    with pytest.raises(rx.BadInput, match=sentence):
        rx.QuadraticField(field, dim)


def test_only_methods_without_momenta_step_it():
    field = rx.QuadraticField(lambda x: x * x, dim=2)
    with pytest.raises(rx.BadInput, match="steps systems with momenta"):
        rx.simulate(field, rx.LieVerlet(), [0.1, 0.2], h=0.1, steps=1)
    run = rx.simulate(field, rx.RKMK("dopri5"), [0.1, 0.2], h=0.1, steps=10)
    np.testing.assert_allclose(run.y[-1], [0.1 / 0.9, 0.2 / 0.8], rtol=1e-9)


def test_a_run_is_differentiable_in_the_start_and_in_the_coefficients():
    start, direction = jnp.asarray(X / 4), jnp.asarray(Y)
    field = rx.QuadraticField((Q, B, C))

    def end(scale, x):
        scaled = jax.tree.map(lambda leaf: scale * leaf, field)
        return rx.simulate(scaled, rx.Kahan(), x, h=0.02, steps=10).y[-1]

    _, slope = jax.jvp(end, (jnp.asarray(1.0), start), (jnp.asarray(0.3), direction))
    e = 1e-5
    ahead, behind = (end(jnp.asarray(1 + s * 0.3), start + s * direction) for s in (e, -e))
    np.testing.assert_allclose(slope, (ahead - behind) / (2 * e), rtol=0, atol=2e-8)
