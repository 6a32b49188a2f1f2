"""Chains of many bodies: machine code of one length, against C, and what it keeps."""

import numpy as np
import pytest

import retrax as rx
from retrax.engine.step_program import signature, step_program
from retrax_papers.bench import chains, kernels


def operations(bodies):
    system, state = chains.problem(bodies)
    program, _ = step_program(*signature(system, rx.LieVerlet(), state))
    return program.count()


def test_the_program_does_not_grow():
    assert operations(80) == operations(160)


def test_chain_against_c():
    if kernels.compiler() is None:
        pytest.fail("there is no C compiler")
    system, state = chains.problem(20)
    assert chains.disagreement(system, state) < 1e-12


def test_free_chain_keeps_its_momenta():
    m = rx.Mechanism(gravity=[0, 0, 0])
    for k in range(18):
        m.body(f"b{k}", 1.0 + 0.1 * k, [0.1, 0.2, 0.25], at=[k, 0.02 * k, 0])
        if k:
            m.join(rx.Spherical(f"b{k - 1}", f"b{k}", at=[k - 0.5, 0, 0.1]))
    system = m.system()
    velocity = np.random.default_rng(1).normal(size=6 * 18)
    state = system.state(system.reference, velocity=velocity, project=True)
    run = rx.simulate(system, rx.LieVerlet(), state, h=1e-3, steps=2000, save_every=500)
    assert run.provenance["backend"] == "native"
    assert np.max(run.constraint_violation()) < 2e-14
    kept = {name: v for name, v in run.invariants().items() if "momentum" in name}
    assert len(kept) == 6
    for values in kept.values():
        assert np.max(np.abs(values - values[0])) < 1e-11
