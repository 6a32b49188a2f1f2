"""What runs of rods in contact tell: impulses, energies, events."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import retrax as rx

G = 9.81
ROUND = {"young": 1e6, "poisson": 0.5, "density": 1000.0, "radius": 0.01}
MASS = 1000.0 * np.pi * 0.01**2 * 0.4


def over(thing, segments=8, **law):
    """A rod with weight that may touch one thing in space, but not itself."""
    contact = rx.SelfContact(0.01, against=[thing], itself=False, **law)
    down = (0.0, 0.0, -G)
    return rx.systems.Rod.from_material(segments, 0.4, **ROUND, gravity=down, contact=contact)


def lying(rod, height, speed, along=(1.0, 0.0, 0.0)):
    place = rod.straight(along, start=(-0.012, 0.0, height))
    return rod.state(place, velocity=rod.velocity_of(v=np.tile(speed, (rod.nodes, 1))))


def over_a_post(friction):
    """A rod that slides across a lying post, and bends over it."""
    post = rx.Capsule(0.05, 1.0, (0.0, 1.0, 0.0), at=(0.2, 0.0, -0.06), name="post")
    rod = over(post, friction=friction)
    return rod, lying(rod, 0.0, [1.0, 0.4, 0.0], along=(1.0, 0.02, 0.0))


def spinning_on_a_plane(friction):
    rod = over(rx.Plane(), friction=friction)
    frames, places = rod.straight((1.0, 0.0, 0.0), start=(-0.2, 0.0, 0.01))
    spin = np.array([0.0, 0.0, 4.0])
    v = np.cross(spin, np.asarray(places)) + np.array([0.5, 0.3, 0.0])
    v[:, 2] = 0.0
    spins = np.einsum("kji,j->ki", np.asarray(frames), spin)
    return rod, rod.state((frames, places), velocity=rod.velocity_of(spins, v))


def simulated(rod, state, h, time, **options):
    return rx.simulate(rod, rx.NonsmoothRattle(), state, h=h, steps=round(time / h), **options)


@pytest.mark.parametrize("restitution", [0.0, 0.5])
def test_a_rod_that_lands_flat_loses_what_its_impact_takes(restitution):
    rod = over(rx.Plane(name="floor"), friction=0.3, restitution=restitution)
    run = simulated(rod, lying(rod, 0.01205, [0.0, 0.0, -1.0]), 1e-4, 0.004)
    book, floor = run.energy_book(), run.contacts["rod on floor"]
    struck = int(np.argmax(floor.normal > 0))
    fast = np.asarray(run.momentum).reshape(len(run.t), -1, 6)[:, :, 5].sum(axis=1) / MASS
    energy = MASS * (fast**2 / 2 + G * np.asarray(run.g[1])[:, 0, 2])
    assert floor.impact_loss[struck] == pytest.approx(
        energy[struck] - energy[struck + 1], rel=1e-12
    )
    assert fast[struck + 1] == pytest.approx(-restitution * fast[struck], abs=1e-14)
    assert np.abs(book.difference).max() < 1e-15  # measured 1e-16
    kinds = [(event.kind, event.contact) for event in run.events.entries]
    leaves = [("release", "rod on floor")] if restitution else []
    assert kinds == [("impact", "rod on floor"), *leaves]
    assert floor.gap[0] == pytest.approx(0.00205, rel=1e-12)


def works(rod, run, h):
    """The pushes and what impulses do, from positions and momenta of nodes that meet a floor.

    A node flies straight from its first impulse on, and turns about the point that touches.
    """
    nodes, up, a = rod.nodes, np.array([0.0, 0.0, 1.0]), 0.01
    inertia = np.asarray(rod.inertia).reshape(nodes, 6)
    forces = np.asarray(jax.vmap(rod.kick)(jax.tree.map(jnp.asarray, run.g), jnp.asarray(run.t)))
    forces = forces.reshape(-1, nodes, 6)[:, :, 3:]
    mu, (frames, places) = np.asarray(run.momentum).reshape(-1, nodes, 6), map(np.asarray, run.g)
    first = inertia[:, 3:] * np.diff(places, axis=0) / h - mu[:-1, :, 3:] - h / 2 * forces[:-1]
    last = np.diff(mu[:, :, 3:], axis=0) - first - h / 2 * (forces[1:] + forces[:-1])

    def velocity(mu, frames):
        spin = np.einsum("tkij,tkj->tki", frames, mu[:, :, :3] / inertia[:, :3])
        return mu[:, :, 3:] / inertia[:, 3:] + np.cross(spin, -a * up)

    def mean(mu, frames, P, sign):
        turn = np.einsum("tkji,tkj->tki", frames, np.cross(-a * up, P))
        given = mu + sign * np.concatenate([turn, P], axis=2)
        return (velocity(mu, frames) + velocity(given, frames)) / 2

    done = first * mean(mu[:-1], frames[:-1], first, 1) + last * mean(mu[1:], frames[1:], last, -1)
    push = first[:, :, 2] + last[:, :, 2]
    return push.sum(axis=1), done[:, :, :2].sum(axis=(1, 2)), done[:, :, 2].sum(axis=1)


@pytest.mark.parametrize("save_every", [1, 7])
def test_impulses_and_their_work_are_those_of_the_motion(save_every):
    """Against positions and momenta, which know nothing of the record."""
    rod = over(rx.Plane(), friction=0.3, restitution=0.4)
    place = rod.straight((1.0, 0.2, 0.3), start=(0.0, 0.0, 0.012))
    start = rod.state(place, velocity=rod.velocity_of(v=np.tile([0.5, 0.2, -1.0], (9, 1))))
    h, steps = 1e-4, 350
    method = rx.NonsmoothRattle()
    run = rx.simulate(rod, method, start, h=h, steps=steps, save_every=save_every)
    every = rx.simulate(rod, method, start, h=h, steps=steps)
    push, rubbed, struck = (x.reshape(-1, save_every).sum(axis=1) for x in works(rod, every, h))
    floor, everything = run.contacts["rod on plane"], run.contacts["all"]
    np.testing.assert_allclose(floor.normal, push, rtol=0, atol=2e-16)  # measured 2e-17
    np.testing.assert_allclose(floor.friction_work, -rubbed, rtol=0, atol=1e-14)  # 1.4e-15
    np.testing.assert_allclose(floor.impact_loss, -struck, rtol=0, atol=5e-16)  # 5e-17
    assert np.sum(rubbed) < -1e-3 and np.sum(struck) < -1e-3
    for name in ("normal", "tangential", "friction_work", "impact_loss", "gap", "mode"):
        assert np.array_equal(getattr(floor, name), getattr(everything, name))
    assert [e.time for e in run.events.entries] == [e.time for e in every.events.entries]


@pytest.mark.parametrize(
    ("make", "time", "rubs"), [(over_a_post, 0.01, 9.54e-4), (spinning_on_a_plane, 0.02, 5.03e-3)]
)
def test_rods_that_slip_are_of_order_two_and_so_is_what_is_left_of_the_book(make, time, rubs):
    rod, start = make(0.3)
    ends, left = [], []
    for h in (1e-4, 5e-5, 2.5e-5):
        run = simulated(rod, start, h, time)
        book = run.energy_book()
        ends.append(np.asarray(run.final.g[1]))
        left.append(np.abs(book.difference).max())
        assert set(run.contacts["all"].mode) == {"slips"} and not run.events.entries
    off = [np.abs(one - two).max() for one, two in zip(ends[1:], ends[:-1], strict=True)]
    assert np.log2(off[0] / off[1]) == pytest.approx(2, abs=0.2)  # measured 1.995 and 2.17
    orders = np.log2(np.divide(left[:-1], left[1:]))
    np.testing.assert_allclose(orders, 2, rtol=0, atol=0.02)  # measured 1.993 and more
    assert book.friction_work[-1] == pytest.approx(rubs, rel=1e-3)
    assert left[-1] < 2e-6 * rubs  # measured 7e-7 and 2e-7


def test_a_contact_that_moves_along_a_rod_is_one():
    """It passes from segment to segment of the rod, and there is no event."""
    rod, start = over_a_post(0.05)
    run = simulated(rod, start, 1e-4, 0.06, save_every=50)
    assert np.all(run.contacts["rod on post"].normal > 0)
    first, last = (np.asarray(run.g[1])[k] for k in (0, -1))
    above = [np.searchsorted(x[:, 0], 0.2) - 1 for x in (first, last)]
    assert above[0] - above[1] >= 1
    assert not run.events.entries


def test_events_name_what_touches():
    one = rx.systems.Rod.from_material(6, 0.3, **ROUND)
    contact = rx.SelfContact(0.01, 0.2, 1.0, against=[rx.Plane(at=(0.0, 0.0, -5.0))])
    rods = rx.systems.Rods([one, one], contact=contact)
    low = one.straight((1.0, 0.0, 0.0), start=(-0.13, 0.0, 0.0))
    high = one.straight((0.2, 1.0, 0.1), start=(0.0, -0.16, 0.02))
    v = np.zeros((14, 3))
    v[7:, 2] = -1.0
    state = rods.state(rods.together([low, high]), velocity=rods.velocity_of(v=v))
    run = simulated(rods, state, 1e-4, 0.03)
    assert list(run.contacts) == ["all", "rod 0 on rod 1"]
    assert [event.kind for event in run.events.entries] == ["impact", "release"]
    for event in run.events.entries:
        assert event.contact == "rod 0 on rod 1"
        assert event.bodies == ("segment 3 of rod 0", "segment 3 of rod 1")
    summary = run.summary()
    assert "event 'impact': 1 at t = " in summary and "friction took" in summary
    book = run.energy_book()
    each = book.contacts["rod 0 on rod 1"]
    assert np.array_equal(book.friction_work, each.friction_work)
    assert np.array_equal(book.impact_loss, each.impact_loss)


def rolling(damping, h, steps, **options):
    """A twisted rod that rolls along a plane, each of its nodes at a speed of its own."""
    contact = rx.SelfContact(0.01, 0.3, against=[rx.Plane(name="floor")], itself=False)
    down = (0.0, 0.0, -G)
    rod = rx.systems.Rod.from_material(
        8, 0.4, **ROUND, gravity=down, contact=contact, damping=damping
    )
    frames, places = rod.straight((0.0, 1.0, 0.0), start=(0.0, -0.2, 0.01))
    speed = 0.3 * (1 + options.pop("uneven") * np.sin(np.arange(9)))
    v, w = np.zeros((2, 9, 3))
    v[:, 0], w[:, 1] = speed, speed / 0.01
    spins = np.einsum("kji,kj->ki", np.asarray(frames), w)
    start = rod.state((frames, places), velocity=rod.velocity_of(spins, v))
    return simulated(rod, start, h, steps * h, **options)


def test_what_rolls_without_slipping_books_no_friction_and_no_impact():
    run = rolling(1e-4, 2.5e-4, 100, uneven=0.0)
    book = run.energy_book()
    assert set(run.contacts["all"].mode) == {"sticks"}
    assert not np.any(book.friction_work) and not np.any(book.impact_loss)
    assert "friction took 0 J, impacts 0 J" in repr(book)


@pytest.mark.campaign
def test_the_book_of_a_damped_rod_that_rolls_is_known_to_what_it_says():
    """Against steps a quarter as long; what is left over is in each uncertainty."""
    coarse, fine = (rolling(1e-4, h, n, uneven=0.05) for h, n in ((2.5e-4, 400), (6.25e-5, 1600)))
    one, other = coarse.energy_book(), fine.energy_book()
    off = abs(one.friction_work[-1] - other.friction_work[-1])
    assert off < one.friction_uncertainty[-1] < 0.1 * one.friction_work[-1]


@pytest.mark.parametrize("restitution", [0.0, 1.0])
def test_books_do_not_depend_on_how_often_states_are_saved(restitution):
    """And an impact loss of bounces that keep their speed, which is not known, is not told."""
    rod = over(rx.Plane(), friction=0.3, restitution=restitution)
    rod = rx.systems.Rod.from_material(
        8,
        0.4,
        **ROUND,
        gravity=(0, 0, -G),
        contact=rod.contact,
        damping=None if restitution else 1e-4,
    )
    place = rod.straight((1.0, 0.2, 0.3), start=(0.0, 0.0, 0.03))
    start = rod.state(place, velocity=rod.velocity_of(v=np.tile([0.5, 0.2, -1.0], (9, 1))))
    every, few = (simulated(rod, start, 1e-4, 0.06, save_every=n).energy_book() for n in (1, 200))
    for name in ("work", "friction_work", "impact_loss", "difference"):
        one, other = (getattr(x, name)[-1] for x in (every, few))
        assert one == pytest.approx(other, rel=1e-9, abs=1e-14)
    told = few.words().split("impacts ")[1]
    assert ("at most" in told) == bool(restitution)
