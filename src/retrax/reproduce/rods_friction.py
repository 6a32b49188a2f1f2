r"""How often a contact holds without slip, if its force has any direction that pushes.

A force with normal part $N$ and tangential part $T$ holds where $|T| \le kN$: where its angle with
the normal is at most $\arctan k$. Of the directions of a hemisphere, all alike, these are

$$ 1 - \cos\arctan k = 1 - \frac1{\sqrt{1+k^2}}. \tag{1} $$
"""

from pathlib import Path
from typing import NamedTuple

import numpy as np

from retrax.reproduce.report import Finding, Reproduction

COEFFICIENTS = (0.2, 0.5, 1.0)


class Estimate(NamedTuple):
    """The part of random forces inside the cone, with its error, and what two formulas say."""

    measured: float
    error: float
    cap: float
    paper: float


def friction(folder: Path, samples: int = 1_000_000) -> Reproduction:
    """The estimate of the paper by Monte Carlo, against its own formula and (1)."""
    found = {k: estimate(k, samples) for k in COEFFICIENTS}

    def row(values: list[float]) -> str:
        return ", ".join(f"{100 * value:.2f} %" for value in values)

    finding = Finding(
        "contacts that hold, k = 0.2, 0.5, 1",
        f"0.5 k/sqrt(k^2 + 1): {row([e.paper for e in found.values()])}",
        f"{row([e.measured for e in found.values()])}, +- {100 * found[0.2].error:.2f} % "
        f"({samples:,} random forces)",
        "the cap of a hemisphere has the part 1 - 1/sqrt(1 + k^2): "
        f"{row([e.cap for e in found.values()])}",
    )
    numbers = {f"k = {k:g}": one._asdict() for k, one in found.items()}
    return Reproduction("friction", "the friction estimate", (finding,), numbers, ())


def estimate(k: float, samples: int, seed: int = 0) -> Estimate:
    """Forces of random direction in a hemisphere: how many lie in the cone of friction."""
    force = np.random.default_rng(seed).normal(size=(samples, 3))
    normal, tangential = np.abs(force[:, 2]), np.hypot(force[:, 0], force[:, 1])
    inside = float(np.mean(tangential <= k * normal))
    return Estimate(
        inside,
        float(np.sqrt(inside * (1 - inside) / samples)),
        float(1 - 1 / np.sqrt(1 + k * k)),  # (1)
        float(0.5 * k / np.sqrt(1 + k * k)),
    )
