"""`run.joints`: angles over turns, positions, rates, and what joints transmit, in closed form."""

import pickle

import numpy as np
import pytest

import retrax as rx

G = 9.81


def pendulum(mass=2.0, length=0.7, moment=0.2):
    m = rx.Mechanism()
    bob = m.body("bob", mass, [0.1, moment, 0.25], at=[0.0, 0.0, -length])
    m.join(rx.Revolute("ground", bob, at=[0.0, 0.0, 0.0], axis=[0.0, 1.0, 0.0], name="pin"))
    return m.system()


@pytest.fixture(scope="module")
def whirling():
    """A pendulum that goes round and round."""
    system = pendulum()
    state = system.assemble(joints={"pin": 0.5}, joint_rates={"pin": 9.0})
    return rx.simulate(system, rx.Composition(rx.LieVerlet(), 4), state, h=0.01, steps=200)


def test_the_force_in_a_swinging_pendulum_is_that_of_its_closed_form(whirling):
    pin = whirling.joints["pin"]
    angle, rate = pin.angle, pin.rate
    mass, length = 2.0, 0.7
    bend = -mass * G * length * np.sin(angle) / (0.2 + mass * length**2)
    out = np.stack([-np.sin(angle), 0 * angle, -np.cos(angle)], axis=1)
    along = np.stack([-np.cos(angle), 0 * angle, np.sin(angle)], axis=1)
    expected = mass * length * (bend[:, None] * along - rate[:, None] ** 2 * out)
    expected[:, 2] += mass * G
    np.testing.assert_allclose(pin.force, expected, atol=1e-11)
    np.testing.assert_allclose(pin.torque, 0, atol=1e-12)


def test_an_angle_goes_on_beyond_half_a_turn(whirling):
    angle, rate = whirling.joints["pin"].angle, whirling.joints["pin"].rate
    assert angle[-1] > 4 * np.pi
    # The integral of the rate, by Simpson's rule on every other interval.
    t = whirling.t
    integral = np.sum((rate[:-2:2] + 4 * rate[1:-1:2] + rate[2::2]) * (t[2] - t[0]) / 6)
    np.testing.assert_allclose(angle[-1] - angle[0], integral, atol=1e-5)
    wrapped = whirling.observables()["angle of pin"]
    assert np.max(np.abs(wrapped)) <= np.pi
    np.testing.assert_allclose(np.exp(1j * angle), np.exp(1j * wrapped), atol=1e-12)
    some = rx.simulate(
        whirling.system, whirling.integrator, whirling.at(0.0), h=0.01, steps=200, save_every=10
    )
    np.testing.assert_array_equal(some.joints["pin"].angle, angle[::10])


def test_states_too_far_apart_to_tell_turns_are_a_sentence(whirling):
    angle = whirling.joints["pin"].angle
    refused = 0
    for every in (10, 20, 40, 50, 100, 200):
        some = rx.simulate(
            whirling.system,
            whirling.integrator,
            whirling.at(0.0),
            h=0.01,
            steps=200,
            save_every=every,
        )
        try:
            np.testing.assert_array_equal(some.joints["pin"].angle, angle[::every])
        except rx.BadInput as error:
            assert "too far apart to tell how often 'pin' went round" in str(error)
            refused += 1
        assert len(some.joints["pin"].rate) == 200 // every + 1
    assert refused >= 2


def test_forces_in_a_hanging_chain_are_the_weights_below():
    m = rx.Mechanism()
    above, masses = "ground", [1.0, 2.5, 0.7]
    for k, mass in enumerate(masses):
        link = m.body(f"link {k}", mass, [0.1, 0.2, 0.25], at=[0.0, 0.0, -k - 0.5])
        m.join(rx.Spherical(above, link, at=[0.0, 0.0, -float(k)], name=f"ring {k}"))
        above = link
    system = m.system()
    run = rx.simulate(system, rx.LieVerlet(), system.assemble(), h=0.01, steps=3)
    for k in range(3):
        force = run.joints[f"ring {k}"].force
        np.testing.assert_allclose(force, [[0, 0, G * sum(masses[k:])]] * 4, atol=1e-11)
    assert list(run.joints) == ["ring 0", "ring 1", "ring 2"]
    assert len(run.joints) == 3
    with pytest.raises(rx.BadInput, match="has no angle"):
        _ = run.joints["ring 0"].angle
    with pytest.raises(rx.BadInput, match="no joint or wheel 'ring'"):
        _ = run.joints["ring"]


def test_a_weld_carries_the_torque_of_a_cantilever():
    m = rx.Mechanism()
    beam = m.body("beam", 3.0, [0.1, 0.2, 0.25], at=[2.0, 0.0, 0.0])
    m.join(rx.Fixed("ground", beam, at=[0.5, 0.0, 0.0], name="wall"))
    system = m.system()
    run = rx.simulate(system, rx.LieVerlet(), system.assemble(), h=0.01, steps=2)
    wall = run.joints["wall"]
    np.testing.assert_allclose(wall.force, [[0, 0, 3 * G]] * 3, atol=1e-11)
    np.testing.assert_allclose(wall.torque, [[0, -1.5 * 3 * G, 0]] * 3, atol=1e-11)


def test_in_the_plane_a_torque_is_one_number():
    m = rx.Mechanism(gravity=[0.0, -G])
    beam = m.body("beam", 3.0, 0.2, at=[2.0, 0.0])
    m.join(rx.Fixed("ground", beam, at=[0.5, 0.0], name="wall"))
    system = m.system()
    run = rx.simulate(system, rx.LieVerlet(), system.assemble(), h=0.01, steps=2)
    np.testing.assert_allclose(run.joints["wall"].force, [[0, 3 * G]] * 3, atol=1e-11)
    np.testing.assert_allclose(run.joints["wall"].torque, [1.5 * 3 * G] * 3, atol=1e-11)


def test_a_screw_tells_its_turns_by_its_travel():
    m = rx.Mechanism()
    nut = m.body("nut", 1.0, [0.01, 0.01, 0.01], at=[0.0, 0.0, 0.0])
    m.join(rx.Screw("ground", nut, at=[0, 0, 0], axis=[0, 0, 1], pitch=0.3, name="thread"))
    system = m.system()
    state = system.assemble(joints={"thread": 30.0}, joint_rates={"thread": 0.0})
    # Exp takes a constant force about a constant axis exactly.
    exact = rx.LieVerlet(rx.Exp())
    run = rx.simulate(system, exact, state, h=0.01, steps=200, save_every=100)
    thread = run.joints["thread"]
    lead = 0.3 / (2 * np.pi)
    bend = -G * lead / (0.01 + lead**2)
    np.testing.assert_allclose(thread.angle, 30.0 + bend * run.t**2 / 2, rtol=1e-9)
    np.testing.assert_allclose(thread.position, lead * thread.angle, atol=1e-12)
    np.testing.assert_allclose(thread.rate, bend * run.t, rtol=1e-9, atol=1e-12)


def test_a_system_without_joints_says_so():
    body = rx.systems.FreeRigidBody([1.0, 2.0, 3.0])
    run = rx.simulate(
        body, rx.LieVerlet(), body.state(np.eye(3), velocity=[0, 0, 1]), h=0.1, steps=2
    )
    with pytest.raises(rx.BadInput, match="not a mechanism"):
        _ = run.joints


def test_a_run_of_a_mechanism_survives_files_and_pickles(whirling, tmp_path):
    pin = whirling.joints["pin"]
    loaded = rx.load(whirling.save(tmp_path / "run.nc"))
    again = pickle.loads(pickle.dumps(whirling))
    for run in (loaded, again):
        assert run.system.names == ("bob",)
        np.testing.assert_array_equal(run.joints["pin"].angle, pin.angle)
        np.testing.assert_array_equal(run.joints["pin"].force, pin.force)
    data = whirling.dataset()
    assert data["angle_of_pin"].attrs["units"] == "rad"
    assert data["rate_of_angle_of_pin"].attrs["units"] == "rad/s"
    on = rx.simulate(loaded.system, loaded.integrator, loaded.final, h=0.01, steps=5)
    there = rx.simulate(whirling.system, whirling.integrator, whirling.final, h=0.01, steps=5)
    np.testing.assert_array_equal(on.momentum, there.momentum)


def test_a_checkpoint_of_a_mechanism_is_resumed_bit_for_bit(tmp_path):
    m = rx.Mechanism()
    wheel = m.body("wheel", 1.0, [0.02, 0.04, 0.02], at=[0.0, 0.0, 0.3])
    m.roll(rx.RollingWheel(wheel, radius=0.3, axis=[0, 1, 0], name="rim"))
    m.add(rx.Spring("ground", wheel, at=[[0, 0, 1.0], [0, 0, 0.3]], stiffness=3.0))
    system = m.system()
    state = system.assemble(velocities={"wheel": [0, 5, 0.5, 1.5, 0, 0]})
    whole = rx.simulate(system, rx.LieVerlet(), state, h=0.01, steps=40)
    path = tmp_path / "run.zarr"
    rx.simulate(system, rx.LieVerlet(), state, h=0.01, steps=20, checkpoint=path)
    rest = rx.resume(path, steps=40)
    np.testing.assert_array_equal(rest.momentum[-1], whole.momentum[-1])
    np.testing.assert_array_equal(rest.joints["rim"].force[-1], whole.joints["rim"].force[-1])


def test_a_mesh_tells_what_it_does_to_the_second_body_of_its_second_joint():
    m = rx.Mechanism(gravity=[0.0, 0.0, -9.81])
    pinion = m.body("pinion", 1.0, [0.1, 0.12, 0.15], at=[0, 0, 0])
    wheel = m.body("wheel", 1.0, [0.3, 0.32, 0.35], at=[0, -0.6, 0])
    bar = m.body("bar", 2.0, [0.3, 0.31, 0.35], at=[0, 0.2, 0])
    m.join(
        rx.Revolute("ground", pinion, at=[0, 0, 0], axis=[1, 0, 0], name="hinge"),
        rx.Revolute("ground", wheel, at=[0, -0.6, 0], axis=[1, 0, 0], name="axle"),
        rx.Prismatic("ground", bar, axis=[0, 0, 1], name="slide"),
        rx.Rack("hinge", "slide", radius=0.2, name="rack"),
        rx.Gear("hinge", "axle", teeth=(10, 20), name="mesh"),
    )
    system = m.system()
    run = rx.simulate(system, rx.LieVerlet(), system.assemble(), h=0.01, steps=3)
    # Reduced to the travel of the bar: the pinion turns by x/r, the wheel by -x/(2 r).
    r = 0.2
    a = -2.0 * 9.81 / (2.0 + 0.1 / r**2 + 0.3 / (4 * r**2))
    found = run.joints
    np.testing.assert_allclose(found["rack"].force[-1], [0, 0, 2 * (a + 9.81)], atol=1e-12)
    np.testing.assert_allclose(found["rack"].torque[-1], 0, atol=1e-12)
    np.testing.assert_allclose(found["mesh"].force[-1], 0, atol=1e-12)
    np.testing.assert_allclose(found["mesh"].torque[-1], [-0.3 * a / (2 * r), 0, 0], atol=1e-12)
    np.testing.assert_allclose(found["hinge"].force[-1], [0, 0, 9.81], atol=1e-12)
