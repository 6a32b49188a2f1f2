"""Bricard's linkage: a loop in space with one equation too many."""

import numpy as np
import pytest

import retrax as rx


@pytest.fixture(scope="module")
def linkage():
    system = rx.systems.bricard()
    return system, system.assemble()


def test_thirty_equations_have_rank_twenty_nine(linkage):
    system, start = linkage
    rows = np.asarray(system.constraint.rows(start.g, start.t))
    assert rows.shape == (30, 30)
    assert np.sum(np.linalg.svd(rows)[1] > 1e-12) == 29
    assert system.freedoms(start) == 1
    assert len(system.redundant(start)) == 1


@pytest.mark.parametrize(("order", "h"), [(2, 0.01), (4, 0.02)])
def test_joints_hold_to_round_off_and_energy_errors_have_the_order(linkage, order, h):
    system, start = linkage
    base = rx.LieVerlet()
    integrator = base if order == 2 else rx.Composition(base, order=order)
    errors = []
    for size in (h, h / 2):
        run = rx.simulate(system, integrator, start, h=size, steps=round(2.0 / size))
        energy = np.asarray(run.energy())
        errors.append(np.abs(energy - energy[0]).max())
        assert np.max(system.constraint.gap(run.final.g, run.final.t)) < 2e-15
        assert np.max(run.constraint_violation()) < 5e-14
    assert abs(np.log2(errors[0] / errors[1]) - order) < 0.2


def test_ten_seconds_come_back_the_way_they_went(linkage):
    """Each step is symmetric: the velocity turned round, the linkage goes back to its start."""
    system, start = linkage
    integrator = rx.Composition(rx.LieVerlet(), order=4)
    run = rx.simulate(system, integrator, start, h=0.01, steps=1000, save_every=1000)
    back = rx.simulate(
        system,
        integrator,
        system.state(run.final.g, momentum=-run.final.momentum, project=True),
        h=0.01,
        steps=1000,
        save_every=1000,
    )
    assert np.abs(np.asarray(back.final.g[1]) - np.asarray(start.g[1])).max() < 1e-9
