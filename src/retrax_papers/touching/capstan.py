r"""A rod around a post, pulled until it slides: the law of the capstan.

A thread that slides around a post by the angle $\Theta$ holds the tensions

$$ T_2/T_1 = e^{f\Theta}. \tag{1} $$

A rod of segments is a polygon whose segments touch the post. With $\sigma_i$ the place of contact
on segment $i$, its tension $T_i$, direction $t_i$, normal $n_i$ and pressure $N_i$, the forces on
node $i$ add up to zero where bending is nothing:

$$ T_it_i - T_{i-1}t_{i-1} + (1 - \sigma_i)N_i(n_i - ft_i)
   + \sigma_{i-1}N_{i-1}(n_{i-1} - ft_{i-1}) = 0. \tag{2} $$

In the middle of a long row all $\sigma = \tfrac12$ and all kinks are the same angle $\theta$; then
(2) is solved by $T_i/T_{i-1} = e^\varphi$ with

$$ \sinh\varphi = f\sin\theta, \tag{3} $$

which is (1) as $\theta \to 0$. Pressures that alternate, $N_i + (-1)^ic$, load the nodes nearly
alike, so that a rod may also touch with every other segment; then (3) holds with $2\theta$.
"""

import math
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from retrax.contact.self_contact import SelfContact
from retrax.contact.shapes import Capsule
from retrax.contact.steps.nonsmooth_rattle import NonsmoothRattle
from retrax.mechanics.state import State
from retrax.run.simulate import simulate
from retrax.systems.rods.rod import Rod
from retrax.trajectory.trajectory import Trajectory

POST = 1.0  # the radius of the post, in m
_THIN = 1e-6  # the radius of the rod
_STIFF = 1e4  # EA and GA, in N; the pull is 1 N
# The speed of the rod in m/s, so small that its drag is nothing beside its tension; the drag that
# calms it, the same in all directions: frames of nodes need not point along a rod that does not
# bend. Drag and the time of a run are by the time that a wave takes along the rod.
_SPEED, _DRAG, _WAVES = 1e-5, 3.0, 160.0
_PART = 0.45  # the step, by the time that a wave takes along a segment
_SAVED = 200
_TAIL = 4  # free segments at each end


class Slide(NamedTuple):
    """One run: friction, angles, and tensions of segments while the rod slides.

    **Attributes:** `bending`: EI over the load and the radius of the post squared; `kink`: the
    angle between segments; `wrap`: the whole angle; `tension`: along
    the rod in the mean over the second half of the time, its last entry that of the load; `least`:
    the smallest gap.
    """

    friction: float
    bending: float
    kink: float
    wrap: float
    tension: Float[np.ndarray, " segments"]
    least: float

    @property
    def ratio(self) -> float:
        """The ratio of the tensions of the two ends."""
        return float(self.tension[0] / self.tension[-1])

    @property
    def law(self) -> float:
        """The ratio of (1)."""
        return math.exp(self.friction * self.wrap)

    @property
    def per_kink(self) -> float:
        """The logarithm of the ratio of two tensions in the middle of the row, per kink."""
        touching = len(self.tension) - 2 * _TAIL
        quarter = touching // 4
        first, last = _TAIL + quarter, _TAIL + touching - 1 - quarter
        return float(np.log(self.tension[first] / self.tension[last]) / (last - first))

    @property
    def kink_law(self) -> float:
        """The same by (3)."""
        return math.asinh(self.friction * math.sin(self.kink))


def rod_around(
    segments: int, wrap: float, friction: float, bending: float, speed: float = _SPEED
) -> tuple[Rod, State, float]:
    """Return a rod whose `segments` touch the post and slide, and the angle of its kinks.

    It starts with tensions by (3), so that little is left to settle.
    """
    kink = wrap / (segments - 1)
    reach = POST + _THIN
    spacing = 2 * reach * math.tan(kink / 2)
    elements = segments + 2 * _TAIL
    per_kink = math.asinh(friction * math.sin(kink))
    kinks = np.clip(segments - 1 - np.arange(-_TAIL, segments + _TAIL), 0, segments - 1)
    lengths = spacing * (1 + np.exp(per_kink * kinks) / _STIFF)
    flat = _around(lengths, reach)
    places = np.concatenate([flat, np.zeros((elements + 1, 1))], axis=1)
    frames = _frames(places, kink)
    first, last = flat[0] - flat[1], flat[-1] - flat[-2]
    pull = jnp.asarray(np.append(first, 0.0) / np.linalg.norm(first))
    start, wave = jnp.asarray(places[0]), spacing * elements / math.sqrt(_STIFF)

    rod = Rod(
        elements,
        spacing * elements,
        stretching=[_STIFF] * 3,
        bending=[bending] * 3,
        mass=1.0,
        inertia=[spacing**2 / 4] * 3,
        ends=("pinned", "free"),
        base=partial(_pulled, start, speed * pull),
        end_force=np.append(last, 0.0) / np.linalg.norm(last),
        drag=_DRAG / wave,
        spin_drag=_DRAG / wave * spacing**2 / 4,
        damping=1.5 * _PART * spacing / math.sqrt(_STIFF),
        contact=SelfContact(
            _THIN,
            friction,
            against=[Capsule(POST, 4.0, (0.0, 0.0, 1.0), name="post")],
            itself=False,
        ),
    )
    moving = rod.velocity_of(v=-speed * frames[:, :, 2])
    return rod, rod.state((frames, places), velocity=moving), kink


def _pulled(
    start: Float[Array, "3"], velocity: Float[Array, "3"], t: Float[Array, ""]
) -> Float[Array, "3"]:
    return start + t * velocity


def _around(lengths: np.ndarray, reach: float) -> np.ndarray:
    """Return the nodes of segments that touch a circle, but for the first and last ones."""
    touching = lengths[_TAIL:-_TAIL]
    # From the place of contact of a segment to its end: as far as from there to the next one.
    ends, angle, nodes = touching[0] / 2, 0.0, []
    for k, length in enumerate(touching):
        at = np.array([math.cos(angle), math.sin(angle)])
        along = np.array([-at[1], at[0]])
        if k == 0:
            before = np.cumsum(np.append(length - ends, lengths[_TAIL - 1 :: -1]))
            nodes += [reach * at - far * along for far in before[::-1]]
        nodes.append(reach * at + ends * along)
        if k + 1 < len(touching):
            angle += 2 * math.atan(ends / reach)
            ends = touching[k + 1] - ends
    nodes += [nodes[-1] + far * along for far in np.cumsum(lengths[-_TAIL:])]
    return np.array(nodes)


def _frames(places: np.ndarray, kink: float) -> np.ndarray:
    """Frames along a curve in the plane without shear: in the middle of a segment along it."""
    along = np.diff(places[:, :2], axis=0)
    ways = np.unwrap(np.arctan2(along[:, 1], along[:, 0]))
    angles = [ways[0] + (-1) ** (_TAIL + 1) * kink / 2]
    for way in ways:
        angles.append(2 * way - angles[-1])
    c, s, none = np.cos(angles), np.sin(angles), np.zeros(len(angles))
    up, out = np.stack([none, none, none + 1], axis=1), np.stack([s, -c, none], axis=1)
    return np.stack([up, out, np.stack([c, s, none], axis=1)], axis=2)


def slide(
    segments: int, wrap: float, friction: float, bending: float, speed: float = _SPEED
) -> tuple[Slide, Trajectory]:
    """Pull the rod around the post until it slides, and look at its tensions."""
    rod, start, kink = rod_around(segments, wrap, friction, bending, speed)
    wave = float(rod.length) / math.sqrt(_STIFF)
    h = _PART * float(rod.spacing) / math.sqrt(_STIFF)
    every = max(1, round(_WAVES * wave / h / _SAVED))
    run = simulate(
        rod, NonsmoothRattle(), start, h=h, steps=_SAVED * every, save_every=every, progress=False
    )
    late = jax.tree.map(lambda x: x[_SAVED // 2 :], run.g)
    stretch = np.asarray(jax.jit(jax.vmap(lambda g: rod.strains(g).stretch[:, 2]))(late))
    contact = rod.contact
    assert contact is not None
    least = float(np.min(jax.jit(jax.vmap(lambda g: jnp.min(contact.gaps(g))))(run.g)))
    tension = _STIFF * (stretch - 1)
    wrapped = _turned(late[1].mean(axis=0))
    return Slide(friction, bending, kink, wrapped, tension.mean(axis=0), least), run


def _turned(places: np.ndarray) -> float:
    """Return the angle between the two free ends, turns included."""
    along = np.diff(places[:, :2], axis=0)
    before, after = along[:-1], along[1:]
    kinks = np.arctan2(
        before[:, 0] * after[:, 1] - before[:, 1] * after[:, 0], np.sum(before * after, axis=1)
    )
    return float(np.sum(kinks))
