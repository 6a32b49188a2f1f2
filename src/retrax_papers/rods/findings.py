"""What the paper on rods says, what was measured, and why they differ."""

import numpy as np

from retrax.analysis.lyapunov import Lyapunov
from retrax_papers.report import Finding, listed
from retrax_papers.rods.runs import Crossed, Estimate, Motion, Paths

_WIDTH = (
    "with a bump of the same width a finer lattice gives the same exponent: it is the width that "
    "counts"
)


def contact(found: Crossed, time: float) -> list[Finding]:
    """Rods in space: what the equations leave open or get wrong."""
    gaps, first = found.gaps, found.frequencies
    return [
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
    ]


def model(moving: Motion) -> list[Finding]:
    """The equations of the model; `moving`: a run with a moving contact."""
    return [
        Finding(
            "(15), second contact",
            "s2' = G2 u_t(s2)",
            "s2' = G2 v_t(s2)",
            "a slip of the pen: s2 lies on the string v",
        ),
        Finding(
            "(15), velocity at a contact",
            "u_t(s)",
            "the mean of u_t on both sides of s",
            "u_t jumps at a moving contact; the contact does no work, and energy is conserved, "
            f"only with the mean (modified energy of the steps within {moving.modified:.0e})",
        ),
        Finding(
            "basic frequency",
            "2 pi c/l",
            "pi c/l is the lowest of fixed ends; 2 pi c/l is that of sin x",
            "the first harmonic must be the component along sin(2 pi x/l)",
        ),
        Finding(
            "Fig. 2",
            "no parameters are stated",
            "drawn for F = 1, G = 0.8, s = (2, 2.6), u = sin x, v = 0",
            "only its appearance can be compared",
        ),
    ]


def spectra(motions: dict[str, Motion], frozen_lines: list[float]) -> list[Finding]:
    """Lines, and what lies between them."""
    free, frozen, moving = (
        motions[name].spectrum for name in ("no contact", "frozen contact", "moving contact")
    )
    lines, exact = frozen.peaks(), np.array(frozen_lines)
    missed = max(float(np.min(np.abs(exact - omega))) for omega in lines[:, 0] if omega < 2.1)
    counts = ", ".join(str(len(one.peaks())) for one in (free, frozen, moving))
    return [
        Finding(
            "many lines as a sign of chaos",
            "overtones appear with contact",
            f"lines above -40 dB without contact, frozen, moving: {counts}; those of the frozen "
            f"contact lie at {', '.join(f'{w:.4f}' for w in lines[:4, 0])}",
            "a contact that does not move is linear and has overtones too, at the roots of its "
            f"own equation (missed by at most {missed:.0e})",
        ),
        Finding(
            "broad spectrum",
            "a broad spectrum",
            f"between the lines, median up to 4 rad/s: {free.floor(4.0):.0f} dB without contact, "
            f"{frozen.floor(4.0):.0f} dB frozen, {moving.floor(4.0):.0f} dB moving",
            "only the moving contact fills the gaps between the lines",
        ),
    ]


def exact(paths: Paths) -> list[Finding]:
    """Motions that are not chaotic."""
    return [
        Finding(
            "chaos for all initial conditions: exact solutions",
            "chaotic for all initial conditions",
            "periodic paths, known in closed form, for every start from rest with periodic ends "
            "and for s1 = s2 with fixed ends; the lattice misses them by "
            f"{listed(paths.periodic)} and {listed(paths.same_place)} for n = "
            f"{', '.join(map(str, paths.segments))}",
            "false as a general statement",
        )
    ]


def chaos(
    exponents: dict[tuple[float, int], Lyapunov],
    variations: dict[str, Lyapunov],
    parting: dict[float, float],
    time: float,
) -> list[Finding]:
    """Exponents, against coupling, lattice, bump and start."""
    sizes = sorted({n for _, n in exponents})
    n = sizes[len(sizes) // 2]
    by_G = ", ".join(f"G = {G:g}: {_number(one)}" for (G, m), one in
                     exponents.items() if m == n)  # fmt: skip
    by_n = ", ".join(f"n = {m}: {_number(exponents[0.8, m])}" for m in sizes)
    others = "; ".join(f"{name}: {_number(one)}" for name, one in variations.items())
    still, weak = exponents[0.0, n], exponents[0.2, n]
    return [
        Finding(
            f"largest exponent against G, n = {n}, T = {time:g}",
            "chaotic",
            by_G,
            f"the linear problem G = 0 grows algebraically, by e^{still.growth:.1f} in this time; "
            f"G = 0.2 by e^{weak.growth:.1f}: an exponent is one only where growth is much larger",
        ),
        Finding(
            "resolution, G = 0.8",
            "-",
            by_n,
            _against_size([exponents[0.8, m] for m in sizes]),
        ),
        Finding(
            "without a lattice, G = 0.8",
            "-",
            ", ".join(f"step {h:g}: {rate:.4f}" for h, rate in parting.items()),
            "two paths 1e-9 apart, along characteristics: no lattice is involved"
            + (", and the rate grows as the step is refined" if _grows(parting) else ""),
        ),
        Finding(
            "other starts and bumps, G = 0.8",
            "-",
            others,
            "strings that touch in the same place have a path known in closed form, which is not "
            "chaotic: what is left of their growth is algebraic"
            + (f"; {_WIDTH}" if len(variations) > 1 else ""),
        ),
    ]


def friction(found: dict[float, Estimate], samples: int) -> list[Finding]:
    """Contacts that hold: random forces against the formula of the paper."""

    def row(values: list[float]) -> str:
        return ", ".join(f"{100 * value:.2f} %" for value in values)

    return [
        Finding(
            "contacts that hold, k = 0.2, 0.5, 1",
            f"0.5 k/sqrt(k^2 + 1): {row([e.paper for e in found.values()])}",
            f"{row([e.measured for e in found.values()])}, +- {100 * found[0.2].error:.2f} % "
            f"({samples:,} random forces)",
            "the cap of a hemisphere has the part 1 - 1/sqrt(1 + k^2): "
            f"{row([e.cap for e in found.values()])}",
        ),
    ]


def _against_size(found: list[Lyapunov]) -> str:
    """What exponents on finer and finer lattices say, and no more."""
    said = "the bump becomes narrower with the segments, its knots one segment apart"
    if not all(_positive(one) for one in found):
        return f"not on every lattice distinguishable from zero in this time; {said}"
    values = [one.exponent for one in found]
    if len(found) > 2 and values == sorted(values):
        return f"positive on every lattice, and larger the finer it is: no limit in sight; {said}"
    return f"positive on every lattice; {said}"


def _grows(parting: dict[float, float]) -> bool:
    """Whether the rates grow as steps are refined."""
    rates = [parting[h] for h in sorted(parting, reverse=True)]
    return len(rates) > 1 and rates == sorted(rates)


def _number(one: Lyapunov) -> str:
    said = f"{one.exponent:.4f} +- {one.error:.4f}"
    return said if _positive(one) else f"{said} (not distinguishable from zero)"


def _positive(one: Lyapunov) -> bool:
    """Whether an exponent is above zero by two standard errors."""
    return one.exponent >= 2 * one.error
