"""Plants, laws, events and problems of optimal control."""

from functools import lru_cache
from typing import Any

import jax.numpy as jnp
import numpy as np

import retrax as rx

from .entries import entry, public, simple
from .files import PATHS, folder
from .runs import MAY_FAIL

KIND = "control"
J = [5.0, 7.0, 9.0]


@lru_cache
def plant() -> Any:
    return rx.Actuated(rx.systems.FreeRigidBody(J), inputs=np.eye(3))


@lru_cache
def rest() -> rx.State:
    return plant().state(np.eye(3), velocity=np.zeros(3))


simple(
    KIND, "Actuated", system=rx.systems.FreeRigidBody(J), inputs=np.eye(3),
    bounds=(-np.ones(3), np.ones(3)),
)  # fmt: skip
simple(KIND, "Feedback", law=lambda g, xi, t: -xi)
simple(KIND, "Sampled", law=lambda g, xi, t: -xi, period=0.1, delay=0.05)
simple(KIND, "Signal", t=[0.0, 1.0, 2.0], u=np.ones((3, 2)), hold="linear")
simple(KIND, "Event", function=lambda g, xi, t: xi[0], direction="rising")
simple(KIND, "Stop", function=lambda g, xi, t: xi[0], direction="falling")
entry("Holonomic", kind="constraints", sound=lambda made: callable(made.phi))(
    lambda: {"phi": lambda g: g[0, :1]}
)
simple(KIND, "MinimumEffort", weights=[1.0, 2.0, 3.0])
simple(KIND, "MinimumTime")
simple(KIND, "Free", guess=1.0, lower=0.5, upper=2.0)
simple(KIND, "Reach", pose=np.eye(3), velocity=np.zeros(3))


@entry("Stepper", kind=KIND, weight=0.5, refusals=MAY_FAIL)
def _stepper():
    return {"plant": plant(), "integrator": "lie-verlet", "state": rest(), "h": 0.1, "keep": True}


def problem_parts() -> dict[str, Any]:
    return {
        "plant": plant(), "integrator": "lie-verlet", "start": rest(),
        "end": rx.Reach(rx.SO3().exp(jnp.array([0.3, 0.0, 0.0])), velocity=np.zeros(3)),
        "duration": 1.0, "steps": 4, "cost": rx.MinimumEffort(), "bounds": (-9.0, 9.0),
    }  # fmt: skip


@entry("ControlProblem", kind=KIND, weight=0.5)
def _problem():
    return problem_parts()


@entry(
    "optimise", kind=KIND, cheap=False, pairs=False, weight=0.1,
    refusals=(*MAY_FAIL, rx.NoPlan),
)  # fmt: skip
def _optimise():
    return {"problem": rx.ControlProblem(**problem_parts()), "tries": 1, "iterations": 50}


@entry("lqr", kind=KIND, cheap=False, pairs=False, weight=0.1, refusals=(*MAY_FAIL, rx.NoPlan))
def _lqr():
    return {
        "plant": plant(), "integrator": "lie-verlet", "state": rest(), "h": 0.1, "Q": np.eye(6),
        "R": np.eye(3),
    }  # fmt: skip


@entry("load_plan", kind="files", values={"path": PATHS}, cheap=False, weight=0.1)
def _plan():
    path = folder() / "plan.nc"
    rx.optimise(rx.ControlProblem(**problem_parts())).save(path)
    return {"path": path}


@entry("export", kind="files", values={"path": PATHS}, cheap=False, pairs=False, weight=0.1)
def _export():
    return {
        "system": rx.systems.FreeRigidBody(J), "integrator": rx.LieVerlet(),
        "path": folder() / "step.c", "h": 0.1, "precision": "double",
    }  # fmt: skip


@entry("cite", lambda used: rx.cite(used), kind="helpers", weight=0.3)
def _cite():
    return {"used": rx.LieVerlet()}


AXES = np.eye(3)
simple("plants", "systems.Wheels", axes=AXES, spin=0.1, torque=0.2)
simple(
    "plants", "systems.Thrusters", positions=[[1.0, 0.0, 0.0]], directions=[[0.0, 1.0, 0.0]],
    thrust=1.0,
)  # fmt: skip
simple("plants", "systems.WheeledBody", inertia=J, axes=AXES, spin=0.1, physical=True)
simple("plants", "systems.FlyingBody", inertia=J, mass=1.0, gravity=9.81)
simple("plants", "systems.OrbitingBody", body=rx.systems.FreeRigidBody(J), rate=0.001)
READY: dict[str, dict[str, Any]] = {
    "spacecraft": {"inertia": J, "torque": 1.0},
    "quadrotor": {"inertia": J, "mass": 1.0, "arm": 0.2, "drag": 0.01},
    "steered_sleigh": {"mass": 1.0, "inertia": 0.5, "arm": 0.2},
    "upright_pendulum": {"inertia": J, "mass": 1.0, "arm": [0.0, 0.0, 0.5]},
}


def _system_of(name: str) -> Any:
    """What moves in a ready plant: its inputs may have no bounds, which are infinite then."""
    return lambda **given: public(name)(**given).system


for name, right in READY.items():
    entry(f"systems.{name}", _system_of(f"systems.{name}"), kind="plants")(lambda r=right: dict(r))
simple("plants", "systems.PointTo", target=np.eye(3), stiffness=1.0, damping=2.0)
simple("plants", "systems.TrolleyTo", place=[1.5, 0.4], stiffness=1.2, damping=1.3)
simple(
    "plants", "systems.HoverAt", inertia=[8e-3, 8e-3, 14e-3], mass=0.8, place=[2.0, 1.0, 1.5],
    mixing=[[1.0, 1.0, 1.0, 1.0], [0.2, -0.2, 0.2, -0.2], [0.2, 0.2, -0.2, -0.2], [1, -1, -1, 1]],
)  # fmt: skip


def _string() -> Any:
    return rx.systems.StringPendulum.paper(elements=2)[0]


@entry("systems.Crane", kind="plants", weight=0.3)
def _crane():
    return {"string": _string(), "trolley": 0.3}


@entry("systems.crane", _system_of("systems.crane"), kind="plants", weight=0.3)
def _ready_crane():
    return {"string": _string(), "trolley": 0.3, "force": 2.0}


@entry("systems.JointsTo", kind="plants", cheap=False, weight=0.1)
def _joints():
    arm = rx.Mechanism()
    upper = arm.body("upper", mass=1.0, inertia=[0.1, 0.1, 0.1], at=[0.0, 0.0, 0.5])
    arm.join(rx.Revolute("ground", upper, at=[0.0, 0.0, 0.0], axis=[0.0, 1.0, 0.0], name="hinge"))
    arm.add(rx.Motor("hinge"))
    return {
        "plant": arm.plant(), "start": [0.0], "end": [1.0], "time": 1.0, "stiffness": 5.0,
        "damping": 1.0,
    }  # fmt: skip
