"""Many balls: textbook motions, the bodies of `rx.Contacts`, heaps, files, and bad input."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import retrax as rx
from retrax.contact.steps.node_record import NodeRecord

G = 9.81
FLOOR = rx.Plane(name="floor")


def simulate(balls, start, h, steps, save_every=None):
    return rx.simulate(
        balls,
        rx.NonsmoothRattle(),
        start,
        h=h,
        steps=steps,
        save_every=steps if save_every is None else save_every,
        progress=False,
    )


def velocities(balls, run):
    """Velocities of the centres and spins in space, at all saved states."""
    xi = (np.asarray(run.states.momentum) / np.asarray(balls.inertia)).reshape(len(run.t), -1, 6)
    return xi[..., 3:], np.einsum("tkij,tkj->tki", np.asarray(run.states.g[0]), xi[..., :3])


def least_gap(balls, run):
    """The least gap of all balls with each other at all saved states."""
    x, r = np.asarray(run.states.g[1]), np.asarray(balls.radius)
    i, j = np.triu_indices(len(r), 1)
    return float(np.min(np.linalg.norm(x[:, i] - x[:, j], axis=2) - r[i] - r[j]))


def test_a_bowling_ball_rolls_at_five_sevenths_of_its_speed():
    balls = rx.systems.Balls(0.1, 7.0, friction=0.2, against=[FLOOR])
    start = balls.state([[0.0, 0.0, 0.1]], velocity=[6.0, 0.0, 0.0])
    run = simulate(balls, start, 0.005, 400, 1)
    v, w = velocities(balls, run)
    rolls = 2 * 6.0 / (7 * 0.2 * G)
    assert abs(v[-1, 0, 0] - 5 / 7 * 6.0) < 1e-12
    assert abs(w[-1, 0, 1] * 0.1 - v[-1, 0, 0]) < 1e-12
    slides = np.asarray(run.t) < rolls - 0.01
    assert np.allclose(v[slides, 0, 0], (6.0 - 0.2 * G * np.asarray(run.t))[slides], atol=1e-12)
    way = 6.0 * rolls - 0.1 * G * rolls**2 + 5 / 7 * 6.0 * (2.0 - rolls)
    assert abs(float(run.final.g[1][0, 0]) - way) < 2e-6  # measured: 3e-7
    assert abs(float(run.final.g[1][0, 2]) - 0.1) < 1e-15


def test_balls_on_a_slope_roll_and_slide_as_they_should():
    angle = 0.3
    steep = (G * np.sin(angle), 0.0, -G * np.cos(angle))
    for friction, pull in (
        (0.05, np.sin(angle) - 0.05 * np.cos(angle)),
        (0.5, 5 / 7 * np.sin(angle)),
    ):
        balls = rx.systems.Balls(0.1, [1.0, 3.0], friction=friction, gravity=steep, against=[FLOOR])
        run = simulate(balls, balls.state([[0.0, 0.0, 0.1], [0.0, 1.0, 0.1]]), 0.01, 100)
        v, _ = velocities(balls, run)
        assert np.allclose(v[-1, :, 0], G * pull, rtol=0, atol=1e-12)


def test_a_ball_between_two_walls_on_a_slope_does_not_creep():
    angle = 0.3
    steep = (G * np.sin(angle), 0.0, -G * np.cos(angle))
    groove = [FLOOR, rx.Plane((-1.0, 0.0, 0.0), (0.1, 0.0, 0.0), name="stop")]
    balls = rx.systems.Balls(0.1, 2.0, friction=0.4, gravity=steep, against=groove)
    run = simulate(balls, balls.state([[0.0, 0.0, 0.1]]), 0.01, 1000)
    assert np.max(np.abs(np.asarray(run.final.g[1]) - [[0.0, 0.0, 0.1]])) < 1e-14
    assert np.max(np.abs(np.asarray(run.final.g[0]) - np.eye(3))) < 1e-14


def test_a_bouncing_ball_comes_to_rest_after_its_last_impact():
    balls = rx.systems.Balls(0.1, 1.0, restitution=0.5, against=[FLOOR])
    run = simulate(balls, balls.state([[0.0, 0.0, 1.1]]), 1e-3, 1600, 1)
    height = np.asarray(run.states.g[1])[:, 0, 2] - 0.1
    rests = 3 * np.sqrt(2 / G)
    last = float(np.asarray(run.t)[np.nonzero(height > 1e-4)[0][-1]])
    exact = rests - 2 * np.sqrt(2e-4 / G) * 2  # above 1e-4 m for the last time, nearly
    assert abs(last - exact) < 0.04
    assert np.max(np.abs(height[-100:])) < 1e-15
    assert np.min(height) > -1e-15


def bodies(radius, mass, place, friction, restitution, planes):
    """The same balls, each a body of its own."""
    shapes = [rx.Ball(r, body=k, name=f"ball {k}") for k, r in enumerate(radius)]
    pairs = [(a, plane) for a in shapes for plane in planes]
    pairs += [(a, b) for k, a in enumerate(shapes) for b in shapes[k + 1 :]]
    n = len(radius)
    system = rx.MechanicalSystem(
        rx.Product(*[rx.SO3(), rx.Translation(3)] * n),
        np.concatenate(
            [np.r_[3 * [0.4 * m * r**2], 3 * [m]] for m, r in zip(mass, radius, strict=True)]
        ),
        lambda g: G * sum(mass[k] * g[2 * k + 1][2] for k in range(n)),
        contact=rx.Contacts(pairs, friction=friction, restitution=restitution),
    )
    return system, tuple(part for x in place for part in (np.eye(3), jnp.asarray(x)))


@pytest.mark.parametrize("restitution", [0.0, 0.6])
def test_two_balls_move_as_the_bodies_of_contacts_do(restitution):
    radius, mass, friction = [0.1, 0.17], [2.0, 3.1], 0.3
    place = np.array([[0.0, 0.0, 0.1], [0.4, 0.05, 0.17]])
    v, w = np.array([[3.0, 0.1, 0.0], [0.0, 0.0, 0.0]]), np.array([[4.0, 20.0, -9.0], [0, 0, 1.0]])
    options = {"friction": friction, "restitution": restitution}
    balls = rx.systems.Balls(radius, mass, against=[FLOOR], **options)
    run = simulate(balls, balls.state(place, velocity=v, spin=w), 1e-3, 200)
    system, g = bodies(radius, mass, place, friction, restitution, [FLOOR])
    start = system.state(g, velocity=np.concatenate([w, v], axis=1).reshape(-1))
    other = rx.simulate(
        system, rx.NonsmoothRattle(), start, h=1e-3, steps=200, save_every=200, progress=False
    )
    assert np.allclose(run.final.momentum, other.final.momentum, rtol=0, atol=1e-11)
    assert np.allclose(run.final.g[1], np.stack(other.final.g[1::2]), rtol=0, atol=1e-12)
    assert np.allclose(run.final.g[0], np.stack(other.final.g[0::2]), rtol=0, atol=1e-11)


def test_an_elastic_cradle_hands_on_momentum_and_energy():
    balls = rx.systems.Balls(0.1, 1.5, count=2, restitution=1.0, gravity=None)
    start = balls.state(
        [[0.0, 0.0, 0.0], [0.33, 0.0, 0.0]], velocity=[[1.0, 0.0, 0.0], [0.0, 0.0, 0.0]]
    )
    run = simulate(balls, start, 1e-3, 300)
    v, _ = velocities(balls, run)
    assert np.allclose(v[-1], [[0.0, 0.0, 0.0], [1.0, 0.0, 0.0]], rtol=0, atol=1e-13)
    assert abs(run.energy()[-1] - 0.75) < 1e-13


def box(side):
    return [
        FLOOR,
        rx.Plane((1.0, 0.0, 0.0), (0.0, 0.0, 0.0), name="left"),
        rx.Plane((-1.0, 0.0, 0.0), (side, 0.0, 0.0), name="right"),
        rx.Plane((0.0, 1.0, 0.0), (0.0, 0.0, 0.0), name="front"),
        rx.Plane((0.0, -1.0, 0.0), (0.0, side, 0.0), name="back"),
    ]


def lattice(n, side, spacing):
    """Places one above the other, a little beside a lattice."""
    k, rng = np.arange(n), np.random.default_rng(5)
    flat = np.stack([k % side, (k // side) % side, k // side**2], axis=1)
    return spacing * (flat + 0.5) + 0.04 * spacing * rng.uniform(-1, 1, (n, 3))


@pytest.mark.campaign
@pytest.mark.parametrize("restitution", [0.0, 0.5, 1.0])
def test_the_book_counts_balls_that_others_throw_together_within_a_step(restitution):
    balls = rx.systems.Balls(
        0.05, 1.0, friction=0.3, restitution=restitution, gravity=None, count=4
    )
    places = [[-0.11, 0, 0], [0, 0, 0], [0.10001, 0, 0], [0.20002, 0, 0]]
    start = balls.state(places, velocity=[[2.0, 0, 0]] + 3 * [[0, 0, 0]])
    run = simulate(balls, start, 1e-3, 30, 1)
    assert np.max(np.abs(run.energy_book().difference)) < 1e-14  # measured: 2e-15


@pytest.mark.campaign
@pytest.mark.parametrize(("friction", "goes"), [(0.0, 0.0), (0.05, 0.25), (0.3, 0.5)])
def test_a_break_of_elastic_balls_gains_no_energy_and_goes_on(friction, goes):
    """Fifteen balls, of which many are hit at once; as much comes back as gains none."""
    r, m = 0.028, 0.17
    rack = [
        (0.6 + 1.003 * i * np.sqrt(3) * r, 1.003 * (2 * j - i) * r, r)
        for i in range(5)
        for j in range(i + 1)
    ]
    balls = rx.systems.Balls(r, m, count=16, friction=friction, restitution=1.0, against=[FLOOR])
    start = balls.state([(0.0, 0.001, r), *rack], velocity=[(5.0, 0, 0)] + 15 * [(0, 0, 0)])
    energy = simulate(balls, start, 2e-4, 2000, 1).energy()
    energy = energy - 16 * m * G * r
    assert np.max(np.diff(energy)) < 1e-12 * energy[0]  # measured: 2e-14
    assert energy[-1] >= (1 - goes) * energy[0] * (1 - 1e-3)


@pytest.mark.campaign
@pytest.mark.parametrize(("count", "seed"), [(4, 1), (4, 2), (6, 1), (6, 2), (8, 3)])
def test_friction_in_a_heap_adds_no_energy_and_ends_no_run(count, seed):
    """Rough balls that lock each other in a narrow box; a step is off by what weight does in it."""
    rng, h, wide = np.random.default_rng(seed), 1e-3, 0.17
    ways = [(1, 0, 0), (-1, 0, 0), (0, 1, 0), (0, -1, 0)]
    walls = [FLOOR, *(rx.Plane(way, -wide * np.array(way)) for way in ways)]
    places = [[0.98 * x * 0.085, 0.98 * y * 0.085, 0.12 + 0.2 * k] for k in range(3)
              for x in (-1, 1) for y in (-1, 1)][:count]  # fmt: skip
    places = np.array(places) + rng.uniform(-0.003, 0.003, (count, 3))
    balls = rx.systems.Balls(0.08, 1.0, count=count, friction=0.8, against=walls)
    start = balls.state(places, velocity=0.1 * rng.normal(size=(count, 3)))
    energy = simulate(balls, start, h, 1200, 1).energy()
    assert np.max(np.diff(energy)) < (G * h) ** 2  # measured: 1e-5; was 3e-3


def test_balls_that_fall_into_a_box_do_not_overlap():
    rng, n = np.random.default_rng(2), 27
    radius, mass = rng.uniform(0.08, 0.1, n), rng.uniform(1.0, 3.0, n)
    balls = rx.systems.Balls(
        radius, mass, friction=0.4, against=box(0.69), drag=4.0, spin_drag=0.02
    )
    run = simulate(balls, balls.state(lattice(n, 3, 0.23)), 2e-3, 1000, 100)
    x = np.asarray(run.states.g[1])
    walls = np.concatenate([x, 0.69 - x[..., :2]], axis=2) - radius[None, :, None]
    assert min(least_gap(balls, run), float(np.min(walls))) > -1e-12
    assert run.energy()[-1] < 0.7 * run.energy()[0]


def test_a_stack_comes_to_rest_with_its_weight_on_the_floor():
    mass, h = np.array([1.0, 3.0, 2.0, 0.5]), 2e-3
    balls = rx.systems.Balls(0.1, mass, against=box(0.2))
    start = balls.state(np.stack([[0.1] * 4, [0.1] * 4, [0.15, 0.4, 0.62, 0.9]], axis=1))
    run = simulate(balls, start, h, 400)
    v, _ = velocities(balls, run)
    assert np.max(np.abs(v[-1])) < 1e-13
    assert np.allclose(np.asarray(run.final.g[1])[:, 2], [0.1, 0.3, 0.5, 0.7], atol=1e-13)
    final = jax.tree.map(jnp.asarray, run.final)
    _, record = rx.NonsmoothRattle().contact_record(balls, final, jnp.asarray(h))
    assert isinstance(record, NodeRecord)
    floor = np.asarray(record.second) == -1
    assert np.isclose(np.sum(np.asarray(record.normal)[floor]), h * G * np.sum(mass), rtol=1e-10)


def test_balls_without_walls_keep_momentum_and_angular_momentum():
    rng = np.random.default_rng(7)
    balls = rx.systems.Balls(
        rng.uniform(0.06, 0.1, 8), rng.uniform(1.0, 2.0, 8), friction=0.3, gravity=None
    )
    place = lattice(8, 2, 0.25)
    start = balls.state(
        place, velocity=-3 * (place - place.mean(axis=0)), spin=rng.normal(size=(8, 3))
    )
    run = simulate(balls, start, 1e-3, 150)
    for of in (balls.total_momentum, balls.total_angular_momentum):
        assert np.allclose(of(run.final), of(start), rtol=0, atol=1e-13)
    assert least_gap(balls, run) > -1e-15
    assert run.energy()[-1] < run.energy()[0] - 0.1  # they have met


def test_a_run_of_balls_is_saved_resumed_and_drawn(tmp_path):
    balls = rx.systems.Balls(0.1, 1.0, count=3, friction=0.2, against=[FLOOR])
    place = [[0.0, 0.0, 0.3], [0.05, 0.0, 0.52], [0.5, 0.0, 0.1]]
    whole = simulate(balls, balls.state(place), 1e-3, 60, 10)
    whole.save(tmp_path / "run.nc")
    again = rx.load(tmp_path / "run.nc")
    assert again.system is not None and again.system.name == "system of 3 balls"
    assert np.array_equal(again.g[1], whole.g[1])
    assert len(whole.contacts["all"].normal) == 6
    page = whole.report(tmp_path / "page.html")
    assert "ball" in str(page) or (tmp_path / "page.html").exists()


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"radius": -0.1}, "radius"),
        ({"mass": [1.0, 0.0]}, "mass"),
        ({"radius": [0.1, 0.1], "mass": [1.0, 1.0, 1.0]}, "how many balls"),
        ({"radius": [[0.1]]}, "one for each ball"),
        ({"friction": -1.0}, "friction"),
        ({"restitution": 2.0}, "at most 1"),
        ({"against": [rx.Box(0.1)]}, "balls touch planes"),
        ({"against": [rx.Plane(body=0)]}, "stands in space"),
        ({"against": 3}, "list of shapes"),
        ({"drag": -1.0}, "drag"),
        ({"count": 0}, "count"),
    ],
)
def test_numbers_that_no_ball_can_have_are_told(options, says):
    with pytest.raises(rx.BadInput, match=says):
        rx.systems.Balls(**{"radius": 0.1, "mass": 1.0, **options})


def test_states_that_overlap_and_lists_that_are_full_are_told():
    balls = rx.systems.Balls(0.1, 1.0, count=2, against=[FLOOR])
    with pytest.raises(rx.BadInput, match=r"ball 1 and a ball before it overlap by 0\.05 m"):
        balls.state([[0.0, 0.0, 0.1], [0.15, 0.0, 0.1]])
    with pytest.raises(rx.BadInput, match=r"ball 0 and the floor overlap by 0\.02 m"):
        balls.state([[0.0, 0.0, 0.08], [0.5, 0.0, 0.1]])
    with pytest.raises(rx.BadInput, match=r"g has 1 rows.* of 2 balls"):
        balls.state([[0.0, 0.0, 0.1]])
    with pytest.raises(rx.BadInput, match="leave spin out"):
        balls.state([[0.0, 0.0, 0.1], [1.0, 0.0, 0.1]], velocity=np.zeros(12), spin=[1.0, 0.0, 0.0])
    tight = rx.systems.Balls(0.1, 1.0, count=3, against=[FLOOR], capacity=2)
    start = tight.state([[0.0, 0.0, 0.1], [0.2, 0.0, 0.1], [0.4, 0.0, 0.1]])
    with pytest.raises(rx.StepFailed, match="give Balls a capacity of 5 or more"):
        simulate(tight, start, 1e-3, 1)


@pytest.mark.parametrize("gravity", [None, (0, 0, 0)])
def test_balls_without_weight_and_walls_list_their_momenta(gravity):
    balls = rx.systems.Balls([0.1, 0.12], [1.0, 2.0], gravity=gravity)
    start = balls.state([[0, 0, 0], [0.5, 0, 0]], velocity=[[1, 0, 0], [0, 3, 0]])
    kept = balls.invariants(start)
    assert np.allclose([kept[f"momentum {axis}"] for axis in "xyz"], [1, 6, 0], atol=0)
    assert np.isclose(kept["angular momentum z"], 3.0, rtol=1e-15)


def bounced_to(friction):
    balls = rx.systems.Balls(radius=0.1, mass=1.0, friction=friction, against=[rx.Plane()])
    start = balls.state([[0, 0, 0.1]], velocity=[1.0, 0, 0])
    return rx.simulate(balls, rx.NonsmoothRattle(), start, h=1e-3, steps=20).g[1][-1, 0, 0]


def test_frictions_make_ensembles_of_balls():
    frictions = jnp.array([0.1, 0.2])
    many = jax.vmap(bounced_to)(frictions)
    np.testing.assert_allclose(many, [float(bounced_to(f)) for f in frictions], rtol=1e-14)
    with pytest.raises(rx.BadInput, match=r"member 1: friction = -0.2"):
        jax.vmap(bounced_to)(jnp.array([0.1, -0.2]))


@pytest.mark.parametrize("given", ["friction", "restitution"])
def test_what_touches_nodes_has_no_derivatives_in_its_law(given):
    for thing in (
        lambda f: rx.SelfContact(0.1, **{given: f}).friction,
        lambda f: rx.systems.Balls(0.1, 1.0, **{given: f}).contact.friction,
    ):
        with pytest.raises(rx.BadInput, match=f"{given} of rods and of many balls has no deriv"):
            jax.grad(thing)(0.2)
        with pytest.raises(rx.BadInput, match=f"{given} of rods and of many balls has no deriv"):
            jax.vmap(jax.grad(thing))(jnp.array([0.1, 0.2]))


def test_balls_of_one_size_ask_how_many_they_are():
    with pytest.raises(rx.BadInput, match=r"count=16"):
        rx.systems.Balls(0.1, 1.0).state(np.zeros((16, 3)))
