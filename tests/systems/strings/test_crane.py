"""The crane: its Lagrangian, its step, its balances, its small oscillations."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import retrax as rx

S = rx.systems
H = 1e-3


def crane(elements=3, trolley=0.3):
    return S.Crane(S.StringPendulum.paper(elements=elements)[0], trolley)


def random_state(system, seed=0):
    rng = np.random.default_rng(seed)
    q, R, _ = system.hanging().g
    g = (
        q + 0.05 * rng.normal(size=q.shape),
        rx.SO3().exp(jnp.asarray(rng.normal(size=3))) @ R,
        rng.normal(size=2),
    )
    return system.state(g, velocity=rng.normal(size=system.group.dim))


def lagrangian(system, g, xi):
    """The energies written down point by point: elements, trolley, body."""
    p = system.string
    n, m = p.elements, p.density * p.spacing
    q, R, _ = g
    V = jnp.array([xi[-2], xi[-1], 0.0])
    v = jnp.concatenate([V[None], xi[: 3 * n].reshape(n, 3) + V[None]])
    w = xi[3 * n : 3 * n + 3]
    kinetic = system.trolley * V @ V / 2
    for a in range(n):
        kinetic += m / 6 * (v[a] @ v[a] + v[a] @ v[a + 1] + v[a + 1] @ v[a + 1])
    M, arm, J = p.mass[0], p.arm[0], p.inertia[0]
    kinetic += M * v[-1] @ v[-1] / 2 + w @ J @ w / 2 + M * v[-1] @ (R @ jnp.cross(w, arm))
    ends = jnp.concatenate([jnp.zeros((1, 3)), q])
    spans = jnp.linalg.norm(ends[1:] - ends[:-1], axis=1)
    elastic = p.stiffness / p.spacing / 2 * jnp.sum((spans - p.spacing) ** 2)
    weight = m * (jnp.sum(q[:-1, 2]) + q[-1, 2] / 2) + M * (q[-1, 2] + (R @ arm)[2])
    return kinetic - elastic + p.gravity * weight


@pytest.mark.parametrize("elements", [1, 2, 4])
def test_momenta_and_forces_are_those_of_the_lagrangian(elements):
    system = crane(elements)
    state = random_state(system)
    xi = system.velocity(state.g, state.momentum)
    L = partial(lagrangian, system)
    np.testing.assert_allclose(state.momentum, jax.grad(L, 1)(state.g, xi), rtol=0, atol=1e-15)
    force = system.group.cotangent(state.g, jax.grad(L)(state.g, xi))
    ours = system.differential(state.g, xi, state.momentum)
    np.testing.assert_allclose(ours, force, rtol=0, atol=2e-13)
    energy = xi @ state.momentum - L(state.g, xi)
    assert system.energy(state) == pytest.approx(float(energy), rel=1e-13)


def test_the_step_is_of_order_2_and_keeps_the_momenta():
    system = crane()
    start = random_state(system)
    exact = rx.simulate(system, rx.RKMK(), start, h=5e-5, steps=2000).final

    def error(h, steps):
        run = rx.simulate(system, rx.LieVerlet(), start, h=h, steps=steps)
        for name in ("momentum e1", "momentum e2", "angular momentum e3"):
            assert np.ptp(run.observations.invariants[name]) < 1e-14  # measured 3e-15
        return np.max(np.abs(run.final.momentum - exact.momentum))

    coarse, fine = error(5e-4, 200), error(2.5e-4, 400)
    assert fine < 1e-4 and 3.6 < coarse / fine < 4.4


def test_the_same_run_natively_and_on_xla():
    system = crane()
    start = random_state(system)
    native, xla = (
        rx.simulate(system, rx.LieVerlet(), start, h=H, steps=50, backend=backend).final
        for backend in ("native", "xla")
    )
    for a, b in zip(jax.tree.leaves(native), jax.tree.leaves(xla), strict=True):
        np.testing.assert_allclose(a, b, rtol=0, atol=1e-14)  # measured 2e-15


def test_a_light_load_swings_faster_on_a_light_trolley():
    r"""A point mass on a string: $\omega^2 = (g/l)(1 + M/m_t)$, with $l$ the stretched length."""
    mass, trolley = 0.1, 0.25
    string = S.StringPendulum(1.0, 0.0, 400.0, 1, mass, [0.0, 0.0, 0.0], 1e-4 * np.eye(3))
    system = S.Crane(string, trolley)
    rest = system.hanging()
    length = float(rest.g[0][0, 2])
    assert length == pytest.approx(1 + mass * 9.81 / 400, rel=1e-14)

    def rate(x):
        g = system.group.compose(rest.g, system.group.exp(x[:8]))
        d = system.vector_field(g, rest.momentum + x[8:], jnp.zeros(()))
        return jnp.concatenate([d.velocity, d.momentum_rate])

    found = np.abs(np.linalg.eigvals(np.asarray(jax.jit(jax.jacfwd(rate))(jnp.zeros(16)))).imag)
    swing = np.sqrt(9.81 / length * (1 + mass / trolley))
    assert np.sum(np.abs(found - swing) < 1e-6 * swing) == 4  # along e1 and along e2, both signs
    bounce = np.sqrt(400.0 / mass)
    assert np.sum(np.abs(found - bounce) < 1e-6 * bounce) == 2


def test_steps_that_are_too_long_for_the_waves_are_refused():
    system = crane(4)
    limit = system.longest_stable_step()
    start = system.hanging()
    with pytest.raises(rx.BadInput, match="unstable on this crane"):
        rx.simulate(system, rx.LieVerlet(), start, h=1.01 * limit, steps=1)
    pushed = random_state(system)
    with pytest.warns(UserWarning, match="more than half"):
        run = rx.simulate(system, rx.LieVerlet(), pushed, h=0.9 * limit, steps=5000)
    assert np.max(np.abs(run.energy())) < 100


def test_a_crane_at_rest_stays_where_it_is():
    system = crane(4)
    start = system.hanging([0.7, -0.2])
    run = rx.simulate(system, rx.LieVerlet(), start, h=H, steps=2000)
    for a, b in zip(jax.tree.leaves(run.final.g), jax.tree.leaves(start.g), strict=True):
        np.testing.assert_allclose(a, b, rtol=0, atol=1e-13)
