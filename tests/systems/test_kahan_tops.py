"""Integrals of Kahan's map, in closed form, beside those of the field."""

from fractions import Fraction

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import retrax as rx

S = rx.systems
MATRIX = [[0.5, 0.1, 0.05], [0.1, 0.8, -0.2], [0.05, -0.2, 1.1]]
FORMS = ([[1, 0.2, 0], [0.2, 3, 0.1], [0, 0.1, 4]], [[2, 0, 0.1], [0, 1, 0.1], [0.1, 0.1, 5]])
THREE, SIX = [1.0, 0.5, 2.0], [0.4, -0.3, 1.2, 0.3, 0.5, 0.8]

# What the map keeps, what the field alone keeps: largest errors in 500 steps of h = 0.1.
FIELDS = {
    "Euler's top": (S.EulerTop([3.0, 2.0, 1.0]), THREE, {"C/B1", "C/B2", "C/B3", "H/C"}),
    "Euler's top in any axes": (S.LiePoisson(rx.SO3(), MATRIX), THREE, {"H/B", "C/B"}),
    "gyrostat, one rotor": (
        S.zhukovski_volterra([3.0, 2.0, 1.0], [0.3, 0, 0]), THREE, {"F2", "F3"},
    ),
    "gyrostat, two rotors": (
        S.zhukovski_volterra([3.0, 2.0, 1.4], [0.3, 0, -0.4]), THREE, {"F2"},
    ),
    "gyrostat, three rotors": (
        S.zhukovski_volterra([3.0, 2.0, 1.4], [0.3, 0.2, -0.4]), THREE, set(),
    ),
    "Lagrange's top": (
        S.lagrange_top(1.7, 0.9, 0.6), SIX, {"linear integral x3", "modified energy", "G"},
    ),
    "Nambu, homogeneous": (S.Nambu(*FORMS), [0.4, -0.3, 0.6], {"H/B", "K/B"}),
    "Nambu, not homogeneous": (
        S.Nambu(*FORMS, linear=([0.1, 0, 0], [0, 0.2, 0])), [0.4, -0.3, 0.6], set(),
    ),
    "symmetric Kirchhoff body": (
        S.kirchhoff([1.0, 1.0, 2.0], [3.0, 3.0, 1.0]), SIX, {"linear integral x3"},
    ),
    "Clebsch's body with equal a": (
        S.kirchhoff([1.3, 1.3, 1.3], [0.2, 0.7, 1.3]), SIX, {"J"},
    ),
    "Clebsch's body": (S.clebsch([1.0, 2.0, 3.0], 0.5, 0.25), SIX, set()),
    "cyclic Lotka-Volterra": (
        S.LotkaVolterra.cyclic(), [1.0, 0.5, 0.7], {"linear integral (1, 1, 1)"},
    ),
}  # fmt: skip


@pytest.mark.parametrize("title", FIELDS)
def test_a_run_lists_what_the_map_keeps_and_what_the_field_alone_keeps(title):
    system, start, kept = FIELDS[title]
    run = rx.simulate(system, rx.Kahan(), system.at(start), h=0.1, steps=500, progress=False)
    errors = {name: np.max(np.abs(v - v[0])) for name, v in run.invariants().items()}
    assert kept <= set(errors)
    assert all(errors[name] < 5e-14 for name in kept)  # measured: at most 1.4e-14
    plain = {name for name in errors if name not in kept}
    assert all(errors[name] > 1e-5 for name in plain if name != "energy" or errors[name] != 0)


def exact_step(coefficients, x, h):
    """One step of Kahan's method in rational numbers, by Cramer's rule on fractions."""
    Q, B, c = coefficients
    n = len(x)
    rate = [
        sum(Q[i][j][k] * x[j] * x[k] for j in range(n) for k in range(n))
        + sum(B[i][j] * x[j] for j in range(n)) + c[i]
        for i in range(n)
    ]  # fmt: skip
    slope = [
        [2 * sum(Q[i][j][k] * x[k] for k in range(n)) + B[i][j] for j in range(n)] for i in range(n)
    ]
    rows = [
        [Fraction(int(i == j)) - h / 2 * slope[i][j] for j in range(n)] + [h * rate[i]]
        for i in range(n)
    ]
    for i in range(n):
        rows[i] = [v / rows[i][i] for v in rows[i]]
        for k in range(n):
            if k != i:
                rows[k] = [a - rows[k][i] * b for a, b in zip(rows[k], rows[i], strict=True)]
    return [x[i] + rows[i][n] for i in range(n)]


def as_fractions(system):
    def exact(part):
        nested = np.vectorize(lambda v: Fraction(v).limit_denominator(10**4), otypes=[object])
        return nested(part).tolist()

    return tuple(exact(part) for part in system.coefficients())


def test_the_gyrostats_integral_holds_without_rounding():
    a = [Fraction(1, 3), Fraction(1, 2), Fraction(1)]
    b = [Fraction(3, 10), Fraction(0), Fraction(-2, 5)]
    h, x = Fraction(1, 2), [Fraction(1), Fraction(1, 2), Fraction(2)]
    system = S.zhukovski_volterra([3.0, 2.0, 1.0], [float(v) for v in b])

    def F2(x):
        a3, a1 = a[1] - a[0], a[2] - a[1]
        form = a1 * x[2] ** 2 - a3 * x[0] ** 2 + 2 * (b[2] * x[2] + b[0] * x[0])
        top = form - h**2 / 4 * (a1 * b[0] ** 2 - a3 * b[2] ** 2) * x[1] ** 2
        return top / (1 - h**2 / 4 * a3 * a1 * x[1] ** 2)

    assert F2(exact_step(as_fractions(system), x, h)) == F2(x)


def test_lagranges_integrals_hold_without_rounding():
    A, D, chi, h = Fraction(1, 2), Fraction(5, 4), Fraction(3, 5), Fraction(1, 2)
    system = S.lagrange_top(2.0, 0.8, 0.6)
    x = [Fraction(n, 10) for n in (4, -3, 12, 3, 5, 8)]

    def both(x):
        e2, k = h**2 / 4, x[2] * (D - A)
        w = [k * x[0] + chi * x[3], k * x[1] + chi * x[4]]
        v, b = x[0] * w[0] + x[1] * w[1], chi * x[2] * (2 * D - A) / A
        squares = x[0] ** 2 + x[1] ** 2 - e2 * (w[0] ** 2 + w[1] ** 2)
        G = (b * x[5] + (1 - e2 * k * D * x[2]) * v) / (b + e2 * A * chi * v)
        return x[2], A / 2 * squares + D / 2 * x[2] ** 2 + chi * x[5], G

    assert both(exact_step(as_fractions(system), x, h)) == both(x)
    found = system.exact_integrals(
        jnp.array([float(v) for v in x]), jnp.asarray(0.5), system.kahan_integrals()
    )
    expected = dict(zip(["linear integral x3", "modified energy", "G"], both(x), strict=True))
    assert {k: float(v) for k, v in found.items()} == pytest.approx(
        {k: float(v) for k, v in expected.items()}, rel=1e-15
    )


def test_linear_integrals_of_any_quadratic_field_are_found():
    """The first two coordinates turn each other; the sum of both and the third stays."""

    def field(x):
        return jnp.stack([x[1] * x[2], -x[0] * x[2], x[0] * x[2] - x[1] * x[2]])

    system = rx.QuadraticField(field, 3)
    run = rx.simulate(system, rx.Kahan(), system.at(THREE), h=0.05, steps=200, progress=False)
    values = run.invariants()["linear integral (1, 1, 1)"]
    assert np.max(np.abs(values - values[0])) < 1e-14


def test_members_with_fields_of_their_own_list_nothing_that_depends_on_their_numbers():
    tops = [S.zhukovski_volterra([3.0, 2.0, 1.0], rotor) for rotor in ([0.3, 0, 0], [0.3, 0.1, 0])]
    states = [top.at(THREE) for top in tops]
    stacked = jax.tree.map(lambda *x: jnp.stack(x), *states)
    crowd = rx.ensemble(tops, rx.Kahan(), stacked, h=0.1, steps=5, progress=False)
    assert not any(str(name).startswith("F") for name in crowd)
