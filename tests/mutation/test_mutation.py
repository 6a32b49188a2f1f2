"""Do the checks have teeth? Changes of the program, planted one at a time, that must be noticed."""

import random
import warnings
from contextlib import ExitStack

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from bugs import BUGS, Bug
from checks import MODULES, watching
from mutants import Mutant, mutants, mutated, planted, source

import retrax as rx
from retrax.numerics import compositions
from retrax.numerics.newton import newton
from run import written

XI, ETA = jnp.array([0.3, -0.7, 0.5]), jnp.array([-0.2, 0.4, 1.1])


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.name)
def test_a_bug_is_noticed(bug: Bug):
    with planted(bug.module, bug.text()), pytest.raises(rx.CheckFailed) as noticed:
        bug.check()
    print(f"{bug.name}: {noticed.value}")


# One check of each kind; the others are tests of their own, of groups, spaces and integrators.
KINDS = (
    "the time of the step is forgotten",
    "the Cayley map without the half",
    "the end of the step is not projected",
    "the attitude is aligned the wrong way round",
    "the coadjoint term is reversed: the mirror image has the same energy and the same order",
    "every step is accepted",
)


def test_text_without_a_bug_is_not_noticed():
    """It is the bugs that are noticed, not that text was planted."""
    chosen = [bug for bug in BUGS if bug.name in KINDS]
    assert len(chosen) == len(KINDS)
    with ExitStack() as stack:
        for module in {bug.module for bug in chosen}:
            stack.enter_context(planted(module, source(module)))
        for bug in chosen:
            bug.check()


@pytest.mark.campaign
@pytest.mark.parametrize("module", [module for module in MODULES if watching(module)[0]])
def test_a_mutant_that_was_killed_still_is(module):
    """Two mutants of each module; `run.py` plants all of the sample."""
    killed = [m for m in mutants(module) if (written().get(m) or "").startswith("CheckFailed")]
    for mutant in random.Random(module).sample(killed, min(2, len(killed))):
        with planted(module, mutated(mutant)), jax.disable_jit(), pytest.raises(rx.CheckFailed):
            with warnings.catch_warnings(action="ignore"):  # a mutant may turn a body too fast
                for check in watching(module)[0]:
                    check()


def the_mutant(module: str, change: str) -> Mutant:
    return next(mutant for mutant in mutants(module) if mutant.change == change)


def plant(mutant: Mutant):
    return planted(mutant.module, mutated(mutant))


def test_a_change_of_a_method_is_there_and_gone_again():
    group, before = rx.SO3(), rx.SO3().dcay_inv(XI, ETA)
    with plant(the_mutant("retrax.groups.so3", "xi @ eta / 4 -> xi @ eta * 4")):
        wrong = group.dcay_inv(XI, ETA)
    np.testing.assert_allclose(wrong - before, (4 - 0.25) * (XI @ ETA) * XI, atol=1e-15)
    np.testing.assert_array_equal(group.dcay_inv(XI, ETA), before)


def test_a_change_of_a_constant_is_seen_where_it_is_used():
    with plant(the_mutant("retrax.numerics.compositions", "4 -> 5")):
        assert sum(compositions.fractions(4)) == pytest.approx(1)  # the middle one makes up for it
        changed = compositions.fractions(4)
    assert changed != compositions.fractions(4)


def test_a_change_of_a_function_is_seen_by_those_who_imported_it():
    solution = "partly_ordered_solve(near, r, how.positive)"
    change = f"x - {solution} -> x + {solution}"
    mutant = the_mutant("retrax.numerics.newton", change)
    with plant(mutant):
        _, status = newton(lambda x: x**2 - 2.0, jnp.array([1.5]))
        assert not bool(status.converged)
    _, status = newton(lambda x: x**2 - 2.0, jnp.array([1.5]))
    assert bool(status.converged)


def test_messages_annotations_and_defaults_are_left_alone():
    for module in ("retrax.groups.so3", "retrax.numerics.small_matrices"):
        for mutant in mutants(module):
            assert "raise" not in mutant.change and "f'" not in mutant.change
    assert not [m for m in mutants("retrax.groups.so3") if "ALLOWED_DEFECT" in m.change]
