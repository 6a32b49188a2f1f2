"""The benchmark bicycle of Meijaard, Papadopoulos, Ruina and Schwab."""

import numpy as np
import pytest
from closed_forms import BICYCLE_C1, BICYCLE_K0, BICYCLE_K2, BICYCLE_M, bicycle_eigenvalues
from scipy.linalg import expm
from scipy.optimize import brentq

import retrax as rx

REAR = 0.3


@pytest.fixture(scope="module")
def bike():
    return rx.systems.bicycle()


def ahead(bike, v):
    """The state that rolls straight ahead and upright."""
    return bike.assemble(joint_rates={"rear axle": -v / REAR})


def pushed(bike, v, lean_rate):
    """The same, falling to its side at a rate about the line on which it stands."""
    state = ahead(bike, v)
    xi, w = np.array(bike.velocity_at(state)).reshape(-1, 6), np.array([lean_rate, 0, 0])
    xi[:, :3] += w
    xi[:, 3:] += np.cross(w, np.asarray(state.g[1]))
    return bike.state(state.g, velocity=xi.reshape(-1), project=True)


def lean(run):
    """The lean angle of the frame, positive to the right."""
    R = np.asarray(run.g[0])[:, 1]
    return np.arcsin(R[:, 2, 1])


def lateral(bike, v):
    """The four eigenvalues that belong to lean and steer."""
    found = rx.analysis.modes(bike, ahead(bike, v), drop_symmetries=True).eigenvalues
    assert len(found) == 5  # and the speed, which changes nothing
    return np.delete(found, np.argmin(np.abs(found)))


def test_the_bicycle_has_three_velocities_and_goes_where_it_points(bike):
    state = ahead(bike, 4.6)
    assert bike.freedoms(state) == 3
    xi = np.asarray(bike.velocity_at(state)).reshape(-1, 6)
    assert np.abs(xi[:, 3:] - [4.6, 0, 0]).max() < 1e-12
    assert abs(xi[3, 1] + 4.6 / 0.35) < 1e-11


@pytest.mark.parametrize("v", [0.0, 1.0, 5.0, 10.0])
def test_eigenvalues_are_those_of_the_published_equations(bike, v):
    """The paper prints its coefficients to 14 places. Measured: 2.8e-12 at rest, 8e-13 at v = 5."""
    found = np.sort_complex(np.round(lateral(bike, v), 9))
    exact = np.sort_complex(np.round(bicycle_eigenvalues(v), 9))
    assert np.abs(found - exact).max() < 2e-9
    free = lateral(bike, v)
    for value in bicycle_eigenvalues(v):
        assert np.abs(free - value).min() < 1e-11


def test_eigenvalues_are_the_printed_ones(bike):
    still, fast = lateral(bike, 0.0), lateral(bike, 5.0)
    for value in (5.53094371765393, 3.13164324790656, -3.13164324790656, -5.53094371765393):
        assert np.abs(still - value).min() < 1e-11
    weave, capsize, caster = (
        -0.775341882195845 + 4.46486771378823j,
        -0.32286642900409,
        -14.0783896927982,
    )
    for value in (weave, capsize, caster):
        assert np.abs(fast - value).min() < 5e-12


def test_it_is_stable_between_the_published_weave_and_capsize_speeds(bike):
    def weave(v):
        values = lateral(bike, v)
        return float(values[np.argmax(values.imag)].real)

    def capsize(v):
        values = lateral(bike, v)
        return float(values[np.argmin(np.abs(values))].real)

    assert abs(brentq(weave, 4.2, 4.4, xtol=1e-13) - 4.29238253634111) < 1e-11
    assert abs(brentq(capsize, 5.9, 6.1, xtol=1e-13) - 6.02426201538837) < 1e-11


def test_all_modes_are_there_unless_symmetries_are_dropped(bike):
    """Seven places and three velocities: five of the zeros are symmetries, one is the speed."""
    found = rx.analysis.modes(bike, ahead(bike, 5.0)).eigenvalues
    assert len(found) == 10 and np.sum(np.abs(found) < 1e-9) == 6


def test_a_bicycle_that_falls_is_not_steady(bike):
    with pytest.raises(rx.BadInput, match="not steady"):
        rx.analysis.modes(bike, pushed(bike, 5.0, 0.1))


def test_uncontrolled_at_4_6_metres_a_second_it_rights_itself(bike):
    """Pushed at 0.5 rad/s: lean and steer die as the slower of the published modes says."""
    run = rx.simulate(bike, rx.LieVerlet(), pushed(bike, 4.6, 0.5), h=0.005, steps=1600)
    values = bicycle_eigenvalues(4.6)
    slowest = values.real.max()
    assert slowest < -0.1
    early, late = np.abs(lean(run)[:300]).max(), np.abs(lean(run)[-300:]).max()
    assert 0.1 < early and late < 0.15 * early
    assert np.max(run.constraint_violation()) < 1e-13
    energy = np.asarray(run.energy())
    assert np.ptp(energy) / energy[0] < 5e-6


@pytest.mark.parametrize(("order", "h"), [(2, 0.01), (4, 0.02)])
def test_orders_hold_where_wheels_roll(bike, order, h):
    """Against steps of order 6 with h = 0.005, at a push that is far from small."""
    start, base = pushed(bike, 4.6, 0.5), rx.LieVerlet(rx.Exp())
    fine = rx.Composition(base, order=6)
    exact = rx.simulate(bike, fine, start, h=0.005, steps=200, save_every=200).final
    integrator = base if order == 2 else rx.Composition(base, order=order)
    errors = []
    for size in (h, h / 2):
        run = rx.simulate(bike, integrator, start, h=size, steps=round(1 / size))
        errors.append(np.abs(np.asarray(run.final.g[1]) - np.asarray(exact.g[1])).max())
        assert np.max(run.constraint_violation()) < 1e-13
    assert abs(np.log2(errors[0] / errors[1]) - order) < 0.2


def test_a_small_push_moves_it_as_the_linearised_equations_do(bike):
    """q(t) = exp(A t) q(0) for lean and steer; what remains is of third order in the push."""
    v, push = 4.6, 1e-3
    state = pushed(bike, v, push)
    integrator = rx.Composition(rx.LieVerlet(), order=4)
    run = rx.simulate(bike, integrator, state, h=0.01, steps=200, save_every=20)
    back = -np.linalg.inv(BICYCLE_M)
    A = np.block(
        [
            [np.zeros((2, 2)), np.eye(2)],
            [back @ (9.81 * BICYCLE_K0 + v**2 * BICYCLE_K2), back @ (v * BICYCLE_C1)],
        ]
    )
    w = np.asarray(bike.velocity_at(state)).reshape(-1, 6)
    tilt = np.pi / 10
    rates = [w[1, 0], (w[2, :3] - w[1, :3]) @ [np.sin(tilt), 0, np.cos(tilt)]]
    exact = [(expm(A * t) @ [0, 0, *rates])[0] for t in np.asarray(run.t)]
    assert np.abs(lean(run) - exact).max() < 2e-4 * push
