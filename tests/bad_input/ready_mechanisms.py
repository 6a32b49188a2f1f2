"""Ready mechanisms, and modes about steady motions."""

import math

import numpy as np

import retrax as rx

from .entries import entry, simple

KIND = "ready mechanisms"

simple(KIND, "systems.andrews_squeezer")
simple(KIND, "systems.bicycle", wheelbase=1.0, trail=0.1, tilt=math.pi / 9, gravity=9.81)
simple(KIND, "systems.bricard", width=0.1, gravity=9.81)
simple(KIND, "systems.double_pendulum", lengths=[1.0, 0.7], masses=[1.0, 0.4], gravity=9.81)
simple(KIND, "systems.driven_arm", gravity=9.81)
simple(KIND, "systems.four_bar", N=2, gravity=9.81)
simple(KIND, "systems.robot_arm", gravity=9.81)
simple(KIND, "systems.strandbeest_leg", density=1.0, gravity=9.81)
simple(
    KIND,
    "systems.chain",
    n=2,
    length=1.0,
    mass=1.0,
    width=0.02,
    anchored=True,
    gravity=9.81,
)


@entry("analysis.modes", kind=KIND, cheap=False, weight=0.4)
def _modes():
    top = rx.systems.HeavyTop([1.0, 1.0, 0.6], 1.0, [0.0, 0.0, 0.5])
    state = top.state(np.eye(3), velocity=[0.0, 0.0, 12.0])
    return {"system": top, "state": state, "drop_symmetries": False}
