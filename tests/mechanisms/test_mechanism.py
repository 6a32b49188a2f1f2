"""Mechanisms as users write them: what is rejected, what is conserved, what drives them."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import retrax as rx

J = [0.1, 0.2, 0.25]
Z = [0.0, 0.0, 1.0]


def two():
    m = rx.Mechanism()
    return m, m.body("a", 1.0, J, at=[0, 0, 0]), m.body("b", 1.0, J, at=[1, 0, 0])


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"name": "a"}, "is there already"),
        ({"name": "ground"}, "that of the ground"),
        ({"name": ""}, "not empty"),
        ({"mass": 0.0}, "mass of 'c' = 0.0 must be positive"),
        ({"mass": -1.0}, "must be positive"),
        ({"mass": np.nan}, "finite"),
        ({"inertia": [1.0, -1.0, 1.0]}, "'c': inertia .* not positive"),
        ({"inertia": [1.0, 3.0, 1.0]}, "not that of a rigid body"),
        ({"inertia": [[1.0, 0.1, 0], [0, 1, 0], [0, 0, 1]]}, "not symmetric"),
        ({"inertia": [1.0, 1.0]}, "three principal moments"),
        ({"at": [0.0, 0.0]}, "has 3 coordinates"),
        ({"at": [0.0, 0.0, np.inf]}, "finite"),
        ({"turned": np.diag([1.0, 1.0, -1.0])}, "mirrors"),
        ({"turned": 2 * np.eye(3)}, "not a rotation"),
        ({"turned": np.eye(2)}, "3 x 3"),
    ],
)
def test_bodies_that_cannot_be_are_rejected(changed, words):
    m, _, _ = two()
    given = {"name": "c", "mass": 1.0, "inertia": J, "at": [0, 0, 0]} | changed
    with pytest.raises(rx.BadInput, match=words):
        m.body(**given)


def test_an_inertia_of_no_body_is_taken_where_it_is_wanted():
    m = rx.Mechanism()
    m.body("c", 1.0, [1.0, 3.0, 1.0], at=[0, 0, 0], physical=False)
    assert m.system().inertia[0, 1, 1] == 3.0


@pytest.mark.parametrize(
    ("joint", "words"),
    [
        (lambda a, b: rx.Revolute(a, a, at=Z, axis=Z), "with itself"),
        (lambda a, b: rx.Revolute(a, "c", at=Z, axis=Z), "no body 'c': .* 'ground', 'a', 'b'"),
        (lambda a, b: rx.Revolute(a, rx.Mechanism().ground, at=Z, axis=Z), "another mechanism"),
        (lambda a, b: rx.Revolute(a, b, at=Z, axis=[0, 0, 0]), "no direction"),
        (lambda a, b: rx.Revolute(a, b, at=Z), "needs an axis"),
        (lambda a, b: rx.Revolute(a, b, at=[0, 0, np.nan], axis=Z), "finite"),
        (lambda a, b: rx.Spherical(a, b, at=[0, 0]), "in space"),
        (lambda a, b: rx.Prismatic(a, b), "needs an axis"),
        (lambda a, b: rx.Screw(a, b, at=Z, axis=Z, pitch=0.0), "Revolute"),
        (lambda a, b: rx.Universal(a, b, at=Z, axes=[[1, 0, 0], [1, 1, 0]]), "45 degrees"),
        (lambda a, b: rx.Universal(a, b, at=Z, axes=[[1, 0, 0]]), "two arms"),
        (lambda a, b: rx.Distance(a, b, at=[Z, Z]), "Spherical"),
        (lambda a, b: rx.Distance(a, b, at=[Z, Z], length=1.0), "no direction"),
        (lambda a, b: rx.Distance(a, b, at=Z), "two points"),
        (lambda a, b: rx.Spherical(a, b, at=Z, name=3), "must be a text"),
        (lambda a, b: rx.Gear("one", "none", teeth=(1, 2)), "no joint 'none'"),
        (lambda a, b: rx.Gear("one", "one", teeth=(1, 2)), "with itself"),
        (lambda a, b: rx.Gear("one", "ball", teeth=(1, 2)), "a joint with one angle"),
        (lambda a, b: rx.Rack("one", "one", radius=0.0), "radius = 0"),
        (lambda a, b: rx.Rack("ball", "one", radius=1.0), "a joint with one angle"),
        (lambda a, b: rx.Gear(rx.Spherical(a, b, at=Z), "one", teeth=(1, 2)), "not a joint of"),
        (lambda a, b: rx.Gear("one", "ball", teeth=(1.5, 2)), "whole numbers"),
        (lambda a, b: rx.Gear("one", "ball", teeth=(0, 2)), "whole numbers"),
        (lambda a, b: rx.Spherical(a, b, at=Z, name="one"), "'one' already"),
        (lambda a, b: "one", "is not a joint"),
    ],
)
def test_joints_that_cannot_be_are_rejected(joint, words):
    m, a, b = two()
    m.join(rx.Revolute(a, b, at=Z, axis=Z, name="one"), rx.Spherical(a, b, at=Z, name="ball"))
    with pytest.raises(rx.BadInput, match=words):
        m.join(joint(a, b))


@pytest.mark.parametrize(
    "joint",
    [
        lambda a, b: rx.Cylindrical(a, b, at=Z, axis=Z),
        lambda a, b: rx.Screw(a, b, at=Z, axis=Z, pitch=1.0),
        lambda a, b: rx.Universal(a, b, at=Z, axes=[[1, 0, 0], [0, 1, 0]]),
        lambda a, b: rx.Planar(a, b, at=Z, normal=Z),
        lambda a, b: rx.PointOnPlane(a, b, at=Z, normal=Z),
    ],
)
def test_joints_of_space_are_rejected_in_the_plane_with_what_to_write_instead(joint):
    m = rx.Mechanism(gravity=[0, -1])
    a, b = m.body("a", 1.0, 0.1, at=[0, 0]), m.body("b", 1.0, 0.1, at=[1, 0])
    with pytest.raises(rx.BadInput, match="is a joint in space; in the plane"):
        m.join(joint(a, b))


def test_other_bad_input_is_a_sentence():
    m, a, b = two()
    m.join(rx.Spherical(a, b, at=Z, name="ball"))
    for call, words in [
        (lambda: rx.Mechanism(gravity=[1.0]), "three numbers"),
        (lambda: rx.Mechanism(gravity=[0, 0, np.nan]), "finite"),
        (lambda: rx.Mechanism().system(), "no bodies"),
        (lambda: m.plant(), "no motors"),
        (lambda: m.add(rx.Motor("ball")), "one coordinate"),
        (lambda: m.add(3), "not a spring"),
        (lambda: rx.Motor("ball", bounds=(2, 1)), "pair"),
        (lambda: m.add(rx.Spring(a, a, at=[Z, Z], stiffness=1.0)), "itself"),
        (lambda: rx.Spring(a, b, at=[Z, Z], stiffness=-1.0), "negative"),
        (lambda: rx.Damper(a, b, at=[Z, Z], damping=1.0), "coincide"),
        (lambda: m.system(potential=lambda g: jnp.zeros(2)), "potential"),
        (lambda: m.system(force=lambda g, xi, t: jnp.zeros(3)), "force"),
        (lambda: m.system().pose(m.system().assemble(), "c"), "no body 'c'"),
        (lambda: m.system().pose(m.system().assemble(), "ground"), "does not move"),
    ]:
        with pytest.raises(rx.BadInput, match=words):
            call()


def invariants(m):
    system = m.system()
    return set(system.invariants(system.assemble()))


@pytest.mark.parametrize(
    ("joint", "kept", "floating"),
    [
        (
            lambda b: rx.Spherical("ground", b, at=[1, 2, 0]),
            {"angular momentum e3 about (1, 2, 0)"},
            {
                "angular momentum e1 about (0, 2, 0)",
                "angular momentum e2 about (1, 0, 0)",
                "angular momentum e3 about (1, 2, 0)",
            },
        ),
        (
            lambda b: rx.Revolute(b, "ground", at=[1, 2, 0], axis=[0, 1, 1]),
            set(),
            {"angular momentum (0, 1, 1) about (1, 1, -1)"},
        ),
        (
            lambda b: rx.Prismatic(b, "ground", axis=[1, 0, 0]),
            {"momentum e1"},
            {"momentum e1"},
        ),
        (
            lambda b: rx.Screw("ground", b, at=[0, 0, 0], axis=[0, 0, 1], pitch=2 * np.pi),
            set(),
            {"angular momentum e3 about (0, 0, 0), with 1 along it"},
        ),
        (
            lambda b: rx.Planar("ground", b, at=[0, 0, 0], normal=[0, 0, 1]),
            {"angular momentum e3", "momentum e1", "momentum e2"},
            {"angular momentum e3", "momentum e1", "momentum e2"},
        ),
    ],
)
def test_momenta_are_those_that_joints_and_gravity_leave_alone(joint, kept, floating):
    for gravity, expected in ((-9.81, kept), (0.0, floating)):
        m = rx.Mechanism(gravity=[0, 0, gravity])
        m.join(joint(m.body("b", 1.0, J, at=[0, 0, 0])))
        assert invariants(m) == {"energy"} | expected


def test_a_free_chain_keeps_momentum_and_angular_momentum():
    m = rx.Mechanism(gravity=[0, 0, 0])
    above = m.body("link 0", 1.0, J, at=[0, 0, 0])
    for k in (1, 2):
        link = m.body(f"link {k}", 1.0 + k, [0.3, 0.2, 0.4], at=[k, 0, 0.1])
        m.join(rx.Spherical(above, link, at=[k - 0.5, 0.2, 0]))
        above = link
    system = m.system()
    state = system.assemble(velocities={"link 0": [0.3, -1.0, 2.0, 0.1, 0.2, 0.3]})
    run = rx.simulate(system, rx.LieVerlet(), state, h=0.02, steps=200)
    kept = run.invariants()
    assert len(kept) == 7
    R, x = run.g
    turns = np.stack([np.asarray(system.split(xi)[0]) for xi in run.velocity])
    spin = np.einsum("tnij,njk,tnk->ti", R, np.asarray(system.inertia), turns)
    p = run.momentum.reshape(-1, 3, 6)[:, :, 3:]
    total = spin + np.cross(x, p).sum(axis=1)
    for k in range(3):
        np.testing.assert_allclose(kept[f"angular momentum e{k + 1}"], total[:, k], atol=1e-13)
        np.testing.assert_allclose(kept[f"momentum e{k + 1}"], p[:, :, k].sum(axis=1), atol=1e-13)
        for name in (f"angular momentum e{k + 1}", f"momentum e{k + 1}"):
            assert np.ptp(kept[name]) < 2e-13


def test_a_wheel_of_revolution_keeps_its_spin_whichever_body_carries_the_hinge():
    for turned_round in (False, True):
        m = rx.Mechanism()
        frame = m.body("frame", 1.0, J, at=[0, 0, 1])
        wheel = m.body("wheel", 1.0, [0.1, 0.1, 0.15], at=[0, 0, 1])
        pair = (wheel, frame) if turned_round else (frame, wheel)
        m.join(
            rx.Spherical("ground", frame, at=[0, 0, 0]), rx.Revolute(*pair, at=[0, 0, 1], axis=Z)
        )
        assert invariants(m) == {"energy", "angular momentum e3", "spin of wheel e3"}


def test_motors_push_the_coordinates_of_their_joints():
    m = rx.Mechanism(gravity=[0, 0, 0])
    arm = m.body("arm", 2.0, J, at=[0.5, 0, 0])
    sled = m.body("sled", 3.0, J, at=[1, 0, 0])
    m.join(
        rx.Revolute("ground", arm, at=[0, 0, 0], axis=Z, name="hinge"),
        rx.Prismatic(arm, sled, axis=[1, 0, 0], name="slide"),
    )
    m.add(rx.Motor("hinge", bounds=(-1, 2)), rx.Motor("slide"))
    plant = m.plant()
    assert plant.count == 2
    np.testing.assert_array_equal(plant.actuators.lower, [-1, -np.inf])
    state = plant.assemble(joints={"slide": 0.4})
    B = np.asarray(plant.actuators.matrix(state.g))
    rates = plant.system.assemble(joint_rates={"hinge": 1.5, "slide": -0.7}, joints={"slide": 0.4})
    xi = np.asarray(plant.system.velocity_at(rates))
    # Power is torque times rate.
    np.testing.assert_allclose(B.T @ xi, [1.5, -0.7], atol=1e-13)
    u = rx.Signal([0.0, 10.0], [[0.3, 0.0], [0.3, 0.0]])
    run = rx.simulate(plant, rx.LieVerlet(), state, h=0.01, steps=1, control=u)
    # At rest, 0.3 N m turns all of it about the hinge.
    moment = 0.25 + 2 * 0.5**2 + 0.25 + 3 * 1.4**2
    np.testing.assert_allclose(run.joints["hinge"].rate[-1], 0.3 / moment * 0.01, rtol=1e-6)


def test_dampers_account_for_the_energy_that_is_lost():
    m = rx.Mechanism()
    bob = m.body("bob", 2.0, J, at=[0, 0, -0.7])
    m.join(rx.Revolute("ground", bob, at=[0, 0, 0], axis=[0, 1, 0], name="pin"))
    m.add(rx.TorsionDamper("pin", damping=0.8))
    system = m.system()
    state = system.assemble(joints={"pin": 1.0})
    run = rx.simulate(system, rx.LieVerlet(), state, h=0.005, steps=400)
    assert "energy" not in run.invariants()
    balance = run.energy_balance()
    assert balance.change[-1] < -3.0
    assert np.max(np.abs(balance.difference)) < 1e-3
    np.testing.assert_allclose(
        run.observations.power, -0.8 * run.joints["pin"].rate ** 2, atol=1e-12
    )


def test_a_spring_that_is_wound_too_far_stops_the_run():
    m = rx.Mechanism(gravity=[0, 0, 0])
    wheel = m.body("wheel", 1.0, J, at=[0, 0, 0])
    m.join(rx.Revolute("ground", wheel, at=[0, 0, 0], axis=Z, name="pin"))
    m.add(rx.TorsionSpring("pin", stiffness=0.1, name="coil"))
    system = m.system()
    slow = system.assemble(joint_rates={"pin": 1.0})
    run = rx.simulate(system, rx.LieVerlet(), slow, h=0.01, steps=400)
    # phi = (w / omega) sin(omega t)
    omega = np.sqrt(0.1 / 0.25)
    np.testing.assert_allclose(run.joints["pin"].angle, np.sin(omega * run.t) / omega, atol=1e-4)
    with pytest.raises(rx.StepFailed, match=r"wound the spring 'coil'"):
        fast = system.assemble(joint_rates={"pin": 9.0})
        rx.simulate(system, rx.LieVerlet(), fast, h=0.01, steps=400)
    with pytest.raises(rx.BadInput, match=r"wound the spring 'coil'"):
        system.assemble(joints={"pin": 3.0})


def test_gradients_by_masses_are_those_of_differences():
    def rate(mass):
        m = rx.Mechanism()
        bob = m.body("bob", mass, J, at=[0, 0, -0.7])
        m.join(rx.Revolute("ground", bob, at=[0, 0, 0], axis=[0, 1, 0], name="pin"))
        system = m.system()
        R = jnp.array([[0.6, 0, 0.8], [0, 1, 0], [-0.8, 0, 0.6]])
        g = (R[None], jnp.array([[-0.8 * 0.7, 0, -0.6 * 0.7]]))
        state = system.state(g, velocity=jnp.zeros(6))
        run = rx.simulate(system, rx.LieVerlet(), state, h=0.01, steps=10)
        return run.states.momentum[-1][1] / system.inertia[0, 1, 1]

    slope = jax.grad(rate)(2.0)
    difference = (rate(2.0 + 1e-5) - rate(2.0 - 1e-5)) / 2e-5
    np.testing.assert_allclose(slope, difference, rtol=1e-6)


def test_an_ensemble_over_masses_is_the_runs_one_by_one():
    def pendulum(mass):
        m = rx.Mechanism()
        bob = m.body("bob", mass, J, at=[0, 0, -0.7])
        m.join(rx.Revolute("ground", bob, at=[0, 0, 0], axis=[0, 1, 0], name="pin"))
        return m.system()

    masses = [1.0, 2.0, 3.5]
    systems = [pendulum(mass) for mass in masses]
    states = [system.assemble(joints={"pin": 0.9}) for system in systems]
    many = jax.tree.map(lambda *x: jnp.stack(x), *systems)
    starts = jax.tree.map(lambda *x: jnp.stack(x), *states)
    runs = rx.ensemble(many, rx.LieVerlet(), starts, h=0.01, steps=20)
    for k, (system, state) in enumerate(zip(systems, states, strict=True)):
        alone = rx.simulate(system, rx.LieVerlet(), state, h=0.01, steps=20)
        found = runs["momentum"].isel(member=k).values[-1]
        np.testing.assert_allclose(found, alone.momentum[-1], rtol=1e-12, atol=1e-13)


def test_a_fit_finds_mass_and_damping_from_the_angle_of_a_joint():
    def pendulum(p):
        m = rx.Mechanism()
        bob = m.body("bob", p["mass"], J, at=[0, 0, -0.7])
        m.join(rx.Revolute("ground", bob, at=[0, 0, 0], axis=[0, 1, 0], name="pin"))
        m.add(rx.TorsionDamper("pin", damping=p["damping"]))
        return m.system()

    truth = pendulum({"mass": 2.0, "damping": 0.8})
    start = truth.assemble(joints={"pin": 1.0})
    run = rx.simulate(truth, rx.LieVerlet(), start, h=0.01, steps=60)
    noise = 5e-3 * np.random.default_rng(0).normal(size=61)
    seen = run.observables()["angle of pin"] + noise
    found = rx.fit(
        pendulum,
        rx.Measurements(run.t, seen, of="angle of pin", noise=5e-3),
        start={"mass": 2.4, "damping": 0.6},
        state=lambda system: system.state(start.g, velocity=np.zeros(6)),
        free_state=False,
        integrator=rx.LieVerlet(),
        h=0.01,
    )
    for name, value in (("mass", 2.0), ("damping", 0.8)):
        assert abs(found.p[name] - value) < 4 * found.standard_errors[name] < 0.3 * value


def test_parts_that_belong_elsewhere_are_named_with_the_method_that_takes_them():
    m = rx.Mechanism(gravity=[0.0, 0.0])
    a = m.body("a", 1.0, 0.1, at=[0, 0])
    spring = rx.Spring("ground", a, at=[[1, 0], [0, 0]], stiffness=1.0)
    hinge, blade = rx.Revolute("ground", a, at=[0, 0]), rx.KnifeEdge(a, at=[0, 0], direction=[1, 0])
    for method, part, told in (
        (m.join, spring, r"a Spring is not a joint .*mechanism\.add\("),
        (m.add, hinge, r"a Revolute is not a spring.*mechanism\.join\("),
        (m.roll, hinge, r"a Revolute is not a RollingWheel.*mechanism\.join\("),
        (m.join, blade, r"a KnifeEdge is not a joint .*mechanism\.roll\("),
        (m.join, 3, r"3 is not a joint such as rx\.Revolute\."),
    ):
        with pytest.raises(rx.BadInput, match=told):
            method(part)
    m.roll(blade)  # in the plane it needs neither gravity nor plane=
    system = m.system()
    state = system.assemble()
    assert system.freedoms(state) == 2
    with pytest.raises(rx.BadInput, match=r"mechanism\.plant\(\).*rx\.Motor"):
        control = rx.Signal([0.0, 1.0], [[5.0], [5.0]])
        rx.simulate(system, rx.LieVerlet(), state, h=0.01, steps=1, control=control)


def test_numbers_of_teeth_that_rounding_cannot_tell_apart_are_rejected():
    rx.Gear("a", "b", teeth=(100_000, -1))
    with pytest.raises(rx.BadInput, match=r"more than 100,000 on a wheel"):
        rx.Gear("a", "b", teeth=(10**9, 1))


@pytest.mark.parametrize("tilt", [2.0, np.pi / 2, -1.6])
def test_a_bicycle_is_steered_about_an_axis_that_meets_the_ground(tilt):
    with pytest.raises(rx.BadInput, match=r"tilt = .* right angle"):
        rx.systems.bicycle(tilt=tilt)


def test_a_name_made_for_a_joint_is_one_that_no_other_has():
    mechanism = rx.Mechanism()
    for k, name in enumerate((None, "joint 3", None)):
        mechanism.body(f"b{k}", 1.0, [1.0] * 3, at=Z)
        mechanism.join(rx.Spherical("ground", f"b{k}", at=Z, name=name))
    assert mechanism.system().constraint.names == ("joint 1", "joint 3", "joint 4")
