"""Errors and processor times of methods: errors fall with the order, a user's class is welcome."""

from typing import ClassVar

import numpy as np
import pytest

import retrax as rx
from retrax.integrators.base import AbstractIntegrator, explicit_step
from retrax.testing.problems import asymmetric_top

work_precision = rx.analysis.work_precision


class ByHand(AbstractIntegrator):
    """Euler's method on the group, as somebody would write it."""

    order: ClassVar[int] = 1
    preserves: ClassVar[frozenset[str]] = frozenset({"group"})

    def step(self, system, state, h):
        now = system.vector_field(state.g, state.momentum, state.t)
        move = h * now.velocity
        g = system.group.advance(state.g, system.group.expm1(move))
        return rx.State(g, state.momentum + h * now.momentum_rate, state.t + h), explicit_step(move)


@pytest.fixture(scope="module")
def measured():
    body = rx.systems.FreeRigidBody([1.0, 2.0, 2.5])
    systems = {
        "top": asymmetric_top(),
        "body": (body, body.state(np.eye(3), velocity=[0.4, 0.2, 1.0])),
    }
    methods = {"verlet": "lie-verlet", "rk4": rx.RKMK("rk4"), "by hand": ByHand()}
    return work_precision(systems, methods, time=2.0, h=[0.04, 0.02, 0.01], repeats=1)


def test_errors_fall_with_the_order(measured):
    assert measured["error"].shape == (2, 3, 3)
    error = measured["error"].values
    orders = np.log2(error[:, :, 1] / error[:, :, 2])
    assert np.allclose(orders, [[2, 4, 1], [2, 4, 1]], atol=0.25)  # measured 0.1 at most
    assert (measured["seconds"] > 0).all()
    assert measured["steps"].values.tolist() == [50, 100, 200]
    assert (measured["reference_error"] < 1e-11).all()


def test_it_is_drawn_with_a_panel_for_each_system(measured):
    figure = rx.show.work_precision(measured)
    assert [axes.get_title(loc="left") for axes in figure.axes] == ["top", "body"]
    assert len(figure.axes[0].lines) == 3


def test_a_failed_run_has_no_error():
    body = rx.systems.FreeRigidBody([1.0, 2.0, 2.5])
    start = (body, body.state(np.eye(3), velocity=[0.4, 0.2, 30.0]))
    found = work_precision(start, [rx.LieVerlet(rx.Exp())], time=2.0, h=[1.0, 0.005], repeats=1)
    assert np.isnan(found["error"].values[0, 0, 0]) and np.isnan(found["seconds"].values[0, 0, 0])
    assert found["error"].values[0, 0, 1] > 0


def test_what_cannot_be_measured_is_refused():
    start = asymmetric_top()
    with pytest.raises(rx.BadInput, match="did you mean"):
        work_precision(start, ["lie-verlt"], time=1.0, h=[0.1])
    with pytest.raises(rx.BadInput, match="must be a list of integrators"):
        work_precision(start, "lie-verlet", time=1.0, h=[0.1])
    with pytest.raises(rx.BadInput, match="must be a system and its start"):
        work_precision({"top": start[0]}, ["lie-verlet"], time=1.0, h=[0.1])
    with pytest.raises(rx.BadInput, match="each name something"):
        work_precision(start, ["lie-verlet"], time=1.0, h=[])
    with pytest.raises(rx.BadInput, match="one name"):
        work_precision(start, ["lie-verlet", "lie-verlet"], time=1.0, h=[0.1])
