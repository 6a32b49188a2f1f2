"""What theory says about rods that touch, what was measured, and why they differ."""

from collections.abc import Mapping, Sequence

import numpy as np

from retrax_papers.report import Finding
from retrax_papers.touching import ring
from retrax_papers.touching.capstan import Slide
from retrax_papers.touching.knot import SIGMA, Knot
from retrax_papers.touching.ring import Writhe


def capstan(found: Sequence[Slide]) -> list[Finding]:
    """The law of the capstan."""
    return [
        Finding(
            f"T2/T1 around a post, f = {one.friction:g}, angle {one.wrap:.4f}, EI = "
            f"{one.bending:g} T1 R^2",
            f"exp(f angle) = {one.law:.4f} for a thread; with kinks of {np.degrees(one.kink):.1f} "
            f"degrees that touch alike (sinh phi = f sin theta) {_polygon(one, 1):.4f}, "
            f"where only every other one touches {_polygon(one, 2):.4f}",
            f"{one.ratio:.4f}, {100 * (one.ratio / one.law - 1):+.2f} % from the law of a thread",
            "segments touch with their middles, and pressures of neighbours are not unique; both "
            "polygons approach the thread with the kink squared",
        )
        for one in found
    ]


def _polygon(one: Slide, every: int) -> float:
    kinks = (len(one.tension) - 9) / every
    return float(np.exp(kinks * np.arcsinh(one.friction * np.sin(every * one.kink))))


def threshold(found: Mapping[int, float]) -> list[Finding]:
    """Michell's twist."""
    told = ", ".join(
        f"{twist:.5f} ({100 * (twist / ring.CRITICAL - 1):+.2f} %) with {n} segments"
        for n, twist in found.items()
    )
    return [
        Finding(
            "the twist at which a ring buckles, GJ/EI = 2/3",
            f"2 pi sqrt(3) EI/GJ = {ring.CRITICAL:.5f}",
            told,
            "where the planar ring has a second mode without stiffness",
        )
    ]


def writhe(below: Writhe, above: Writhe) -> list[Finding]:
    """The ring below and above the threshold."""
    touches = above.gap < 1e-9
    when = float(above.twist[np.argmax(touches)]) if touches.any() else float("nan")
    return [
        Finding(
            f"a ring twisted to 0.9 and {above.twist[-1]:.2g} times the critical twist",
            "planar below; above it writhes and touches itself",
            f"height at the end {below.height[-1]:.3f} m below, {above.height[-1]:.2f} m above; "
            + (f"it first touches itself at {when:.2f} of the critical twist" if touches.any() else
               "it does not touch itself in this time"),
            "below, the height is that of the shear that a twisted rod of finite stiffness has",
        ),
        Finding(
            "overlap of the ring",
            "none",
            f"least gap between all segments {min(below.gap.min(), above.gap.min()):.0e} m",
            "contact is solved to round-off in every step",
        ),
    ]  # fmt: skip


def knot(found: Sequence[Sequence[Knot]]) -> list[Finding]:
    """Traction against opening: knots of a size each, the first of them smooth."""
    rows = [
        Finding(
            f"traction T R^2/EI, f = {one.friction:g}, R = {one.radius:.1f} a",
            f"the leading order of a loose knot, 1/2 + 0.492 f sqrt(R/a): {one.theory:.3f}",
            f"{one.scaled:.3f}",
            f"corrections are of the order sqrt(a/R) = {one.radius**-0.5:.2f}, with a factor of "
            "several in the friction: see the next rows",
        )
        for knots in found
        for one in knots
    ]
    for smooth, *rough in found:
        rows += [_rubbed(smooth, one) for one in rough]
    rows.append(_excess(found))
    every = [one for knots in found for one in knots]
    off = max(float(np.ptp(knots[0].integral) / knots[0].traction[-1]) for knots in found)
    return [
        *rows,
        Finding(
            "EI curvature^2/2 + axial force along a knot without friction",
            "the same at every point, and equal to the traction",
            f"the same within {100 * off:.0f} % of the traction",
            "the soft rod of the study also stores energy in stretch and shear; segments are not "
            "short against the braid",
        ),
        Finding(
            "overlap of the knots",
            "none",
            f"least gap between all segments {min(one.gap for one in every):.0e} m",
            "contact is solved to round-off in every step",
        ),
    ]


def _rubbed(smooth: Knot, rough: Knot) -> Finding:
    """Whether friction adds what the forces in the knot say."""
    added = float(np.mean(rough.traction[rough.late]) - np.mean(smooth.traction[smooth.late]))
    push = (smooth.push + rough.push) / 2
    return Finding(
        f"what friction adds to the traction, over f EI/a^2; f = {rough.friction:g}, "
        f"R = {rough.radius:.1f} a",
        f"the force P with which strands press: {push:.3e}",
        f"{added / rough.friction:.3e}, {100 * (added / rough.friction / push - 1):+.1f} %",
        "the work of a pull, T de, goes into bending and into friction, f P de; P is the mean of "
        "those without and with friction",
    )


def _excess(found: Sequence[Sequence[Knot]]) -> Finding:
    """By how much smooth knots miss the leading order, in parts of its next one."""
    smooth = [knots[0] for knots in found]

    def told(missed: Sequence[float]) -> str:
        return ", ".join(
            f"{x * one.radius**0.5:.2f} (R = {one.radius:.0f} a)"
            for x, one in zip(missed, smooth, strict=True)
        )

    pull = told([one.scaled - 0.5 for one in smooth])
    push = told([one.push * one.radius**1.5 - SIGMA for one in smooth])
    return Finding(
        "T R^2/EI - 1/2, and P R^2/EI sqrt(a/R) - 0.492, of smooth knots, over sqrt(a/R)",
        "bounded as knots become loose",
        f"{pull}; and {push}",
        "what is missing is of the next order, and large: a braid of these knots is a quarter of "
        "the loop",
    )
