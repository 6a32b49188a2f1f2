"""Strings: the pendulum, and two in contact."""

from functools import lru_cache

import numpy as np

import retrax as rx

from .entries import entry, simple

KIND = "rods and strings"
ARM = [0.01, -0.02, 0.03]
BODY = rx.solids.elliptic_cylinder(0.1, (0.06, 0.04), 0.1, ARM)


@lru_cache
def contact() -> rx.systems.StringsInContact:
    return rx.systems.StringsInContact(n=32)


def still(x: np.ndarray) -> np.ndarray:
    return 0.0 * x


@entry("systems.StringPendulum", kind=KIND, weight=0.5)
def _pendulum():
    return {
        "length": 1.0, "density": 0.025, "stiffness": 40.0, "elements": 3, "mass": 0.1, "arm": ARM,
        "inertia": BODY, "gravity": 9.81, "law": "two-sided",
        "damping": rx.systems.StringDamping(0.1), "nodes": [3], "force": None,
    }  # fmt: skip


simple(KIND, "systems.StringDamping", drag=0.1, viscosity=0.2)
simple(KIND, "systems.StringsInContact", F=1.0, G=0.8, n=32, c=1.0, length=6.28, ends="fixed",
       degree=5, width=1)  # fmt: skip
entry("systems.StringPendulum.paper", kind=KIND, cheap=False, weight=0.1)(
    lambda: {"reading": "A", "elements": 4, "law": "two-sided"}
)
entry("systems.StringsInContact.paper", kind=KIND, cheap=False, weight=0.02)(dict)


@entry(
    "systems.characteristic_path", kind="helpers", weight=0.5,
    refusals=(rx.BadInput, rx.ContactLost),
)  # fmt: skip
def _characteristic():
    return {
        "system": contact(), "s": (3.0, 3.1), "u_t": still, "u_x": still, "v_t": still,
        "v_x": still, "h": 0.1, "steps": 3,
    }  # fmt: skip


for name in ("systems.exact_force", "systems.exact_path"):
    entry(name, kind="helpers", weight=0.5)(
        lambda: {"system": contact(), "s0": 3.0, "t": [0.0, 0.1, 0.2], "amplitude": 1.0}
    )


@entry("systems.first_echo", kind="helpers", weight=0.5)
def _echo():
    return {"system": contact(), "s": (3.0, 3.1), "amplitude": 1.0}
