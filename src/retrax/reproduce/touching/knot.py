r"""An overhand knot that is pulled: its traction against its opening.

The loop of a loose knot is a circle of radius $R$, closed by two strands that wind around each
other. With the radius $a$ of the rod and $\varepsilon = \sqrt{a/R}$ the ends are held by

$$ \frac{TR^2}{EI} = \frac12 + \frac{\sigma f}{\varepsilon}, \qquad \sigma = 0.492, \tag{1} $$

to the leading order in $\varepsilon$ and in $f$ [AudolyClauvelinNeukirch2007]. For knots of many
turns $n$ and much friction, with $e$ the length in the knot,

$$ \frac{n^2a}e = \frac{x^2}{8\sqrt3\pi^2(x + \lambda)}, \qquad
   \frac{n^2Ta^2}{EI} = \frac{fx^3}{96\sqrt3\pi^2}, \tag{2} $$

where $x$ is the length of the braid and $\lambda(x)$ that of the loop, both over $R$
[JawedDielemanAudolyReis2015]; for a loose knot this is (1) with $\sigma = 0.975\,n$ and without the
first term. Without friction

$$ \tfrac12EI\kappa^2 + N = T \tag{3} $$

at every point of the rod, with its curvature $\kappa$ and axial force $N$: contacts that do not rub
push across the rod.
"""

import math
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from retrax.contact.self_contact import SelfContact
from retrax.integrators.contact.nonsmooth_rattle import NonsmoothRattle
from retrax.run.simulate import simulate
from retrax.systems.rods.dispersion import fastest
from retrax.systems.rods.rod import Rod
from retrax.trajectory.trajectory import Trajectory

SIGMA = 0.492  # of (1)
THICK = 1e-3  # the radius of the rod, in m
_TAIL = 60.0  # the straight part of the start at each end, in radii of the rod
# EI, EA and GA, moments of inertia and drag, in units of the radius, the mass per length and the
# second: soft and heavy enough for long steps, and slow enough to stay near equilibrium.
_BENDING, _SOFT, _HEAVY, _DRAG = 1.0, 0.4, 1.0, 2e-3
_PART, _SAVED = 0.8, 120  # the step, by the longest one; states that are saved
_LOOSE, _PULLED = 0.1, 0.55  # the parts of the time when the pull begins and ends


class Knot(NamedTuple):
    """A knot that was pulled, and rests; in units of the radius of the rod and of EI.

    **Attributes:** `opening`: the radius of the loop; `length`: of the rod in the knot;
    `traction`: of the two ends; `integral`: the left side of (3) along the rod; `gap`: the least of
    the run between all segments, in m.
    """

    friction: float
    opening: float
    length: float
    traction: tuple[float, float]
    integral: Float[np.ndarray, " segments"]
    gap: float

    @property
    def scaled(self) -> float:
        """The left side of (1)."""
        return float(np.mean(self.traction)) * self.opening**2

    @property
    def theory(self) -> float:
        """The right side of (1)."""
        return 0.5 + SIGMA * self.friction * math.sqrt(self.opening)


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
    elements: int, friction: float, way: float, steps: int, size: float = 10.0
) -> tuple[Knot, Trajectory]:
    """Tie a loose knot, pull one end by `way` radii of the rod, and let the knot come to rest."""
    nodes, length = curve(size, elements)
    straight = nodes[0] - nodes[-1]
    start = jnp.asarray(THICK * nodes[0])
    pull = jnp.asarray(THICK * way * straight / np.linalg.norm(straight))
    every = max(1, steps // _SAVED)
    spacing = length / elements
    highest = 2 * math.sqrt(_SOFT + 4 * _BENDING / spacing**2) / math.sqrt(_HEAVY) + 0.1
    time = _SAVED * every * _PART * 2 / highest

    rod = Rod(
        elements,
        THICK * length,
        stretching=[THICK**2 * _SOFT] * 3,
        bending=[THICK**4 * _BENDING] * 3,
        mass=1.0,
        inertia=[THICK**2 * _HEAVY] * 3,
        ends=("pinned", "pinned"),
        base=partial(_base, start, pull, time),
        drag=_DRAG,
        spin_drag=THICK**2 * _DRAG,
        contact=SelfContact(THICK, friction, capacity=elements),
    )
    h = min(time / (_SAVED * every), _PART * 2 / fastest(rod))
    begin = rod.state((frames_along(nodes), THICK * nodes), velocity=rod.velocity_of())
    run = simulate(
        rod, NonsmoothRattle(), begin, h=h, steps=_SAVED * every, save_every=every, progress=False
    )
    return _looked(rod, run, friction, length), run


def _base(
    start: Float[Array, "3"], pull: Float[Array, "3"], time: float, t: Float[Array, ""]
) -> Float[Array, "3"]:
    share = jnp.clip((t / time - _LOOSE) / (_PULLED - _LOOSE), 0.0, 1.0)
    return start + share * share * (3 - 2 * share) * pull


def _looked(rod: Rod, run: Trajectory, friction: float, length: float) -> Knot:
    strain = jax.jit(rod.strains)(run.final.g)
    pull = _SOFT / _BENDING * (np.asarray(strain.stretch)[:, 2] - 1)
    bend = THICK * np.linalg.norm(np.asarray(strain.curvature)[:, :2], axis=1)
    contact = rod.contact
    assert contact is not None
    gap = jax.jit(jax.vmap(lambda g: jnp.min(contact.gaps(g))))(run.g)
    places = np.asarray(run.final.g[1])
    middle = len(pull) // 2
    around = slice(middle - len(pull) // 16, middle + len(pull) // 16 + 1)
    return Knot(
        friction,
        float(1 / bend[around].mean()),
        length - float(np.linalg.norm(places[-1] - places[0])) / THICK,
        (float(pull[1:5].mean()), float(pull[-5:-1].mean())),
        bend**2 / 2 + pull,
        float(np.min(gap)),
    )
