r"""The measurements of the paper on rods: two crossed rods, two strings, and random forces.

Two crossed rods roll on each other, which is what the three-dimensional part of the paper leaves
open. Its one-dimensional model is two strings in contact. The paper states none of the parameters
of its Fig. 2: here $c = 1$, $l = 2\pi$, fixed ends, $u = \sin x$, $v = 0$, both at rest, $F = 1$,
$s = (2, 2.6)$ and $G_1 = G_2 = 0.8$ unless something else is said; steps of half a segment.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Array, Float

from retrax.analysis.lyapunov import Lyapunov, lyapunov
from retrax.analysis.spectrum import Spectrum, spectrum
from retrax.errors import ContactLost
from retrax.integrators.base import AbstractIntegrator
from retrax.mechanics.state import State
from retrax.run.simulate import simulate
from retrax.systems.rods.crossing import crossed_rods, kick_rods
from retrax.systems.rods.dispersion import dispersion, printed_dispersion
from retrax.systems.rods.pair import RodsInContact
from retrax.systems.rods.pressing import press
from retrax.systems.rods.rolling_verlet import RollingDKD, RollingVerlet
from retrax.systems.strings.characteristics import characteristic_path
from retrax.systems.strings.closed_form import exact_path
from retrax.systems.strings.contact_dkd import ContactDKD
from retrax.systems.strings.strings_in_contact import StringsInContact
from retrax.trajectory.trajectory import Trajectory
from retrax_papers.report import Kept, kept
from retrax_papers.rods.printed import PrintedSlip, PrintedTangency, as_printed

H, TIME = 0.02, 40.0
# More friction than any contact here needs: given, so that all runs share one program.
_PLENTY = 1e9

PLACES = (2.0, 2.6)
COUPLINGS = (0.0, 0.2, 0.4, 0.6, 0.8, 0.9)
PERIOD = 2 * math.pi
# Of the frozen contact: what the lowest lines must be, for F = 1.
_FREQUENCIES = np.linspace(0.01, 2.2, 100_001)
COEFFICIENTS = (0.2, 0.5, 1.0)


class Crossed(NamedTuple):
    """Runs of the pressed rods, gaps under the equations as printed, events, first frequencies."""

    rolling: Trajectory
    forces: dict[str, float]
    gaps: dict[str, float]
    energies: dict[str, float]
    events: dict[str, str]
    frequencies: dict[str, float]


def crossed(time: float, methods: Sequence[AbstractIntegrator]) -> Crossed:
    """Everything that the findings state; `RollingVerlet` must be one of the methods."""
    pair, start = crossed_rods(friction=_PLENTY)
    steps = round(time / H)
    runs: dict[str, Trajectory] = {
        type(method).__name__: simulate(pair, method, start, h=H, steps=steps, progress=False)
        for method in methods
    }
    gaps = {name: _worst_gap(pair, run) for name, run in runs.items()}
    for label, kind in (("printed 8", PrintedTangency), ("printed 10", PrintedSlip)):
        printed = as_printed(kind, pair)
        # (8) has other points of contact.
        g = press(printed, start.g) if kind is PrintedTangency else start.g
        other, begin = kick_rods(printed, g)
        on = "xla" if kind is PrintedSlip else "auto"  # no scalar program has its transpose
        run = simulate(
            other, RollingDKD(), begin, h=H, steps=round(10 / H), save_every=10, backend=on,
            progress=False,
        )  # fmt: skip
        gaps[label] = _worst_gap(pair, run)
    energy = jax.jit(jax.vmap(pair.energy))
    energies = {name: _spread(np.asarray(energy(run.states))) for name, run in runs.items()}
    events = {
        "kick x 8": _event(*kick_rods(pair, start.g, 8.0, friction=_PLENTY)),
        "friction 0.5": _event(*kick_rods(pair, start.g, friction=0.5)),
    }
    rolling = runs["RollingVerlet"]
    return Crossed(rolling, _forces(pair, rolling), gaps, energies, events, _frequencies(pair))


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


def _spread(energy: np.ndarray) -> float:
    return float(np.abs(energy - energy[0]).max())


def _event(pair: RodsInContact, start: State) -> str:
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

    def look(state: State) -> Float[Array, "3"]:
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

    def rest(x: ArrayLike) -> ArrayLike:
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


def _run(
    system: StringsInContact,
    s: tuple[float, float],
    time: float,
    v: Callable[[np.ndarray], np.ndarray] | None = None,
) -> Trajectory:
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


class Estimate(NamedTuple):
    """The part of random forces inside the cone, with its error, and what two formulas say."""

    measured: float
    error: float
    cap: float
    paper: float


def holding(k: float, samples: int, seed: int = 0) -> Estimate:
    r"""How often a contact holds without slip, if its force may push in any direction.

    A force with normal part $N$ and tangential part $T$ holds where $|T| \le kN$: where its angle
    with the normal is at most $\arctan k$. Of the directions of a hemisphere, all alike, these are

    $$ 1 - \cos\arctan k = 1 - \frac1{\sqrt{1+k^2}}. \tag{1} $$
    """
    force = np.random.default_rng(seed).normal(size=(samples, 3))
    normal, tangential = np.abs(force[:, 2]), np.hypot(force[:, 0], force[:, 1])
    inside = float(np.mean(tangential <= k * normal))
    return Estimate(
        inside,
        float(np.sqrt(inside * (1 - inside) / samples)),
        float(1 - 1 / np.sqrt(1 + k * k)),  # (1)
        float(0.5 * k / np.sqrt(1 + k * k)),
    )
