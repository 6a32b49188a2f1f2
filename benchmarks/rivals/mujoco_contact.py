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

    A damped spring that may only push, as long as 50 steps: MuJoCo has no coefficient for it.
    """
    stiffness = (math.pi / (50 * h)) ** 2
    low, high = 0.0, 0.99
    for _ in range(60):
        ratio = (low + high) / 2
        low, high = (ratio, high) if _given_back(ratio) > restitution else (low, ratio)
    damping = 0.0 if restitution == 1 else 2 * low * math.sqrt(stiffness)
    return f'solref="{-stiffness!r} {-damping!r}" solimp="0.9999 0.9999 0.001"'


def _given_back(ratio: float) -> float:
    """Return the part of its speed with which a mass leaves a damped spring that cannot pull."""
    wave = math.sqrt(1 - ratio**2)
    end = math.atan2(2 * ratio * wave, 2 * ratio**2 - 1) / wave  # where the force is zero
    return math.exp(-ratio * end)


def _free(place: np.ndarray, geom: str) -> str:
    at = " ".join(map(repr, map(float, place)))
    return f'<body pos="{at}"><freejoint/>{geom}</body>'
