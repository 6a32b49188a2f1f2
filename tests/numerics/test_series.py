"""The small-angle functions against 250 digits, on both sides of the switch and at zero."""

from fractions import Fraction
from math import comb, factorial

import jax
import jax.numpy as jnp
import mpmath as mp
import numpy as np
import pytest

from retrax.numerics import series

EPS = float(np.finfo(float).eps)
SWITCH = float(np.sqrt(10.0))


def _sinc(x):
    return mp.sin(mp.sqrt(x)) / mp.sqrt(x)


def _cosc(x):
    return (1 - mp.cos(mp.sqrt(x))) / x


def _sinc3(x):
    return (1 - _sinc(x)) / x


def _cotc(x):
    half = mp.sqrt(x) / 2
    return (1 - half * mp.cot(half)) / x


EXACT = {"sinc": _sinc, "cosc": _cosc, "sinc3": _sinc3, "cotc": _cotc}
# Largest error measured over the angles below, in units of eps: value, gradient.
MEASURED = {
    "sinc": (1.6, 1.3),
    "cosc": (0.6, 1.6),
    "sinc3": (0.7, 2.0),
    "cotc": (1.8, 13.8),
    "d_sinc": (1.1, 2.3),
    "d_cosc": (0.8, 2.6),
    "d_sinc3": (2.1, 6.9),
    "d_cotc": (2.2, 7.6),
}


def derivatives(name, x):
    """f, f' and f'' at x = theta^2 from central differences in 250 digits."""
    f = EXACT[name.removeprefix("d_")]
    h = x / mp.mpf(10) ** 12
    far, near, at, ahead, beyond = (f(x + k * h) for k in (-2, -1, 0, 1, 2))
    first = (far - 8 * near + 8 * ahead - beyond) / (12 * h)
    second = (near - 2 * at + ahead) / h**2
    third = (beyond - 2 * ahead + 2 * near - far) / (2 * h**3)
    return (first, second, third) if name.startswith("d_") else (at, first, second)


def angles(name):
    """1e-12 to 10, to 6 before the pole of cotc, and closely around the switch."""
    last = 6.0 if "cot" in name else 10.0
    return np.concatenate(
        [np.logspace(-12, np.log10(last), 80), SWITCH * (1 + np.linspace(-2e-2, 2e-2, 41))]
    )


@pytest.mark.parametrize("name", MEASURED)
def test_values_and_gradients_are_exact_to_a_few_ulp(name):
    function = getattr(series, name)
    t2 = angles(name) ** 2
    values = np.asarray(jax.jit(function)(jnp.asarray(t2)))
    gradients = np.asarray(jax.jit(jax.vmap(jax.grad(function)))(jnp.asarray(t2)))
    worst = np.zeros(2)
    with mp.workdps(250):
        for x, value, gradient in zip(t2, values, gradients, strict=True):
            x = mp.mpf(float(x))
            f, df, ddf = derivatives(name, x)
            # One ulp of theta^2 moves f by eps |x f'|: no function of theta^2 can do better.
            errors = (
                abs(mp.mpf(float(value)) - f) / (abs(f) + abs(x * df)),
                abs(mp.mpf(float(gradient)) - df) / (abs(df) + abs(x * ddf)),
            )
            worst = np.maximum(worst, [float(error) for error in errors])
    assert np.all(worst <= 3 * EPS * np.array(MEASURED[name])), worst / EPS


@pytest.mark.parametrize(
    ("name", "value", "first", "second"),
    [
        ("sinc", 1.0, -1 / 6, 1 / 60),
        ("cosc", 1 / 2, -1 / 24, 1 / 360),
        ("sinc3", 1 / 6, -1 / 120, 1 / 2520),
        ("cotc", 1 / 12, 1 / 720, 1 / 15120),
        ("d_sinc", -1 / 6, 1 / 60, -1 / 840),
        ("d_cosc", -1 / 24, 1 / 360, -1 / 6720),
        ("d_sinc3", -1 / 120, 1 / 2520, -1 / 60480),
        ("d_cotc", 1 / 720, 1 / 15120, 1 / 201600),
    ],
)
def test_value_and_two_derivatives_at_zero(name, value, first, second):
    function = getattr(series, name)
    zero, one = jnp.zeros(()), jnp.ones(())
    measured = [
        function(zero),
        jax.grad(function)(zero),
        jax.jvp(function, (zero,), (one,))[1],
        jax.grad(jax.grad(function))(zero),
        jax.jvp(jax.grad(function), (zero,), (one,))[1],
    ]
    np.testing.assert_allclose(measured, [value, first, first, second, second], rtol=2e-14)


def test_no_derivative_is_nan_anywhere_up_to_the_pole():
    t2 = jnp.concatenate([jnp.zeros(1), jnp.logspace(-300, 1.55, 400)])
    for name in MEASURED:
        function = getattr(series, name)
        for order in (jax.grad(function), jax.grad(jax.grad(function))):
            assert bool(jnp.all(jnp.isfinite(jax.vmap(order)(t2)))), name


@pytest.mark.parametrize("radius", [1.0, 0.3, 5.0])
def test_atanc_is_exact_to_an_ulp(radius):
    angle = np.concatenate([np.logspace(-12, np.log10(3.1), 80), np.linspace(0.15, 0.3, 41)])
    s2, c = (radius * np.sin(angle)) ** 2, radius * np.cos(angle)
    values = np.asarray(series.atanc(jnp.asarray(s2), jnp.asarray(c)))
    with mp.workdps(40):
        for x, y, value in zip(s2, c, values, strict=True):
            s = mp.sqrt(mp.mpf(float(x)))
            exact = mp.atan2(s, mp.mpf(float(y))) / s
            assert abs(mp.mpf(float(value)) / exact - 1) < 2 * EPS  # measured 0.8 eps


def test_atanc_has_its_derivatives_at_zero():
    zero, c = jnp.zeros(()), jnp.asarray(2.0)
    ds, dc = jax.grad(series.atanc, (0, 1))(zero, c)
    np.testing.assert_allclose([ds, dc], [-1 / 24, -1 / 4], rtol=1e-15)
    second = jax.grad(jax.grad(series.atanc))(zero, c)
    np.testing.assert_allclose(second, 2 / 5 / 32, rtol=1e-15)


# The polynomials, made again from Taylor series in exact arithmetic.
LENGTH = Fraction(series._SWITCH)


def bernoulli(n: int) -> list[Fraction]:
    numbers = [Fraction(1)]
    for m in range(1, n + 1):
        numbers.append(-sum(comb(m + 1, k) * numbers[k] for k in range(m)) / Fraction(m + 1))
    return numbers


def cotangent_coefficients(n: int) -> list[Fraction]:
    numbers = bernoulli(2 * n)
    return [abs(numbers[2 * k]) / factorial(2 * k) for k in range(1, n + 1)]


def alternating(first: int, n: int = 22) -> list[Fraction]:
    return [Fraction((-1) ** k, factorial(2 * k + first)) for k in range(n)]


def derivative(p: list[Fraction]) -> list[Fraction]:
    return [k * c for k, c in enumerate(p)][1:]


TAYLOR = {
    "SINC": alternating(1),
    "COSC": alternating(2),
    "SINC3": alternating(3),
    "COTC": cotangent_coefficients(44),
    "D_COSC": derivative(alternating(2, 23)),
    "D_SINC3": derivative(alternating(3, 23)),
    "D_COTC": derivative(cotangent_coefficients(44)),
}


def chebyshev(n: int) -> list[Fraction]:
    """The polynomial of degree n of [0, LENGTH] that begins with x^n."""
    before, now = [Fraction(1)], [Fraction(-1), 2 / LENGTH]
    for _ in range(n - 1):
        twice = [-2 * c for c in now] + [Fraction(0)]
        for i, c in enumerate(now):
            twice[i + 1] += 4 / LENGTH * c
        before, now = now, [t - b for t, b in zip(twice, [*before, 0, 0], strict=True)]
    return [c / now[-1] for c in now]


@pytest.mark.parametrize("name", TAYLOR)
def test_the_polynomials_are_economised_taylor_series(name):
    table, p = getattr(series, name), list(TAYLOR[name])
    while len(p) > len(table):
        p = [c - p[-1] * t for c, t in zip(p, chebyshev(len(p) - 1), strict=True)][:-1]
    assert table == tuple(float(c) for c in p)
