r"""Small waves on a straight rod, on the lattice of its nodes and in the continuum.

The fastest of them bounds the steps of integrators, (4) and (5).

About a rod stretched by $g$, with tension $N_0 = EA(g - 1)$ and $a = g\,GA - N_0$, waves of
wave number $k$ have, with $S = \tfrac2h\sin\tfrac{kh}2$ and $c = \cos\tfrac{kh}2$ ($S = k$,
$c = 1$ in the continuum), in stretch and in twist

$$ \omega = S\sqrt{EA/\rho A}, \qquad \omega = S\sqrt{GJ/\rho J}, \tag{1} $$

and in each plane of bending the two roots of

$$ (GA\,S^2 - \rho A\,\omega^2)(EI\,S^2 + g a c^2 - \rho I\,\omega^2) - a^2S^2c^2 = 0: \tag{2} $$

one for bending, dispersive, and one for shear, above $\sqrt{ga/\rho I}$. The vector wave equation
(13) of the paper leaves out the terms $-\omega\times e_3$ and $\ell_\Gamma\times e_3$ of the
linearised equations, and has in place of (2)

$$ \omega = k\sqrt{GA/\rho A}, \qquad \omega = k\sqrt{EI/\rho I}, \tag{3} $$

two uncoupled waves without dispersion.

A mode of frequency $\omega$ whose stresses are damped with the time $\beta$ obeys
$\ddot x = -\omega^2x - \beta\omega^2\dot x$. `LieVerlet` damps it twice a step by the explicit
midpoint rule over $h/2$; the integrators of two rods damp it in each of their two kicks by the
factor $k = 1 - \tfrac12\beta\omega^2h$. Steps are stable while

$$
\begin{aligned}
h &< \frac2\omega, \quad h < \frac4{\beta\omega^2}                         &&\text{(4) one rod}\\
(\omega h)^2\,\frac{1 + k}{1 + k^2} &< 4, \quad h < \frac4{\beta\omega^2}  &&\text{(5) two rods}
\end{aligned}
$$

for the fastest mode. Without damping (5) is $h < 2/\omega$ again. No mode of a rod whose segments
differ is faster than the fastest of its segments, each alone with the share of the masses of its
nodes that is its own: it bends and shears at the frequencies of its lattice, or shears and turns at
once, the upper root of (2) with $EI = 0$, $S = 2/h$ and $c = 1$.

References: [GayBalmazPutkaradze2012].
"""

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from jaxtyping import Float

from retrax.errors import BadInput
from retrax.mechanics.split import AbstractSplitSystem
from retrax.mechanics.system import ArrayLike
from retrax.numerics.checks import host_float64, quote, require_finite, require_flag, require_number

if TYPE_CHECKING:
    from retrax.systems.rods.elastic import AbstractRod

_SAMPLES, _HALVINGS = 257, 50

Numbers = Float[np.ndarray, " k"]


class Medium(NamedTuple):
    """What a segment is made of: $C_1$, $C_2$, and mass and moments per length."""

    spacing: float
    stretching: Float[np.ndarray, "3"]
    bending: Float[np.ndarray, "3"]
    mass: float
    moments: Float[np.ndarray, "3"]


def dispersion(
    rod: "AbstractRod", k: ArrayLike, *, stretch: float = 1.0, lattice: bool = True
) -> dict[str, Numbers]:
    """Return the frequencies (1) and (2) of the wave numbers `k` on an evenly stretched rod.

    Names are `stretch`, `twist`, and for both planes `bending x`, `shear x`, `bending y`,
    `shear y`: the direction in which the first axis of a frame, or the second, moves.
    """
    k, stretch = _wave_numbers(rod, k), require_number("stretch", stretch, "> 0")
    lattice = require_flag("lattice", lattice)
    of = _medium(rod)
    S, c = _on_lattice(of, k) if lattice else (k, np.ones_like(k))
    return _as_numbers(_frequencies(of, S, c, stretch), k)


def _on_lattice(of: Medium, k: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    h = of.spacing
    return 2 / h * np.sin(k * h / 2), np.cos(k * h / 2)


def _frequencies(
    of: Medium, S: np.ndarray, c: np.ndarray, stretch: float | np.ndarray
) -> dict[str, np.ndarray]:
    """Return the frequencies (1) and (2), by name; of many stretches where these are a column."""
    EA, mass, moments = of.stretching[2], of.mass, of.moments
    stretched = S * np.sqrt(EA / mass)  # (1)
    out = {"stretch": stretched, "twist": S * np.sqrt(of.bending[2] / moments[2])}
    for axis, across in ((0, 1), (1, 0)):
        GA, EI = of.stretching[axis], of.bending[across]
        a = stretch * GA - EA * (stretch - 1)
        slow, fast = _roots(  # (2)
            mass * moments[across],
            GA * S**2 * moments[across] + (EI * S**2 + stretch * a * c**2) * mass,
            GA * S**2 * (EI * S**2 + stretch * a * c**2) - a**2 * S**2 * c**2,
        )
        out[f"bending {'xy'[axis]}"], out[f"shear {'xy'[axis]}"] = slow, fast
    return out


def printed_dispersion(rod: "AbstractRod", k: ArrayLike) -> dict[str, Numbers]:
    """Return the frequencies (3) of shear and bending that follow from (13) of the paper."""
    k = _wave_numbers(rod, k)
    of = _medium(rod)
    shear, bending = of.stretching[0] / of.mass, of.bending[0] / of.moments[0]
    out = {"shear": k * np.sqrt(shear), "bending": k * np.sqrt(bending)}
    return _as_numbers(out, k)


def wave_speeds(rod: "AbstractRod", stretch: float = 1.0) -> dict[str, float]:
    r"""Return speeds per unstretched length: stretch, twist, and $\sqrt{N_0/g\rho A}$."""
    _require_rod(rod)
    stretch = require_number("stretch", stretch, "> 0")
    of = _medium(rod)
    EA, GJ = of.stretching[2], of.bending[2]
    # N0/g, written so that it cannot overflow.
    tension = max(EA * (1 - 1 / stretch), 0.0)
    return {
        "stretch": float(np.sqrt(EA / of.mass)),
        "twist": float(np.sqrt(GJ / of.moments[2])),
        "string": float(np.sqrt(tension / of.mass)),
    }


def fastest(rod: "AbstractRod", stretch: float = 1.0) -> float:
    r"""Return the highest frequency $\omega$ on the lattice."""
    return float(fastest_of_each(rod, np.array([stretch]))[0])


def fastest_of_each(rod: "AbstractRod", stretches: np.ndarray) -> np.ndarray:
    """Return the highest frequency at each of many stretches."""
    highest = np.zeros(len(stretches))
    media = _media(rod)
    for of in media:
        k = np.linspace(0.0, np.pi / of.spacing, _SAMPLES)
        S, c = _on_lattice(of, k)
        for first in range(0, len(stretches), _SAMPLES):
            some = slice(first, first + _SAMPLES)
            found = _as_numbers(_frequencies(of, S, c, stretches[some, None]), k)
            fast = np.max(np.broadcast_arrays(*found.values()), axis=(0, 2))
            highest[some] = np.maximum(highest[some], fast)
            if len(media) > 1:
                fast = _alone(of, stretches[some])
                highest[some] = np.maximum(highest[some], fast)
    return highest


def _alone(of: Medium, stretches: np.ndarray) -> np.ndarray:
    """Return the highest frequency of a lone segment: it shears, $S = 2/h$ and $c = 1$."""
    rigid = of._replace(bending=np.zeros(3))
    S, c = np.array([2 / of.spacing]), np.ones(1)
    found = _as_numbers(_frequencies(rigid, S, c, stretches[:, None]), S)
    return np.max(np.broadcast_arrays(*found.values()), axis=(0, 2))


def _require_rod(rod: object) -> None:
    """Reject anything that is not a rod; `elastic.py` builds on this module, so by its parts."""
    if not (isinstance(rod, AbstractSplitSystem) and hasattr(rod, "bending")):
        raise BadInput(f"rod = {quote(rod)} is not a Rod.")


def _wave_numbers(rod: object, k: object) -> Numbers:
    """Return `k` as a list, for a rod."""
    _require_rod(rod)
    numbers = np.atleast_1d(host_float64("k", k))
    if numbers.ndim != 1:
        raise BadInput(f"k has shape {numbers.shape}, but must be one number or a list of them.")
    require_finite("k", numbers)
    return numbers


def _as_numbers(out: dict[str, np.ndarray], k: Numbers) -> dict[str, np.ndarray]:
    """Reject wave numbers whose frequencies are not finite."""
    if not all(np.isfinite(values).all() for values in out.values()):
        raise BadInput(
            f"k = {quote(k.tolist())}: the squares of the frequencies overflow at these wave "
            "numbers and this stretch."
        )
    return out


def _medium(rod: "AbstractRod") -> Medium:
    """Return what a rod is made of, if it is the same all along."""
    made = _media(rod)
    if len(made) > 1:
        raise BadInput(
            f"the {rod.name} is not the same all along, so no wave of one length travels on it; "
            "use modes(rod, g) for its vibrations."
        )
    return made[0]


def _media(rod: "AbstractRod") -> list[Medium]:
    """Return what the segments of a rod are made of, each kind once."""
    nodes = np.asarray(rod.inertia).reshape(-1, 6)
    joined = np.ones(len(nodes) - 1, bool) if rod.between is None else rod.between
    # A node between two segments gives a half of its inertia to each, one at an end all of it.
    ends = np.concatenate([[True], ~joined]) | np.concatenate([~joined, [True]])
    share = np.where(ends[:, None], nodes, nodes / 2)
    h = np.broadcast_to(np.asarray(rod.spacing), joined.shape)[:, None]
    own = 2 * np.minimum(share[:-1], share[1:]) / h
    rows = (len(joined), 3)
    stiff = (np.broadcast_to(np.asarray(x), rows) for x in (rod.stretching, rod.bending))
    table = np.hstack([h, *stiff, own])[joined]
    table = table[:1] if np.all(table == table[0]) else np.unique(table, axis=0)
    return [Medium(row[0], row[1:4], row[4:7], row[10], row[7:10]) for row in table]


def _roots(a: float, b: np.ndarray, c: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the square roots of both solutions x of a x^2 - b x + c = 0, the smaller first."""
    larger = (b + np.sqrt(np.maximum(b * b - 4 * a * c, 0.0))) / (2 * a)
    # Under strong tension a standing wave has no stiffness: both roots are then zero or below.
    smaller = np.divide(c, a * larger, out=np.zeros_like(larger), where=larger > 0)
    return np.sqrt(np.maximum(smaller, 0.0)), np.sqrt(np.maximum(larger, 0.0))


def longest_step(highest: float, damping: float, split: bool) -> tuple[float, str]:
    """Return the bound on steps by (4), with `split`, or by (5); and its cause, in words."""
    waves = 2 / highest
    if damping == 0:
        return waves, "its fastest wave"
    viscous = 4 / (damping * highest**2)
    longest = min(waves, viscous)
    if not split:
        low = 0.0
        for _ in range(_HALVINGS):
            middle = (low + longest) / 2
            k = 1 - damping * highest**2 * middle / 2
            if (highest * middle) ** 2 * (1 + k) < 4 * (1 + k * k):
                low = middle
            else:
                longest = middle
    if viscous < waves:
        return longest, f"its explicit damping, h < 4/(beta omega^2) with beta = {damping:g} s"
    return longest, "its fastest wave"
