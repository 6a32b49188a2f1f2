r"""How often a contact holds without slip, if its force has any direction that pushes.

A force with normal part $N$ and tangential part $T$ holds where $|T| \le kN$: where its angle with
the normal is at most $\arctan k$. Of the directions of a hemisphere, all alike, these are

$$ 1 - \cos\arctan k = 1 - \frac1{\sqrt{1+k^2}}. \tag{1} $$
"""

from pathlib import Path
from typing import NamedTuple

import numpy as np

from retrax.reproduce.drawings import Drawing, columns, write_drawings
from retrax.reproduce.report import Finding, Reproduction
from retrax.show.style import BLUE, GREEN, ORANGE, new_figure, style

COEFFICIENTS = (0.2, 0.5, 1.0)


class Estimate(NamedTuple):
    """The part of random forces inside the cone, with its error, and what two formulas say."""

    measured: float
    error: float
    cap: float
    paper: float


def friction(folder: Path, quick: bool) -> Reproduction:
    """The estimate of the paper by Monte Carlo, against its own formula and (1)."""
    samples = 200_000 if quick else 1_000_000
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
    pictures = write_drawings(folder, [_drawing(found)])
    return Reproduction((finding,), {"friction": numbers}, pictures)


def _drawing(found: "dict[float, Estimate]") -> Drawing:
    k = np.linspace(0.0, 1.5, 151)
    cap, paper = 1 - 1 / np.sqrt(1 + k * k), 0.5 * k / np.sqrt(1 + k * k)
    at, part = list(found), [one.measured for one in found.values()]
    error = [one.error for one in found.values()]
    with style():
        figure = new_figure(6.4, 3.8, "Contacts that hold without slip, of random forces")
        axes = figure.add_subplot(111)
        axes.plot(k, 100 * paper, "--", color=ORANGE, label="the paper: $k/2\\sqrt{k^2+1}$")
        axes.plot(k, 100 * cap, color=BLUE, label="cap of a hemisphere: $1-1/\\sqrt{1+k^2}$")
        axes.plot(at, 100 * np.array(part), "o", color=GREEN, label="random forces")
        axes.set(xlabel="coefficient of friction k", ylabel="contacts that hold (%)")
        axes.legend(loc="upper left")
    data = columns(
        k=("k", k, "1", "coefficient of friction"),
        cap=("k", cap, "1", "part of a hemisphere in the cone, (1)"),
        paper=("k", paper, "1", "the paper's formula"),
        k_measured=("k_measured", at, "1", "coefficients measured at"),
        measured=("k_measured", part, "1", "part of random forces in the cone"),
        error=("k_measured", error, "1", "statistical error"),
    )
    return Drawing(
        "friction",
        "Contacts that hold, against the coefficient of friction",
        "The paper's estimate against forces with random directions: at k = 0.2 it is five times "
        "too large.",
        figure,
        data,
    )


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
