r"""Runs of the one-dimensional model of the paper on rods: strings in contact.

The paper states none of the parameters of its Fig. 2. Here $c = 1$, $l = 2\pi$, fixed ends,
$u = \sin x$, $v = 0$, both at rest, $F = 1$, $s = (2, 2.6)$ and $G_1 = G_2 = 0.8$ unless something
else is said; steps of half a segment.
"""

import math
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from retrax.analysis.lyapunov import Lyapunov, lyapunov
from retrax.analysis.spectrum import Spectrum, spectrum
from retrax.integrators.contact.strings import ContactDKD
from retrax.mechanics.state import State
from retrax.reproduce.report import Kept, kept
from retrax.run.simulate import simulate
from retrax.systems.strings.characteristics import characteristic_path
from retrax.systems.strings.closed_form import exact_path
from retrax.systems.strings.strings_in_contact import StringsInContact
from retrax.trajectory.trajectory import Trajectory

PLACES = (2.0, 2.6)
COUPLINGS = (0.0, 0.2, 0.4, 0.6, 0.8, 0.9)
PERIOD = 2 * math.pi
# Of the frozen contact: what the lowest lines must be, for F = 1.
_FREQUENCIES = np.linspace(0.01, 2.2, 100_001)


class Motion(NamedTuple):
    """A run of the strings: its spectrum and how well its energies held."""

    spectrum: Spectrum
    energy: float
    modified: float
    kept: tuple[Kept, ...]


class Paths(NamedTuple):
    """Exact paths against the lattice: the largest difference for each number of segments."""

    segments: tuple[int, ...]
    periodic: list[float]
    same_place: list[float]


def motions(n: int) -> dict[str, Motion]:
    """The first harmonic without contact, with a frozen and with a moving one."""
    return {
        "no contact": motion(0.0, n, (2.0, 2.0), touching=False),
        "frozen contact": motion(0.0, n, PLACES),
        "moving contact": motion(0.8, n, PLACES),
    }


def picture(n: int) -> Trajectory:
    """The run of Fig. 2."""
    return _run(StringsInContact(G=0.8, n=n), PLACES, 8 * PERIOD)


def motion(G: float, n: int, s: tuple[float, float], touching: bool = True) -> Motion:
    """The first harmonic for a hundred periods; not touching: the strings move alike, no force."""
    system = StringsInContact(G=G, n=n)
    run = _run(system, s, 100 * PERIOD, v=None if touching else np.sin)
    size = jnp.asarray(run.h)

    def look(state: State) -> Any:
        exact = ContactDKD().exact_integrals(system, state, size)["modified energy"]
        return jnp.stack([system.harmonic(state.g), system.energy(state), exact])

    harmonic, energy, modified = run.along(look).T
    label = f"strings, ContactDKD, G = {G:g}" + ("" if touching else ", no contact")
    return Motion(
        spectrum(run.t, harmonic),
        float(np.max(np.abs(energy / energy[0] - 1))),
        float(np.ptp(modified)),
        (kept(label, "energy", run.t, energy), kept(label, "modified energy", run.t, modified)),
    )


def frozen_lines(s1: float, s2: float, F: float = 1.0) -> list[float]:
    r"""The frequencies, up to 2.2, of strings tied together at places that do not move.

    Roots of $\sin kl = 0$, without a force between the strings, and of
    $F^2\sin ks_2\sin k(l-s_2) + \sin ks_1\sin k(l-s_1) = 0$.
    """

    def equation(k: np.ndarray) -> np.ndarray:
        first = np.sin(k * s1) * np.sin(k * (PERIOD - s1))
        return F * F * np.sin(k * s2) * np.sin(k * (PERIOD - s2)) + first

    k, values = _FREQUENCIES, equation(_FREQUENCIES)
    at = np.flatnonzero(values[1:] * values[:-1] < 0)
    roots = k[at] - values[at] * (k[at + 1] - k[at]) / (values[at + 1] - values[at])
    own = np.pi / PERIOD * np.arange(1, int(2.2 * PERIOD / np.pi) + 1)
    return sorted([*map(float, roots), *map(float, own)])


def exponent(time: float, *, n: int, s: tuple[float, float] = PLACES, **settings: Any) -> Lyapunov:
    """The largest exponent of the strings from sin x at rest."""
    system = StringsInContact(n=n, **settings)
    h = float(system.spacing) / 2
    start = system.at(s, u=np.sin)
    return lyapunov(system, ContactDKD(), start, h=h, steps=round(time / h))


def variations(time: float, n: int, few: bool = False) -> dict[str, Lyapunov]:
    """Other bumps and other starts, at G = 0.8; `few`: only the start that is not chaotic."""
    same = {"the same place, s = (2, 2)": exponent(time, n=n, s=(2.0, 2.0))}
    if few:
        return same
    return same | {
        "s = (1.3, 3.5)": exponent(time, n=n, s=(1.3, 3.5)),
        "F = 0.6, G = (0.8, 0.48)": exponent(time, n=n, F=0.6, G=(0.8, 0.48)),
        "periodic ends": exponent(time, n=n, ends="periodic"),
        f"cubic bump, n = {2 * n}": exponent(time, n=2 * n, degree=3),
        f"n = {2 * n} with the bump of n = {n}": exponent(time, n=2 * n, width=2),
        f"n = {2 * n} with the bump of n = {n // 2}": exponent(time, n=2 * n, width=4),
    }


def parting(time: float, h: float, parts: int = 10) -> float:
    """The rate at which two paths 1e-9 apart part, followed along characteristics, G = 0.8.

    Of each part of the time the largest distance is taken, and a line laid through its logarithms.
    """
    system, steps = StringsInContact(G=0.8, n=64), round(time / h)

    def rest(x: Any) -> Any:
        return 0.0 * np.asarray(x)

    first, second = (
        characteristic_path(
            system, (PLACES[0] + e, PLACES[1] + e), rest, np.cos, rest, rest, h=h, steps=steps
        ).s[:, 0]
        for e in (0.0, 1e-9)
    )
    largest = [np.max(part) for part in np.array_split(np.abs(first - second), parts)]
    middles = time / parts * (np.arange(parts) + 0.5)
    return float(np.polyfit(middles, np.log(largest), 1)[0])


def paths(segments: tuple[int, ...]) -> Paths:
    """Exact solutions that are not chaotic: round a ring, and in the same place of fixed ends."""
    errors = {}
    for name, ends, s, duration in (
        ("periodic", "periodic", (2.0, 3.3), 20.0),
        ("same_place", "fixed", (2.0, 2.0), 20.0),
    ):
        errors[name] = []
        for n in segments:
            system = StringsInContact(F=0.6, G=(0.5, 0.3), n=n, ends=ends)
            run = _run(system, s, duration)
            missed = run.g[2][:, 0] - exact_path(system, s[0], run.t)
            errors[name].append(float(np.max(np.abs(missed))))
    return Paths(segments, **errors)


def _run(system: StringsInContact, s: tuple[float, float], time: float, v: Any = None):
    """A run from sin x at rest, saved about thirty times a period."""
    h = float(system.spacing) / 2
    every = max(1, system.n // 16)
    steps = max(1, round(time / (every * h))) * every
    start = system.at(s, u=np.sin, v=v)
    return simulate(system, ContactDKD(), start, h=h, steps=steps, save_every=every, progress=False)


def sounding(seconds: float) -> Trajectory:
    """A run long enough for this much sound, on a coarse lattice."""
    return _run(StringsInContact(G=0.8, n=64), PLACES, 1.01 * seconds * 220.0 * PERIOD)


def short(one: Lyapunov) -> dict[str, float]:
    """The numbers of an exponent."""
    return {"exponent": one.exponent, "error": one.error, "growth": one.growth}
