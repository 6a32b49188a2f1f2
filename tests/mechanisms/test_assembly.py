"""Assembly: positions and velocities that were asked for, or a sentence that names the joint."""

import numpy as np
import pytest

import retrax as rx
from retrax.mechanisms.system import MechanismSystem
from retrax.numerics.evaluate import evaluate

Y = [0.0, 1.0, 0.0]
J = [0.01, 0.1, 0.1]


def four_bar():
    m = rx.Mechanism()
    crank = m.body("crank", 1.0, J, at=[0, 0, 0.5])
    rod = m.body("rod", 1.2, J, at=[0.5, 0, 1.0])
    rocker = m.body("rocker", 0.8, J, at=[1.0, 0, 0.5])
    m.join(
        rx.Revolute("ground", crank, at=[0, 0, 0], axis=Y, name="pivot"),
        rx.Revolute(crank, rod, at=[0, 0, 1], axis=Y, name="elbow"),
        rx.Revolute(rod, rocker, at=[1, 0, 1], axis=Y, name="knee"),
        rx.Revolute(rocker, "ground", at=[1, 0, 0], axis=Y, name="closing"),
    )
    return m.system()


def test_a_loop_follows_its_crank_and_names_the_joint_that_is_too_many():
    system = four_bar()
    angle, rate = 0.8, -1.3
    state = system.assemble(joints={"pivot": angle}, joint_rates={"pivot": rate})
    # A parallelogram: the rod does not turn, and the rocker turns as the crank does.
    R, x = system.pose(state, "rod")
    np.testing.assert_allclose(R, np.eye(3), atol=1e-14)
    np.testing.assert_allclose(x, [0.5 + np.sin(angle), 0, np.cos(angle)], atol=1e-14)
    turns, travels = system.split(system.velocity_at(state))
    np.testing.assert_allclose(turns, [[0, rate, 0], [0, 0, 0], [0, rate, 0]], atol=1e-13)
    expected = rate * np.array([np.cos(angle), 0, -np.sin(angle)])
    np.testing.assert_allclose(travels[1], expected, atol=1e-13)
    assert system.freedoms(state) == 1
    assert system.redundant(state) == ("closing",)


def test_drawings_that_miss_a_little_are_closed_with_the_smallest_move():
    m = rx.Mechanism()
    bob = m.body("bob", 2.0, [0.1, 0.2, 0.25], at=[0.0, 0.0, -1.0])
    m.join(rx.Distance("ground", bob, at=[[0, 0, 0], [0, 0, -1.0]], length=1.25, name="rod"))
    state = m.system().assemble()
    np.testing.assert_allclose(state.g[1], [[0, 0, -1.25]], atol=1e-15)


@pytest.mark.parametrize("turns", [7.3, -40.0])
def test_a_screw_is_wound_over_many_turns(turns):
    m = rx.Mechanism()
    nut = m.body("nut", 2.0, [0.1, 0.2, 0.25], at=[0.3, 0.0, 0.0])
    m.join(rx.Screw("ground", nut, at=[0, 0, 0], axis=[0, 0, 2.0], pitch=-0.2, name="thread"))
    system = m.system()
    state = system.assemble(joints={"thread": turns}, joint_rates={"thread": 3.0})
    np.testing.assert_allclose(state.g[1][0, 2], -0.2 * turns / (2 * np.pi), atol=1e-13)
    seen = evaluate(MechanismSystem.observables, system, state)
    off = seen["angle of thread"] - turns
    np.testing.assert_allclose(np.arctan2(np.sin(off), np.cos(off)), 0, atol=1e-12)
    np.testing.assert_allclose(seen["rate of position of thread"], -0.2 * 3 / (2 * np.pi))


def test_gears_stay_on_the_teeth_of_the_drawing():
    m = rx.Mechanism()
    one = m.body("one", 1.0, [0.1, 0.1, 0.15], at=[0, 0, 0])
    two = m.body("two", 1.0, [0.1, 0.1, 0.15], at=[1, 0, 0])
    m.join(
        rx.Revolute("ground", one, at=[0, 0, 0], axis=[0, 0, 1], name="first"),
        rx.Revolute("ground", two, at=[1, 0, 0], axis=[0, 0, 1], name="second"),
        rx.Gear("first", "second", teeth=(20, 30)),
    )
    system = m.system()
    seen = evaluate(MechanismSystem.observables, system, system.assemble(joints={"first": 20.0}))
    for name, angle in (("first", 20.0), ("second", -40.0 / 3)):
        off = float(seen[f"angle of {name}"]) - angle
        assert abs(np.arctan2(np.sin(off), np.cos(off))) < 1e-11


def test_what_cannot_be_reached_is_a_sentence_with_the_joint_and_how_far_it_is_open():
    system = four_bar()
    for asked, words in [
        ({"pivot": 0.8, "closing": 0.3}, r"'(pivot|closing)' stays open by 0\.\d+"),
        ({"pivt": 0.8}, "no joint 'pivt'"),
        ({"pivot": [0.8, 1.0]}, "shape"),
        ({"pivot": np.nan}, "finite"),
    ]:
        with pytest.raises(rx.BadInput, match=words):
            system.assemble(joints=asked)
    m = rx.Mechanism()
    bob = m.body("bob", 1.0, [0.1, 0.2, 0.25], at=[0, 0, 0])
    m.join(
        rx.Distance("ground", bob, at=[[0, 0, 2], [0, 0, 0]], length=3.0, name="left"),
        rx.Distance("ground", bob, at=[[0, 0, 9], [0, 0, 0]], length=3.0, name="right"),
    )
    with pytest.raises(rx.BadInput, match=r"'(left|right)' stays open by"):
        m.system().assemble()
    m = rx.Mechanism()
    m.join(rx.Spherical("ground", m.body("b", 1.0, [0.1, 0.2, 0.25], at=[0, 0, 0]), at=[0, 0, 1]))
    with pytest.raises(rx.BadInput, match="no single angle"):
        m.system().assemble(joints={"joint 1": 0.3})


def test_velocities_that_joints_forbid_are_rejected_by_name_or_projected():
    system = four_bar()
    with pytest.raises(rx.BadInput, match=r"the rate of the joint '(pivot|closing)'"):
        system.assemble(joint_rates={"pivot": 0.8, "closing": 0.3})
    with pytest.raises(rx.BadInput, match="the velocity of 'rod'"):
        system.assemble(velocities={"rod": [0, 0, 0, 1, 1, 0]})
    with pytest.raises(rx.BadInput, match="no body 'rope'"):
        system.assemble(velocities={"rope": np.zeros(6)})
    with pytest.raises(rx.BadInput, match="ground"):
        system.assemble(velocities={"ground": np.zeros(6)})
    rng = np.random.default_rng(1)
    asked = rng.normal(size=(3, 6))
    each = dict(zip(system.names, asked, strict=True))
    state = system.assemble(velocities=each, project=True)
    # The nearest one in the metric of the kinetic energy, as `state` finds it from momenta.
    nearest = system.state(system.reference, velocity=asked.ravel(), project=True)
    np.testing.assert_allclose(state.momentum, nearest.momentum, atol=1e-12)


def test_rates_that_are_asked_for_are_met_exactly_also_where_velocities_are_projected():
    system = four_bar()
    state = system.assemble(joint_rates={"pivot": 2.0}, project=True)
    seen = evaluate(MechanismSystem.observables, system, state)
    np.testing.assert_allclose(seen["rate of angle of pivot"], 2.0, rtol=1e-13)
    np.testing.assert_allclose(seen["rate of angle of closing"], -2.0, rtol=1e-13)


def sprung(rest=0.0, stiffness=2.0):
    m = rx.Mechanism(gravity=[0.0, 0.0])
    arm = m.body("arm", 1.0, 0.1, at=[0.5, 0.0])
    m.join(rx.Revolute("ground", arm, at=[0.0, 0.0], name="hinge"))
    m.add(rx.TorsionSpring("hinge", stiffness, rest=rest, name="coil"))
    return m.system()


@pytest.mark.parametrize("rest", [4.0, -2.8, 6.5, 2 * np.pi])
def test_a_spring_that_is_wound_by_half_a_turn_as_drawn_is_rejected(rest):
    with pytest.raises(rx.BadInput, match=r"rest = .* winds this TorsionSpring"):
        sprung(rest)
    rail = rx.Mechanism(gravity=[0.0, 0.0])
    rail.join(rx.Prismatic("ground", rail.body("b", 1.0, 0.1, at=[0, 0]), axis=[1, 0], name="x"))
    rail.add(rx.TorsionSpring("x", 2.0, rest=rest))
    system = rail.system()
    np.testing.assert_allclose(system.energy(system.assemble()), rest**2, rtol=1e-15)


@pytest.mark.parametrize(("rest", "angle"), [(0.0, 6.0), (-2.0, 2.0), (2.5, -0.4), (0.0, 1e4)])
def test_turns_that_are_asked_for_wind_a_spring(rest, angle):
    told = rf"wound the spring 'coil' by {abs(angle - rest):.4g} rad"
    with pytest.raises(rx.BadInput, match=told.replace("+", r"\+")):
        sprung(rest).assemble(joints={"hinge": angle})


def test_a_spring_far_from_the_drawing_has_its_energy():
    system = sprung(2.7)
    state = system.assemble(joints={"hinge": 5.0})
    np.testing.assert_allclose(system.energy(state), (5.0 - 2.7) ** 2, rtol=1e-14)


def test_a_spring_at_a_joint_that_another_turns_is_wound_with_it():
    m = rx.Mechanism(gravity=[0.0, 0.0])
    for k, name in enumerate(("slow", "fast")):
        wheel = m.body(name, 1.0, 0.1, at=[k, 0.0])
        m.join(rx.Revolute("ground", wheel, at=[k, 0.0], name=f"{name} axle"))
    m.join(rx.Gear("slow axle", "fast axle", teeth=(30, 10)))
    m.add(rx.TorsionSpring("fast axle", 1.0, name="coil"))
    system = m.system()
    np.testing.assert_allclose(system.energy(system.assemble(joints={"slow axle": 0.8})), 2.88)
    with pytest.raises(rx.BadInput, match="'coil' by 6 rad"):
        system.assemble(joints={"slow axle": 2.0})


def test_a_target_at_which_branches_meet_is_rejected_and_passed_by():
    system = rx.systems.four_bar()
    for flat in (-np.pi / 2, np.pi / 2):
        with pytest.raises(rx.BadInput, match="is singular with 'A0' = "):
            system.assemble(joints={"A0": flat})
    # Half way there it is flat. Opposite bars stay parallel beyond it.
    for angle in (-np.pi, np.pi / 2 - 1e-4):
        seen = evaluate(MechanismSystem.observables, system, system.assemble(joints={"A0": angle}))
        off = seen["angle of A1"] - angle
        np.testing.assert_allclose(np.sin(off / 2), 0, atol=3e-11)


@pytest.mark.parametrize("length", [2.0, 2e3, 2e5])
def test_a_pendulum_of_any_length_is_assembled_at_an_angle(length):
    made = rx.Mechanism()
    inertia = length**2 * np.array([1 / 12, 1 / 12, 1 / 100])
    made.body("bar", mass=1.0, inertia=inertia, at=[0, 0, -length / 2])
    made.join(rx.Revolute("ground", "bar", at=[0, 0, 0], axis=[0, 1, 0], name="hinge"))
    place = made.system().assemble(joints={"hinge": 0.1}).g[1][0]
    aside = np.array([-np.sin(0.1), 0.0, -np.cos(0.1)])
    np.testing.assert_allclose(place, length / 2 * aside, rtol=0, atol=1e-14 * length)
