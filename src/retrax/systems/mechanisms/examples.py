"""Mechanisms that `retrax run` runs, each with a start, a step and a number of steps."""

from retrax.mechanics.sampled import Sampled
from retrax.mechanisms.body import Body
from retrax.mechanisms.system import MechanismSystem
from retrax.systems.case import Example
from retrax.systems.driven_examples import DrivenExample
from retrax.systems.mechanisms.bicycle import bicycle
from retrax.systems.mechanisms.bricard import bricard
from retrax.systems.mechanisms.chain import double_pendulum
from retrax.systems.mechanisms.following import JointsTo
from retrax.systems.mechanisms.four_bar import four_bar
from retrax.systems.mechanisms.robot_arm import driven_arm
from retrax.systems.mechanisms.strandbeest import strandbeest_leg


def turning_four_bar() -> Example:
    """Return a four-bar linkage that starts upright and turns over, a benchmark of IFToMM."""
    linkage = four_bar()
    return linkage, linkage.assemble(joint_rates={"A0": -1.0}), 0.005, 2_000


def swinging_bricard() -> Example:
    """Return Bricard's linkage, let go."""
    linkage = bricard()
    return linkage, linkage.assemble(), 0.005, 2_000


def pushed_bicycle() -> Example:
    """Return a bicycle without hands at 4.6 m/s, pushed from the side: it rights itself."""
    bike, ahead, tip = bicycle(), 4.6, 0.5
    # All of it tips about the line on the ground through both contacts, at `tip` rad/s.
    heights = {"rear wheel": 0.3, "frame": 0.9, "fork": 0.7, "front wheel": 0.35}
    spins = {"rear wheel": -ahead / 0.3, "front wheel": -ahead / 0.35}
    velocities: dict[Body | str, list[float]] = {
        name: [tip, spins.get(name, 0.0), 0.0, ahead, tip * height, 0.0]
        for name, height in heights.items()
    }
    return bike, bike.assemble(velocities=velocities, project=True), 0.005, 1_000


def swinging_double_pendulum() -> Example:
    """Return a double pendulum let go from high up: it turns over and is chaotic."""
    pendulum = double_pendulum()
    return pendulum, pendulum.assemble(joints={"shoulder": 2.0, "elbow": 0.5}), 0.005, 4_000


def walking_leg() -> Example:
    """Return the leg of a beach animal whose crank was set going: the foot walks on the spot."""
    leg = strandbeest_leg()
    return leg, leg.assemble(joint_rates={"crank": 8.0}), 0.005, 2_000


def reaching_arm() -> DrivenExample:
    """Return an arm with six axes whose digital motors reach for a place and hold it."""
    plant, period = driven_arm(), 0.002
    start, end = [0.0, 0.2, 1.0, 0.0, 0.4, 0.0], [1.2, 0.8, 0.6, -0.5, 0.9, 1.2]
    law = JointsTo(
        plant,
        start,
        end,
        time=1.5,
        stiffness=[400.0, 3000.0, 1500.0, 20.0, 40.0, 1.0],
        damping=[25.0, 150.0, 60.0, 0.5, 1.0, 0.01],
    )
    names = ("base", "shoulder", "elbow", "roll", "pitch", "yaw")
    assert isinstance(plant.system, MechanismSystem)
    state = plant.system.assemble(joints=dict(zip(names, start, strict=True)))
    return DrivenExample(plant, Sampled(law, period), state, period, 1_500)
