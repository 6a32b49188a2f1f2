"""Euler's top: the exact solution, and the laws of Kahan's map at random points."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import solve_ivp

import retrax as rx
from retrax.integrators.kahan import kahan_map, step_jacobian

TOP = rx.systems.EulerTop([3.0, 2.0, 1.0])
H = jnp.asarray(0.4)
POINTS = jnp.asarray(np.random.default_rng(0).standard_normal((200, 3)))

# 40 digits, from Jacobi's functions and from Taylor series.
EXACT = {
    (1.0, 1.0, 1.0): (
        11.3203862651289434346,
        [
            [1.316734106049570095, 0.147020606110569839, 1.115614734280934535],
            [0.224513437052894090, 1.505365389346916958, 0.826721695094002767],
            [-0.126458625520322773, 1.520529826971072944, 0.819754390853034555],
        ],
    ),
    (1.5, 0.2, -0.4): (
        13.2858470273773561719,
        [
            [1.432029292156903328, 0.552922063711934495, -0.305890990166650484],
            [1.340568919372591314, -0.802392233604989283, -0.095087727192309508],
            [1.481361222181937396, -0.337774933776198989, 0.376134315807692687],
        ],
    ),
}


@pytest.mark.parametrize("start", EXACT)
def test_the_exact_solution_and_its_period(start):
    period, rows = EXACT[start]
    seen = rx.systems.exact_momentum(TOP, start, [1.0, 10.0, 100.0])
    np.testing.assert_allclose(seen, rows, rtol=0, atol=5e-14)  # measured: 2e-14, at t = 100
    assert rx.systems.period(TOP, start) == pytest.approx(period, rel=1e-15)


@pytest.mark.parametrize("moments", [(1.0, 2.5, 1.7), (2.2, 1.1, 3.0), (1.0, 1.4, 2.1)])
@pytest.mark.parametrize("start", [(1.2, -0.8, 2.0), (-0.3, 0.4, -1.9), (2.0, 0.5, 0.3)])
def test_the_exact_solution_for_moments_in_any_order(moments, start):
    def rate(t, m):
        return np.cross(m, m / np.array(moments))

    run = solve_ivp(rate, (0, 5), start, rtol=1e-13, atol=1e-13, method="DOP853")
    seen = rx.systems.exact_momentum(rx.systems.EulerTop(moments), start, 5.0)
    np.testing.assert_allclose(seen, run.y[:, -1], rtol=0, atol=2e-11)


def test_no_solution_is_made_up_on_the_separatrix_or_for_a_symmetric_top():
    with pytest.raises(rx.BadInput, match="separatrix"):
        rx.systems.exact_momentum(TOP, [0.0, 1.0, 0.0], 1.0)
    with pytest.raises(rx.BadInput, match="three different moments"):
        rx.systems.exact_momentum(rx.systems.EulerTop([2.0, 2.0, 1.0]), [1.0, 1.0, 1.0], 1.0)
    steady = rx.systems.exact_momentum(TOP, [0.0, 0.0, 1.5], [0.0, 7.0])
    assert np.array_equal(steady, [[0.0, 0.0, 1.5]] * 2)


def test_energy_casimir_and_denominators_grow_by_one_factor():
    def ratios(m):
        after = kahan_map(TOP, m, H)
        others = jnp.stack([m[0] ** 2 * TOP.rates[1] - m[1] ** 2 * TOP.rates[0]])
        others_after = jnp.stack([after[0] ** 2 * TOP.rates[1] - after[1] ** 2 * TOP.rates[0]])

        def seen(m):
            energy = TOP.hamiltonian_energy(m, m)
            return jnp.concatenate([jnp.stack([energy, TOP.casimir(m)]), TOP.denominators(m, H)])

        before, now = (
            jnp.concatenate([seen(x), extra]) for x, extra in ((m, others), (after, others_after))
        )
        determinant = jnp.linalg.det(step_jacobian(TOP, m, H))
        return now - TOP.growth(m, H) * before, determinant - TOP.growth(m, H) ** 2

    laws, volume = jax.vmap(ratios)(POINTS)
    assert np.max(np.abs(laws)) < 1e-13  # measured: 2e-14
    assert np.max(np.abs(volume)) < 1e-13


def test_the_invariant_volume_and_the_modified_bracket():
    def defects(m):
        after, J = kahan_map(TOP, m, H), step_jacobian(TOP, m, H)
        volume = jnp.linalg.det(J) * TOP.volume_density(after) / TOP.volume_density(m) - 1
        before, now = TOP.modified_bracket(m, H), TOP.modified_bracket(after, H)
        casimirs = before @ jax.grad(lambda m: TOP.modified_casimir(m, H))(m)
        moved = TOP.modified_hamiltonian(after, H) - TOP.modified_hamiltonian(m, H)
        return volume, jnp.max(jnp.abs(J @ before @ J.T - now)), casimirs, moved

    volume, bracket, casimirs, moved = jax.vmap(defects)(POINTS)
    assert np.max(np.abs(volume)) < 5e-14
    assert np.max(bracket) < 5e-14  # measured: 9e-15
    assert np.max(np.abs(casimirs)) < 1e-14 and np.max(np.abs(moved)) < 1e-14


def lie_poisson_defect(moments, h):
    top = rx.systems.EulerTop(moments, physical=False)
    m = jnp.array([1.0, 0.5, 2.0])
    J, after = step_jacobian(top, m, jnp.asarray(h)), kahan_map(top, m, jnp.asarray(h))
    return float(jnp.max(jnp.abs(J @ rx.SO3().hat(m) @ J.T - rx.SO3().hat(after))))


def test_the_map_is_poisson_only_for_symmetric_tops():
    defects = [lie_poisson_defect([3.0, 2.0, 1.0], h) for h in (0.4, 0.2, 0.1, 0.05)]
    assert [f"{d:.1e}" for d in defects] == ["8.9e-03", "1.1e-03", "1.4e-04", "1.7e-05"]
    assert np.log2(defects[2] / defects[3]) == pytest.approx(3, abs=0.03)
    for moments in ([3.0, 3.0, 1.0], [3.0, 1.0, 1.0]):
        assert lie_poisson_defect(moments, 0.4) < 1e-15  # measured: 2e-16 and 4e-16


def test_moments_are_checked():
    with pytest.raises(rx.BadInput, match="shape"):
        rx.systems.EulerTop(jnp.eye(3))
    with pytest.raises(rx.BadInput, match="inertia"):
        rx.systems.EulerTop([5.0, 1.0, 1.0])
