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

for the fastest mode. Without damping (5) is $h < 2/\omega$ again.

References: [GayBalmazPutkaradze2012].
"""

from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float

from retrax.errors import BadInput
from retrax.mechanics.split import AbstractSplitSystem
from retrax.mechanics.system import ArrayLike
from retrax.numerics.checks import host_float64, require_finite, require_flag, require_number, shown

if TYPE_CHECKING:
    from retrax.systems.rods.elastic import AbstractRod

_SAMPLES, _HALVINGS = 257, 50

Numbers = Float[np.ndarray, " k"]


def dispersion(
    rod: "AbstractRod", k: ArrayLike, *, stretch: float = 1.0, lattice: bool = True
) -> dict[str, Numbers]:
    """The frequencies (1) and (2) of waves with the wave numbers `k` on an evenly stretched rod.

    Names are `stretch`, `twist`, and for both planes `bending x`, `shear x`, `bending y`,
    `shear y`: the direction in which the first axis of a frame, or the second, moves.
    """
    k, stretch = _wave_numbers(rod, k), require_number("stretch", stretch, "> 0")
    lattice = require_flag("lattice", lattice)
    S, c = _on_lattice(rod, k) if lattice else (k, np.ones_like(k))
    return _as_numbers(_frequencies(rod, S, c, stretch), k)


def _on_lattice(rod: "AbstractRod", k: Numbers) -> tuple[Numbers, Numbers]:
    h = float(rod.spacing)
    return 2 / h * np.sin(k * h / 2), np.cos(k * h / 2)


def _frequencies(
    rod: "AbstractRod", S: Numbers, c: Numbers, stretch: float | np.ndarray
) -> dict[str, np.ndarray]:
    """The frequencies (1) and (2), by name; of many stretches where these are a column."""
    GA, EI, EA, GJ = _stiffness(rod)
    mass, moments = _inertia(rod)
    out = {"stretch": S * np.sqrt(EA / mass), "twist": S * np.sqrt(GJ / moments[2])}  # (1)
    for axis, across in ((0, 1), (1, 0)):
        a = stretch * GA[axis] - EA * (stretch - 1)
        slow, fast = _roots(  # (2)
            mass * moments[across],
            GA[axis] * S**2 * moments[across] + (EI[across] * S**2 + stretch * a * c**2) * mass,
            GA[axis] * S**2 * (EI[across] * S**2 + stretch * a * c**2) - a**2 * S**2 * c**2,
        )
        out[f"bending {'xy'[axis]}"], out[f"shear {'xy'[axis]}"] = slow, fast
    return out


def printed_dispersion(rod: "AbstractRod", k: ArrayLike) -> dict[str, Numbers]:
    """The frequencies (3) of shear and bending that follow from (13) of the paper."""
    k = _wave_numbers(rod, k)
    GA, EI, _, _ = _stiffness(rod)
    mass, moments = _inertia(rod)
    out = {"shear": k * np.sqrt(GA[0] / mass), "bending": k * np.sqrt(EI[0] / moments[0])}
    return _as_numbers(out, k)


def wave_speeds(rod: "AbstractRod", stretch: float = 1.0) -> dict[str, float]:
    r"""Speeds per unstretched length: stretch, twist, and $\sqrt{N_0/g\rho A}$ of a string."""
    _require_rod(rod)
    stretch = require_number("stretch", stretch, "> 0")
    _, _, EA, GJ = _stiffness(rod)
    mass, moments = _inertia(rod)
    # N0/g, written so that it cannot overflow.
    tension = max(EA * (1 - 1 / stretch), 0.0)
    return {
        "stretch": float(np.sqrt(EA / mass)),
        "twist": float(np.sqrt(GJ / moments[2])),
        "string": float(np.sqrt(tension / mass)),
    }


def fastest(rod: "AbstractRod", stretch: float = 1.0) -> float:
    r"""The highest frequency $\omega$ on the lattice."""
    return float(fastest_of_each(rod, np.array([stretch]))[0])


def fastest_of_each(rod: "AbstractRod", stretches: np.ndarray) -> np.ndarray:
    """The highest frequency at each of many stretches."""
    k = np.linspace(0.0, np.pi / float(rod.spacing), _SAMPLES)
    S, c = _on_lattice(rod, k)
    highest = np.empty(len(stretches))
    for first in range(0, len(stretches), _SAMPLES):
        some = slice(first, first + _SAMPLES)
        found = _as_numbers(_frequencies(rod, S, c, stretches[some, None]), k)
        highest[some] = np.max(np.broadcast_arrays(*found.values()), axis=(0, 2))
    return highest


def _require_rod(rod: object) -> None:
    """Reject anything that is not a rod; `elastic.py` builds on this module, so by its parts."""
    if not (isinstance(rod, AbstractSplitSystem) and hasattr(rod, "bending")):
        raise BadInput(f"rod = {shown(rod)} is not a Rod.")


def _wave_numbers(rod: object, k: object) -> Numbers:
    """`k` as a list, for a rod."""
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
            f"k = {shown(k.tolist())}: the squares of the frequencies overflow at these wave "
            "numbers and this stretch."
        )
    return out


def _stiffness(rod: "AbstractRod") -> tuple[np.ndarray, np.ndarray, float, float]:
    """GA and EI of both planes, EA and GJ."""
    stretching, bending = np.asarray(rod.stretching), np.asarray(rod.bending)
    return stretching[:2], bending[:2], float(stretching[2]), float(bending[2])


def _inertia(rod: "AbstractRod") -> tuple[float, np.ndarray]:
    """Mass and moments per length, from an inner node."""
    node = np.asarray(rod.inertia).reshape(-1, 6)[1] / float(rod.spacing)
    return float(node[3]), node[:3]


def _roots(a: float, b: np.ndarray, c: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The square roots of both solutions x of a x^2 - b x + c = 0, the smaller first."""
    larger = (b + np.sqrt(np.maximum(b * b - 4 * a * c, 0.0))) / (2 * a)
    # Under strong tension a standing wave has no stiffness: both roots are then zero or below.
    smaller = np.divide(c, a * larger, out=np.zeros_like(larger), where=larger > 0)
    return np.sqrt(np.maximum(smaller, 0.0)), np.sqrt(np.maximum(larger, 0.0))


def longest_step(highest: float, damping: float, split: bool) -> tuple[float, str]:
    """The bound on steps by (4), with `split`, or by (5); and its cause, in words."""
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
