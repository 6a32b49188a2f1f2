"""What a run with contact tells: contacts by name, events, and where the energy went."""

import json

import jax.numpy as jnp
import numpy as np
import pytest
from jax.scipy.spatial.transform import Rotation

import retrax as rx
from retrax.contact.steps.faults import fault_of_contact

GRAVITY = 9.81
BODY = rx.Product(rx.SO3(), rx.Translation(3))
NAME = "ball on table"


class Weight:
    """The potential of a mass; a class, so that all tests share a program."""

    def __init__(self, mass):
        self.mass = mass

    def __call__(self, g):
        return self.mass * GRAVITY * g[1][2]


def body(friction=0.0, restitution=0.0, inertia=(0.008, 0.008, 0.008), at=(0, 0, 0), radius=0.1):
    """A body of 2 kg with a ball on it, over a table."""
    shapes = (rx.Ball(radius, at=at, body=0, name="ball"), rx.Plane(name="table"))
    contact = rx.Contacts([shapes], friction=friction, restitution=restitution)
    return rx.MechanicalSystem(
        BODY, np.array([*inertia, 2.0, 2.0, 2.0]), Weight(2.0), contact=contact
    )


def ran(system, g, velocity, h, steps, **settings):
    start = system.state(g, velocity=velocity)
    return rx.simulate(system, rx.NonsmoothRattle(), start, h=h, steps=steps, **settings)


UPRIGHT = np.eye(3)


def bowling(**settings):
    g = (UPRIGHT, np.array([0.0, 0.0, 0.1]))
    return ran(body(0.2), g, [0, 0, 0, 6.0, 0, 0], 0.005, 400, **settings)


def bouncing(h=0.004, **settings):
    g = (UPRIGHT, np.array([0.0, 0.0, 0.6]))
    return ran(body(0.3, 0.5), g, [1.0, 2.0, 3.0, 1.0, 0.3, 0.0], h, round(2 / h), **settings)


@pytest.fixture(scope="module")
def rolled():
    return bowling()


@pytest.fixture(scope="module")
def bounced():
    return bouncing()


def test_a_bowling_ball_slips_and_then_sticks(rolled):
    (event,) = rolled.events.entries
    assert event.kind == "stick" and event.contact == NAME and event.bodies == ("ball", "table")
    rolls = 2 * 6.0 / (7 * 0.2 * GRAVITY)
    assert rolls <= event.time < rolls + rolled.h
    assert event.impulse == pytest.approx(2 * GRAVITY * rolled.h, rel=1e-11)
    contact = rolled.contacts[NAME]
    k = round(event.time / rolled.h)
    assert set(contact.mode[:k]) == {"slips"} and set(contact.mode[k:]) == {"sticks"}
    assert contact.force == pytest.approx(2 * GRAVITY, rel=1e-10)
    assert contact.tangential[: k - 1] == pytest.approx(0.2 * contact.normal[: k - 1], rel=1e-10)
    assert np.max(np.abs(contact.gap)) < 1e-13  # measured 3e-14, at coordinates of 9 m
    assert np.max(contact.slip[k:]) < 1e-13
    assert np.max(np.abs(contact.friction_work[k:])) < 1e-15


def test_the_book_of_a_bowling_ball_is_closed(rolled):
    book = rolled.energy_book()
    assert book.friction_work[-1] == pytest.approx(2 * 6.0**2 / 7, rel=1e-12)
    assert np.max(np.abs(book.impact_loss)) < 1e-12
    assert np.max(np.abs(book.difference)) < 1e-12 * book.friction_work[-1]
    assert book.change == pytest.approx(rolled.energy() - rolled.energy()[0])
    assert rolled.energy_balance().work == pytest.approx(-book.friction_work, abs=1e-12)
    assert not np.any(book.work)
    assert "friction took 10.2857 J" in rolled.summary() and "event 'stick': 1" in rolled.summary()


def test_a_bouncing_ball_loses_what_its_impacts_take(bounced):
    impacts, book = bounced.events["impact"], bounced.energy_book()
    falls = np.sqrt(2 * 0.5 / GRAVITY)
    assert falls <= impacts.t[0] < falls + bounced.h
    assert len(impacts) == len(bounced.events["release"]) + 1 >= 5
    assert impacts.contact == (NAME,) * len(impacts)
    # The ball falls on until a step ends, so that an impulse is known to a step of the weight.
    assert impacts.impulse[0] == pytest.approx(1.5 * 2 * GRAVITY * falls, abs=4 * GRAVITY * 0.004)
    taken = book.friction_work[-1] + book.impact_loss[-1]
    assert np.max(np.abs(book.difference)) < 1e-13 * taken
    vertical = np.asarray(bounced.velocity)[:, 5]
    contact = bounced.contacts[NAME]
    gained = 2 * (np.diff(vertical) + GRAVITY * bounced.h)
    assert contact.normal == pytest.approx(gained, abs=1e-12)
    # What the energy of the vertical motion loses in a step: nothing else but impacts.
    height = np.asarray(bounced.g[1])[:, 2]
    lost = -np.diff(vertical**2 + 2 * GRAVITY * height)
    assert contact.impact_loss == pytest.approx(lost, abs=1e-12)
    assert contact.mode[0] == "open" and contact.mode[-1] == "sticks"


def test_steps_between_saved_states_are_looked_at(bounced):
    few = bouncing(save_every=7)
    assert few.events.entries == bounced.events.entries
    dense, sparse = bounced.contacts[NAME], few.contacts[NAME]
    edges = np.arange(0, len(bounced.t) - 1, 7)
    for name in ("normal", "tangential", "friction_work", "impact_loss"):
        sums = np.add.reduceat(getattr(dense, name), edges)
        assert getattr(sparse, name) == pytest.approx(sums, abs=1e-13)
    rows = np.append(edges, len(bounced.t) - 1)
    for name in ("gap", "slip"):
        assert np.array_equal(getattr(sparse, name), getattr(dense, name)[rows])
    assert np.array_equal(sparse.mode, dense.mode[rows])


def test_the_difference_of_an_asymmetric_body_is_of_second_order():
    system = body(0.4, 0.3, inertia=(0.02, 0.03, 0.045), at=(0.07, 0.04, -0.06), radius=0.05)
    turned = np.asarray(Rotation.from_rotvec(jnp.array([0.3, -0.2, 0.5])).as_matrix())
    left = []
    for h in (0.002, 0.001, 0.0005):
        run = ran(system, (turned, np.array([0, 0, 0.4])), [3, -2, 5, 1, 0.5, 0], h, round(0.6 / h))
        left.append(np.max(np.abs(run.energy_book().difference)))
        assert {event.kind for event in run.events.entries} >= {"impact", "release"}
    assert left[0] < 1e-3 * run.energy_book().impact_loss[-1]
    assert left[0] / left[1] == pytest.approx(4, rel=0.2)
    assert left[1] / left[2] == pytest.approx(4, rel=0.2)


def test_momenta_that_contact_breaks_are_no_invariants(rolled):
    # About the line of contact friction has no moment, and about the vertical none at all.
    names = {f"spatial momentum {of}" for of in ("(0, 1, 0, 0.1, 0, 0)", "(1, 0, 0, 0, -0.1, 0)")}
    kept = rolled.invariants()
    assert set(kept) == names | {"spatial momentum e3"}
    assert all(np.max(np.abs(x - x[0])) < 1e-13 for x in kept.values())
    smooth = body()
    state = smooth.state((UPRIGHT, np.array([0.0, 0.0, 0.1])), velocity=np.ones(6))
    assert "energy" not in smooth.invariants(state)
    assert {f"spatial momentum e{k}" for k in range(1, 6)} <= set(smooth.invariants(state))
    lopsided = body(0.4, inertia=(0.02, 0.03, 0.045), at=(0.07, 0.04, -0.06))
    assert lopsided.invariants(state) == {}


def test_a_declared_symmetry_that_contact_breaks_is_rejected():
    with pytest.raises(rx.BadInput, match="is not a symmetry"):
        rx.MechanicalSystem(
            BODY,
            np.ones(6),
            Weight(1.0),
            symmetry=[[0, 0, 0, 1.0, 0, 0]],
            contact=body(0.3).contact,
        ).invariants(rx.State((UPRIGHT, np.array([0.0, 0.0, 1.0])), np.zeros(6)))


def test_events_of_users_stand_beside_those_of_contacts():
    def top(g, xi, t):
        return xi[5]

    g = (UPRIGHT, np.array([0.0, 0.0, 0.6]))
    events = {"impact": rx.Event(top, "falling"), "low": rx.Stop(lambda g, xi, t: g[1][2] - 0.11)}
    start = [0, 0, 0, 1.0, 0, 3.0]
    run = ran(body(0.3, 0.5), g, start, 0.004, 500, events=events, save_every=10)
    assert run.events["impact"].t == pytest.approx(3 / GRAVITY, abs=1e-12)
    assert run.events.ended_by == "low" and run.events.entries == ()
    assert list(run.events) == ["impact", "low", "jam", "slip", "stick", "release"]
    contact = run.contacts[NAME]
    assert len(contact.gap) == len(run.t) and contact.gap[-1] == pytest.approx(0.01, abs=1e-12)
    assert np.max(np.abs(run.energy_book().difference)) < 1e-12
    with pytest.raises(KeyError):
        run.events["bump"]


def test_files_without_functions_say_so(bounced, tmp_path):
    loaded = rx.load(bounced.save(tmp_path / "run.nc"))  # which lacks the potential
    assert "impact'" not in loaded.summary()
    assert "What of it friction and impacts took, this file does not tell" in loaded.summary()
    for ask in (lambda: loaded.events.entries, lambda: loaded.contacts, loaded.energy_book):
        with pytest.raises(rx.BadInput, match="potential"):
            ask()
    told = json.loads(json.dumps(bounced.measures()))["contacts"]
    assert told["events"]["impact"] == len(bounced.events["impact"])
    assert told["by_name"][NAME]["impact_loss"] == pytest.approx(told["impact_loss"])


def test_runs_without_contact_have_no_contacts():
    free = rx.MechanicalSystem(BODY, np.ones(6), Weight(1.0))
    start = free.state((UPRIGHT, np.zeros(3)), velocity=np.ones(6))
    run = rx.simulate(free, rx.LieVerlet(), start, h=0.01, steps=10)
    assert run.events.entries == () and len(run.events) == 0
    with pytest.raises(rx.BadInput, match="has no contacts to tell about"):
        _ = run.contacts
    with pytest.raises(KeyError):
        run.events["impact"]


def rod(friction):
    """A thin rod of 1 m that stands on one end, steep."""
    at, third = (0.0, 0.0, -0.5), 2.0 / 12
    return body(friction, inertia=(third, third, 1e-3), at=at, radius=0.005)


def leaning(system, speed):
    lean = np.pi / 2 - np.arctan(2.0)
    turned = np.asarray(Rotation.from_rotvec(jnp.array([0.0, lean, 0.0])).as_matrix())
    height = 0.005 + 0.5 * turned[2, 2]
    g = (turned, np.array([0.0, 0.0, height]))
    return system.state(g, velocity=[0, 0, 0, speed, 0, 0])


@pytest.mark.parametrize(("friction", "jams"), [(1.2, False), (1.5, True)])
def test_a_steep_rod_jams_where_friction_exceeds_four_thirds(friction, jams):
    system = rod(friction)
    h, start = 0.001, leaning(rod(friction), -2.0)
    run = rx.simulate(system, rx.NonsmoothRattle(), start, h=h, steps=5)
    found = run.events["jam"]
    assert len(found) == int(jams)
    if jams:  # an impact without a collision
        assert found.t[0] == h and found.impulse[0] > 20 * 2 * GRAVITY * h
    told = fault_of_contact(system, start, h)
    assert NAME in told and ("Painlevé" in told) == jams
    if jams:
        assert "friction below 1.3" in told


def test_a_contact_that_cannot_be_solved_is_named():
    # A motor draws the ball through the table.
    free = body(0.3)
    system = rx.MechanicalSystem(
        BODY,
        free.inertia,
        Weight(2.0),
        contact=free.contact,
        constraint=rx.Holonomic(lambda g, t: g[1][2] - (0.15 - 0.5 * t)),
    )
    g = (UPRIGHT, np.array([0.0, 0.0, 0.15]))
    start = system.state(g, velocity=[0, 0, 0, 0, 0, -0.5])
    with pytest.raises(rx.StepFailed, match=f"contact {NAME!r}.* could not be solved") as failed:
        rx.simulate(system, rx.NonsmoothRattle(), start, h=0.007, steps=50)
    assert "Painlev" not in str(failed.value)
    assert failed.value.trajectory.t[-1] == pytest.approx(0.098)


def test_a_motor_does_the_work_that_friction_takes():
    free = body(0.3)
    system = rx.MechanicalSystem(
        BODY,
        free.inertia,
        Weight(2.0),
        contact=free.contact,
        constraint=rx.Holonomic(
            lambda g, t: jnp.concatenate(
                [g[1][:1] - 0.5 * t, (g[0] - g[0].T)[(0, 0, 1), (1, 2, 2)]]
            )
        ),
    )
    g = (UPRIGHT, np.array([0.0, 0.0, 0.1]))
    start = system.state(g, velocity=[0, 0, 0, 0.5, 0, 0])
    run = rx.simulate(system, rx.NonsmoothRattle(), start, h=0.01, steps=100)
    drag, book = 0.3 * 2 * GRAVITY, run.energy_book()
    assert run.multipliers[:, 0] == pytest.approx(drag, rel=1e-10)
    assert run.reaction[:, 3] == pytest.approx(drag, rel=1e-10)
    assert book.friction_work[-1] == pytest.approx(drag * 0.5, rel=1e-10)
    assert book.work == pytest.approx(book.friction_work, abs=1e-10)
    assert np.max(np.abs(book.difference)) < 1e-11


@pytest.mark.parametrize("part", [0.05, 0.5, 0.95])
def test_where_in_a_step_a_rough_impact_falls_does_not_matter_to_the_book(part):
    """A tip that lands without slip and sticks: friction takes nothing, and neither does it."""
    tilt, h = 0.6, 1e-3
    c, s = np.cos(tilt), np.sin(tilt)
    tip = rx.Ball(0.01, at=(0.2, 0.0, 0.0), body=0, name="tip")
    contact = rx.Contacts([(tip, rx.Plane(name="floor"))], friction=1.0, restitution=1.0)
    group = rx.Product(rx.SO3(), rx.Translation(3))
    system = rx.MechanicalSystem(group, np.r_[3 * [0.01], 3 * [1.0]], None, contact=contact)
    turned = np.array([[c, 0, s], [0, 1, 0], [-s, 0, c]])
    place = turned, np.array([0.0, 0.0, 0.2 * s + 0.01 + (20 + part) * h])
    start = system.state(place, velocity=[0, 0, 0, 0, 0, -1.0])
    book = rx.simulate(system, rx.NonsmoothRattle(), start, h=h, steps=30).energy_book()
    assert abs(book.friction_work[-1]) < 1e-14  # was 0.2, 0.1, 0.01
    assert abs(book.impact_loss[-1] + book.change[-1]) < 1e-14
    assert abs(book.impact_loss[-1]) < book.impact_uncertainty[-1] + 1e-15 < 5e-4
