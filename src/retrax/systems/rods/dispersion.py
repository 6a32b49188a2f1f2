r"""Small waves on a straight rod, on the lattice of its nodes and in the continuum.

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

two waves without dispersion that know nothing of each other.

References: [GayBalmazPutkaradze2012].
"""

from typing import Any

import numpy as np
from jaxtyping import Float

from retrax.errors import BadInput
from retrax.numerics.checks import host_float64, require_finite, require_flag, require_number, shown
from retrax.systems.rods.placed import require_rod

_SAMPLES = 257

Numbers = Float[np.ndarray, " k"]


def dispersion(
    rod: Any, k: Any, *, stretch: float = 1.0, lattice: bool = True
) -> dict[str, Numbers]:
    """The frequencies (1) and (2) of waves with the wave numbers `k` on a rod stretched evenly.

    Names are `stretch`, `twist`, and for both planes `bending x`, `shear x`, `bending y`,
    `shear y`: the direction in which the first axis of a frame, or the second, moves.
    """
    k, stretch = _wave_numbers(rod, k), require_number("stretch", stretch, "> 0")
    lattice, h = require_flag("lattice", lattice), float(rod.spacing)
    S, c = (2 / h * np.sin(k * h / 2), np.cos(k * h / 2)) if lattice else (k, np.ones_like(k))
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
    return _as_numbers(out, k)


def printed_dispersion(rod: Any, k: Any) -> dict[str, Numbers]:
    """(3): what (13) of the paper has for shear and bending."""
    k = _wave_numbers(rod, k)
    GA, EI, _, _ = _stiffness(rod)
    mass, moments = _inertia(rod)
    out = {"shear": k * np.sqrt(GA[0] / mass), "bending": k * np.sqrt(EI[0] / moments[0])}
    return _as_numbers(out, k)


def wave_speeds(rod: Any, stretch: float = 1.0) -> dict[str, float]:
    r"""Speeds per unstretched length: stretch, twist, and $\sqrt{N_0/g\rho A}$ of a string."""
    require_rod(rod)
    stretch = require_number("stretch", stretch, "> 0")
    _, _, EA, GJ = _stiffness(rod)
    mass, moments = _inertia(rod)
    # N0/g, with nothing in between that could overflow.
    tension = max(EA * (1 - 1 / stretch), 0.0)
    return {
        "stretch": float(np.sqrt(EA / mass)),
        "twist": float(np.sqrt(GJ / moments[2])),
        "string": float(np.sqrt(tension / mass)),
    }


def fastest(rod: Any, stretch: float = 1.0) -> float:
    """The highest frequency on the lattice: steps of two over it or more are unstable."""
    k = np.linspace(0.0, np.pi / float(rod.spacing), _SAMPLES)
    return float(max(np.max(values) for values in dispersion(rod, k, stretch=stretch).values()))


def _wave_numbers(rod: Any, k: Any) -> Numbers:
    require_rod(rod)
    numbers = np.atleast_1d(host_float64("k", k))
    if numbers.ndim != 1:
        raise BadInput(f"k has shape {numbers.shape}, but is one wave number or a list of them.")
    require_finite("k", numbers)
    return numbers


def _as_numbers(out: dict[str, Numbers], k: Numbers) -> dict[str, Numbers]:
    if not all(np.isfinite(values).all() for values in out.values()):
        raise BadInput(
            f"k = {shown(k.tolist())}: at wave numbers this large, or this stretch, the squares of "
            "the frequencies are no numbers."
        )
    return out


def _stiffness(rod: Any) -> tuple[np.ndarray, np.ndarray, float, float]:
    stretching, bending = np.asarray(rod.stretching), np.asarray(rod.bending)
    return stretching[:2], bending[:2], float(stretching[2]), float(bending[2])


def _inertia(rod: Any) -> tuple[float, np.ndarray]:
    """Mass and moments per length, from a node inside."""
    node = np.asarray(rod.inertia).reshape(-1, 6)[1] / float(rod.spacing)
    return float(node[3]), node[:3]


def _roots(a: Any, b: Any, c: Any) -> tuple[np.ndarray, np.ndarray]:
    """The square roots of both solutions x of a x^2 - b x + c = 0, the smaller first."""
    larger = (b + np.sqrt(np.maximum(b * b - 4 * a * c, 0.0))) / (2 * a)
    # Strong tension leaves a standing wave no stiffness: both roots are then zero or below.
    smaller = np.divide(c, a * larger, out=np.zeros_like(larger), where=larger > 0)
    return np.sqrt(np.maximum(smaller, 0.0)), np.sqrt(np.maximum(larger, 0.0))
