"""Rods: one, two in contact, and what is computed from them."""

from functools import lru_cache

import numpy as np
from hypothesis import strategies

import retrax as rx

from .entries import entry, simple

KIND = "rods and strings"
LENGTHS = {
    "stretching": [2.0, 2.0, 5.0], "bending": [0.1, 0.1, 0.08], "mass": 0.5,
    "inertia": [0.01, 0.01, 0.02],
}  # fmt: skip
NO_RODS = strategies.sampled_from([None, 3, "rods", [], {}, [None], [3.0], ["rod"], np.ones(2)])
NO_REST = (rx.BadInput, rx.NoEquilibrium)


@lru_cache
def rod() -> rx.systems.Rod:
    return rx.systems.Rod(3, 1.0, **LENGTHS)


@lru_cache
def pair():
    return rx.systems.crossed_rods()


@entry("systems.Rod", kind=KIND)
def _rod():
    return {
        "elements": 3, "length": 1.0, **LENGTHS, "ends": ("clamped", "free"), "strain": "mid",
        "gravity": [0.0, 0.0, -9.81], "end_force": None, "end_torque": [0.1, 0.0, 0.0],
        "damping": None, "follower_end_force": [0.0, 0.1, 0.0], "dead_end_torque": None,
        "line_force": [0.0, 0.0, 1.0], "line_torque": None, "muscle": [[0.0, 0.1, 0.0]] * 3,
        "rest_curvature": [0.0, 1.0, 0.0], "rest_stretch": None, "drag": 0.1, "spin_drag": None,
    }  # fmt: skip


@entry("systems.Rod.from_material", kind=KIND)
def _material():
    return {
        "elements": 3, "length": 1.0, "young": 2e4, "poisson": 0.3, "density": 1e3, "radius": 0.03,
        "shear_correction": 0.9,
    }  # fmt: skip


@entry("systems.Rods", kind=KIND, values={"rods": NO_RODS})
def _rods():
    return {"rods": [rod(), rod()]}


simple(KIND, "systems.Ellipse", first=0.02, second=0.01)
simple(KIND, "systems.Rectangle", first=0.02, second=0.01)
simple(KIND, "systems.Tube", outer=0.02, inner=0.01)


@entry("systems.RodsInContact", kind=KIND)
def _pair():
    return {
        "first": rod(), "second": rod(), "radius": 0.05, "width": 1 / 3, "friction": 0.5,
        "unilateral": True, "restitution": 0.5,
    }  # fmt: skip


@entry(
    "systems.crossed_rods", kind=KIND, weight=0.02, cheap=False, refusals=(*NO_REST, rx.ContactLost)
)
def _crossed():
    return {
        "elements": 20, "pressed": 0.1, "kick": 1.0, "angle": 70.0, "meet": (0.9, 1.15),
        "width": 0.1, "ends": ("clamped", "clamped"), "friction": None,
        "unilateral": True, "restitution": 0.0,
    }  # fmt: skip


@entry("systems.dispersion", kind="helpers")
def _dispersion():
    return {"rod": rod(), "k": [0.5, 1.0], "stretch": 1.0, "lattice": True}


@entry("systems.printed_dispersion", kind="helpers")
def _printed():
    return {"rod": rod(), "k": [0.5, 1.0]}


@entry("systems.wave_speeds", kind="helpers")
def _speeds():
    return {"rod": rod(), "stretch": 1.0}


@entry("systems.equilibrium", kind="helpers", weight=0.1, cheap=False, refusals=NO_REST)
def _equilibrium():
    held = rx.systems.Rod(3, 1.0, **LENGTHS, ends=("clamped", "clamped"))
    return {"rod": held, "g": held.straight()}


@entry("systems.modes", kind="helpers", cheap=False, weight=0.1)
def _modes():
    held = rx.systems.Rod(3, 1.0, **LENGTHS, ends=("clamped", "clamped"))
    return {"rod": held, "g": held.straight(), "number": 4}


@entry(
    "systems.press", kind="helpers", weight=0.02, cheap=False, refusals=(*NO_REST, rx.ContactLost)
)
def _press():
    system, state = pair()
    return {"pair": system, "g": state.g, "force": 0.1}


@entry("Rod.straight", lambda **given: rod().straight(**given), kind="helpers", weight=0.5)
def _straight():
    return {}


@entry("Rod.velocity_of", lambda **given: rod().velocity_of(**given), kind="helpers", weight=0.5)
def _velocity_of():
    return {"omega": np.ones((4, 3)), "v": np.ones((4, 3))}
