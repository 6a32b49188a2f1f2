"""The same run gives the same bits, however often its states are saved."""

import jax
import numpy as np
import pytest

import retrax as rx
from retrax.testing.problems import asymmetric_top

TOP, START = asymmetric_top()


def final(backend, save_every, integrator):
    made = rx.simulate(
        TOP, integrator, START, h=0.05, steps=700, save_every=save_every, backend=backend,
        progress=False,
    )  # fmt: skip
    return made, jax.tree.leaves(made.final)


BACKENDS = pytest.mark.parametrize("backend", ["native", "xla"])


@BACKENDS
def test_the_same_run_gives_the_same_bits(backend):
    (one, _), (two, _) = (final(backend, 1, rx.LieVerlet()) for _ in range(2))
    for a, b in zip(jax.tree.leaves(one.states), jax.tree.leaves(two.states), strict=True):
        np.testing.assert_array_equal(a, b)


@BACKENDS
def test_how_often_states_are_saved_does_not_change_them(backend):
    every_one, ends = final(backend, 1, rx.LieVerlet())
    some, same = final(backend, 300, rx.LieVerlet())  # two whole intervals and a shorter one
    for a, b in zip(ends, same, strict=True):
        np.testing.assert_array_equal(a, b)
    np.testing.assert_array_equal(every_one.g[[0, 300, 600, 700]], some.g)
