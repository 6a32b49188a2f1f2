"""Joints, wheels, springs and motors refuse what is no body or joint where they are written."""

import numpy as np
import pytest

import retrax as rx

HERE, UP = [0.0, 0.0, 0.0], [0.0, 0.0, 1.0]
ACROSS = [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]
BETWEEN = {
    "Revolute": {"at": HERE, "axis": UP},
    "Prismatic": {"axis": UP},
    "Spherical": {"at": HERE},
    "Fixed": {},
    "Cylindrical": {"at": HERE, "axis": UP},
    "Universal": {"at": HERE, "axes": ACROSS},
    "Planar": {"at": HERE, "normal": UP},
    "Screw": {"at": HERE, "axis": UP, "pitch": 0.1},
    "Distance": {"at": ACROSS},
    "PointOnLine": {"at": HERE, "axis": UP},
    "PointOnPlane": {"at": HERE, "normal": UP},
    "Spring": {"at": ACROSS, "stiffness": 1.0},
    "Damper": {"at": ACROSS, "damping": 1.0},
}
ON_ONE = {
    "RollingBall": {"radius": 0.1},
    "RollingWheel": {"radius": 0.1},
    "KnifeEdge": {"at": HERE, "direction": [1.0, 0.0, 0.0]},
}
AT_A_JOINT = {
    "Motor": ({}, ["joint"]),
    "TorsionSpring": ({"stiffness": 1.0}, ["joint"]),
    "TorsionDamper": ({"damping": 1.0}, ["joint"]),
    "Gear": ({"teeth": (1, 2)}, ["first", "second"]),
    "Rack": ({"radius": 0.1}, ["pinion", "rack"]),
}
JUNK = [None, 3, "", " ", np.nan, {}, (), object(), lambda: 0, True, np.ones(3)]


@pytest.mark.parametrize("name", BETWEEN)
def test_a_joint_between_what_is_no_body(name):
    make, rest = getattr(rx, name), BETWEEN[name]
    make("ground", "a", **rest)
    for junk in JUNK:
        with pytest.raises(rx.BadInput, match=r"^a = .* is not a body"):
            make(junk, "a", **rest)
        with pytest.raises(rx.BadInput, match=r"^b = .* is not a body"):
            make("ground", junk, **rest)


@pytest.mark.parametrize("name", ON_ONE)
def test_a_wheel_of_what_is_no_body(name):
    make, rest = getattr(rx, name), ON_ONE[name]
    make("a", **rest)
    for junk in JUNK:
        with pytest.raises(rx.BadInput, match=r"^body = .* is not a body"):
            make(junk, **rest)


@pytest.mark.parametrize("name", AT_A_JOINT)
def test_what_acts_at_what_is_no_joint(name):
    rest, places = AT_A_JOINT[name]
    right = dict.fromkeys(places, "j")
    getattr(rx, name)(**right, **rest)
    for place in places:
        for junk in JUNK:
            with pytest.raises(rx.BadInput, match=f"^{place} = .* is not a joint"):
                getattr(rx, name)(**(right | {place: junk}), **rest)


def test_the_cross_of_a_universal_joint_has_two_rows():
    for junk in (None, 3, np.nan, object(), [[1.0, 0.0, 0.0]]):
        with pytest.raises(rx.BadInput, match=r"^axes = .* two arms"):
            rx.Universal("ground", "a", at=HERE, axes=junk)
