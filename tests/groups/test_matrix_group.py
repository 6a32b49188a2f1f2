"""Groups from a basis: what is refused, and what is found out about the group."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from all_groups import SO4, group, unit

import retrax as rx

SP4 = [unit(4, 0, 2), unit(4, 1, 3), unit(4, 0, 3) + unit(4, 1, 2)]
SP4 += [e.T for e in SP4]
SP4 += [unit(4, i, j) - unit(4, 2 + j, 2 + i) for i in range(2) for j in range(2)]


@pytest.mark.parametrize(
    ("basis", "sentence"),
    [
        (np.eye(3), r"needs an array of shape \(dim, n, n\), but its shape is \(3, 3\)"),
        (np.zeros((1, 2, 3)), r"but its shape is \(1, 2, 3\)"),
        ([[[0.0, np.inf], [0.0, 0.0]]], "must be finite"),
        ([SO4[0], SO4[1], SO4[0] + SO4[1]], "the 3 matrices are linearly dependent"),
        (SO4[:3:2], r"the bracket \[e_0, e_1\] leaves the span of the basis by 1,"),
    ],
    ids=["not stacked", "not square", "not finite", "dependent", "not closed"],
)
def test_a_bad_basis_is_refused(basis, sentence):
    with pytest.raises(rx.BadInput, match=sentence):
        rx.MatrixGroup(basis)


@pytest.mark.parametrize(
    ("name", "has_cayley", "complete"),
    [
        ("SO4", True, True),
        ("SL3", False, True),
        ("Heisenberg", True, True),
        ("scaling", False, False),
    ],
)
def test_what_is_found_at_construction(name, has_cayley, complete):
    assert (group(name).has_cayley, group(name).complete) == (has_cayley, complete)


@pytest.mark.parametrize(
    ("name", "off", "least"),
    [
        ("SO4", np.diag([1.0, 1.0, 1.0, -1.0]), 1.9),
        ("SO4", np.diag([1.0, 1.0, 2.0, 0.5]), 0.7),
        ("SL3", 1.001 * np.eye(3), 3e-3),
        ("Heisenberg", np.diag([1.0, 1.001, 1.0]), 9e-4),
        ("scaling", np.diag([1.5, 1.5]), 0.1),
    ],
)
def test_defect_sees_what_is_off_the_group(name, off, least):
    assert float(group(name).defect(jnp.asarray(off))) > least
    with pytest.raises(rx.BadInput, match=r"its defect is .*project\(g\)"):
        group(name).check("g", jnp.asarray(off))


def test_cayley_is_refused_on_sl3():
    with pytest.raises(rx.BadInput, match=r"Cayley\(\) does not map into SL\(3\).*use Exp\(\)"):
        rx.Cayley().check(group("SL3"))
    with pytest.raises(rx.BadInput, match=r"SL\(3\).*use exp"):
        group("SL3").cay(jnp.ones(8))
    rx.Exp().check(group("SL3"))


def test_the_same_group_twice():
    """so(3) from a basis agrees with the closed forms of SO3."""
    closed = rx.SO3()
    G = rx.MatrixGroup(jax.vmap(closed.hat)(jnp.eye(3)))
    xi, eta = jnp.array([0.7, -1.1, 0.4]), jnp.array([0.3, 0.2, -0.9])
    for name in ("exp", "cay", "hat", "ad"):
        np.testing.assert_allclose(
            getattr(G, name)(xi), getattr(closed, name)(xi), atol=1e-15, err_msg=name
        )
    for name in ("dexp", "dexp_inv", "dexp_dual", "dexp_inv_dual", "dcay", "dcay_inv", "dcay_dual"):
        np.testing.assert_allclose(
            getattr(G, name)(xi, eta), getattr(closed, name)(xi, eta), atol=2e-15, err_msg=name
        )


@pytest.mark.slow
def test_a_symplectic_group_has_the_cayley_map_and_keeps_its_form():
    G = rx.MatrixGroup(SP4, name="Sp(4)")
    assert G.has_cayley
    assert G.complete
    J = np.block([[np.zeros((2, 2)), np.eye(2)], [-np.eye(2), np.zeros((2, 2))]])
    xi = jnp.asarray(np.random.default_rng(0).standard_normal(10) / 3)
    for g in (G.exp(xi), G.cay(xi)):
        assert np.max(np.abs(g.T @ J @ g - J)) < 1e-14  # measured 1e-15
    np.testing.assert_allclose(G.cay_inv(G.cay(xi)), xi, atol=2e-15)


def test_it_passes_through_jit_and_vmap_as_an_argument():
    G = group("Heisenberg")
    xi = jnp.arange(6.0).reshape(2, 3) / 10
    together = jax.jit(jax.vmap(lambda G, x: G.exp(x), (None, 0)))(G, xi)
    np.testing.assert_allclose(together[1], G.exp(xi[1]), rtol=1e-15)
    assert repr(G) == "MatrixGroup(dim=3, n=3)"
