"""The derivatives of a stage, twice through the equations that a step solves, and the recursion."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from craft import MIXED, SO3, turned
from jax.tree_util import Partial

import retrax as rx
from retrax.engine.backends.sweeps import Rows
from retrax.engine.llvm.host import lanes
from retrax.integrators.driven import Driven
from retrax.mechanics.controls import Held
from retrax.planning import recursion
from retrax.planning.kernels import programs, recursions
from retrax.planning.model import Model, Sizes
from retrax.planning.recursion import backward, forward

N = 9


def _cost(g, xi, u, t):
    return 0.5 * (u @ u) * (1 + 0.1 * t) + xi @ xi * g[0, 1] + jnp.sin(u[0] * xi[1])


def _path(g, xi, u):
    return jnp.stack([g[0, 0] * xi[1] + u[0] ** 2, 3 - u @ u])


def _final(g, mu):
    return g[0, 2] * mu[0] + mu @ mu


def _end(target, g, mu):
    return jnp.concatenate([SO3.log(target.T @ g), mu])


@pytest.fixture(scope="module")
def model():
    """A pendulum with mixed inputs: nothing commutes and nothing is symmetric."""
    body = rx.MechanicalSystem(SO3, [1.4, 2.2, 3.1], lambda R: R[2, 2] + 0.3 * R[0, 1])
    plant = rx.Actuated(body, inputs=MIXED)
    step = Driven(rx.LieVerlet(), plant.actuators, Held())
    end = Partial(_end, turned(0.3, 0.2, 0.5))
    sizes = Sizes(9, 3, 3, 2, 6, 1, True)
    return Model(body, step, Partial(_cost), Partial(_final), Partial(_path), end, None, sizes)


@pytest.fixture(scope="module")
def point(model):
    rng = np.random.default_rng(0)
    s = model.sizes
    nodes = np.zeros((s.node, N + 1))
    for k in range(N + 1):
        nodes[:9, k] = np.ravel(turned(0.1 * k, 0.2 * k, -0.05 * k))
        nodes[9:, k] = rng.normal(size=3)
    stages = rng.uniform(0.2, 1, size=(s.stage, N))
    clock = np.stack([np.full(N, 0.1), np.full(N, 0.4), np.arange(N) * 1.0])
    return nodes, stages, clock


def _natively(model, point):
    nodes, stages, clock = point
    s = model.sizes
    params = np.concatenate([np.ravel(x) for x in jax.tree.leaves(model)])
    values, slopes = np.zeros((s.values, N)), np.zeros((s.slopes, N))
    none = Rows(np.zeros(1), 0, 0, 0)
    programs(model).stage.bind(
        [
            *(Rows(params, 0, 1, 0), none, Rows(nodes, 0, N + 1, 0), Rows(nodes, 1, N + 1, 0)),
            *(Rows(x, 0, N, 0) for x in (stages, clock, values, slopes)),
        ],
        *(1, N, lanes()),
    )()
    return values, slopes


def test_machine_code_and_xla_agree(model, point):
    values, slopes = _natively(model, point)
    nodes, stages, clock = point
    stage = jax.jit(jax.vmap(model.stage, in_axes=1, out_axes=1))
    for mine, theirs in zip(
        (values, slopes), stage(nodes[:, :-1], nodes[:, 1:], stages, clock), strict=True
    ):
        assert np.abs(mine - theirs).max() <= 1e-13 * np.abs(theirs).max()


def test_first_and_second_derivatives_are_those_of_differences(model, point):
    """Against NumPy: the driven step is called at displaced states, inputs and steps."""
    values, slopes = _natively(model, point)
    nodes, stages, clock = point
    s, k = model.sizes, 3
    size = s.changes
    lam, z = stages[3:9, k], stages[s.stage - 2 :, k]
    g, mu = nodes[:9, k].reshape(3, 3), nodes[9:, k]
    g1, mu1 = nodes[:9, k + 1].reshape(3, 3), nodes[9:, k + 1]

    @jax.jit
    def parts(w):
        state = rx.State(
            g @ SO3.exp(w[:3]), mu + w[3:6], 0.4 + k * (0.1 + w[9]), stages[:3, k] + w[6:9]
        )
        xi = model.system.velocity_at(state)
        new, _ = model.step.step(model.system, state, 0.1 + w[9])
        phi = jnp.concatenate([SO3.log(g1.T @ new.g), new.momentum - mu1])
        c = _path(state.g, xi, state.control)
        whole = (0.1 + w[9]) * _cost(state.g, xi, state.control, state.t)
        return phi, whole + lam @ phi - z @ c

    assert clock[0, k] == 0.1
    assert np.allclose(values[:6, k], parts(np.zeros(size))[0], rtol=0, atol=1e-14)
    e = 1e-5 * np.eye(size)
    jacobian = np.stack([(parts(x)[0] - parts(-x)[0]) / 2e-5 for x in e], axis=1)
    assert np.abs(slopes[: 6 * size, k].reshape(6, size) - jacobian).max() < 1e-8
    e = 1e-3 * np.eye(size)

    def mixed(x, y):
        far = [parts(a * x + b * y)[1] * a * b for a in (1, -1) for b in (1, -1)]
        return sum(far) / 4e-6

    hessian = np.array([[mixed(x, y) for y in e] for x in e])
    mine = np.zeros((size, size))
    rows, columns = np.triu_indices(size)
    mine[rows, columns] = mine[columns, rows] = slopes[6 * size : 6 * size + len(rows), k]
    assert np.abs(mine - hessian).max() < 2e-5 * np.abs(hessian).max()


def test_recursion_solves_the_whole_linear_system():
    """Against a dense solve of all conditions of first order at once."""
    s = Sizes(0, 2, 2, 0, 3, 1, False)
    n, m, q, size, stages = s.state, s.inputs, s.sides, s.changes, 6
    rng = np.random.default_rng(3)
    values, slopes = rng.normal(size=(s.values, stages)), rng.normal(size=(s.slopes, stages))
    own = np.zeros((s.stage, stages))
    rows, columns = np.triu_indices(size)
    H = np.empty((stages, size, size))
    for k in range(stages):
        half = rng.normal(size=(size, size))
        H[k] = half @ half.T
        slopes[n * size : n * size + len(rows), k] = H[k][rows, columns]
    P, psi, D = 2 * np.eye(n), rng.normal(size=3), rng.normal(size=(3, n))
    S, W = np.zeros((n, q)), np.zeros((q, q))
    S[:, 2:], W[0, 2:], W[2:, 0] = D.T, psi, psi
    upper, sides = np.triu_indices(n), np.triu_indices(q)
    carried = jnp.asarray(np.concatenate([P[upper], S.ravel(), W[sides], [np.inf]]))
    settings, none = jnp.array([0.0, 0.0, 0.9]), jnp.zeros(0)
    gains = []
    for k in reversed(range(stages)):
        given = (values[:, k], slopes[:, k], own[:, k], none, settings)
        carried, gain = backward(s, jnp.ones(n + m), carried, *map(jnp.asarray, given))
        gains.insert(0, gain)
    W = np.zeros((q, q))
    W[sides] = W[sides[::-1]] = np.asarray(carried)[-1 - len(sides[0]) : -1]
    theta = np.concatenate([[1.0], -np.linalg.solve(W[1:, 1:], W[1:, 0])])
    ahead, x, u, lam = jnp.concatenate([jnp.zeros(n), jnp.ones(2), jnp.zeros(1)]), [], [], []
    for k in range(stages):
        given = (values[:, k], slopes[:, k], own[:, k], none, settings, theta)
        ahead, there, down = forward(s, ahead, gains[k], *map(jnp.asarray, given))
        x.append(there), u.append(down[:m]), lam.append(down[m : m + n])

    # All unknowns in a row: x_1.., u_0.., h, lambda_0.., nu.
    nx, nu = stages * n, stages * m
    total = nx + nu + 1
    K, right, C = np.zeros((total, total)), np.zeros(total), np.zeros((nx + 3, total))
    c = np.zeros(nx + 3)
    for k in range(stages):
        place = np.concatenate(
            [np.arange((k - 1) * n, k * n), nx + np.arange(k * m, (k + 1) * m), [nx + nu]]
        )
        keep = np.arange(size) if k else np.arange(n, size)
        K[np.ix_(place[keep], place[keep])] += H[k][np.ix_(keep, keep)]
        right[place[keep]] += slopes[-size:, k][keep]
        J = slopes[: n * size, k].reshape(n, size)
        row = np.arange(k * n, (k + 1) * n)
        C[np.ix_(row, place[keep])] += J[:, keep]
        C[row, row] -= 1.0
        c[row] = values[:n, k]
    last = np.arange(nx - n, nx)
    K[np.ix_(last, last)] += P
    C[nx:, last], c[nx:] = D, psi
    whole = np.block([[K, C.T], [C, np.zeros((nx + 3, nx + 3))]])
    found = np.linalg.solve(whole, -np.concatenate([right, c]))
    mine = np.concatenate([*x, *u, [theta[1]], *lam, theta[2:]])
    assert np.abs(mine - found).max() <= 1e-9 * np.abs(found).max()


@pytest.mark.parametrize("members", [1, lanes()])
def test_large_matrices_are_multiplied_in_loops(members, monkeypatch):
    """Two rounds of machine code, with loops over rows, against products written out."""
    s = Sizes(0, 5, 3, 0, 4, 1, False)
    n, q, rounds, rng = s.state, s.sides, 2, np.random.default_rng(6)
    counts = (n * (n + 1) // 2 + n * q + q * (q + 1) // 2 + 1, s.values, s.slopes, s.stage)
    carried = rng.normal(size=(counts[0], members))
    reads = [rng.normal(size=(count, rounds, members)) for count in counts[1:]]
    settings, weights = np.zeros((3, members)), np.ones(n + s.inputs)
    rows = s.inputs * (n + q) + n * (n + 1) // 2 + n * q
    gains, old = np.zeros((rows, rounds, members)), carried.copy()
    along = [Rows(x, 0, rounds * members, members) for x in (*reads, gains)]
    each = [Rows(x, 0, members, 0) for x in (np.zeros((1, members)), settings)]
    recursions(s, True)[0].bind(
        [Rows(weights, 0, 1, 0), Rows(carried, 0, members, 0), *along[:3], *each, along[3]],
        *(rounds, members, members),
    )()
    monkeypatch.setattr(recursion, "_WRITTEN_OUT", 10**9)
    for p in range(members):
        value = jnp.asarray(old[:, p])
        for k in range(rounds):
            given = (*(x[:, k, p] for x in reads), np.zeros(0), settings[:, p])
            value, gain = backward(s, jnp.asarray(weights), value, *map(jnp.asarray, given))
            assert np.abs(gains[:, k, p] - gain).max() <= 5e-14 * np.abs(gain).max()
        assert np.abs(carried[:, p] - value).max() <= 5e-14 * np.abs(value).max()
