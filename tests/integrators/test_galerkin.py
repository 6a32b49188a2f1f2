"""The variational sibling of collocation: order 2s, symplectic, exact momenta, bounded energy."""

import json
import os
import subprocess
import sys
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest

import retrax as rx
from retrax.groups.base import AbstractLieGroup
from retrax.testing.problems import asymmetric_top


@pytest.fixture(scope="module")
def numbers():
    program = Path(__file__).with_name("collocation_numbers.py")
    source = str(Path(rx.__file__).parent.parent)
    done = subprocess.run(
        [sys.executable, str(program)],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": source},
    )
    assert done.returncode == 0, done.stderr
    assert "Warning" not in done.stderr, done.stderr  # a step that is not run natively warns
    return json.loads(done.stdout)


def test_order_is_twice_the_number_of_gauss_nodes(numbers):
    for s, (coarse, fine) in numbers["errors"].items():
        assert np.log2(coarse / fine) == pytest.approx(2 * int(s), abs=0.1)


def test_order_is_that_of_other_nodes(numbers):
    for order, (coarse, fine) in numbers["others"].values():
        assert np.log2(coarse / fine) == pytest.approx(order, abs=0.15)


def test_symplectic_at_a_coarse_step(numbers):
    assert numbers["defect"] < 4e-15  # measured: 4e-16; collocation has 2.5e-5


@pytest.mark.parametrize("regime, bound", [("regular", 1.2e-7), ("chaotic", 2e-5)])
def test_energy_is_bounded_and_momentum_exact_over_100000_steps(numbers, regime, bound):
    run = numbers[regime]
    assert run["last"] < 1.3 * run["first"] < 1.3 * bound
    assert run["momentum"] < 1e-12  # of 0.8 and of 12: round-off, as the square root of time


def test_five_stages_of_collocation(numbers):
    assert numbers["collocation"] == pytest.approx(3.860e-12, rel=0.05)


def test_one_stage_is_the_symmetric_cotangent_lift():
    system, state = asymmetric_top()
    h = jnp.asarray(0.2)
    ours, _ = rx.GalerkinVariational(rx.gauss(1)).step(system, state, h)
    lift, _ = rx.CotangentLift(rx.Exp()).step(system, state, h)
    assert np.max(np.abs(ours.g - lift.g)) < 2e-15
    assert np.max(np.abs(ours.momentum - lift.momentum)) < 2e-15


@pytest.mark.parametrize("size", [1.0, 1e-6, 4.0])
def test_the_gradient_of_the_tangent_map_in_closed_form(size):
    group = rx.SO3()
    xi, eta, mu = size * jnp.array([0.3, -0.5, 0.7]), jnp.array([1.0, 0.2, -0.4]), jnp.ones(3)
    general = AbstractLieGroup.dexp_gradient(group, xi, eta, mu)
    assert np.max(np.abs(group.dexp_gradient(xi, eta, mu) - general)) < 1e-15
