"""The C kernels that retrax is timed against compute what retrax computes."""

import numpy as np
import pytest

from retrax.errors import RetraxError
from retrax_papers.bench import ensembles, strings
from retrax_papers.bench.kernels import compiler, ensemble, euler_top, single
from retrax_papers.bench.problems import ORDERS, W1, W2, attitude_error, free_bodies, reference
from retrax_papers.bench.single import collocation_disagreement, disagreement, kahan_disagreement

pytestmark = pytest.mark.skipif(compiler() is None, reason="needs a C compiler")


@pytest.mark.parametrize("problem", [W1, W2], ids=lambda p: p.name)
@pytest.mark.parametrize("order", ORDERS)
def test_c_and_retrax_take_the_same_steps(problem, order):
    assert disagreement(problem, order) < 5e-14  # measured: 5e-15
    assert disagreement(problem, order, lean=True) < 5e-14


@pytest.mark.parametrize("elements", [3, 20])
def test_the_string_in_c_is_the_step_of_retrax(elements):
    assert strings.disagreement(elements) < 1e-14  # measured 2e-16


def test_the_explicit_map_of_kahan_is_the_step_of_retrax():
    assert kahan_disagreement() < 5e-14  # measured: 5e-15
    with pytest.raises(RetraxError, match="a pole at step 4"):
        euler_top((1.0, 1.0, 1.0), (3.0, 2.0, 1.0), 7.0, 10)


def test_collocation_in_c_is_the_step_of_retrax():
    assert collocation_disagreement() < 2e-14  # measured: 2e-15


def test_an_ensemble_takes_the_same_steps_in_c_and_in_retrax():
    assert ensembles.disagreement() < 1e-14  # measured: 1.1e-15


def test_order_8_in_c_reaches_the_tabulated_attitude():
    states, _ = single(W2, W2.end / 600, 600, order=8)
    assert attitude_error(states[-1, :9].reshape(3, 3), reference(W2)) < 5e-12  # measured: 1e-12


@pytest.mark.parametrize("newton", [0, 2])
def test_bodies_of_an_ensemble_move_as_single_ones(newton):
    members = 11  # not a multiple of the vector length
    _, _, packed = free_bodies(members)
    packed[9:, -1] = W1.packed()[9:]
    states, _ = single(W1, 0.01, 100)
    last = ensemble(packed, W1.inertia, 0.01, 100, newton=newton)[:, -1]
    assert np.max(np.abs(last - states[-1])) < 1e-14


def test_threads_do_not_change_the_result():
    _, _, packed = free_bodies(37)
    one, three = (ensemble(packed, W1.inertia, 0.01, 10, threads=n) for n in (1, 3))
    assert np.array_equal(one, three)
