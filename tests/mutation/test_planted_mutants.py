"""A mutant changes the program while it is planted, is noticed, and leaves no trace."""

import jax.numpy as jnp
import numpy as np
import pytest
from mutants import Mutant, mutants, planted

import retrax as rx
from retrax.numerics import compositions
from retrax.numerics.newton import newton

XI, ETA = jnp.array([0.3, -0.7, 0.5]), jnp.array([-0.2, 0.4, 1.1])


def the_mutant(module: str, change: str) -> Mutant:
    return next(mutant for mutant in mutants(module) if mutant.change == change)


def test_a_change_of_a_method_is_there_and_gone_again():
    group, before = rx.SO3(), rx.SO3().dcay_inv(XI, ETA)
    with planted(the_mutant("retrax.groups.so3", "xi @ eta / 4 -> xi @ eta * 4")):
        wrong = group.dcay_inv(XI, ETA)
    np.testing.assert_allclose(wrong - before, (4 - 0.25) * (XI @ ETA) * XI, atol=1e-15)
    np.testing.assert_array_equal(group.dcay_inv(XI, ETA), before)


def test_a_change_of_a_constant_is_seen_where_it_is_used():
    with planted(the_mutant("retrax.numerics.compositions", "4 -> 5")):
        assert sum(compositions.fractions(4)) == pytest.approx(1)  # the middle one makes up for it
        changed = compositions.fractions(4)
    assert changed != compositions.fractions(4)


def test_a_change_of_a_function_is_seen_by_those_who_imported_it():
    mutant = next(m for m in mutants("retrax.numerics.newton") if "x - solve" in m.change)
    with planted(mutant):
        _, status = newton(lambda x: x**2 - 2.0, jnp.array([1.5]))
        assert not bool(status.converged)
    _, status = newton(lambda x: x**2 - 2.0, jnp.array([1.5]))
    assert bool(status.converged)


def test_messages_annotations_and_defaults_are_left_alone():
    for module in ("retrax.groups.so3", "retrax.numerics.small_matrices"):
        for mutant in mutants(module):
            assert "raise" not in mutant.change and "f'" not in mutant.change
    assert not [m for m in mutants("retrax.groups.so3") if "ALLOWED_DEFECT" in m.change]
