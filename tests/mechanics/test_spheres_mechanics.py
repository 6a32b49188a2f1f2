"""Mechanics on spheres: pendulums as unit vectors, against closed forms."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import retrax as rx
from retrax.mechanics.spheres import combine_group
from retrax.show.pictures.choose import picture
from retrax.spaces.embedded import Embedded

GRAVITY, MASS = 9.81, 2.0


def pendulum(kind="mechanical"):
    if kind == "mechanical":
        return rx.MechanicalSystem(rx.Sphere(3), [MASS] * 3, lambda x: MASS * GRAVITY * x[2])
    if kind == "Lagrangian":
        return rx.LagrangianSystem(rx.Sphere(3), lambda x, v: MASS * (v @ v / 2 - GRAVITY * x[2]))
    return rx.HamiltonianSystem(
        rx.Sphere(3), lambda x, p: p @ p / (2 * MASS) + MASS * GRAVITY * x[2]
    )


TILT = 0.7
PACE = np.sqrt(GRAVITY / np.cos(TILT))


def on_the_cone(t):
    """The conical pendulum, which turns at constant height."""
    side = np.sin(TILT) * np.array([np.cos(PACE * t), np.sin(PACE * t)])
    return np.array([*side, -np.cos(TILT)])


def cone_run(kind, method, steps):
    system = pendulum(kind)
    state = system.state(on_the_cone(0.0), velocity=[0.0, PACE * np.sin(TILT), 0.0])
    return rx.simulate(system, method, state, h=2.0 / steps, steps=steps)


@pytest.mark.parametrize(
    "kind, order",
    [
        ("mechanical", 2),
        ("mechanical", 4),
        ("mechanical", 6),
        ("Lagrangian", 2),
        ("Hamiltonian", 2),
    ],
)
def test_the_conical_pendulum_has_its_closed_form(kind, order):
    method = rx.LieVerlet() if order == 2 else rx.Composition(rx.LieVerlet(), order)
    errors = []
    for steps in (50, 100):
        run = cone_run(kind, method, steps)
        errors.append(np.abs(np.asarray(run.g[-1]) - on_the_cone(2.0)).max())
        assert run.constraint_violation().max() < 3e-15  # measured: 3e-16
        assert np.abs(np.linalg.norm(run.g, axis=1) - 1).max() < 1e-15
    assert abs(np.log2(errors[0] / errors[1]) - order) < 0.05  # measured: 2.012, 4.003, 6.006


def test_a_plane_pendulum_swings_back_after_its_period():
    """The period from the arithmetic-geometric mean of 1 and cos(amplitude / 2)."""
    amplitude = 1.2
    a, b = 1.0, np.cos(amplitude / 2)
    for _ in range(6):
        a, b = (a + b) / 2, np.sqrt(a * b)
    period = 2 * np.pi / (a * np.sqrt(GRAVITY))
    system = pendulum()
    start = np.array([np.sin(amplitude), 0.0, -np.cos(amplitude)])
    state = system.state(start, velocity=np.zeros(3))
    run = rx.simulate(system, rx.Composition("lie-verlet", 6), state, h=period / 400, steps=400)
    assert np.abs(np.asarray(run.g[-1]) - start).max() < 3e-11  # measured: 3e-12
    assert np.abs(np.asarray(run.g)[:, 1]).max() == 0.0


def test_energy_and_angular_momentum_of_a_long_run():
    run = rx.simulate(
        pendulum(),
        rx.LieVerlet(),
        pendulum().state([0.6, 0.0, -0.8], velocity=[0.0, 1.0, 0.0]),
        h=0.01,
        steps=20_000,
        save_every=100,
    )
    x, p = np.asarray(run.g), np.asarray(run.momentum)
    vertical = x[:, 0] * p[:, 1] - x[:, 1] * p[:, 0]
    assert np.ptp(vertical) < 2e-13  # measured: 2e-14
    errors = np.abs(run.energy() - run.energy()[0])
    assert errors.max() < 2 * errors[:50].max()


def test_a_double_pendulum_is_a_pair_of_unit_vectors():
    """The same as two points at constant distances, with the tip at x + y."""
    masses = np.array([1.3, 0.7])

    def height(q):
        x, y = q
        return GRAVITY * (masses[0] * x[2] + masses[1] * (x + y)[2])

    coupled = np.array([[masses.sum(), masses[1]], [masses[1], masses[1]]])
    pair = rx.MechanicalSystem((rx.Sphere(3), rx.Sphere(3)), np.kron(coupled, np.eye(3)), height)

    def lengths(z):
        x, y = z[:3], z[3:] - z[:3]
        return jnp.stack([x @ x - 1, y @ y - 1])

    points = rx.MechanicalSystem(
        rx.Translation(6),
        np.repeat(masses, 3),
        lambda z: GRAVITY * (masses[0] * z[2] + masses[1] * z[5]),
        constraint=rx.Holonomic(lengths),
    )
    x, y = np.array([0.6, 0.0, -0.8]), np.array([0.0, -0.28, -0.96])
    u, v = np.array([0.4, 0.9, 0.3]), np.array([0.5, 0.48, -0.14])
    a = pair.state((x, y), velocity=np.concatenate([u, v]))
    b = points.state(np.concatenate([x, x + y]), velocity=np.concatenate([u, u + v]))
    first = rx.simulate(pair, rx.LieVerlet(), a, h=0.01, steps=300)
    second = rx.simulate(points, rx.LieVerlet(), b, h=0.01, steps=300)
    tip = np.asarray(first.g[0]) + np.asarray(first.g[1])
    assert np.abs(tip - np.asarray(second.g)[:, 3:]).max() < 2e-12  # measured: 2e-13
    assert first.constraint_violation().max() < 1e-14
    assert pair.name == "mechanical system on S^2 x S^2"


def test_spheres_beside_groups_with_further_constraints():
    system = rx.MechanicalSystem(
        (rx.Sphere(3), rx.SO3()),
        [1.0, 1.0, 1.0, 0.8, 0.9, 1.1],
        lambda q: q[0] @ q[1][0] + q[0][2],
        constraint=rx.Holonomic(lambda q, t: q[0][0] - 0.3 - 0.1 * jnp.sin(t)),
    )
    place = system.assembled((np.array([0.3, 0.9, 0.2]), np.eye(3)))
    state = system.state(place, velocity=0.5 * np.ones(6), project=True)
    run = rx.simulate(system, rx.LieVerlet(), state, h=0.02, steps=100)
    assert run.constraint_violation().max() < 5e-15
    led = 0.3 + 0.1 * np.sin(run.t)
    assert np.abs(np.asarray(run.g[0])[:, 0] - led).max() < 2e-15


@pytest.mark.parametrize(
    "make, sentence",
    [
        (lambda: rx.MechanicalSystem(rx.Stiefel(3, 2), np.ones(6)), "mechanics is on groups and"),
        (lambda: combine_group((rx.Sphere(3), 3), None), "group has 3 among its factors"),
        (lambda: pendulum().state([1.0, 0, 0.1], velocity=np.zeros(3)), "not a point of S.2"),
        (lambda: pendulum().state([1.0, 0, 0], velocity=[1.0, 0, 0]), "breaks the constraint"),
        (lambda: rx.MechanicalSystem(rx.Sphere(3), np.ones(2)), "inertia has shape"),
    ],
)
def test_what_is_no_mechanics_on_a_sphere(make, sentence):
    with pytest.raises(rx.BadInput, match=sentence):
        make()


def test_a_lagrangian_that_knows_only_velocities_along_the_sphere_is_loud():
    """It has no momentum across, which the surroundings need."""
    flat = rx.LagrangianSystem(rx.Sphere(3), lambda x, v: (v @ v - (x @ v) ** 2) / 2)
    with pytest.raises(rx.RetraxError):
        state = flat.state([1.0, 0.0, 0.0], velocity=[0.0, 0.5, 0.0])
        rx.simulate(flat, rx.LieVerlet(), state, h=0.01, steps=10)


def test_the_space_around_spheres():
    space = Embedded(rx.Sphere(3), rx.SO2())
    y = space.random(jax.random.key(3))
    assert float(space.defect(y)) < 1e-15
    moved = space.move(y, jnp.array([0.1, -0.2, 0.3, 0.4]))
    assert float(space.defect(moved)) < 1e-15
    assert space.name == "S^2 x SO(2)" and space.dimension == 3 and space.group.dim == 4
    v = space.tangent(y, jnp.array([0.1, -0.2, 0.3, 0.4]))
    assert np.abs(v[0] @ y[0]) < 1e-15  # it goes along the sphere
    with pytest.raises(rx.BadInput, match=r"g\[0\] is not a point of S\^2"):
        space.check("g", (2 * y[0], y[1]))
    with pytest.raises(rx.BadInput, match="has no sphere"):
        Embedded(rx.SO3())


def test_a_pendulum_on_its_page_moves_on_a_sphere():
    shown = picture(cone_run("mechanical", rx.LieVerlet(), 50))
    assert shown.around == {"sphere": 1.0}
    assert [thing["kind"] for thing in shown.things] == ["arrow", "point", "path"]
