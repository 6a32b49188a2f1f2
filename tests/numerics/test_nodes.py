"""Nodes: the tables are those of the textbooks, the order is found, mistakes are refused."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import retrax as rx
from retrax.numerics.stages import square_slope, stage_direction

FAMILIES = {
    "gauss": (rx.gauss, lambda s: 2 * s),
    "radau": (rx.radau, lambda s: 2 * s - 1),
    "radau_left": (rx.radau_left, lambda s: 2 * s - 1),
    "lobatto": (rx.lobatto, lambda s: 2 * s - 2),
    "chebyshev": (rx.chebyshev, lambda s: s + s % 2),
    "chebyshev_lobatto": (rx.chebyshev_lobatto, lambda s: s + s % 2),
}


@pytest.mark.parametrize("name", FAMILIES)
def test_order_and_symmetry_are_found(name):
    make, order = FAMILIES[name]
    for s in (2, 3, 4, 5, 8, 12, 16):
        nodes = make(s)
        assert (nodes.order, nodes.stages, nodes.name) == (order(s), s, f"{name}({s})")
        assert nodes.symmetric == ("radau" not in name)


@pytest.mark.parametrize("name", FAMILIES)
def test_polynomials_below_the_number_of_stages_are_integrated_exactly(name):
    for s in (2, 5, 12):
        nodes = FAMILIES[name][0](s)
        c, A, b = np.array(nodes.c), np.array(nodes.A), np.array(nodes.b)
        for k in range(1, s + 1):  # measured: 3e-16
            assert np.max(np.abs(A @ c ** (k - 1) - c**k / k)) < 2e-15
            assert abs(b @ c ** (k - 1) - 1 / k) < 2e-15


def test_tables_of_the_textbooks():
    r = np.sqrt(3) / 6
    assert np.allclose(rx.gauss(2).A, [[0.25, 0.25 - r], [0.25 + r, 0.25]], rtol=0, atol=1e-16)
    assert np.allclose(rx.radau(2).A, [[5 / 12, -1 / 12], [3 / 4, 1 / 4]], rtol=0, atol=1e-16)
    simpson = [[0, 0, 0], [5 / 24, 1 / 3, -1 / 24], [1 / 6, 2 / 3, 1 / 6]]
    assert np.allclose(rx.lobatto(3).A, simpson, rtol=0, atol=2e-16)
    assert np.allclose(rx.chebyshev_lobatto(3).A, simpson, rtol=0, atol=2e-16)
    assert rx.radau_left(2).c == pytest.approx((0, 2 / 3), abs=1e-16)
    reference = [0.5, 0.2887, 0.2153, 0.1654, 0.1371, 0.1153, 0.1006, 0.0884]
    radii = [np.max(np.abs(np.linalg.eigvals(np.array(rx.gauss(s).A)))) for s in range(1, 9)]
    assert radii == pytest.approx(reference, abs=5e-5)


def test_only_gauss_conserves_quadratic_first_integrals():
    for name, (make, _) in FAMILIES.items():
        A, b = np.array(make(3).A), np.array(make(3).b)
        defect = np.max(np.abs(b[:, None] * A + (b[:, None] * A).T - np.outer(b, b)))
        assert (defect < 1e-16) == (name == "gauss")


@pytest.mark.parametrize(
    "make, sentence",
    [
        (lambda: rx.Collocation(3), r"write gauss\(3\)"),
        (lambda: rx.gauss(0), "whole number of at least 1"),
        (lambda: rx.gauss(2.5), "whole number from 1 to 32"),
        (lambda: rx.lobatto(1), "whole number of at least 2"),
        (lambda: rx.nodes([0.5, 0.2]), "must increase"),
        (lambda: rx.nodes([0.5, 1.2]), "lie between 0"),
        (lambda: rx.nodes([0.1, 0.5, 1.2]), "lie between 0"),
        (lambda: rx.nodes([-0.1, 0.5]), "lie between 0"),
        (lambda: rx.nodes(rx.gauss(2)._replace(order=5)), "order of the nodes"),
        (lambda: rx.nodes("gauss"), "must be an array of real numbers"),
        (lambda: rx.nodes([]), "list of 1 to 32"),
        (lambda: rx.GalerkinVariational([0.0, 0.5]), "weight b that is zero"),
        (lambda: rx.Magnus(5), "orders 2, 4, 6, 8"),
        (lambda: rx.Collocation(rx.gauss(2), form="space"), "choose one of body, spatial, se3"),
    ],
)
def test_mistakes_are_refused_in_a_sentence(make, sentence):
    with pytest.raises(rx.BadInput, match=sentence) as refusal:
        make()
    assert str(refusal.value).endswith(".")


def test_nodes_of_the_user():
    own = rx.nodes([0.1, 0.5, 0.7])
    assert (own.order, own.symmetric, repr(own)) == (3, False, "nodes([0.1, 0.5, 0.7])")
    assert rx.nodes([0.25, 0.75]).symmetric
    assert rx.nodes([0.5]).is_gauss and rx.gauss(3).is_gauss
    assert not own.is_gauss and not rx.radau(2).is_gauss
    assert repr(rx.Collocation(rx.gauss(2), centred=True)) == "Collocation(gauss(2), centred=True)"


@pytest.mark.parametrize("nodes", [rx.gauss(3), rx.radau(2), rx.lobatto(4)], ids=repr)
def test_newton_direction_solves_the_equations_of_all_stages(nodes):
    rng = np.random.default_rng(3)
    n, h = 4, 0.7
    D = rng.standard_normal((3, n, n))
    A = np.array(nodes.A)
    r = rng.standard_normal((nodes.stages, n))
    whole = np.eye(nodes.stages * n)
    for k in range(3):
        whole -= h**k * np.kron(np.linalg.matrix_power(A, k), D[k] / 4)
    expected = np.linalg.solve(whole, r.ravel()).reshape(r.shape)
    slopes = tuple(jnp.asarray(d) / 4 for d in D)
    found = stage_direction(nodes, slopes, jnp.asarray(h), jnp.asarray(r))
    assert np.max(np.abs(found - expected)) < 2e-13 * np.max(np.abs(expected))  # measured: 2e-14


def test_square_slope_is_the_jacobian():
    def f(x):
        return jnp.stack([x[0] * x[1], jnp.sin(x[2]), x[0] - x[2] ** 2])

    x = jnp.array([0.3, -0.4, 0.9])
    assert np.array_equal(square_slope(f, x), jax.jacfwd(f)(x))
