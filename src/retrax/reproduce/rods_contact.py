"""Two crossed rods in rolling contact: what the three-dimensional part of the paper leaves open."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np

from retrax.errors import ContactLost
from retrax.integrators.base import AbstractIntegrator
from retrax.integrators.contact.rods import RollingDKD, RollingVerlet
from retrax.reproduce.drawings import write_drawings
from retrax.reproduce.report import Extra, Finding, Reproduction, kept_by
from retrax.reproduce.rods_contact_figures import figure_1, force_drawing
from retrax.run.simulate import simulate
from retrax.systems.rods.crossing import crossed_rods, kicked
from retrax.systems.rods.dispersion import dispersion, printed_dispersion
from retrax.systems.rods.pair import RodsInContact
from retrax.trajectory.trajectory import Trajectory

H, TIME = 0.02, 40.0
# More friction than any contact here needs: given, so that all runs share one program.
_PLENTY = 1e9


class Measured(NamedTuple):
    """Runs of the pressed rods, gaps under the equations as printed, events, first frequencies."""

    rolling: Any
    forces: dict[str, float]
    gaps: dict[str, float]
    energies: dict[str, float]
    events: dict[str, str]
    frequencies: dict[str, float]


def contact(folder: Path, quick: bool) -> Reproduction:
    """The rods of the test problem, by both integrators and by the equations as printed."""
    time = 10.0 if quick else TIME
    found = measure(time, (RollingVerlet(),) if quick else (RollingVerlet(), RollingDKD()))
    pictures = write_drawings(folder, [figure_1(found.rolling), force_drawing(found.rolling)])
    found.rolling.report(folder / "rods.html")
    page = Extra(
        "rods.html", "Two rods that roll on each other, with the contact force (animation)"
    )
    numbers = found._asdict()
    del numbers["rolling"]
    kept = tuple(kept_by("RollingVerlet, h = 0.02", found.rolling))
    return Reproduction(_findings(found, time), {"contact": numbers}, pictures, kept, (page,))


def measure(time: float, methods: Sequence[AbstractIntegrator]) -> Measured:
    """Everything that the findings state; `RollingVerlet` must be one of the methods."""
    pair, start = crossed_rods(friction=_PLENTY)
    steps = round(time / H)
    runs: dict[str, Trajectory] = {
        type(method).__name__: simulate(pair, method, start, h=H, steps=steps, progress=False)
        for method in methods
    }
    gaps = {name: _worst_gap(pair, run) for name, run in runs.items()}
    for variant in ("printed 8", "printed 10"):
        other, begin = kicked(pair, start.g, variant=variant)
        on = "xla" if variant == "printed 10" else "auto"  # no scalar program has its transpose
        run = simulate(
            other, RollingDKD(), begin, h=H, steps=round(10 / H), save_every=10, backend=on,
            progress=False,
        )  # fmt: skip
        gaps[variant] = _worst_gap(pair, run)
    energy = jax.jit(jax.vmap(pair.energy))
    energies = {name: _spread(np.asarray(energy(run.states))) for name, run in runs.items()}
    events = {
        "kick x 8": _event(*kicked(pair, start.g, 8.0, friction=_PLENTY)),
        "friction 0.5": _event(*kicked(pair, start.g, friction=0.5)),
    }
    rolling = runs["RollingVerlet"]
    return Measured(rolling, _forces(pair, rolling), gaps, energies, events, _frequencies(pair))


def _forces(pair: RodsInContact, run: Trajectory) -> dict[str, float]:
    """The smallest and largest pressure and the most friction needed, up to t = 10."""
    acting = jax.jit(jax.vmap(pair.contact_force))(run.g, run.multipliers)
    early = np.asarray(run.t) <= 10.0
    pressure, friction = (np.asarray(acting[name])[early] for name in ("pressure", "friction"))
    return {
        "least pressure": float(pressure.min()),
        "largest pressure": float(pressure.max()),
        "friction needed": float(friction.max()),
    }


def _worst_gap(pair: RodsInContact, run: Trajectory) -> float:
    gaps = np.asarray(jax.jit(jax.vmap(pair.gap))(run.g))
    return float(np.abs(gaps / gaps[0] - 1).max())


def _spread(energy: Any) -> float:
    return float(np.abs(energy - energy[0]).max())


def _event(pair: RodsInContact, start: Any) -> str:
    try:
        simulate(pair, RollingVerlet(), start, h=0.002, steps=1000, save_every=1000,
                 progress=False)  # fmt: skip
    except ContactLost as event:
        return f"{type(event).__name__} at t = {event.trajectory.t[-1]:.5f}"
    return "none"


def _frequencies(pair: RodsInContact) -> dict[str, float]:
    k = np.pi / float(pair.first.length)
    exact = dispersion(pair.first, k, stretch=1.2, lattice=False)["bending x"]
    printed = printed_dispersion(pair.first, k)
    return {
        "true": float(exact[0]),
        "printed shear": float(printed["shear"][0]),
        "printed bending": float(printed["bending"][0]),
    }


def _findings(found: Measured, time: float) -> tuple[Finding, ...]:
    gaps, first = found.gaps, found.frequencies
    return (
        Finding(
            "(8): the distance of the centrelines is preserved",
            "implied by d perpendicular to the axes of the frames",
            f"with the printed (8) the gap changes by {100 * gaps['printed 8']:.2f} % in t = 10; "
            f"with the tangents of the centrelines by {gaps['RollingVerlet']:.0e}",
            "rods shear: their frames' axes are not tangents",
        ),
        Finding(
            "(10): rolling spread over nodes",
            "a sum of vectors of different body frames",
            f"the gap changes by {100 * gaps['printed 10']:.2f} % in t = 10",
            "summed in space the constraint keeps the gap exactly and treats both rods alike",
        ),
        Finding(
            "(9): motion of the contact",
            "(8) is difficult to use",
            "two unknowns, solved with the step",
            "the points of contact are functions of the configuration; none is integrated",
        ),
        Finding(
            "(13), stretched rod, first mode",
            f"{first['printed shear']:.6f} and {first['printed bending']:.6f}",
            f"{first['true']:.6f}",
            "(13) drops two linear terms, which couple shear and bending",
        ),
        Finding(
            f"energy over t = {time:g}",
            "-",
            "error " + ", ".join(f"{e:.1e} ({name})" for name, e in found.energies.items()),
            "bounded, by measurement: there is no theorem for nonholonomic steps",
        ),
        Finding(
            "friction needed, t <= 10",
            "-",
            f"up to {found.forces['friction needed']:.3f} of a pressure of "
            f"{found.forces['least pressure']:.4f} to {found.forces['largest pressure']:.4f} N",
            "rolling needs as much friction as good contacts have",
        ),
        Finding(
            "when perfect friction ends",
            "-",
            f"a kick eight times as hard: {found.events['kick x 8']}; with friction 0.5: "
            f"{found.events['friction 0.5']}",
            "runs stop where the force leaves its cone, instead of going on with a force that "
            "pulls",
        ),
    )
