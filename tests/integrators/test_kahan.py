"""Kahan's method on Euler's top: reference numbers, exact laws, poles, attitudes, projections.

The reference numbers come from exact solutions with 40 digits and from independent code.
"""

import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import retrax as rx
from retrax.integrators.kahan import kahan_map, step_jacobian

TOP = rx.systems.EulerTop([3.0, 2.0, 1.0])
ONES = jnp.ones(3)
METHOD = rx.Kahan()
R_AT_10 = np.array(
    [
        [0.736974136662084307, 0.199751998713719198, 0.645730795998649740],
        [0.147230390273795381, 0.884955328857178653, -0.441788725645085563],
        [-0.659691089882985597, 0.420658061776019108, 0.622779624740438590],
    ]
)


def end(system, integrator, start, h, steps):
    return rx.simulate(system, integrator, start, h=h, steps=steps, save_every=steps).final


def errors(integrator, time, sizes, exact):
    ends = [end(TOP, integrator, ONES, h, round(time / h)).g for h in sizes]
    return [np.max(np.abs(y - exact)) for y in ends]


def test_one_step_and_a_hundred():
    run = rx.simulate(TOP, METHOD, ONES, h=0.1, steps=100)
    one = [1.0486914772569589, 0.931160325257403, 1.016498765020953]
    hundred = [0.2227376204162428, 1.5055125756604497, 0.826455120956537]
    np.testing.assert_allclose(run.y[1], one, rtol=0, atol=5e-16)
    np.testing.assert_allclose(run.y[-1], hundred, rtol=0, atol=1e-14)


@pytest.mark.parametrize(
    "time, expected",
    [
        (1, ["1.4720e-03", "3.6848e-04", "9.2150e-05", "2.3039e-05"]),
        (10, ["7.0927e-03", "1.7758e-03", "4.4412e-04", "1.1104e-04"]),
        (100, ["6.8397e-02", "1.7133e-02", "4.2852e-03", "1.0714e-03"]),
    ],
)
def test_errors_against_the_exact_solution(time, expected):
    exact = rx.systems.exact_momentum(TOP, ONES, time)
    measured = errors(METHOD, time, (0.2, 0.1, 0.05, 0.025), exact)
    assert [f"{error:.4e}" for error in measured] == expected


def test_the_four_forms_of_the_step_agree():
    m, h = jnp.array([0.7, -1.1, 0.6]), 0.4
    after = kahan_map(TOP, m, jnp.asarray(h))
    f = TOP.field
    np.testing.assert_allclose((after - m) / h, TOP.polarise(m, after), rtol=0, atol=2e-15)
    stages = -f(m) / 2 + 2 * f((m + after) / 2) - f(after) / 2
    np.testing.assert_allclose((after - m) / h, stages, rtol=0, atol=2e-15)
    np.testing.assert_allclose(kahan_map(TOP, after, jnp.asarray(-h)), m, rtol=0, atol=1e-15)
    by_differentiation = jax.jacfwd(lambda m: kahan_map(TOP, m, jnp.asarray(h)))(m)
    by_formula = step_jacobian(TOP, m, jnp.asarray(h))
    np.testing.assert_allclose(by_formula, by_differentiation, rtol=0, atol=2e-15)


@pytest.mark.parametrize(
    "h, energies, ratio, casimir",
    [
        (0.1, (0.916412107748, 0.916857678683), 1e-13, 1e-12),
        (1.0, (0.891891891892, 0.936170212760), 1e-12, 1e-12),
    ],
)
def test_a_million_steps_keep_the_integrals_of_the_map(h, energies, ratio, casimir):
    run = rx.simulate(TOP, METHOD, ONES, h=h, steps=10**6, save_every=7)
    kept = run.invariants()
    assert np.ptp(kept["H/C"]) < ratio  # measured: 3e-14 and 5e-13
    assert np.ptp(kept["C/B2"]) < casimir  # measured: 1e-13 and 2e-13
    for part in (slice(0, 14_000), slice(-14_000, None)):
        seen = kept["energy"][part]
        assert (seen.min(), seen.max()) == pytest.approx(energies, abs=1e-8)


def test_the_error_of_energy_and_momentum_is_known_exactly():
    run = rx.simulate(TOP, METHOD, ONES, h=0.5, steps=1000)
    predicted = np.asarray(jax.vmap(lambda m: TOP.relative_error(ONES, m, 0.5))(run.y))
    for name in ("energy", "C"):
        values = run.invariants()[name]
        np.testing.assert_allclose(values / values[0] - 1, predicted, rtol=0, atol=1e-12)


def test_below_the_bound_it_runs_and_above_it_a_pole_stops_it():
    bound = float(TOP.safe_step_bound(ONES))
    assert bound == pytest.approx(4 * np.sqrt(3), rel=1e-15)
    run = rx.simulate(TOP, METHOD, ONES, h=6.0, steps=10**6, save_every=50)
    assert np.max(np.sum(run.y**2, axis=1)) == pytest.approx(12.0, rel=1e-4)
    rx.simulate(TOP, METHOD, ONES, h=6.9, steps=10**5, save_every=10**5)
    sentences = []
    for backend in ("native", "xla"):
        with pytest.raises(rx.StepFailed, match=r"step 4 of 100 .*a pole was crossed") as failure:
            rx.simulate(TOP, METHOD, ONES, h=7.0, steps=100, backend=backend)
        assert failure.value.trajectory.completed == 3
        sentences.append(str(failure.value))
    assert sentences[0] == sentences[1]
    last = failure.value.trajectory.final.g
    matrix = np.eye(3) - 3.5 * np.asarray(TOP.jacobian(jnp.asarray(last)))
    said = float(re.search(r"f' is (-[\d.e+]+)", sentences[0])[1])
    assert said == pytest.approx(np.linalg.det(matrix), rel=1e-2)
    assert float(rx.systems.EulerTop([2.0, 2.0, 1.0]).safe_step_bound(ONES)) == np.inf


def test_a_pole_in_a_substep_of_a_composition_is_told():
    with pytest.raises(rx.StepFailed, match=r"pole was crossed in a substep of h = -"):
        rx.simulate(TOP, rx.Composition(METHOD, order=4), ONES, h=9.0, steps=1000)


def test_a_pole_stops_a_member_of_an_ensemble_and_not_the_others():
    starts = jnp.stack([ONES, 0.5 * ONES])
    with pytest.warns(UserWarning, match="1 of 2 members failed"):
        runs = rx.ensemble(TOP, METHOD, starts, h=7.0, steps=100)
    assert runs["failed_step"].values.tolist() == [4, -1]
    alone = end(TOP, METHOD, 0.5 * ONES, 7.0, 100).g
    np.testing.assert_allclose(runs["g"].values[-1, 1], alone, rtol=0, atol=1e-12)


@pytest.mark.parametrize(
    "order, sizes, expected",
    [(4, (0.4, 0.2, 0.1), (1.9e-4, 1.2e-5, 7.4e-7)), (6, (0.4, 0.2), (2.56e-6, 4.07e-8))],
)
def test_projected_compositions(order, sizes, expected):
    method = rx.RadialProjection(rx.Composition(METHOD, order=order))
    exact = rx.systems.exact_momentum(TOP, ONES, 100)
    assert errors(method, 100, sizes, exact) == pytest.approx(expected, rel=0.02)


def test_projection_restores_energy_and_momentum_for_a_million_steps():
    method = rx.RadialProjection(rx.Composition(METHOD, order=4))
    run = rx.simulate(TOP, method, ONES, h=0.2, steps=10**6, save_every=100)
    kept = run.invariants()
    assert np.ptp(kept["C"]) < 1e-12 and np.ptp(kept["energy"]) < 1e-12  # measured: 2e-13
    bare = rx.simulate(TOP, rx.Composition(METHOD, order=4), ONES, h=0.2, steps=50_000)
    error = np.max(np.abs(bare.invariants()["C"] - 1.5))
    assert error == pytest.approx(2.45e-7, rel=0.01)
    with pytest.raises(rx.BadInput, match="must be Kahan"):
        rx.RadialProjection(rx.RKMK("rk4"))
    with pytest.raises(rx.BadInput, match="relative to a sphere"):
        rx.simulate(rx.systems.henon_heiles(), method, jnp.zeros(4), h=0.1, steps=1)


BODY = rx.systems.FreeRigidBody([3.0, 2.0, 1.0])
UPRIGHT = BODY.state(jnp.eye(3), momentum=ONES)


@pytest.mark.parametrize(
    "method, expected",
    [
        (rx.KahanAttitude(), ["4.72e-03", "1.18e-03", "2.96e-04"]),
        (rx.KahanAttitude(aligned=False), ["1.09e-02", "2.74e-03", "6.84e-04"]),
    ],
    ids=repr,
)
def test_attitudes(method, expected):
    ends = [end(BODY, method, UPRIGHT, h, round(10 / h)).g for h in (0.2, 0.1, 0.05)]
    assert [f"{np.max(np.abs(R - R_AT_10)):.2e}" for R in ends] == expected


def test_the_aligned_form_keeps_the_direction_and_with_projection_the_momentum():
    def spatial(method):
        run = rx.simulate(BODY, method, UPRIGHT, h=0.05, steps=2000)
        return run, np.einsum("tij,tj->ti", run.g, run.momentum)

    _, momenta = spatial(rx.KahanAttitude())
    direction = momenta / np.linalg.norm(momenta, axis=1, keepdims=True)
    assert np.max(np.abs(direction - 1 / np.sqrt(3))) < 2e-14  # measured: 2e-15
    assert np.ptp(momenta) > 1e-5
    _, momenta = spatial(rx.KahanAttitude(aligned=False))
    direction = momenta / np.linalg.norm(momenta, axis=1, keepdims=True)
    assert 1e-4 < np.max(np.abs(direction - 1 / np.sqrt(3))) < 1e-3
    run, momenta = spatial(rx.KahanAttitude(project=True))
    assert np.max(np.abs(momenta - 1)) < 2e-14  # measured: 4e-15
    assert np.ptp(run.invariants()["energy"]) < 5e-14


def test_a_body_at_rest_stays_and_other_systems_are_refused():
    rest = BODY.state(jnp.eye(3), momentum=jnp.zeros(3))
    for method in (rx.KahanAttitude(), rx.KahanAttitude(project=True)):
        assert np.array_equal(end(BODY, method, rest, 0.1, 3).g, np.eye(3))
    with pytest.raises(rx.BadInput, match="needs a FreeRigidBody"):
        rx.KahanAttitude().check(TOP)
    with pytest.raises(rx.BadInput, match="use KahanAttitude"):
        rx.Kahan().check(BODY)
    with pytest.raises(rx.StepFailed, match=r"step 4 of 9 .*a pole was crossed"):
        rx.simulate(BODY, rx.KahanAttitude(), UPRIGHT, h=7.0, steps=9)


@pytest.mark.parametrize("name", ["kahan", "kahan-projected-4", "kahan-attitude"])
def test_back_ends_agree(name):
    method = rx.INTEGRATORS[name]
    system, start = (BODY, UPRIGHT) if name == "kahan-attitude" else (TOP, TOP.at(ONES))
    ends = [
        rx.simulate(system, method, start, h=0.05, steps=50, backend=backend).final
        for backend in ("native", "xla")
    ]
    for a, b in zip(*map(jax.tree.leaves, ends), strict=True):
        np.testing.assert_allclose(a, b, rtol=0, atol=2e-14)


@pytest.mark.parametrize("backend", ["native", "xla"])
def test_a_grid_of_momenta_on_the_sphere(backend):
    """Every member keeps its H/C, and moves as it would alone."""
    z, angle = np.meshgrid(np.linspace(-0.99, 0.99, 40), np.linspace(0, 6.2, 50), indexing="ij")
    across = np.sqrt(1 - z**2)
    starts = np.stack([across * np.cos(angle), across * np.sin(angle), z], -1).reshape(-1, 3)
    runs = rx.ensemble(TOP, METHOD, starts, h=0.5, steps=200, backend=backend)
    ends = runs["g"].values[-1]

    def ratio(m):
        return np.sum(m**2 / np.array([3.0, 2.0, 1.0]), axis=1) / np.sum(m**2, axis=1)

    assert np.max(np.abs(ratio(ends) - ratio(starts))) < 1e-14  # measured: 1e-15
    alone = end(TOP, METHOD, starts[777], 0.5, 200).g
    np.testing.assert_allclose(ends[777], alone, rtol=0, atol=1e-12)
    assert not (runs["failed_step"].values > 0).any()
