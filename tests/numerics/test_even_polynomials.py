"""The polynomials of the small-angle functions, made again from their Taylor series."""

from fractions import Fraction
from math import comb, factorial

import pytest

from retrax.numerics import even_polynomials, series

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
    table, p = getattr(even_polynomials, name), list(TAYLOR[name])
    while len(p) > len(table):
        p = [c - p[-1] * t for c, t in zip(p, chebyshev(len(p) - 1), strict=True)][:-1]
    assert table == tuple(float(c) for c in p)
