"""Rods against planes, balls, themselves and each other."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import retrax as rx
from retrax.contact.capsules import distance
from retrax.contact.steps.node_rattle import NodeContact

G = 9.81
ROUND = {"young": 1e6, "poisson": 0.5, "density": 1000.0, "radius": 0.01}


def framed(x):
    """Frames along a curve, turned as little as they can be."""
    t = np.gradient(x, axis=0)
    t /= np.linalg.norm(t, axis=1)[:, None]
    a, frames = np.array([0.3, 0.5, 1.0]), []
    for along in t:
        a = a - (a @ along) * along
        a /= np.linalg.norm(a)
        frames.append(np.stack([a, np.cross(along, a), along], axis=1))
    return jnp.asarray(np.array(frames)), jnp.asarray(x)


def coil(elements, turns=2.5, radius=0.08, pitch=0.026):
    """A helix of equal segments."""
    s = np.linspace(0, 1, 20001)
    turn = 2 * np.pi * turns * s
    curve = np.stack([radius * np.cos(turn), radius * np.sin(turn), pitch * turns * s], axis=1)
    arc = np.r_[0, np.cumsum(np.linalg.norm(np.diff(curve, axis=0), axis=1))]
    even = np.linspace(0, arc[-1], elements + 1)
    return np.stack([np.interp(even, arc, column) for column in curve.T], axis=1), arc[-1]


def at_rest(rod, places):
    return rod.state(framed(places), velocity=rod.velocity_of())


def least_gap(places, radius, apart):
    """The least gap of segments at least `apart` numbers from each other, each with each."""
    starts, along = places[:-1], np.diff(places, axis=0)
    i, j = np.triu_indices(len(along), apart)
    far = distance(*(jnp.asarray(x) for x in (starts[i] - starts[j], along[i], along[j])))
    return float(jnp.min(far)) - 2 * radius


def test_distance_of_segments_is_the_least_of_many_points():
    rng = np.random.default_rng(3)
    r, a, b = rng.normal(size=(3, 40, 3))
    b[:10] = 0.7 * a[:10] + 1e-9 * b[:10]  # nearly parallel
    r[10:20] *= 0.1
    s, t = np.meshgrid(np.linspace(0, 1, 201), np.linspace(0, 1, 201))
    points = r[:, None, None] + s[..., None] * a[:, None, None] - t[..., None] * b[:, None, None]
    sampled = np.linalg.norm(points, axis=-1).min(axis=(1, 2))
    found = np.asarray(distance(*(jnp.asarray(x) for x in (r, a, b))))
    assert np.all(found <= sampled + 1e-15)
    assert np.all(found >= sampled - 0.02)


def test_a_rod_that_slides_loses_f_g_and_one_on_a_slope_sticks():
    friction, angle = 0.3, 0.2
    contact = rx.SelfContact(0.01, friction, against=[rx.Plane()], itself=False)
    rod = rx.systems.Rod.from_material(8, 0.4, **ROUND, gravity=(0.0, 0.0, -G), contact=contact)
    place = rod.straight((1.0, 0.0, 0.0), start=(0.0, 0.0, 0.01))
    sliding = rod.state(place, velocity=rod.velocity_of(v=np.tile([1.0, 0.0, 0.0], (9, 1))))
    run = rx.simulate(rod, rx.NonsmoothRattle(), sliding, h=2e-4, steps=100, save_every=50)
    mass = float(jnp.sum(rod.inertia.reshape(-1, 6)[:, 3]))
    speed = np.asarray(run.states.momentum).reshape(-1, 9, 6)[:, :, 3].sum(axis=1) / mass
    assert np.allclose(speed, 1 - friction * G * np.asarray(run.t), rtol=0, atol=1e-13)
    assert np.min(np.asarray(run.states.g[1])[:, :, 2]) >= 0.01 - 1e-16

    steep = (G * np.sin(angle), 0.0, -G * np.cos(angle))
    resting = rx.systems.Rod.from_material(
        8, 0.4, **ROUND, gravity=steep, damping=2e-5, contact=contact
    )
    still = resting.state(place, velocity=resting.velocity_of())
    run = rx.simulate(resting, rx.NonsmoothRattle(), still, h=2e-4, steps=10000, save_every=5000)
    began, later, end = np.asarray(run.states.g[1])
    assert np.abs(end - later).max() < 1e-12
    # The shear of sections that the floor holds and the weight pulls: rho g a^2 sin/G.
    assert np.abs(end - began).max() < 2e-6


def test_turns_that_meet_keep_apart_and_keep_both_momenta():
    places, length = coil(40)
    radius = 0.01
    contact = rx.SelfContact(radius, 0.3)
    rod = rx.systems.Rod.from_material(40, length, **ROUND, contact=contact)
    high = places[:, 2] - places[:, 2].mean()
    v, omega = np.zeros_like(places), np.zeros_like(places)
    v[:, 2], v[:, 0], omega[:, 2] = -40 * high, 0.5 * high, 3.0
    start = rod.state(framed(places), velocity=rod.velocity_of(v=v, omega=omega))
    h = 5e-5
    run = rx.simulate(rod, rx.NonsmoothRattle(), start, h=h, steps=300, save_every=4)
    assert run.provenance["backend"] == "native"
    gaps = [least_gap(np.asarray(x), radius, 4) for x in run.states.g[1]]
    assert min(gaps) > -1e-14
    assert sum(gap < 1e-12 for gap in gaps) > 3  # they touch
    first, last = (jax.tree.map(lambda x, k=k: jnp.asarray(x[k]), run.states) for k in (0, -1))
    assert float(rod.energy(last)) < 0.95 * float(rod.energy(first))
    momenta = rod.total_momentum(first), rod.total_momentum(last)
    assert np.allclose(*momenta, rtol=0, atol=2e-15)
    turning = rod.total_angular_momentum(first), rod.total_angular_momentum(last)
    assert np.allclose(*turning, rtol=0, atol=1e-16)


def test_the_book_of_energies():
    """What friction and impacts take is what is lost, up to the error of the step."""
    contact = rx.SelfContact(0.01, 0.3, 0.4, against=[rx.Plane((0.1, 0.0, 1.0))], itself=False)
    rod = rx.systems.Rod.from_material(6, 0.3, **ROUND, gravity=(0.0, 0.0, -G), contact=contact)
    place = rod.straight((1.0, 0.2, 0.3), start=(0.0, 0.0, 0.03))
    state = rod.state(place, velocity=rod.velocity_of(v=np.tile([0.5, 0.2, -1.0], (7, 1))))

    def lost(h, steps):
        step = jax.jit(lambda s: NodeContact().contact_record(rod, s, jnp.asarray(h)))
        at, booked, least = state, 0.0, 0.0
        for _ in range(steps):
            at, record = step(at)
            booked += float(jnp.sum(record.friction_work + record.impact_work))
            least = min(least, float(jnp.min(record.gap)))
            assert float(jnp.max(record.friction_work)) < 1e-9
        return float(rod.energy(at) - rod.energy(state)), booked, least

    real, booked, least = lost(1e-4, 300)
    assert booked < -0.02 * float(rod.energy(state))
    assert abs(real - booked) < 0.02 * abs(booked)
    assert least > -1e-15


def test_two_rods_cross_and_part():
    one = rx.systems.Rod.from_material(6, 0.3, **ROUND)
    contact = rx.SelfContact(0.01, 0.2, 1.0)
    rods = rx.systems.Rods([one, one], contact=contact)
    low = one.straight((1.0, 0.0, 0.0), start=(-0.13, 0.0, 0.0))
    high = one.straight((0.2, 1.0, 0.1), start=(0.0, -0.16, 0.02))
    v = np.zeros((14, 3))
    v[7:, 2] = -1.0
    state = rods.state(rods.together([low, high]), velocity=rods.velocity_of(v=v))
    run = rx.simulate(rods, rx.NonsmoothRattle(), state, h=1e-4, steps=200, save_every=2)
    least = np.inf
    for x in np.asarray(run.states.g[1]):
        first, second = x[:7], x[7:]
        i, j = (k.ravel() for k in np.meshgrid(np.arange(6), np.arange(6)))
        args = first[i] - second[j], np.diff(first, axis=0)[i], np.diff(second, axis=0)[j]
        least = min(least, float(jnp.min(distance(*map(jnp.asarray, args)))) - 0.02)
    assert -1e-14 < least < 1e-4
    momenta = [
        np.asarray(rods.total_momentum(jax.tree.map(lambda x, k=k: jnp.asarray(x[k]), run.states)))
        for k in (0, -1)
    ]
    assert np.allclose(*momenta, rtol=0, atol=1e-15)


@pytest.mark.campaign
def test_room_that_is_not_used_changes_nothing():
    one = rx.systems.Rod.from_material(6, 0.3, **ROUND)
    low = one.straight((1.0, 0.0, 0.0), start=(-0.13, 0.0, 0.0))
    high = one.straight((0.2, 1.0, 0.1), start=(0.0, -0.16, 0.021))
    v = np.zeros((14, 3))
    v[7:] = 0.3, 0.0, -1.0
    ends = []
    for capacity in (None, 12):  # with room for 56 pairs there are two ways to take a step
        rods = rx.systems.Rods([one, one], contact=rx.SelfContact(0.01, 0.2, capacity=capacity))
        state = rods.state(rods.together([low, high]), velocity=rods.velocity_of(v=v))
        run = rx.simulate(rods, rx.NonsmoothRattle(), state, h=1e-4, steps=200)
        ends.append(np.asarray(run.momentum))
    np.testing.assert_allclose(*ends, rtol=0, atol=4e-16)  # measured 4e-17
    assert np.max(np.abs(ends[0][-1] - ends[0][0])) > 1e-3  # they touched


def test_failures_say_what_to_do():
    places, length = coil(40)
    crowded = rx.SelfContact(0.01, 0.3, capacity=5)
    rod = rx.systems.Rod.from_material(40, length, **ROUND, contact=crowded)
    with pytest.raises(rx.StepFailed, match=r"capacity is 5: give SelfContact a capacity of \d+"):
        rx.simulate(rod, rx.NonsmoothRattle(), at_rest(rod, places), h=5e-5, steps=2)
    thick = rx.SelfContact(0.02, 0.3)
    rod = rx.systems.Rod.from_material(40, length, **ROUND, contact=thick)
    with pytest.raises(rx.BadInput, match="another segment overlap by"):
        at_rest(rod, places)
    with pytest.raises(rx.BadInput, match="use NonsmoothRattle"):
        calm = rx.systems.Rod.from_material(40, length, **ROUND, contact=rx.SelfContact(0.01))
        rx.simulate(calm, rx.LieVerlet(), at_rest(calm, places), h=5e-5, steps=2)
    with pytest.raises(rx.BadInput, match="stands in space"):
        rx.SelfContact(0.01, against=[rx.Ball(0.1, body=0)])
    with pytest.raises(rx.BadInput, match=r"restitution = 1\.5 must be at least 0 and at most 1"):
        rx.SelfContact(0.01, restitution=1.5)
