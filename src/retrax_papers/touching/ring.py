r"""A ring that is twisted: planar up to Michell's twist, and beyond it one that touches itself.

A straight rod bent to a ring of radius $R$ and twisted by the angle $\Phi$ in all stays a circle up
to

$$ \Phi_c = 2\pi\sqrt3\,\frac{EI}{GJ}. \tag{1} $$

The ring is a rod with two clamps in one place, one of which turns about the tangent.
"""

import math
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from scipy.linalg import eigvalsh
from scipy.optimize import root_scalar

from retrax.contact.self_contact import SelfContact
from retrax.contact.steps.nonsmooth_rattle import NonsmoothRattle
from retrax.nodal.nodes import Placement
from retrax.numerics.evaluate import Evaluated
from retrax.run.simulate import simulate
from retrax.systems.rods.dispersion import fastest
from retrax.systems.rods.rod import Rod
from retrax.systems.rods.statics import Stiffness, tangent_stiffness
from retrax.trajectory.trajectory import Trajectory

RADIUS = 1.0  # of the ring, in m
TWISTING = 2 / 3  # GJ/EI of a round rod that keeps its volume
CRITICAL = 2 * math.pi * math.sqrt(3) / TWISTING
_THICK, _BUMP = (
    0.04,
    1e-5,
)  # the radius of the rod, and the height of its bump, over that of the ring
_SOFT, _CALM = 3e2, 3.0  # EA and GA in N, and the drag, of the ring that moves
_PART, _SAVED = 0.7, 120  # the step over the longest one, and states that are saved
# Newton's steps to the ring of segments: how many, how long, the last; and a stiffness of nothing.
_NEWTON, _LONGEST, _SETTLED, _ZERO = 30, 0.2, 1e-7, 1e-13
_STIFF = 1e6  # EA and GA over EI/R^2 where the threshold is sought


def circle(elements: int, twist: float) -> tuple[np.ndarray, np.ndarray]:
    """Return frames and places of a ring whose sections turn by `twist` about its tangent.

    The first node is at the origin; the twist is at the first node, so that the last one keeps its
    frame.
    """
    around = 2 * np.pi * np.arange(elements + 1) / elements
    reach = math.pi * RADIUS / elements / math.sin(math.pi / elements)  # of the inscribed polygon
    places = reach * np.stack([np.sin(around), 1 - np.cos(around), 0 * around], axis=1)
    tangent = np.stack([np.cos(around), np.sin(around), 0 * around], axis=1)
    across = np.stack([-np.sin(around), np.cos(around), 0 * around], axis=1)
    up = np.broadcast_to([0.0, 0.0, 1.0], across.shape)
    turn = (twist * (around / (2 * np.pi) - 1))[:, None]
    first = np.cos(turn) * across + np.sin(turn) * up
    return np.stack([first, np.cross(tangent, first), tangent], axis=2), places


def softest(elements: int, twist: float) -> float:
    """Return the sum of the two least eigenvalues of the stiffness of the planar ring.

    One of the two is zero: a ring of a rod that bends alike to all sides turns about its tangent at
    the clamps without resistance. So the sum has the sign of the other one.
    """
    rod = Rod(
        elements,
        2 * math.pi * RADIUS,
        stretching=[_STIFF] * 3,
        bending=[1.0, 1.0, TWISTING],
        mass=1.0,
        inertia=[1.0] * 3,
        ends=("clamped", "clamped"),
    )
    frames, places = circle(elements, twist)
    g: Placement = jnp.asarray(frames), jnp.asarray(places)
    # Rotations count as lengths on the scale of a segment, so that all stiffnesses are alike.
    scale = np.tile([1.0] * 3 + [float(rod.spacing)] * 3, elements - 1)
    for _ in range(_NEWTON):
        loads, matrix = _between_clamps(tangent_stiffness(rod, g), scale)
        little = _ZERO * np.abs(matrix).max() * np.eye(len(matrix))
        step = scale * np.linalg.solve(matrix + little, loads)
        size, held = float(np.max(np.abs(step))), np.zeros(6)
        step = step * min(1.0, _LONGEST / size)
        g = _moved(rod, g, np.concatenate([held, step, held]))
        if size < _SETTLED:
            break
    _, matrix = _between_clamps(tangent_stiffness(rod, g), scale)
    return float(np.sum(eigvalsh((matrix + matrix.T) / 2, subset_by_index=(0, 1))))


@Evaluated
def _moved(rod: Rod, g: Placement, step: Float[Array, " dim"]) -> Placement:
    return rod.group.compose(g, rod.group.exp(step))


def _between_clamps(here: Stiffness, scale: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return loads and stiffness of the nodes that are not held."""
    free = len(here.loads) - 2
    matrix = np.zeros((free, 6, free, 6))
    for shift, blocks in ((-1, here.lower), (0, here.diagonal), (1, here.upper)):
        for k in range(max(0, -shift), min(free, free - shift)):
            matrix[k, :, k + shift] = -blocks[k + 1]
    size = 6 * free
    return scale * here.loads[1:-1].ravel(), scale[:, None] * matrix.reshape(size, size) * scale


def threshold(elements: int) -> float:
    """Return the twist at which the planar ring loses its stability."""
    low, high = 0.97 * CRITICAL, 1.02 * CRITICAL
    found = root_scalar(lambda twist: softest(elements, twist), bracket=(low, high), rtol=1e-7)
    return float(found.root)


class Writhe(NamedTuple):
    """A run of a ring whose clamp turns.

    **Attributes:** `twist`: how far it has turned, over the critical twist, at the times `t`;
    `height`: how far the ring reaches out of its plane; `gap`: the least between all segments.
    """

    t: Float[np.ndarray, " saved"]
    twist: Float[np.ndarray, " saved"]
    height: Float[np.ndarray, " saved"]
    gap: Float[np.ndarray, " saved"]


def _turning(
    first: Float[Array, "3 3"],
    start: Float[Array, "3"],
    most: float,
    turning: float,
    t: Float[Array, ""],
) -> tuple[Float[Array, "3 3"], Float[Array, "3"]]:
    angle = -most * CRITICAL * jnp.minimum(t / turning, 1.0)
    c, s = jnp.cos(angle), jnp.sin(angle)
    turn = jnp.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]])
    return first @ turn, start


def twisted(elements: int, friction: float, most: float, time: float) -> tuple[Writhe, Trajectory]:
    """Turn the clamp up to `most` times the critical twist, and go on for a fifth of the time."""
    thick, turning = _THICK * RADIUS, 0.8 * time
    frames, places = circle(elements, 0.0)
    # A bump out of the plane, too small to be seen: a planar ring stays planar for ever.
    around = 2 * np.pi * np.arange(elements + 1) / elements
    places = places + _BUMP * np.stack([0 * around, 0 * around, np.sin(around) ** 2], axis=1)
    first, start = jnp.asarray(frames[0]), jnp.asarray(places[0])

    spacing = 2 * math.pi * RADIUS / elements
    rod = Rod(
        elements,
        2 * math.pi * RADIUS,
        stretching=[_SOFT] * 3,
        bending=[1.0, 1.0, TWISTING],
        mass=1.0,
        inertia=[spacing**2] * 3,
        ends=("clamped", "clamped"),
        base=partial(_turning, first, start, most, turning),
        drag=_CALM,
        spin_drag=_CALM * spacing**2,
        contact=SelfContact(thick, friction, closed=True, capacity=2 * elements),
    )
    h = _PART * 2 / fastest(rod)
    every = max(1, round(time / h / _SAVED))
    begin = rod.state((jnp.asarray(frames), jnp.asarray(places)), velocity=rod.velocity_of())
    run = simulate(
        rod, NonsmoothRattle(), begin, h=h, steps=_SAVED * every, save_every=every, progress=False
    )
    t, x = np.asarray(run.t), np.asarray(run.g[1])
    contact = rod.contact
    assert contact is not None
    gap = np.asarray(jax.jit(jax.vmap(lambda x: jnp.min(contact.gaps((x, x)))))(x))
    found = Writhe(t, most * np.minimum(t / turning, 1.0), np.ptp(x[:, :, 2], axis=1), gap)
    return found, run
