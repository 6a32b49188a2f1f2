"""MuJoCo: bodies that touch, all steps in one call.

Its contacts are springs with a time constant of two steps at least, and friction gives way a
little; `STIFF` asks for the least of both that it offers.
"""

import math
from collections.abc import Callable
from typing import NamedTuple

import mujoco
import numpy as np

VERSION = mujoco.__version__


class Settings(NamedTuple):
    """How MuJoCo solves contacts: options of the model, and of every contact."""

    name: str
    options: str
    contact: Callable[[float], str]


def _stiff(h: float) -> str:
    return f'solref="{2 * h!r} 1" solimp="0.9999 0.9999 0.001"'


DEFAULT = Settings("MuJoCo, default", "", lambda h: "")
STIFF = Settings(
    "MuJoCo, stiff, elliptic, no slip",
    'cone="elliptic" impratio="100" noslip_iterations="50" noslip_tolerance="0" '
    'integrator="implicitfast" tolerance="0" iterations="100"',
    _stiff,
)
BOTH = (DEFAULT, STIFF)


class Scene(NamedTuple):
    """A model with its start: where the velocities are set."""

    model: mujoco.MjModel
    velocity: np.ndarray

    def run(self, steps: int) -> mujoco.MjData:
        """Return the data after so many steps from the start."""
        data = self.begun()
        mujoco.mj_step(self.model, data, steps)
        return data

    def begun(self) -> mujoco.MjData:
        """Return the data at the start."""
        data = mujoco.MjData(self.model)
        data.qvel[:] = self.velocity
        return data


def scene(
    bodies: str,
    velocity: np.ndarray,
    h: float,
    settings: Settings,
    *,
    gravity: np.ndarray,
    friction: float,
    contact: str | None = None,
    floor: bool = True,
) -> Scene:
    """Return bodies on a floor, or free; `contact` overrides what the settings say of contacts."""
    how = settings.contact(h) if contact is None else contact
    at = " ".join(map(repr, map(float, gravity)))
    ground = '<geom type="plane" size="100 100 1"/>' if floor else ""
    xml = f"""<mujoco>
      <option timestep="{h!r}" gravity="{at}" {settings.options}/>
      <default><geom condim="3" friction="{friction!r} 0 0" {how}/></default>
      <worldbody>{ground}{bodies}</worldbody></mujoco>"""
    return Scene(mujoco.MjModel.from_xml_string(xml), np.asarray(velocity, float))


def box(mass: float, size: np.ndarray, place: np.ndarray) -> str:
    """Return a free box."""
    half = " ".join(map(repr, map(float, size / 2)))
    return _free(place, f'<geom type="box" size="{half}" mass="{mass!r}"/>')


def ball(mass: float, radius: float, place: np.ndarray) -> str:
    """Return a free ball."""
    return _free(place, f'<geom type="sphere" size="{radius!r}" mass="{mass!r}"/>')


def bouncing(restitution: float, h: float) -> str:
    """Return contacts that give back this part of an approach.

    MuJoCo has no coefficient for it: these are springs that push for 50 steps, damped so that a
    ball without weight leaves the floor as fast as asked for.
    """
    stiffness, low, high = (math.pi / (50 * h)) ** 2, 0.0, 0.99
    contact = _spring(stiffness, 0.0)
    for _ in range(0 if restitution == 1 else 40):
        ratio = (low + high) / 2
        contact = _spring(stiffness, 2 * ratio * math.sqrt(stiffness))
        low, high = (ratio, high) if _given_back(contact, h) > restitution else (low, ratio)
    return contact


def _spring(stiffness: float, damping: float) -> str:
    return f'solref="{-stiffness!r} {-damping!r}" solimp="0.9999 0.9999 0.001"'


def _given_back(contact: str, h: float) -> float:
    """Return the part of its speed with which a ball without weight leaves the floor."""
    start = np.array([0.0, 0.0, 0.1 + h])
    made = scene(
        ball(1.0, 0.1, start),
        np.array([0.0, 0.0, -1.0, 0.0, 0.0, 0.0]),
        h,
        STIFF,
        gravity=np.zeros(3),
        friction=0.0,
        contact=contact,
    )
    return float(made.run(200).qvel[2])


def _free(place: np.ndarray, geom: str) -> str:
    at = " ".join(map(repr, map(float, place)))
    return f'<body pos="{at}"><freejoint/>{geom}</body>'
