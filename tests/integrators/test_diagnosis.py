"""A run that cannot go on says why: lost rank, or a step too long and how long it may be."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import retrax as rx
from retrax.integrators.diagnosis import advised_step, longest_step, reach
from retrax.testing.constrained import suslov_body


def test_a_constraint_that_loses_rank_stops_the_run_and_is_named():
    """Veselova's row times R33: it vanishes when the body lies flat, on the way of this motion."""
    system = rx.MechanicalSystem(
        rx.SO3(), [1.0, 2.0, 2.5], constraint=rx.VelocityConstraint(lambda R: R[2, 2] * R[2:])
    )
    state = system.state(jnp.eye(3), velocity=[1.0, 0.2, 0.0])
    with pytest.raises(
        rx.StepFailed, match=r"step \d+ of 400 .* singular value of A falls"
    ) as failure:
        rx.simulate(system, rx.LagrangeDAlembert(), state, h=0.01, steps=400)
    last = failure.value.trajectory.final
    assert 1.0 < float(last.t) < 2.0 and abs(float(last.g[2, 2])) < 0.02


def test_a_step_that_is_too_long_is_told_its_bound():
    system, state = suslov_body()
    method = rx.LagrangeDAlembert()
    bound = longest_step(system, method, state, 9.0)
    with pytest.raises(rx.StepFailed, match=f"can be solved from there is h = {bound:.3g}"):
        rx.simulate(system, method, state, h=9.0, steps=1)
    assert 1.0 < bound < 9.0
    end, info = jax.jit(lambda h: method.step(system, state, h))(0.999 * bound)
    assert bool(info.converged) and np.all(np.isfinite(end.momentum))


def test_an_advised_step_has_led_past_the_place_of_the_failure():
    """A step of half the size can be taken once, but not twice."""
    assert advised_step(0.5, 1.0, lambda size, steps: steps == 1) is None
    tried = []

    def takes(size, steps):
        tried.append((size, steps))
        return size < 0.3

    assert advised_step(0.5, 1.0, takes) == 0.25
    assert tried == [(0.5, 2), (0.5, 2), (0.25, 4)]


@pytest.mark.parametrize(("longest", "advice"), [(0.97, 0.5), (0.3, 0.5)])
def test_no_bound_is_told_that_contradicts_the_advice(longest, advice):
    system, state = suslov_body()
    assert reach(system, state, 1.0, lambda size, steps: size < longest, advice) is None
    assert reach(system, state, 1.0, lambda size, steps: size < longest, 0.1 * longest) == (
        None
        if longest > 0.9
        else "The longest step that can be solved from there is h = 0.3 "
        f"(it moves by |h xi| = {0.3 * float(jnp.max(jnp.abs(system.velocity_at(state)))):.2g} "
        "on the group)."
    )
