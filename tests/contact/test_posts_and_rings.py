"""Rods around posts, and rings that touch themselves."""

import jax.numpy as jnp
import numpy as np
import pytest

import retrax as rx
from retrax.contact.capsules import along_axis

ROUND = {"young": 1e6, "poisson": 0.5, "density": 1000.0, "radius": 0.01}


def test_the_place_nearest_to_an_axis_is_that_of_many_points():
    rng = np.random.default_rng(5)
    r, d, axis = rng.normal(size=(3, 60, 3))
    axis[:10] = 0.6 * d[:10]  # parallel
    s = np.linspace(0, 1, 401)
    sigma, _, _ = along_axis(*(jnp.asarray(x) for x in (r, d, axis)))

    def far(sigma):
        points = sigma[..., None] * d[:, None] - r[:, None]
        along = np.sum(points * axis[:, None], axis=-1) / np.sum(axis * axis, axis=-1)[:, None]
        apart = points - np.clip(along, 0, 1)[..., None] * axis[:, None]
        return np.linalg.norm(apart, axis=-1)

    least = far(np.broadcast_to(s, (60, 401))).min(axis=1)
    found = far(np.asarray(sigma)[:, None])[:, 0]
    assert np.all(found <= least + 1e-14)


@pytest.mark.parametrize("side", ["middle", "end"])
def test_a_rod_falls_on_a_post_and_stays_outside(side):
    """Across the middle of a lying post, and on its round end; not with a node on its top."""
    post = rx.Capsule(0.05, 0.3, (0.0, 1.0, 0.0), name="post")
    contact = rx.SelfContact(0.01, 0.3, against=[post], itself=False)
    rod = rx.systems.Rod.from_material(6, 0.3, **ROUND, gravity=(0.0, 0.0, -9.81), contact=contact)
    y = 0.0 if side == "middle" else 0.17
    lying = rod.straight((1.0, 0.0, 0.0), start=(-0.17, y, 0.065))
    start = rod.state(lying, velocity=rod.velocity_of(v=np.tile([0.0, 0.0, -0.5], (7, 1))))
    run = rx.simulate(rod, rx.NonsmoothRattle(), start, h=1e-4, steps=200, save_every=5)
    gaps = [float(jnp.min(rod.contact.gaps((0, jnp.asarray(x))))) for x in np.asarray(run.g[1])]
    assert -1e-14 < min(gaps) < 1e-12  # it touches
    x, end = np.asarray(run.g[1])[-1], np.array([0.0, 0.15, 0.0])
    s = np.linspace(0, 1, 201)[:, None, None]
    points = (x[:-1] + s * np.diff(x, axis=0)).reshape(-1, 3)
    core = np.clip(points[:, 1], -end[1], end[1])[:, None] * [0.0, 1.0, 0.0]
    assert np.linalg.norm(points - core, axis=1).min() > 0.06 - 1e-14


def test_a_box_is_no_post():
    with pytest.raises(rx.BadInput, match="planes, balls and capsules"):
        rx.SelfContact(0.01, against=[rx.Box(0.1)])


def test_the_ends_of_a_ring_do_not_touch_each_other():
    from retrax_papers.touching.ring import circle

    frames, places = circle(20, 0.0)
    kept = {"stretching": [1e3] * 3, "bending": [1.0] * 3, "mass": 1.0, "inertia": [1.0] * 3}
    ends = ("clamped", "clamped")

    def ring(closed):
        contact = rx.SelfContact(0.05, closed=closed)
        return rx.systems.Rod(20, 2 * np.pi, **kept, ends=ends, contact=contact)

    assert ring(True).state((frames, places), velocity=np.zeros(126)) is not None
    with pytest.raises(rx.BadInput, match="overlap"):
        ring(False).state((frames, places), velocity=np.zeros(126))


@pytest.mark.campaign
def test_a_rod_lands_with_a_node_above_the_axis_of_a_post():
    post = rx.Capsule(0.06, 2.0, axis=(0, 1, 0), at=(0.25, 0, -0.0725), name="post")
    rod = rx.systems.Rod.from_material(
        10,
        0.5,
        young=8e5,
        poisson=0.45,
        density=1150.0,
        radius=0.012,
        gravity=(0, 0, -9.81),
        contact=rx.SelfContact(0.012, against=[post], itself=False),
    )
    start = rod.state(rod.straight((1.0, 0, 0), start=(0, 0, 0)), velocity=rod.velocity_of())
    run = rx.simulate(rod, rx.NonsmoothRattle(), start, h=1e-4, steps=300)
    assert -1e-13 < run.contacts["rod on post"].gap.min() < 1e-13
