"""Every integrator that is offered for a case can step it."""

import subprocess
import sys

import pytest

from retrax.cases import fitting
from retrax.systems.catalogue import CASES

_LIMIT = 300.0  # seconds, compiling included

_PAIR = """
import sys, warnings
import jax, numpy as np
import retrax as rx
from retrax.cases.names import READY
from retrax.systems.catalogue import CASES

warnings.simplefilter("ignore")
for name in sys.argv[2:]:
    system, start, h, _ = CASES[sys.argv[1]].make()
    run = rx.simulate(system, READY[name], start, h=h, steps=3, progress=False)
    assert run.completed == 3
    assert all(np.isfinite(x).all() for x in jax.tree.leaves(run.states)), name
"""


def steps(case, names, limit):
    subprocess.run([sys.executable, "-c", _PAIR, case, *names], check=True, timeout=limit)


def test_a_case_is_stepped_by_all_that_is_offered_for_it():
    """One small case here; all of them in the second tier."""
    steps("rolling-disk", fitting(CASES["rolling-disk"].make()[0])[:4], 120.0)


@pytest.mark.campaign
@pytest.mark.parametrize("case", CASES)
def test_every_integrator_offered_for_a_case_can_step_it(case):
    for name in fitting(CASES[case].make()[0]):
        steps(case, [name], _LIMIT)
