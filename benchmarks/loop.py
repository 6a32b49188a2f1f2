"""A rod in a loop that presses on itself where it crosses.

Its strands cross with a small gap, and no stress would act if they had passed through each other:
so they come to touch, and press. The first end is clamped, and all velocities are damped.
"""

import math

import jax.numpy as jnp
import numpy as np

import retrax as rx

SEGMENTS, LENGTH, RADIUS = 100, 1.0, 0.01
YOUNG, POISSON, DENSITY = 2e6, 0.5, 1000.0
RATE = 20.0  # of velocities that decay, in 1/s
GAP, THROUGH = 5e-4, -8e-2  # of the strands at first, and where no stress acts
TURN = math.radians(300)


def places(gap: float) -> np.ndarray:
    """Return the nodes of a loop whose strands cross at this gap."""
    u = np.linspace(0, 1, 200_001)
    bend = np.where(np.abs(u - 0.5) < 0.3, np.cos(np.pi * (u - 0.5) / 0.6) ** 2, 0.0)
    turned = np.cumsum(bend)
    turned = (turned / turned[-1] - 0.5) * TURN
    flat = np.cumsum(np.stack([np.cos(turned), np.sin(turned)], axis=1), axis=0) * (u[1] - u[0])
    flat -= flat[len(u) // 2]
    later = len(u) // 2 + 1000
    crossing = u[later + np.nonzero(np.diff(np.sign(flat[later:, 0])))[0][0]]
    rise = (2 * RADIUS + gap) / (2 * (crossing - 0.5)) * (u - 0.5)
    curve = np.concatenate([flat, rise[:, None]], axis=1)
    arc = np.r_[0, np.cumsum(np.linalg.norm(np.diff(curve, axis=0), axis=1))]
    even = np.linspace(0, arc[-1], SEGMENTS + 1)
    nodes = np.stack([np.interp(even, arc, column) for column in curve.T], axis=1)
    return nodes * LENGTH / np.sum(np.linalg.norm(np.diff(nodes, axis=0), axis=1))


def frames(tangents: np.ndarray) -> np.ndarray:
    """Return frames with these third axes, turned as little as they can be."""
    first, found = np.array([0.0, 0.0, 1.0]), []
    for along in tangents:
        first = first - (first @ along) * along
        first /= np.linalg.norm(first)
        found.append(np.stack([first, np.cross(along, first), along], axis=1))
    return np.array(found)


def placed(nodes: np.ndarray):
    """Return nodes with frames, as retrax has them."""
    along = np.gradient(nodes, axis=0)
    along /= np.linalg.norm(along, axis=1)[:, None]
    return jnp.asarray(frames(along)), jnp.asarray(nodes)


def loop(room: int | None = None):
    """Return the rod with its start, and room for so many pairs of near segments."""
    material = {"young": YOUNG, "poisson": POISSON, "density": DENSITY, "radius": RADIUS}
    free = rx.systems.Rod.from_material(SEGMENTS, LENGTH, **material)
    stretch, curvature = (np.asarray(x) for x in free.strains(placed(places(THROUGH))))
    area = math.pi * RADIUS**2
    rod = rx.systems.Rod.from_material(
        SEGMENTS,
        LENGTH,
        **material,
        ends=("clamped", "free"),
        rest_stretch=stretch,
        rest_curvature=curvature,
        drag=RATE * DENSITY * area,
        spin_drag=RATE * DENSITY * area * RADIUS**2 / 4 * np.array([1.0, 1.0, 2.0]),
        contact=rx.SelfContact(RADIUS, capacity=room),
    )
    return rod, rod.state(placed(places(GAP)), velocity=rod.velocity_of())
