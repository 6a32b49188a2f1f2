"""The paper's pendulum against reference values of 18 digits, and what its steps conserve."""

from functools import lru_cache

import numpy as np
import pytest

import retrax as rx

PENDULUM = rx.systems.StringPendulum
# The exact solution of the semi-discrete equations (20 elements, reading A) at three times: the
# point of attachment, the attitude by rows, the angular velocity.
EXACT = {
    0.1: (
        (0.991790922909693256, 0.0191985102764539491, 0.00457035453110164043),
        (
            (0.994355279217234495, 0.0111970269885951899, 0.105509266320225614),
            (-0.0133676404547969749, 0.999712844865042088, 0.0198880366179159493),
            (-0.105256281909855145, -0.0211861841411085937, 0.994219422823780957),
        ),
        (-0.539025136831464579, 2.66975829973857413, -0.294235805535528745),
    ),
    0.5: (
        (0.656871749438084115, 0.0713960812026945170, 0.866932591210508170),
        (
            (0.775299220520745724, -0.0315666761171710135, -0.630804774568834187),
            (0.0131624186800382340, 0.999340873750894613, -0.0338314762505258593),
            (0.631456941837220975, 0.0179266006178566897, 0.775203694260980923),
        ),
        (-2.12716556778959791, 10.5588127046034984, 1.40558384009787520),
    ),
    1.0: (
        (-0.886132651735465250, -0.0733996166755536312, 0.447105840267935845),
        (
            (-0.826967078559317410, 0.0285213518986427349, -0.561526476192299890),
            (0.207824286125913980, 0.943488808314835499, -0.258143244499843216),
            (0.522431351543264472, -0.330174803809323683, -0.786161613063212741),
        ),
        (-1.90955168764216957, -4.21933433494243625, 0.960874532873380286),
    ),
}
# What the specification measured at h = 1e-4: errors of position, attitude and angular velocity.
ERRORS = {
    0.1: (2.2e-10, 3.5e-9, 7.5e-6),
    0.5: (1.2e-7, 9.7e-7, 5.5e-5),
    1.0: (8.7e-7, 8.7e-6, 1.6e-3),
}


@lru_cache
def paper_run(h=1e-4, end=1.0, law="two-sided", save=0.05):
    system, state, _, _ = PENDULUM.paper(law=law)
    every = round(save / h)
    return rx.simulate(system, rx.LieVerlet(), state, h=h, steps=round(end / h), save_every=every)


def errors(run, t):
    r, R, omega = (np.array(x) for x in EXACT[t])
    k = int(np.argmin(np.abs(run.t - t)))
    return (
        np.max(np.abs(run.g[0][k, -1] - r)),
        np.max(np.abs(run.g[1][k] - R)),
        np.max(np.abs(run.velocity[k, -3:] - omega)),
    )


@pytest.mark.parametrize("t", EXACT)
def test_the_references_are_met_with_the_errors_expected(t):
    fine, coarse = errors(paper_run(), t), errors(paper_run(2e-4), t)
    for error, expected in zip(fine, ERRORS[t], strict=True):
        assert error < 1.1 * expected
    assert abs(coarse[0] / fine[0] - 4) < 0.3
    assert abs(coarse[1] / fine[1] - 4) < 0.3


def test_energies_and_shapes_are_those_tabulated():
    run = paper_run()
    seen = run.observables()
    k = int(np.argmin(np.abs(run.t - 0.5)))
    names = [
        *(f"kinetic energy of the {part}" for part in ("string", "bodies")),
        "elastic energy",
        *(f"gravity energy of the {part}" for part in ("string", "bodies")),
        "stretched length",
    ]
    expected = [0.07846, 0.74063, 0.16642, -0.10656, -0.91344, 1.09113]
    assert (
        np.max(np.abs([seen[name][k] - x for name, x in zip(names, expected, strict=True)])) < 6e-6
    )
    assert abs(seen["rotational energy of the bodies"][k] - 0.01007) < 5e-6
    v = seen["velocity of attachment"][k, 0], seen["velocity of centre of mass"][k, 0]
    assert np.max(np.abs(v[0] - [-3.6530, -0.2223, 2.4103])) < 6e-5
    assert np.max(np.abs(v[1] - [-2.9799, -0.0380, 2.3938])) < 6e-5
    parts = sum(seen[name] for name in names[:-1])
    assert np.max(np.abs(parts - run.invariants()["energy"])) < 2e-15
    assert np.max(np.abs(seen["tension"] - 40.0 * seen["strain"])) < 1e-13


def test_momentum_energy_and_attitude_over_the_whole_run():
    run = paper_run(end=5.0)
    J3, energy = run.invariants()["angular momentum e3"], run.invariants()["energy"]
    assert np.max(np.abs(J3 - J3[0])) < 3e-15  # measured 1.0e-15; 1e-11 was asked for
    assert np.max(run.group_defect()) < 1e-15
    error = np.abs(energy - energy[0])
    assert np.max(error[run.t <= 1.0]) < 2.2e-7
    assert np.max(error) < 3.2e-5
    # The slow swing is the same for every step size: turning points of the potential energy.
    height = run.observables()["gravity energy of the bodies"]
    times = run.t[1:-1][(height[1:-1] > height[:-2]) & (height[1:-1] > height[2:])]
    assert np.max(np.abs(times - [0.05, 1.275, 2.512, 3.752])) < 0.026
    assert np.max(np.abs(run.g[0][-1, -1] - [0.6544, 0.3276, 0.0285])) < 0.2  # no longer the same


def test_readings_and_assumptions_of_the_paper():
    expected = {
        "A": (-0.03448958333, 0.02092291667),
        "B": (-0.03334166667, 0.02246666667),
        "C": (-0.03460183841, 0.0208),
    }
    for reading, (energy, momentum) in expected.items():
        system, state, h, steps = PENDULUM.paper(reading)
        assert (h, steps) == (1e-4, 50_000)
        assert abs(float(system.energy(state)) - energy) < 6e-12
        assert (
            abs(float(system.further_invariants(state)["angular momentum e3"]) - momentum) < 6e-12
        )
    J = [[3.833333e-4, -4e-5, -2e-4], [-4e-5, 5.833333e-4, -5e-5], [-2e-4, -5e-5, 3.0e-4]]
    assert np.max(np.abs(system.inertia[0] - np.array(J))) < 4e-11
    eliminated = np.linalg.eigvalsh(system.mass_matrix.reduced[0])
    assert np.max(np.abs(eliminated - [1.24187e-4, 1.30691e-4, 1.74809e-4])) < 6e-10
    alpha = 0.1 * float(system.mass_matrix.columns[-1, 0])
    m = 0.025 / 20
    assert abs(alpha - 0.99640453) < 5e-9
    assert abs(alpha - 0.1 / (0.1 + m / (2 * np.sqrt(3)))) < 5e-16


def test_the_start_is_the_legendre_transform_and_not_a_difference():
    """With f_0 = h v_0 the global order would be 1: the first displacement is not h times v."""
    system, state, h, _ = PENDULUM.paper()
    run = rx.simulate(system, rx.LieVerlet(), state, h=h, steps=1)
    moved = run.g[0][1] - run.g[0][0]
    velocity = np.asarray(system.velocity(state.g, state.momentum))[:60].reshape(20, 3)
    assert 1e-9 < np.max(np.abs(moved - h * velocity)) < 1e-6
