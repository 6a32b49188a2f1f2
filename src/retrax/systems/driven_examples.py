"""Driven cases of `retrax run`: ready plants, each with a controller, a start and a step."""

import math
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from retrax.groups.base import Coordinates
from retrax.groups.se2 import SE2, Motion
from retrax.groups.so3 import SO3
from retrax.mechanics.actuated import Actuated
from retrax.mechanics.controls import AbstractControl, Feedback
from retrax.mechanics.signal import Signal
from retrax.mechanics.state import State
from retrax.numerics.evaluate import evaluate, evaluate_in_jax
from retrax.numerics.frozen import Frozen
from retrax.systems.laws import HoverAt, PointTo, TrolleyTo
from retrax.systems.plants import (
    Wheels,
    crane,
    quadrotor,
    spacecraft,
    steered_sleigh,
    upright_pendulum,
)
from retrax.systems.strings.string_pendulum import StringPendulum


class DrivenExample(NamedTuple):
    """A plant with what drives it, where it starts, and how long it runs."""

    plant: Actuated
    control: AbstractControl
    state: State
    h: float
    steps: int


# Four wheels about the edges of a pyramid: any three of them can turn the craft every way.
PYRAMID = [[1.0, 1.0, 1.0], [-1.0, 1.0, 1.0], [-1.0, -1.0, 1.0], [1.0, -1.0, 1.0]]


def wheeled_spacecraft() -> Actuated:
    """Return a small satellite of about 100 kg with a pyramid of four wheels."""
    return spacecraft([5.0, 7.0, 9.0], wheels=Wheels(PYRAMID, spin=0.005, torque=0.2))


def turn_by_wheels() -> DrivenExample:
    """Return a slew by 150 degrees with reaction wheels, under a law on the group."""
    plant = wheeled_spacecraft()
    target = evaluate_in_jax(SO3.exp, SO3(), np.deg2rad(150.0) * np.array([0.6, -0.48, 0.64]))
    law = PointTo(target, stiffness=0.06, damping=0.9, axes=plant.axes)
    start = plant.state((np.eye(3), np.zeros(4)), velocity=np.zeros(7))
    return DrivenExample(plant, Feedback(law), start, 0.05, 4_000)


def small_quadrotor() -> Actuated:
    """Return a quadrotor of 0.8 kg whose rotors can lift twice its weight."""
    return quadrotor([8e-3, 8e-3, 14e-3], 0.8, arm=0.2, drag=0.016, thrust=4.0, layout="x")


def fly_to() -> DrivenExample:
    """Return a quadrotor, thrown with a tilt, that flies to a place and holds it."""
    plant = small_quadrotor()
    mixing = evaluate(lambda plant: plant.actuators.matrix(plant.group.identity()), plant)
    mixing = mixing[[0, 1, 2, 5]]
    law = HoverAt(mixing, [8e-3, 8e-3, 14e-3], 0.8, place=[2.0, 1.0, 1.5])
    tilted = evaluate_in_jax(SO3.exp, SO3(), np.array([0.7, -0.4, 0.9]))
    start = plant.state((tilted, np.zeros(3)), velocity=[0.4, -0.8, 0.5, 0.6, 0.0, 0.3])
    return DrivenExample(plant, Feedback(law), start, 0.005, 2_000)


def paper_crane(elements: int = 4) -> Actuated:
    """Return the string pendulum of the paper on a trolley of 0.5 kg."""
    return crane(StringPendulum.paper(elements=elements)[0], trolley=0.5)


def move_load() -> DrivenExample:
    """Return a crane that brings its load over by 1.5 m, and takes the swing out."""
    plant = paper_crane()
    law = TrolleyTo([1.5, 0.4], stiffness=1.2, damping=1.3)
    return DrivenExample(plant, Feedback(law), plant.hanging(), 2e-3, 8_000)


def balanced_pendulum() -> Actuated:
    """Return a 3D pendulum with three different moments and torques of up to 20 N m."""
    return upright_pendulum([1.4, 1.6, 0.9], 2.0, [0.05, -0.03, 0.5], torque=20.0)


def hold_upright() -> DrivenExample:
    """Return a 3D pendulum that is caught as it falls, and held upright."""
    plant = balanced_pendulum()
    target = np.asarray(plant.upright().g)
    law = PointTo(target, stiffness=40.0, damping=14.0)
    tilted = target @ np.asarray(evaluate_in_jax(SO3.exp, SO3(), np.array([0.4, -0.3, 0.6])))
    return DrivenExample(
        plant, Feedback(law), plant.state(tilted, velocity=[0.3, -0.2, 0.5]), 0.01, 1_500
    )


def light_sleigh() -> Actuated:
    """Return a sleigh of 2 kg with its centre of mass above the skate."""
    return steered_sleigh(2.0, 0.4, torque=2.0, thrust=2.0)


class Parked(Frozen):
    """The end of a sleigh at rest: its pose, and the two momenta that its skate leaves it."""

    pose: Motion

    def __call__(self, g: Motion, mu: Coordinates) -> Float[Array, "5"]:
        group = SE2()
        return jnp.concatenate([group.log(group.compose(group.inverse(self.pose), g)), mu[:2]])


def steer() -> DrivenExample:
    """Return a sleigh that is steered to and fro: waves of Euler's elastica, then a loop."""
    plant = light_sleigh()
    t = np.arange(0.0, 20.0, 0.01)
    torque = np.where(t < 12.0, 0.35 * np.cos(2 * math.pi * t / 4.0), 0.12)
    push = np.where(t < 2.0, 0.5, 0.0)
    start = plant.state((np.eye(2), np.zeros(2)), velocity=[0.0, 0.5, 0.0])
    return DrivenExample(plant, Signal(t, np.stack([torque, push], axis=1)), start, 0.01, 2_000)
