"""The other quadratic fields: their equations, and what Kahan's map conserves on them exactly."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import solve_ivp

import retrax as rx
from retrax.integrators.kahan import kahan_map, step_jacobian

S = rx.systems
RNG = np.random.default_rng(1)
LV = S.LotkaVolterra.predator_prey()
M = np.array([[1.0, 0.5, 0.0], [0.5, 2.0, 0.25], [0.0, 0.25, -1.0]])
N = np.array([[2.0, 0.0, 0.5], [0.0, 1.0, 0.75], [0.5, 0.75, 3.0]])
U, V = np.array([0.5, 0.25, 1.0]), np.array([1.0, -0.5, 0.25])
A, B = np.array([1.0, 1.4, 0.7]), np.array([0.5, 0.3, 0.9])
MOMENTS, BETA, CHI = (
    np.array([3.0, 2.0, 1.0]),
    np.array([0.7, -0.3, 0.4]),
    np.array([0.3, -0.2, 0.5]),
)


def kirchhoff(x):
    m, p = x[:3], x[3:]
    return np.concatenate([np.cross(m, A * m) + np.cross(p, B * p), np.cross(p, A * m)])


def heavy(x):
    m, gamma = x[:3], x[3:]
    return np.concatenate(
        [np.cross(m, m / MOMENTS) + np.cross(gamma, CHI), np.cross(gamma, m / MOMENTS)]
    )


def four(x):
    """The commutator of X with its scaled copy: so(4) as matrices."""
    X, W = np.zeros((4, 4)), np.zeros((4, 4))
    for k, (i, j) in enumerate([(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)]):
        X[i, j], X[j, i] = -x[k], x[k]
        W[i, j], W[j, i] = -FOUR[k] * x[k], FOUR[k] * x[k]
    rate = X @ W - W @ X
    return np.array([rate[1, 0], rate[2, 0], rate[3, 0], rate[2, 1], rate[3, 1], rate[3, 2]])


FOUR = np.array([1.0, 1.7, 2.3, 1.4, 2.1, 1.2])
EQUATIONS = {
    "gyrostat": (S.zhukovski_volterra(MOMENTS, BETA), lambda x: np.cross(x, x / MOMENTS + BETA)),
    "heavy top": (S.euler_poisson(MOMENTS, CHI), heavy),
    "Kirchhoff": (S.kirchhoff(A, B), kirchhoff),
    "so(4)": (S.four_dimensional_body(FOUR), four),
    "Nambu": (S.Nambu(M, N, (U, V)), lambda x: np.cross(M @ x + U, N @ x + V)),
    "Henon-Heiles": (
        S.henon_heiles(),
        lambda z: np.array([z[2], z[3], -z[0] - 2 * z[0] * z[1], -z[1] - z[0] ** 2 + z[1] ** 2]),
    ),
    "Lotka-Volterra": (
        S.LotkaVolterra.predator_prey(1.5, 0.5, 2.0, 0.7),
        lambda z: np.array([z[0] * (1.5 - 0.5 * z[1]), z[1] * (2.0 * z[0] - 0.7)]),
    ),
}


@pytest.mark.parametrize("name", EQUATIONS)
def test_fields_are_those_of_the_textbooks(name):
    system, by_hand = EQUATIONS[name]
    for x in RNG.standard_normal((5, system.dim)):
        np.testing.assert_allclose(system.field(jnp.asarray(x)), by_hand(x), rtol=0, atol=2e-14)
        rate = system.field(jnp.asarray(x))
        if name == "Lotka-Volterra":
            x, rate = np.abs(x), system.field(jnp.asarray(np.abs(x)))
        state = rx.State(jnp.asarray(x), jnp.zeros(system.dim))
        for value in conserved(system, state, rate):
            assert abs(value) < 2e-13


def conserved(system, state, rate):
    """The rates of all invariants of the flow, by differentiating along the field."""

    def invariants(x):
        return system.invariants(rx.State(x, state.momentum))

    return jax.jvp(invariants, (state.g,), (rate,))[1].values()


@pytest.mark.parametrize("name", ["gyrostat", "Kirchhoff", "Nambu"])
def test_kahan_follows_the_motion(name):
    system, by_hand = EQUATIONS[name]
    start = np.random.default_rng(8).uniform(-0.7, 0.7, system.dim)
    run = solve_ivp(lambda t, x: by_hand(x), (0, 2), start, rtol=1e-12, atol=1e-12)
    method = rx.Composition(rx.Kahan(), order=6)
    end = rx.simulate(system, method, start, h=0.02, steps=100).y[-1]
    np.testing.assert_allclose(end, run.y[:, -1], rtol=0, atol=2e-11)  # measured: 2.5e-12


def test_euler_poincare_from_structure_constants_is_euler_s_top():
    epsilon = np.zeros((3, 3, 3))
    for i, j, k in ((0, 1, 2), (1, 2, 0), (2, 0, 1)):
        epsilon[i, j, k], epsilon[j, i, k] = 1.0, -1.0
    by_hand, by_group = (
        S.LiePoisson(epsilon, 1 / MOMENTS),
        S.LiePoisson(rx.SO3(), np.diag(1 / MOMENTS)),
    )
    top = S.EulerTop(MOMENTS)
    x = jnp.array([0.3, -1.2, 0.8])
    for field in (by_hand, by_group):
        np.testing.assert_allclose(field.field(x), top.field(x), rtol=0, atol=1e-15)
        (casimir,) = field.further_invariants(field.at(x)).values()
        assert float(casimir) == pytest.approx(float(top.casimir(x)), rel=1e-14)
    with pytest.raises(rx.BadInput, match="not antisymmetric"):
        S.LiePoisson(np.abs(epsilon), 1 / MOMENTS)
    broken = epsilon.copy()
    broken[0, 1, 0], broken[1, 0, 0] = 0.5, -0.5
    broken[0, 2, 1], broken[2, 0, 1] = -2.0, 2.0
    broken[1, 2, 1], broken[2, 1, 1] = 0.3, -0.3
    with pytest.raises(rx.BadInput, match="Jacobi's identity"):
        S.LiePoisson(broken, 1 / MOMENTS)
    with pytest.raises(rx.BadInput, match="not symmetric"):
        S.LiePoisson(epsilon, np.triu(np.ones((3, 3))))


def test_casimirs_of_the_euclidean_group_and_of_so4_are_found():
    x = np.array([0.3, -0.2, 0.5, 0.7, 0.1, -0.4])
    m, p = x[:3], x[3:]
    seen = S.kirchhoff(A, B).casimirs(jnp.asarray(x))
    assert sorted(np.abs(seen)) == pytest.approx(sorted([abs(m @ p), p @ p / 2]), rel=1e-13)
    pfaffian = x[0] * x[5] - x[1] * x[4] + x[2] * x[3]
    seen = S.four_dimensional_body(FOUR).casimirs(jnp.asarray(x))
    assert sorted(np.abs(seen)) == pytest.approx(sorted([x @ x / 2, abs(pfaffian)]), rel=1e-12)


def test_lotka_volterra_has_the_reference_numbers():
    run = rx.simulate(LV, rx.Kahan(), [2.0, 1.0], h=0.1, steps=100_000)
    np.testing.assert_allclose(
        run.y[1], [1.9895287958115184, 1.1047120418848166], rtol=0, atol=1e-15
    )
    error = run.invariants()["energy"] - (3 - np.log(2))
    for part in (error[:10_001], error[-10_000:]):
        assert f"{part.min():.4e} {part.max():.4e}" == "-4.6977e-04 1.2203e-04"
    exact = [0.450309785212269520, 0.695273438172231102]
    ends = [
        rx.simulate(LV, rx.Kahan(), [2.0, 1.0], h=h, steps=round(10 / h)).y[-1]
        for h in (0.2, 0.1, 0.05, 0.025)
    ]
    errors = [f"{np.max(np.abs(end - exact)):.3e}" for end in ends]
    assert errors == ["5.217e-03", "1.310e-03", "3.278e-04", "8.196e-05"]
    early = rx.simulate(LV, rx.Composition(rx.Kahan(), order=6), [2.0, 1.0], h=0.05, steps=20)
    exact = [1.156473681591843266, 1.977678025454370626]
    np.testing.assert_allclose(early.y[-1], exact, rtol=0, atol=1e-9)


def test_lotka_volterra_keeps_its_measure_unless_a_species_acts_on_itself():
    def defect(system, x):
        after, J = (
            kahan_map(system, x, jnp.asarray(0.3)),
            step_jacobian(system, x, jnp.asarray(0.3)),
        )
        return jnp.linalg.det(J) * system.density(after) / system.density(x) - 1

    x = jnp.array([1.3, 0.6])
    assert abs(defect(S.LotkaVolterra.predator_prey(1.5, 0.5, 2.0, 0.7), x)) < 2e-15
    selfish = S.LotkaVolterra([1.5, -0.7], [[0.3, -0.5], [2.0, 0.0]])
    assert abs(defect(selfish, x)) > 1e-2


def test_lotka_volterra_stops_at_a_pole_and_where_a_species_turns_negative():
    rx.simulate(LV, rx.Kahan(), [2.0, 1.0], h=1.0, steps=20_000, save_every=20_000)
    with pytest.raises(rx.StepFailed, match="a pole was crossed"):
        rx.simulate(LV, rx.Kahan(), [2.0, 1.0], h=1.5, steps=1000)
    with pytest.raises(rx.StepFailed, match=r"step 1 of 10 .*left the domain of the system"):
        rx.simulate(LV, rx.Kahan(), [6.0, 1.0], h=0.5, steps=10)
    with pytest.raises(rx.BadInput, match="is not a point of the Lotka-Volterra"):
        LV.at([1.0, -0.1])


def test_the_cyclic_chain_keeps_the_sum_exactly():
    run = rx.simulate(S.LotkaVolterra.cyclic(), rx.Kahan(), [2.0, 1.0, 0.5], h=0.1, steps=1000)
    assert np.ptp(run.y.sum(axis=1)) < 2e-14


def test_a_cubic_hamiltonian_has_a_modified_energy_and_a_measure():
    def cubic(z):
        q, p = z[:2], z[2:]
        mixed = 0.4 * q[0] * p[1] - 0.3 * p[0] * p[1] * q[1] + 0.2 * q[0] * q[1] * p[0]
        return z @ z / 2 + mixed + q[0] ** 3 / 3 - 0.25 * q[1] ** 2 * p[1]

    system, h = S.CubicHamiltonian(cubic, 4), jnp.asarray(0.3)
    for x in jnp.asarray(RNG.uniform(-0.5, 0.5, (5, 4))):
        after = kahan_map(system, x, h)
        moved = system.modified_energy(after, h) - system.modified_energy(x, h)
        assert abs(moved) < 3e-15  # measured: 3e-16
        assert abs(cubic(after) - cubic(x)) > 1e-6
        J = step_jacobian(system, x, h)
        volume = jnp.linalg.det(J) * system.density(after, h) / system.density(x, h) - 1
        assert abs(volume) < 5e-15
    run = rx.simulate(S.henon_heiles(), rx.Kahan(), [0.1, -0.2, 0.3, 0.15], h=0.1, steps=100_000)
    assert np.ptp(run.invariants()["modified energy"]) < 2e-14
    with pytest.raises(rx.BadInput, match="gradient of the hamiltonian is not quadratic"):
        S.CubicHamiltonian(lambda z: z[0] ** 4 + z[1] ** 2, 2)
    with pytest.raises(rx.BadInput, match="must be an even number"):
        S.CubicHamiltonian(lambda z: z[0], 3)


def test_homogeneous_nambu_systems_keep_the_quotient_of_their_hamiltonians_level():
    """Two relations of degree 2, so both quadrics move together: see `kahan_integrals`."""
    system = S.Nambu(M, N)
    run = rx.simulate(system, rx.Kahan(), [0.3, -0.4, 0.2], h=0.1, steps=500)
    functions = np.stack(
        [np.ones(len(run.y))] + [run.y[:, i] * run.y[:, j] for i in range(3) for j in range(i, 3)]
    )
    singular = np.linalg.svd(functions, compute_uv=False)
    assert (singular < 1e-12 * singular[0]).sum() == 2


COUNTS = [
    (S.EulerTop(MOMENTS), 2, 2),
    (S.zhukovski_volterra(MOMENTS, [0.7, 0.0, 0.0]), 2, 2),
    (S.zhukovski_volterra(MOMENTS, [0.7, -0.3, 0.0]), 2, 1),
    (S.zhukovski_volterra(MOMENTS, BETA), 2, 0),
    (S.zhukovski_volterra(MOMENTS, BETA), 4, 0),
    (S.lagrange_top(2.0, 1.0, 0.7), 2, 10),
    (S.kirchhoff([2.0, 2.0, 1.0], [0.5, 0.5, 0.3]), 2, 10),
    (S.clebsch([1.0, 2.0, 3.0], 0.5, 0.25), 2, 4),
    (S.manakov([1.0, 2.0, 3.5, 5.0], [0.7, -1.0, 2.0, 0.3]), 2, 4),
    (S.euler_poisson([1.0, 2.8, 2.0], CHI), 2, 0),
    (S.euler_poisson([1.0, 2.8, 2.0], [0.0, 0.0, -9.81]), 2, 0),
    (S.kirchhoff(A, B), 2, 0),
    (S.four_dimensional_body(FOUR), 2, 0),
    (S.Nambu(M, N), 2, 2),
    (S.Nambu(M, N, (U, V)), 2, 0),
    (LV, 6, 0),
    (S.LotkaVolterra.cyclic(), 1, 1),
    (S.LotkaVolterra.cyclic(), 3, 11),
]


@pytest.mark.parametrize("system, degree, count", COUNTS, ids=lambda x: getattr(x, "name", str(x)))
def test_relations_along_an_orbit_over_a_finite_field(system, degree, count):
    for seed in (0, 1):
        assert rx.analysis.kahan_integrals(system, degree, seed=seed).count == count


def test_relations_between_chosen_functions_and_from_exact_coefficients():
    from fractions import Fraction

    squares = [(0, 0, 0), (2, 0, 0), (0, 2, 0), (0, 0, 2)]
    found = rx.analysis.kahan_integrals(S.EulerTop(MOMENTS), functions=squares)
    assert found.count == 2 and found.functions == tuple(squares)
    Q = [[[0] * 3 for _ in range(3)] for _ in range(3)]
    for i, a in enumerate((Fraction(1, 2), Fraction(-2, 3), Fraction(1, 6))):
        j, k = (i + 1) % 3, (i + 2) % 3
        Q[i][j][k] = Q[i][k][j] = a / 2
    zero = [[0] * 3] * 3
    assert rx.analysis.kahan_integrals((Q, zero, [0] * 3)).count == 2
    with pytest.raises(rx.BadInput, match="3 exponents"):
        rx.analysis.kahan_integrals(S.EulerTop(MOMENTS), functions=[(1, 1)])
    with pytest.raises(rx.BadInput, match="degree = 0"):
        rx.analysis.kahan_integrals(S.EulerTop(MOMENTS), 0)
