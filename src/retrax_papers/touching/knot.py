r"""An overhand knot that is pulled slowly: its traction against its opening.

The loop of a loose knot is a circle of radius $R$, closed by two strands that wind around each
other and press on each other with the force $P$ in all. Pulling the knot by $\mathrm de$ bends the
loop more and makes the strands slide on each other by $\mathrm de$, so that with friction $f$

$$ T = T_0 + fP, \tag{1} $$

where $T_0$ and $P$ are those of a smooth knot and $f$ is small. With the radius $a$ of the rod and
$\varepsilon = \sqrt{a/R}$ the leading orders are [AudolyClauvelinNeukirch2007]

$$ \frac{T_0R^2}{EI} = \frac12, \qquad \frac{PR^2}{EI} = \frac\sigma\varepsilon, \qquad
   \sigma = 0.492. \tag{2} $$

A knot that rests may have any traction between $T_0 - fP$ and $T_0 + fP$; only one that is being
pulled has (1). Without friction

$$ \tfrac12EI\kappa^2 + N = T \tag{3} $$

at every point of the rod, with its curvature $\kappa$ and axial force $N$: contacts that do not rub
push across the rod.
"""

import math
from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from retrax.contact.self_contact import SelfContact
from retrax.contact.steps.nonsmooth_rattle import NonsmoothRattle
from retrax.mechanics.state import State
from retrax.run.simulate import simulate
from retrax.systems.rods.dispersion import fastest
from retrax.systems.rods.rod import Rod
from retrax.trajectory.trajectory import Trajectory

SIGMA = 0.492  # of (2)
THICK = 1e-3  # the radius of the rod, in m
_TAIL = 60.0  # the straight part of the start at each end, in radii of the rod
# EI, EA and GA and moments of inertia, in units of the radius, the mass per length and the second:
# soft and heavy enough for long steps.
_BENDING, _SOFT, _HEAVY = 1.0, 0.4, 1.0
_PART, _SAVED = 0.7, 60  # the step, by the longest one; states that are saved
_SLOW = 0.02  # the part of the pull in which the end gains its speed
# Drag, and the time in which the loose knot comes to rest, for a curve of size 10; the motion of a
# loop takes a time that grows with its size squared.
_DRAG, _REST = 1e-3, 24_000.0


class Knot(NamedTuple):
    """A knot while it is pulled, in units of the radius of the rod and of EI.

    **Attributes:** `opening`: the radius of the loop, at saved states; `traction`: of the end that
    is held; `push`: $P$ at the end; `integral`: the left side of (3) along the rod at the end;
    `gap`: the least of the run between all segments, in m.
    """

    friction: float
    opening: Float[np.ndarray, " times"]
    traction: Float[np.ndarray, " times"]
    push: float
    integral: Float[np.ndarray, " segments"]
    gap: float

    @property
    def late(self) -> slice:
        """The last quarter of the saved states, when all of the knot slides."""
        return slice(-(len(self.opening) // 4), None)

    @property
    def radius(self) -> float:
        """The mean opening of the last quarter."""
        return float(np.mean(self.opening[self.late]))

    @property
    def scaled(self) -> float:
        """$TR^2/EI$, in the mean over the last quarter."""
        return float(np.mean(self.traction[self.late] * self.opening[self.late] ** 2))

    @property
    def theory(self) -> float:
        """The same by (1) and (2)."""
        return 0.5 + SIGMA * self.friction * math.sqrt(self.radius)


def curve(size: float, elements: int) -> tuple[np.ndarray, float]:
    """Return the nodes of a loose overhand knot, and its length, in radii of the rod.

    A polynomial curve of degree (3, 4, 5), which is the trefoil, with straight ends.
    """
    t = np.linspace(-2.25, 2.25, 8001)
    x = size * np.stack([t**3 - 3 * t, 0.6 * (t**4 - 4 * t**2), 0.2 * (t**5 - 10 * t)], axis=1)
    away = np.linspace(0, _TAIL, 2000)[1:, None]
    first, last = x[0] - x[1], x[-1] - x[-2]
    ends = (
        (x[0] + away * first / np.linalg.norm(first))[::-1],
        x[-1] + away * last / np.linalg.norm(last),
    )
    x = np.concatenate([ends[0], x, ends[1]])
    arc = np.append(0.0, np.cumsum(np.linalg.norm(np.diff(x, axis=0), axis=1)))
    even = np.linspace(0.0, arc[-1], elements + 1)
    return np.stack([np.interp(even, arc, column) for column in x.T], axis=1), float(arc[-1])


def frames_along(x: np.ndarray) -> np.ndarray:
    """Frames along a curve that turn about it as little as they can."""
    t = np.gradient(x, axis=0)
    t /= np.linalg.norm(t, axis=1)[:, None]
    across, frames = np.array([0.3, 0.5, 1.0]), []
    for along in t:
        across = across - (across @ along) * along
        across /= np.linalg.norm(across)
        frames.append(np.stack([across, np.cross(along, across), along], axis=1))
    return np.array(frames)


def pulled(
    elements: int,
    frictions: Sequence[float],
    way: float,
    speed: float,
    size: float = 10.0,
    rest: float = 1.0,
) -> list[tuple[Knot, Trajectory]]:
    """Tie a loose smooth knot, and pull one end of it slowly, once with each friction.

    **Arguments:** `way`: of the end, in radii of the rod; `speed`: its speed in radii a second;
    `size`: of the loose knot; `rest`: the time to come to rest, of the usual one.
    """
    nodes, length = curve(size, elements)
    straight = nodes[0] - nodes[-1]
    pull = jnp.asarray(THICK * way * straight / np.linalg.norm(straight))
    drag = _DRAG * (10 / size) ** 2
    begin, time = _REST * rest * (size / 10) ** 2, way / speed
    rods = [
        Rod(
            elements,
            THICK * length,
            stretching=[THICK**2 * _SOFT] * 3,
            bending=[THICK**4 * _BENDING] * 3,
            mass=1.0,
            inertia=[THICK**2 * _HEAVY] * 3,
            ends=("pinned", "pinned"),
            base=partial(_base, jnp.asarray(THICK * nodes[0]), pull, begin, time),
            drag=drag,
            spin_drag=THICK**2 * drag,
            contact=SelfContact(THICK, friction, capacity=elements),
        )
        for friction in (0.0, *frictions)
    ]
    smooth = rods[0]
    start = smooth.state((frames_along(nodes), THICK * nodes), velocity=smooth.velocity_of())
    loose = _went(smooth, start, begin, 1).final
    return [_looked(rod, _went(rod, loose, time, _SAVED)) for rod in rods[1:]]


def _base(
    start: Float[Array, "3"],
    pull: Float[Array, "3"],
    begin: float,
    time: float,
    t: Float[Array, ""],
) -> Float[Array, "3"]:
    """Return where the end is: it moves evenly once it has gained its speed."""
    share = jnp.clip((t - begin) / time, 0.0, 1.0)
    way = jnp.where(share < _SLOW, share**2 / (2 * _SLOW), share - _SLOW / 2)
    return start + way / (1 - _SLOW / 2) * pull


def _went(rod: Rod, start: State, time: float, saved: int) -> Trajectory:
    every = math.ceil(time * fastest(rod) / (2 * _PART) / saved)
    h = time / (saved * every)
    return simulate(
        rod, NonsmoothRattle(), start, h=h, steps=saved * every, save_every=every, progress=False
    )


def _looked(rod: Rod, run: Trajectory) -> tuple[Knot, Trajectory]:
    contact = rod.contact
    assert contact is not None
    strain = jax.jit(jax.vmap(rod.strains))(run.g)
    pull = _SOFT / _BENDING * (np.asarray(strain.stretch)[..., 2] - 1)
    bend = THICK * np.linalg.norm(np.asarray(strain.curvature)[..., :2], axis=2)
    gap = jax.jit(jax.vmap(lambda g: jnp.min(contact.gaps(g))))(run.g)
    middle, around = rod.elements // 2, rod.elements // 40
    again = simulate(rod, NonsmoothRattle(), run.final, h=run.h, steps=2, progress=False)
    found = Knot(
        float(contact.friction),
        1 / bend[1:, middle - around : middle + around + 1].mean(axis=1),
        pull[1:, -5:-1].mean(axis=1),
        float(again.contacts["all"].force[-1]) / THICK**2,
        bend[-1] ** 2 / 2 + pull[-1],
        float(np.min(gap)),
    )
    return found, run
