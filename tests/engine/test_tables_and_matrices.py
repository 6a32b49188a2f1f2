"""Entries at places found at run time, and small matrices: native and on arrays, against XLA."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from native_function import flat, has_buffers, programme, run_natively

import retrax as rx
from retrax.engine.backends.interpret import interpret
from retrax.engine.backends.native import single_kernel
from retrax.engine.listing import listing
from retrax.engine.trace.scalarise import Unscalarisable

_RNG = np.random.default_rng(5)
LONG, TABLE, SHORT = _RNG.normal(size=300), _RNG.normal(size=(40, 3)), _RNG.normal(size=7)
GRID = np.cumsum(_RNG.uniform(0.1, 1.0, size=300)) - 80.0
WHOLE = np.arange(50, dtype=np.int32)[::-1].copy()
STATE = _RNG.normal(size=6)
# Within, at both ends, and beyond them.
PLACES = [-400.5, -41.0, -7.0, -1.0, 0.0, 3.2, 6.0, 38.9, 39.0, 155.5, 299.0, 300.0, 1e6]


def _k(x):
    return jnp.floor(x[0]).astype(int)


LOOKUPS = {
    "an entry of a long table": lambda x: jnp.asarray(LONG)[_k(x)],
    "an entry of a short table": lambda x: jnp.asarray(SHORT)[_k(x)],
    "a row": lambda x: jnp.asarray(TABLE)[_k(x)] * x[1],
    "a column": lambda x: jnp.asarray(TABLE.T.copy())[:, _k(x)],
    "an entry of a row": lambda x: jnp.asarray(TABLE)[_k(x), _k(x) % 3],
    "with 32 bits": lambda x: jnp.asarray(LONG)[_k(x).astype(jnp.int32)],
    "without a sign": lambda x: jnp.asarray(LONG)[jnp.abs(_k(x)).astype(jnp.uint32)],
    "of whole numbers": lambda x: jnp.asarray(WHOLE)[_k(x)],
    "of the state": lambda x: x[_k(x)],
    "of much made of the state": lambda x: jnp.outer(x, jnp.sin(jnp.arange(1.0, 31.0))).ravel()[
        _k(x)
    ],
    "filled": lambda x: jnp.asarray(SHORT).at[_k(x)].get(mode="fill", fill_value=7.5),
    "filled with NaN": lambda x: jnp.asarray(LONG).at[_k(x)].get(mode="fill"),
    "clipped": lambda x: jnp.asarray(LONG).at[_k(x)].get(mode="clip"),
    "promised": lambda x: jnp.asarray(LONG).at[_k(x) % 300].get(mode="promise_in_bounds"),
    "taken": lambda x: jnp.take(LONG, _k(x)),
    "taken and wrapped": lambda x: jnp.take(LONG, _k(x), mode="wrap"),
    "several": lambda x: jnp.asarray(LONG)[jnp.array([[1, 5], [9, 0]]) * _k(x)],
    "several rows": lambda x: jnp.asarray(TABLE)[jnp.array([1, -2]) + _k(x)],
    "a window": lambda x: lax.dynamic_slice(jnp.asarray(LONG), (_k(x),), (4,)),
    "a window of rows": lambda x: lax.dynamic_slice(jnp.asarray(TABLE), (_k(x), 1), (2, 2)),
    "a window of the state": lambda x: lax.dynamic_slice(x, (_k(x),), (3,)),
    "by index in a dimension": lambda x: lax.dynamic_index_in_dim(jnp.asarray(TABLE), _k(x)),
    "along an axis": lambda x: jnp.take_along_axis(
        x[:6].reshape(3, 2), jnp.argmax(x[:6].reshape(3, 2), 0)[None], 0
    ),
    "for each": lambda x: jax.vmap(lambda y: jnp.asarray(LONG)[jnp.floor(y * 40).astype(int)])(x),
    "interpolated": lambda x: jnp.interp(x[0], GRID, LONG),
    "interpolated, with ends": lambda x: jnp.interp(x[0], GRID, LONG, left=-1.0, right=2.0),
    "searched": lambda x: jnp.searchsorted(jnp.asarray(GRID), x[0]),
    "searched from the right": lambda x: jnp.searchsorted(jnp.asarray(GRID), x[0], side="right"),
    "in a loop": lambda x: lax.fori_loop(
        0, 5, lambda i, y: y + jnp.asarray(LONG)[i * jnp.abs(_k(x)) % 300], 0.0
    ),
    "the derivative of an interpolation": jax.grad(lambda x: jnp.interp(x[0], GRID, LONG)),
}


def _of_matrix(function):
    """The function of sixteen numbers that come as a matrix: a long row would be kept."""
    return lambda x: function(x.ravel())


def _agree(function, x, **tolerance):
    program = programme(function, x)
    exact = flat(jax.jit(function)(x))
    tolerance = {"rtol": 1e-13, "atol": 1e-15, "equal_nan": True} | tolerance
    np.testing.assert_allclose(run_natively(program, x), exact, **tolerance)
    if not has_buffers(program):
        np.testing.assert_allclose(run_natively(program, x, lanes=8), exact, **tolerance)
        inputs = [jnp.stack([e, e]) for e in jnp.asarray(x).ravel()]
        ours, _ = interpret(program, inputs, jnp.array([True, True]))
        np.testing.assert_allclose(flat([y[0] for y in ours]), exact, **tolerance)


@pytest.mark.parametrize("case", LOOKUPS)
def test_a_place_found_at_run_time_is_that_of_xla(case):
    places = PLACES if case in ("an entry of a long table", "filled", "a window") else PLACES[::3]
    for place in places:
        _agree(LOOKUPS[case], jnp.asarray(np.array([place, *STATE[1:]])))


@pytest.mark.parametrize("nan", [0, 1])
def test_searching_for_nan_ends_after_the_last(nan):
    grid = jnp.asarray(np.append(GRID, np.nan) if nan else GRID)
    _agree(lambda x: jnp.searchsorted(grid, x[0]), jnp.array([np.nan, 1.0]))


def _matrix(x):
    return x[:16].reshape(4, 4)


MATRICES = {
    "solve": lambda x: jnp.linalg.solve(_matrix(x), x[:4]),
    "solve for several": lambda x: jnp.linalg.solve(_matrix(x), x[:8].reshape(4, 2)),
    "inverse": lambda x: jnp.linalg.inv(_matrix(x)),
    "determinant": lambda x: jnp.linalg.det(_matrix(x)),
    "determinant of three rows": lambda x: jnp.linalg.det(x[:9].reshape(3, 3)),
    "sign and logarithm": lambda x: jnp.stack(jnp.linalg.slogdet(_matrix(x))),
    "lu": lambda x: jax.scipy.linalg.lu(_matrix(x)),
    "lu of a wide matrix": lambda x: lax.linalg.lu(x[:12].reshape(3, 4)),
    "lu of a tall matrix": lambda x: lax.linalg.lu(x[:12].reshape(4, 3)),
    "lu of several": lambda x: lax.linalg.lu(x[:12].reshape(3, 2, 2)),
    "cholesky": lambda x: jnp.linalg.cholesky(_matrix(x) @ _matrix(x).T + jnp.eye(4)),
    "cholesky of no positive matrix": lambda x: jnp.linalg.cholesky(_matrix(x) - 2 * jnp.eye(4)),
    "triangular": lambda x: jax.scipy.linalg.solve_triangular(_matrix(x), x[:4], lower=True),
    "triangular, upper": lambda x: jax.scipy.linalg.solve_triangular(_matrix(x), x[:4]),
    "triangular, transposed": lambda x: jax.scipy.linalg.solve_triangular(
        _matrix(x), x[:4], trans=1, unit_diagonal=True
    ),
    "triangular from the right": lambda x: lax.linalg.triangular_solve(
        _matrix(x), x[:8].reshape(2, 4), left_side=False, lower=True
    ),
    "derivative of a solution": jax.grad(lambda x: jnp.sum(jnp.linalg.solve(_matrix(x), x[:4]))),
    "derivative of a determinant": jax.grad(lambda x: jnp.linalg.det(x[:9].reshape(3, 3))),
    "sorted": lambda x: jnp.sort(x[:9]),
    "sorted with ties": lambda x: jnp.argsort(jnp.floor(x[:9])),
    "sorted rows": lambda x: jnp.sort(_matrix(x), axis=1),
}


@pytest.mark.parametrize("case", MATRICES)
def test_small_matrices_are_those_of_xla(case):
    for seed in (1, 2):
        x = jnp.asarray(np.random.default_rng(seed).normal(size=(4, 4)))
        _agree(_of_matrix(MATRICES[case]), x, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("case", ["lu", "solve", "determinant"])
def test_a_zero_pivot_is_exchanged(case):
    x = np.random.default_rng(3).normal(size=(4, 4))
    x[0, 0] = x[1, 1] = 0.0
    _agree(_of_matrix(MATRICES[case]), jnp.asarray(x), rtol=1e-12, atol=1e-14)


def test_a_large_matrix_has_no_program():
    with pytest.raises(Unscalarisable, match="a matrix of 17 rows"):
        programme(lambda x: jnp.linalg.inv(x * jnp.eye(17)), jnp.ones(()))


def test_a_lookup_is_one_line_of_a_listing():
    text = listing(programme(lambda x: jnp.asarray(TABLE)[_k(x), 2], jnp.zeros(1)))
    assert text.count("buffer") == 1 and "[v" in text


def _driven(table):
    """A body under a torque from a table of times."""
    times = np.linspace(0.0, 1.0, len(table))

    def torque(R, w, t):
        k = jnp.floor(t * 37.7).astype(int)
        return jnp.stack([jnp.interp(t, times, table), jnp.take(table, k) * w[0], jnp.asarray(0.3)])

    return rx.MechanicalSystem(rx.SO3(), [1.0, 2.0, 2.5], lambda R: R[0, 1], torque)


def test_a_table_that_changes_is_a_parameter():
    table = np.sin(np.linspace(0.0, 3.0, 400))
    body = _driven(table)
    start = body.state(np.eye(3), velocity=[0.3, -0.5, 0.7])
    options = dict(h=0.02, steps=40, progress=False)
    for round_ in range(5):
        table[:] = np.cos(np.linspace(0.0, 3.0 + round_, 400))
        if round_ == 2:
            before = single_kernel.cache_info().misses
        native = rx.simulate(body, rx.RKMK("rk4"), start, backend="native", **options)
        xla = rx.simulate(body, rx.RKMK("rk4"), start, backend="xla", **options)
        assert np.max(np.abs(native.momentum - xla.momentum)) < 2e-14  # measured: 1e-15
    assert single_kernel.cache_info().misses == before


@pytest.mark.parametrize("backend", ["native", "xla"])
def test_members_look_up_each_their_own_place(backend):
    """Twelve bodies at other times: eight abreast, and the rest."""
    body = _driven(np.sin(np.linspace(0.0, 3.0, 400)))
    one = body.state(np.eye(3), velocity=[0.3, -0.5, 0.7])
    t = np.linspace(0.0, 0.6, 12)
    states = rx.State(*(jnp.stack([x] * 12) for x in (one.g, one.momentum)), jnp.asarray(t))
    ends = rx.ensemble(body, rx.RKMK("rk4"), states, h=0.02, steps=15, backend=backend)
    for k in (0, 5, 11):
        start = rx.State(one.g, one.momentum, jnp.asarray(t[k]))
        alone = rx.simulate(body, rx.RKMK("rk4"), start, h=0.02, steps=15, backend="xla")
        difference = np.asarray(ends["momentum"])[-1, k] - alone.momentum[-1]
        assert np.max(np.abs(difference)) < 2e-14  # measured: 1e-15


def test_members_load_the_same_entry_of_a_table():
    """Weights come out of a map as they went in: entries of a table of constants."""
    weights = np.array([0.3, 1.1, 0.7, 2.3, 0.2])

    def torque(R, w, t):
        same, turned = lax.map(lambda x: (x + 0.0 * R[0, 0], jnp.sin(x * w)), jnp.asarray(weights))
        return sum(same[k] * turned[4 - k] for k in range(5))

    body = rx.MechanicalSystem(rx.SO3(), [1.0, 2.0, 2.5], lambda R: R[0, 1], torque)
    one = body.state(np.eye(3), velocity=[0.3, -0.5, 0.7])
    momenta = one.momentum[None] * jnp.linspace(0.5, 1.5, 12)[:, None]
    states = rx.State(jnp.stack([one.g] * 12), momenta, jnp.zeros(12))
    ends = rx.ensemble(body, rx.RKMK("rk4"), states, h=0.02, steps=15, backend="native")
    for k in (0, 5, 11):
        start = rx.State(one.g, momenta[k], jnp.zeros(()))
        alone = rx.simulate(body, rx.RKMK("rk4"), start, h=0.02, steps=15, backend="xla")
        difference = np.asarray(ends["momentum"])[-1, k] - alone.momentum[-1]
        assert np.max(np.abs(difference)) < 2e-14, difference
