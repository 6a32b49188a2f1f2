"""Loads of a rod act, or are refused: none is passed over."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import retrax as rx

S = rx.systems
MADE = {
    "stretching": [40.0, 40.0, 100.0],
    "bending": [1.0, 1.0, 0.8],
    "mass": 1.0,
    "inertia": [0.01, 0.01, 0.02],
}


class Dragged(S.Rod):
    """A rod in a fluid."""

    def force(self, g, xi, t):
        rows = xi.reshape(-1, 6)
        return jnp.concatenate([jnp.zeros_like(rows[:, :3]), -0.4 * rows[:, 3:]], axis=1).ravel()


def test_the_force_of_a_subclass_acts_with_every_integrator():
    """Each node loses 0.4 of its velocity, in N, at first; later on to order two."""
    rod = Dragged(4, 1.0, **MADE)
    v = np.tile([0.0, 0.3, 0.0], (5, 1))
    start = rod.state(rod.straight(), velocity=rod.velocity_of(v=v))
    ends = {
        h: rx.simulate(rod, rx.LieVerlet(), start, h=h, steps=round(0.2 / h)).final
        for h in (0.01, 0.005)
    }
    exact = rx.simulate(rod, rx.RKMK("dopri5"), start, h=0.005, steps=40).final.momentum
    first = rx.simulate(rod, rx.LieVerlet(), start, h=1e-4, steps=1).final.momentum
    lost = (np.asarray(start.momentum) - first).reshape(-1, 6)[:, 4] / 1e-4
    np.testing.assert_allclose(lost, 0.4 * 0.3 * np.ones(5), rtol=1e-2)
    errors = [np.abs(ends[h].momentum - exact).max() for h in (0.01, 0.005)]
    assert np.log2(errors[0] / errors[1]) == pytest.approx(2, abs=0.1)
    assert "momentum x" not in rod.invariants(start)


def test_a_subclass_that_would_be_passed_over_is_refused():
    for base, name in [
        (S.Rod, "potential_energy"),
        (S.Rod, "inertia_at"),
        (S.RodsInContact, "force"),
        (S.StringsInContact, "force"),
        (S.StringPendulum, "potential_energy"),
    ]:
        with pytest.raises(rx.BadInput, match=f"Mine.{name} would have no effect"):
            type("Mine", (base,), {name: lambda self, *a: None, "__annotations__": {}})


@pytest.mark.parametrize(
    "ends, load, sentence",
    [
        (("free", "clamped"), {"end_force": [1.0, 0, 0]}, "ends says that it is clamped"),
        (("free", "pinned"), {"end_force": [1.0, 0, 0]}, "ends says that it is pinned"),
        (("free", "clamped"), {"end_torque": [1.0, 0, 0]}, "clamp would take up the torque"),
    ],
)
def test_loads_on_a_held_end_are_refused(ends, load, sentence):
    with pytest.raises(rx.BadInput, match=sentence):
        S.Rod(4, 1.0, **MADE, ends=ends, **load)


def test_a_torque_turns_a_pinned_end():
    rod = S.Rod(4, 1.0, **MADE, ends=("free", "pinned"), end_torque=[1.0, 0, 0])
    kick = jax.jit(rod.kick)(rod.straight(), jnp.zeros(()))
    assert float(kick.reshape(-1, 6)[-1, 0]) == 1.0


def test_rods_that_are_pulled_apart_are_no_start():
    with pytest.raises(rx.BadInput, match=r"pressed = -0\.05"):
        S.crossed_rods(pressed=-0.05)
