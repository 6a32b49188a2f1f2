"""The nonholonomic systems against 20-digit reference values, closed forms and their invariants."""

import math
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import retrax as rx
from retrax.testing.constrained import (
    FULL,
    blade,
    chaplygin_ball,
    heavy_suslov_body,
    kharlamova_body,
    sleigh,
    suslov_body,
    veselova_body,
)

S = rx.systems


def disk():
    system = S.RollingDisk(mass=2.0, turning=0.25, rolling=0.5, radius=0.7)
    start = ((jnp.eye(2), jnp.zeros(2)), jnp.zeros(1))
    return system, system.state(start, velocity=[0.9, 0.91, 0.0, 1.3])


def turntable():
    ball = S.BallOnTurntable(1.0, 0.5, 0.9)
    start = (jnp.eye(3), jnp.array([0.7, -0.2]))
    return ball, ball.state(start, velocity=ball.velocity_of(start, [0.3, -0.4, 0.8]))


def heading(run):
    R = run.g[0][-1]
    return math.atan2(R[1, 0], R[0, 0])


class Reference(NamedTuple):
    """A start, a time, what to look at, its exact values, and the error expected at h = 0.01."""

    make: Callable
    time: float
    read: Callable
    exact: tuple[float, ...]
    coarse: float
    invariants: dict[str, float]


REFERENCES = {
    "suslov at 2": Reference(
        suslov_body,
        2.0,
        lambda run: [*run.velocity[-1][:2], *run.g[-1][0]],
        (
            1.1619662395105285648,
            0.24443887195785380637,
            0.79797185102612141232,
            0.57634987674379978348,
            0.17624342412513521357,
        ),
        5.105e-6,
        {"energy": 1.525},
    ),
    "suslov at 10": Reference(
        suslov_body,
        10.0,
        lambda run: run.velocity[-1][:2],
        (-0.67431153539203990306, -0.77996658618662718446),
        2.37e-6,
        {"energy": 1.525},
    ),
    "sleigh": Reference(
        sleigh,
        3.0,
        lambda run: [*run.velocity[-1][:2], heading(run), *run.g[1][-1]],
        (
            0.31243742509113178977,
            1.2917541113383375826,
            2.8606276938399860418,
            -1.5313744884351492897,
            1.419054506807083476,
        ),
        3.67e-5,
        {"energy": 1.316875},
    ),
    "disk": Reference(
        disk,
        5.0,
        lambda run: [*run.g[0][1][-1], run.g[1][-1][0]],
        (-0.98839156341693146712, 1.2242490860911217027, 6.5),
        3.19e-4,
        {"energy": 1.35185},
    ),
    "kharlamova": Reference(
        kharlamova_body,
        2.0,
        lambda run: run.velocity[-1][:2],
        (0.54595867114946800817, 0.89676693691957440654),
        5.44e-6,
        {"energy": 0.34029082884567475417, "body momentum (1, -0.625, 0)": -0.46 / 0.8},
    ),
    "heavy suslov": Reference(
        heavy_suslov_body,
        2.0,
        lambda run: run.velocity[-1][:2],
        (0.65361664308770283816, 1.3703887292413283387),
        9.28e-6,
        {"energy": 2.0217180546805789193},
    ),
    "veselova": Reference(
        veselova_body,
        2.0,
        lambda run: run.velocity[-1],
        (0.65369839845544848844, 0.60560645031805682922, -0.53543326450767343275),
        4.85e-6,
        {
            "energy": 1.0821253370357985034,
            "spatial momentum e1": 0.6,
            "spatial momentum e2": 2.0047229711906633409,
        },
    ),
    "chaplygin ball": Reference(
        chaplygin_ball,
        2.0,
        lambda run: [*run.velocity[-1][:3], *run.g[1][-1]],
        (
            0.81743463619520181435,
            -0.00066169652857714459567,
            1.0598731615417673858,
            -1.3869975427758219658,
            -0.69535023137859707158,
        ),
        5.15e-6,
        {
            "energy": 1.778837125288122703,
            "spatial momentum (1, 0, 0, 0, -0.8)": 0.884,
            "spatial momentum (0, 1, 0, 0.8, 0)": -2.4323954084382904623,
            "spatial momentum e3": 1.2490205297811101328,
        },
    ),
    "turntable": Reference(
        turntable,
        3.0,
        lambda run: run.g[1][-1],
        (0.11735195801737430828, 1.0793478607041564909),
        5.77e-7,
        {"moving energy": -0.2109},
    ),
    "blade": Reference(
        blade,
        1.0,
        lambda run: [*run.velocity[-1][:4], *run.g[1][-1]],
        (
            0.91734081591035097245,
            -0.40028925448132436424,
            0.95667819575460137769,
            0.87490500358659865181,
            0.72861280006869972685,
            0.36057785054575888741,
            0.25723231617464473717,
        ),
        9.09e-6,
        {"energy": 1.44811},
    ),
}


def errors(reference, integrator, h):
    system, state = reference.make()
    steps = round(reference.time / h)
    run = rx.simulate(system, integrator, state, h=reference.time / steps, steps=steps)
    return np.max(np.abs(np.asarray(reference.read(run)) - reference.exact)), run


SLOW = pytest.mark.slow  # a step of the blade has six unknowns and takes long to compile


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=SLOW) if n == "blade" else n for n in REFERENCES]
)
def test_reference_values(name):
    reference = REFERENCES[name]
    coarse, run = errors(reference, rx.LagrangeDAlembert(), 0.01)
    assert coarse == pytest.approx(reference.coarse, rel=0.01)
    fine, finer_run = errors(reference, rx.Composition(rx.LagrangeDAlembert(), order=6), 0.02)
    assert fine < 3e-11
    for one in (run, finer_run):
        assert np.max(one.constraint_violation()) < 2e-15
        invariants = one.invariants()
        for key, value in reference.invariants.items():
            assert invariants[key][0] == pytest.approx(value, rel=1e-14)
            exact = key != "energy"
            assert np.max(np.abs(invariants[key] - value)) < (1e-12 if exact else 1e-2)


@pytest.mark.parametrize(
    "make", [suslov_body, sleigh, pytest.param(blade, marks=SLOW), heavy_suslov_body]
)
def test_energy_and_constraint_of_the_energy_methods(make):
    system, state = make()
    methods = [rx.DiscreteGradient()] + ([rx.HamelMidpoint(rx.Cayley())] if system.free else [])
    for method in methods:
        run = rx.simulate(system, method, state, h=0.1, steps=1000)
        energy = run.invariants()["energy"]
        assert np.max(np.abs(energy - energy[0])) < 1e-13
        assert np.max(run.constraint_violation()) < 2e-15


@pytest.mark.parametrize(
    "make, method",
    [
        (suslov_body, rx.LagrangeDAlembert()),
        (sleigh, rx.ProjectedLift()),
        (blade, rx.HamelMidpoint()),
    ],
)
def test_the_increment_of_the_group_is_admissible(make, method):
    system, state = make()
    h = 0.1
    run = rx.simulate(system, method, state, h=h, steps=100)
    group = system.group

    def across(a, b):
        xi = group.log(group.compose(group.inverse(a), b)) / h
        return jnp.max(jnp.abs(system.constraint.annihilator @ xi))

    before = jax.tree.map(lambda x: x[:-1], run.g)
    after = jax.tree.map(lambda x: x[1:], run.g)
    assert np.max(jax.jit(jax.vmap(across))(before, after)) < 1e-13


@pytest.mark.parametrize(
    "make",
    [suslov_body, kharlamova_body, heavy_suslov_body, sleigh, disk, veselova_body, chaplygin_ball,
     turntable, blade],
)  # fmt: skip
def test_constraints_hold_in_increments_and_velocities(make):
    system, state = make()
    h = 0.1
    run = rx.simulate(system, rx.LagrangeDAlembert(), state, h=h, steps=100)
    assert np.max(run.constraint_violation()) < 1e-13
    group = system.group

    def across(a, b):
        xi = group.log(group.compose(group.inverse(a), b)) / h
        base = group.compose(a, group.exp(h / 2 * xi))
        return jnp.max(jnp.abs(system.constraint.violation(base, xi, state.t)))

    before = jax.tree.map(lambda x: x[:-1], run.g)
    after = jax.tree.map(lambda x: x[1:], run.g)
    assert np.max(jax.jit(jax.vmap(across))(before, after)) < 1e-13


def test_closed_forms():
    body = S.Suslov(FULL, physical=False)
    exact = body.exact_velocity([1.0, 0.5, 0.0], 10.0)
    np.testing.assert_allclose(exact[:2], REFERENCES["suslov at 10"].exact, rtol=1e-14)
    backwards = body.exact_velocity([-1.0, -0.5, 0.0], -10.0)
    np.testing.assert_allclose(backwards, -exact, rtol=1e-13)
    steady = body.exact_velocity([1.0, 0.5, 0.0], 1e3)
    np.testing.assert_allclose(steady[:2], [-0.8585802937675203, -0.6439352203256402], rtol=1e-14)
    end = sleigh()[0].exact(1.25, -0.6, 3.0)
    np.testing.assert_allclose(end, REFERENCES["sleigh"].exact[:3], rtol=1e-14)
    place = disk()[0].exact_position(0.9, 1.3, 5.0)
    np.testing.assert_allclose(place, REFERENCES["disk"].exact[:2], rtol=1e-14)
    ball, state = turntable()
    v = ball.velocity(state.g, state.momentum)[3:]
    np.testing.assert_allclose(
        ball.exact_place([0.7, -0.2], v, 3.0), REFERENCES["turntable"].exact, rtol=1e-14
    )


def test_hamel_midpoint_is_exact_on_the_disk():
    error, _ = errors(REFERENCES["disk"], rx.HamelMidpoint(), 0.5)
    assert error < 3e-15


def test_discrete_multipliers_approach_those_of_continuous_time():
    system, state = veselova_body()
    step = jax.jit(lambda state, h: rx.LagrangeDAlembert().step(system, state, h)[0])
    impulses = jax.jit(lambda state, h: rx.LagrangeDAlembert().impulses(system, state, h))
    missed = []
    for h in (0.02, 0.01):
        middle = step(state, h)
        _, before = impulses(state, h)
        after, _ = impulses(middle, h)
        missed.append(float(jnp.max(jnp.abs((before + after) / h - system.multipliers(middle)))))
    assert missed[0] / missed[1] == pytest.approx(4, abs=0.2) and missed[1] < 1e-3


def test_reactions_are_in_the_dataset(tmp_path):
    system, state = chaplygin_ball()
    run = rx.simulate(system, rx.LagrangeDAlembert(), state, h=0.05, steps=10)
    ds = run.dataset()
    assert ds["multipliers"].shape == (11, 2) and ds["reaction"].shape == (11, 5)
    assert float(ds["constraint_violation"].max()) < 2e-15
    loaded = rx.load(run.save(tmp_path / "ball.nc"))
    np.testing.assert_array_equal(loaded.multipliers, run.multipliers)
    assert loaded.measures()["constraint_violation"] == run.measures()["constraint_violation"]
    assert "velocity across the constraint" in run.summary()


@pytest.mark.parametrize("method", [rx.LagrangeDAlembert(), rx.HamelMidpoint()], ids=repr)
def test_an_ensemble_of_suslov_bodies_keeps_the_constraint(method):
    """Every member has an inertia matrix of its own, with the entries that make it move."""
    members = 300
    factors = 0.3 * np.random.default_rng(3).normal(size=(members, 3, 3))
    inertias = np.diag([1.0, 2.0, 2.5]) + 0.3 * factors @ factors.transpose(0, 2, 1)
    bodies = jax.vmap(lambda i: rx.systems.Suslov(i, physical=False))(jnp.asarray(inertias))
    states = jax.vmap(lambda body: body.state(jnp.eye(3), velocity=jnp.array([0.7, 0.4, 0.0])))(
        bodies
    )
    runs = rx.ensemble(bodies, method, states, h=0.05, steps=400, save_every=200)
    assert runs.attrs["provenance_backend"] == "native"
    assert (runs["failed_step"] == -1).all()
    momenta = runs["momentum"].values[-1]
    velocities = np.linalg.solve(inertias, momenta[:, :, None])[:, :, 0]
    assert np.max(np.abs(velocities[:, 2])) < 1e-15
    energies = np.sum(momenta * velocities, axis=1) / 2
    before = np.einsum("i,mij,j->m", [0.7, 0.4, 0.0], inertias, [0.7, 0.4, 0.0]) / 2
    bound = 5e-14 if "energy" in method.preserves else 1e-3
    assert np.max(np.abs(energies / before - 1)) < bound
    assert np.max(np.abs(velocities[:, :2] - [0.7, 0.4])) > 0.1
