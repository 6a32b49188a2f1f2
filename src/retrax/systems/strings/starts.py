"""Where a string pendulum can start: the example of the paper, and the equilibrium."""

from typing import TYPE_CHECKING

import numpy as np

from retrax.errors import BadInput
from retrax.mechanics.remembered import Drawing
from retrax.mechanics.solids import about_centre, elliptic_cylinder
from retrax.mechanics.state import State

if TYPE_CHECKING:
    from retrax.systems.strings.string_pendulum import StringPendulum

# The paper prints lengths, masses and stiffness, but neither gravity nor the inertia nor the
# initial attitude. Assumed are g = 9.81, R = 1 without rotation, and the inertia of a homogeneous
# cylinder with its axis along body e3 and its long semi-axis along e1: only then does the point of
# attachment lie on the body, on the rim of its end face.
_MASS, _ARM = 0.1, (0.04, 0.01, 0.05)
PAPER = {
    "length": 1.0,
    "density": 0.025,
    "stiffness": 40.0,
    "mass": _MASS,
    "arm": _ARM,
    "inertia": elliptic_cylinder(_MASS, (0.06, 0.04), 0.1, _ARM),
    "gravity": 9.81,
}
VELOCITY = (0.0, 0.2, -0.5)


def paper_state(system: "StringPendulum", reading: str = "A") -> State:
    """Return a horizontal, unstretched string whose body moves, in one of three readings.

    A: all nodes but the last are at rest. B: the velocity grows linearly along the string. C: the
    string has no momentum, and the body has the momentum of a free body.
    """
    n = system.elements
    s = np.arange(1, n + 1)[:, None] / n
    r = s * np.array([[float(system.length), 0.0, 0.0]])
    g = (r, np.eye(3))
    last, v = np.where(s == 1, 1.0, 0.0), np.array([VELOCITY])
    if reading == "A":
        return system.state(g, velocity=np.concatenate([(last * v).ravel(), np.zeros(3)]))
    if reading == "B":
        return system.state(g, velocity=np.concatenate([(s * v).ravel(), np.zeros(3)]))
    if reading == "C":
        p = float(system.mass[0]) * last * v
        pi = np.cross(np.asarray(system.arm[0]), p[-1])
        return system.state(g, momentum=np.concatenate([p.ravel(), pi]))
    raise BadInput(f"reading = {reading!r} is not known: choose 'A', 'B' or 'C'.")


def hanging(system: "StringPendulum") -> State:
    r"""Return the equilibrium: bodies below their nodes, elements stretched by what they carry.

    $|x_a| = u + \frac1\kappa\sum_{b\ge a}w_bg$ with the weights $w$ of the nodes.
    """
    carried = np.cumsum(np.asarray(system.mass_matrix.masses.weights)[::-1])[::-1] * float(
        system.gravity
    )
    u = float(system.length) / system.elements
    z = np.cumsum(u + carried * u / float(system.stiffness))
    r = np.stack([0 * z, 0 * z, z], axis=1)
    attitudes = [_turn_down(arm) for arm in np.asarray(system.arm)]
    return system.state((r, *attitudes), velocity=np.zeros(system.group.dim))


def drawing(system: "StringPendulum") -> Drawing:
    """Return what a picture needs: nodes that carry bodies, and masses, arms and inertias."""
    bodies = {"masses": system.mass, "arms": system.arm, "inertia": np.stack(_central(system))}
    told = {name: np.asarray(values).tolist() for name, values in bodies.items()}
    return {"string": list(system.nodes), **told}


def _central(system: "StringPendulum") -> list[np.ndarray]:
    """Return the inertias about the centres of mass."""
    return [
        about_centre(np.asarray(J), float(m), np.asarray(arm))
        for m, arm, J in zip(system.mass, system.arm, system.inertia, strict=True)
    ]


def _turn_down(arm: np.ndarray) -> np.ndarray:
    """Return a rotation that takes `arm` to the vertical: half a turn about their bisector."""
    length = np.linalg.norm(arm)
    if length == 0:
        return np.eye(3)
    between = arm / length + np.array([0.0, 0.0, 1.0])
    if between @ between < 1e-24:
        return np.diag([1.0, -1.0, -1.0])
    return 2 * np.outer(between, between) / (between @ between) - np.eye(3)
