"""Rods in motion by LieVerlet: an independent solution, momenta, energy, damping, ensembles."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.spatial.transform import Rotation

import retrax as rx
from retrax.systems.rods.dispersion import longest_step

S = rx.systems
MADE = {
    "stretching": [4.0, 3.0, 9.0],
    "bending": [0.2, 0.3, 0.4],
    "mass": 1.1,
    "inertia": [0.01, 0.02, 0.025],
}


def flying(elements=16, **others):
    """A rod that bends, twists and turns, with no symmetry at all."""
    rod = S.Rod(elements, 1.3, **MADE, **others)
    s = np.linspace(0.0, 1.0, rod.nodes)[:, None]
    omega = np.hstack([np.sin(3 * s), 0.5 * np.cos(2 * s), s**2])
    v = np.hstack([0.3 * s, 0.2 * (1 - s**2), 0.1 * np.sin(5 * s)])
    velocity = rod.velocity_of(omega, v)
    return rod, rod.state(rod.straight([1.0, 0.3, -0.2]), velocity=velocity)


def energy_by_rotation_vectors(frames, places, h):
    """The elastic energy, written without any map of retrax."""
    total = 0.0
    for k in range(len(frames) - 1):
        turn = Rotation.from_matrix(frames[k].T @ frames[k + 1]).as_rotvec()
        angle = np.linalg.norm(turn)
        curvature = (2 * np.tan(angle / 2) / angle if angle > 1e-12 else 1.0) * turn / h
        middle = frames[k] @ Rotation.from_rotvec(turn / 2).as_matrix()
        gamma = middle.T @ (places[k + 1] - places[k]) / h - [0.0, 0.0, 1.0]
        total += h / 2 * (gamma**2 @ MADE["stretching"] + curvature**2 @ MADE["bending"])
    return total


def newtonian(rod, h):
    """Newton's and Euler's equations, the forces from differences of the energy."""
    n, step = rod.nodes, 1e-5
    mass, moments = np.full(n, 1.1 * h), np.outer(np.full(n, h), MADE["inertia"])
    mass[[0, -1]] /= 2
    moments[[0, -1]] /= 2

    def rates(_, y):
        frames, places = y[: 9 * n].reshape(n, 3, 3), y[9 * n : 12 * n].reshape(n, 3)
        omega, v = y[12 * n : 15 * n].reshape(n, 3), y[15 * n :].reshape(n, 3)
        torque, force = np.zeros((n, 3)), np.zeros((n, 3))
        for k in range(n):
            for i in range(3):
                for sign in (1, -1):
                    r = places.copy()
                    r[k, i] += sign * step
                    force[k, i] -= sign * energy_by_rotation_vectors(frames, r, h) / (2 * step)
                    turned, turn = frames.copy(), Rotation.from_rotvec(sign * step * np.eye(3)[i])
                    turned[k] = frames[k] @ turn.as_matrix()
                    change = energy_by_rotation_vectors(turned, places, h)
                    torque[k, i] -= sign * change / (2 * step)
        zero = np.zeros(n)
        x, y3, z = omega.T
        hats = np.array([[zero, -z, y3], [z, zero, -x], [-y3, x, zero]]).transpose(2, 0, 1)
        turning = frames @ hats
        return np.concatenate(
            [
                turning.ravel(),
                v.ravel(),
                ((torque - np.cross(omega, moments * omega)) / moments).ravel(),
                (force / mass[:, None]).ravel(),
            ]
        )

    return rates


def test_motion_agrees_with_newtons_equations():
    rod, start = flying(3)
    xi = np.asarray(rod.velocity(start.g, start.momentum)).reshape(-1, 6)
    y = np.concatenate([np.ravel(x) for x in (*start.g, xi[:, :3], xi[:, 3:])])
    exact = solve_ivp(newtonian(rod, 1.3 / 3), (0, 0.4), y, method="DOP853", rtol=1e-8, atol=1e-9)
    places = exact.y[9 * 4 : 12 * 4, -1].reshape(4, 3)
    errors = []
    for steps in (200, 400):
        run = rx.simulate(rod, rx.LieVerlet(), start, h=0.4 / steps, steps=steps, save_every=steps)
        errors.append(np.abs(np.asarray(run.final.g[1]) - places).max())
    assert errors[1] < 1e-5
    assert np.log2(errors[0] / errors[1]) == pytest.approx(2, abs=0.1)


@pytest.mark.parametrize("backend", ["native", "xla"])
def test_free_flight_conserves_momenta_and_bounds_the_energy(backend):
    rod, start = flying()
    errors = []
    for h in (0.01, 0.005):
        steps = round(4 / h)
        run = rx.simulate(
            rod, rx.LieVerlet(), start, h=h, steps=steps, save_every=steps // 80, backend=backend
        )
        assert run.provenance["backend"] == backend
        invariants = run.invariants()
        energy = invariants.pop("energy")
        assert len(invariants) == 6
        for values in invariants.values():
            assert np.abs(values - values[0]).max() < 3e-14
        errors.append(np.abs(energy - energy[0]).max())
        assert run.group_defect().max() < 2e-15
    assert errors[0] / errors[1] == pytest.approx(4, rel=0.1)


def test_steps_are_reversible():
    rod, start = flying()
    there = rx.simulate(rod, rx.LieVerlet(), start, h=0.01, steps=200).final
    turned = rod.state(there.g, momentum=-there.momentum)
    back = rx.simulate(rod, rx.LieVerlet(), turned, h=0.01, steps=200).final
    np.testing.assert_allclose(back.g[1], start.g[1], rtol=0, atol=1e-12)
    np.testing.assert_allclose(back.momentum, -np.asarray(start.momentum), rtol=0, atol=1e-12)


def test_damping_loses_energy_and_keeps_momenta():
    """Of order two, against steps eight times shorter."""
    rod, start = flying(damping=0.01)
    ends = []
    for steps in (200, 400, 3200):
        run = rx.simulate(
            rod, rx.LieVerlet(), start, h=2.0 / steps, steps=steps, save_every=steps // 20
        )
        ends.append(np.asarray(run.final.g[1]))
        balance = run.energy_balance()
        assert balance is not None and np.all(np.diff(run.energy()) < 0)
        for values in run.invariants().values():
            assert np.abs(values - values[0]).max() < 3e-14
    assert abs(balance.difference[-1]) < balance.uncertainty  # of 21 saved states
    errors = [np.abs(end - ends[2]).max() for end in ends[:2]]
    assert np.log2(errors[0] / errors[1]) == pytest.approx(2, abs=0.15)


def test_a_hanging_rod_swings_about_its_equilibrium():
    """Clamped, in gravity: held nodes do not move, and a start at rest there stays at rest."""
    rod, _ = flying(ends=("clamped", "free"), gravity=[0.0, 0.5, -1.0])
    g = S.equilibrium(rod, rod.straight())
    start = rod.state(g, velocity=np.zeros(rod.group.dim))
    run = rx.simulate(rod, rx.LieVerlet(), start, h=0.01, steps=200, save_every=50)
    np.testing.assert_allclose(run.g[1][-1], g[1], rtol=0, atol=1e-12)
    pushed = rod.state(g, velocity=rod.velocity_of(v=np.ones((rod.nodes, 3))))
    run = rx.simulate(rod, rx.LieVerlet(), pushed, h=0.01, steps=200, save_every=50)
    np.testing.assert_array_equal(run.g[1][:, 0], np.broadcast_to(run.g[1][0, 0], (5, 3)))
    assert np.ptp(run.invariants()["energy"]) < 2e-3


def test_a_fold_ends_the_run():
    rod, _ = flying(16)
    start = rod.state(
        rod.straight(), velocity=rod.velocity_of(omega=300.0 * np.eye(rod.nodes, 3, k=-8))
    )
    with pytest.raises(rx.StepFailed, match="bent by nearly half a turn") as failure:
        rx.simulate(rod, rx.LieVerlet(), start, h=0.004, steps=50)
    assert failure.value.trajectory.completed < 50


@pytest.mark.parametrize("backend", ["native", "xla"])
def test_ensembles_of_rods(backend):
    rod, start = flying()
    states = jax.tree.map(lambda x: jnp.stack([x, x]), start)
    states = rx.State(states.g, states.momentum * jnp.array([[1.0], [0.9]]), states.t)
    with pytest.warns(UserWarning, match="long axis") if backend == "xla" else _quiet():
        runs = rx.ensemble(rod, rx.LieVerlet(), states, h=0.01, steps=20, backend=backend)
    one = jax.tree.map(lambda x: x[1], states)
    alone = rx.simulate(rod, rx.LieVerlet(), one, h=0.01, steps=20, save_every=20)
    np.testing.assert_allclose(runs["g1"].values[-1, 1], alone.final.g[1], rtol=0, atol=1e-13)


class _quiet:
    def __enter__(self):
        return self

    def __exit__(self, *_):
        return False


@pytest.mark.parametrize("damping", [0.0, 0.002, 0.2])
def test_steps_are_bounded_by_waves_and_by_damping(damping):
    """By the linear map of one mode: at its bound a step begins to grow, before it does not."""
    omega = 30.0
    for split in (True, False):
        longest, _ = longest_step(omega, damping, split)
        for part, grows in ((0.99, False), (1.01, True)):
            h = part * longest
            z = damping * omega**2 * h / 2
            each = 1 - z + z * z / 2 if split else 1 - z
            kick = np.array([[1.0, 0.0], [-((omega * h) ** 2) / 2, 1.0 if split else each]])
            damp = np.diag([1.0, each if split else 1.0])
            step = kick @ damp @ np.array([[1.0, 1.0], [0.0, 1.0]]) @ damp @ kick
            assert (np.abs(np.linalg.eigvals(step)).max() > 1 + 1e-6) == grows


def test_a_damped_rod_refuses_a_step_that_its_damping_makes_grow():
    rod, start = flying(damping=0.5)
    with pytest.raises(
        rx.BadInput, match=r"explicit damping, h < 4/\(beta omega\^2\).*below"
    ) as no:
        rx.simulate(rod, rx.LieVerlet(), start, h=0.01, steps=1)
    longest = float(str(no.value).split("below ")[1].split(" s")[0])
    run = rx.simulate(rod, rx.LieVerlet(), start, h=0.99 * longest, steps=400, save_every=400)
    assert np.diff(run.along(rod.energy))[0] < 0
