"""Rods that touch: what is known in closed form about a capstan, a twisted ring and a knot."""

import math
from pathlib import Path

from retrax_papers.catalogue import Paper, Part
from retrax_papers.drawings import write_drawings
from retrax_papers.report import Reproduction, motion
from retrax_papers.touching import capstan, figures, findings, knot, ring

# The bending stiffness of a rod that is a thread, over the load and the post's radius squared.
_THREAD = 1e-6
# The speed at which one sees it move, in m/s; there drag adds to its tension.
_SEEN = 0.3


def around_a_post(folder: Path, quick: bool) -> Reproduction:
    """Slide rods around a post, with several frictions, angles and segments."""
    half = math.pi
    cases = [(12, half, 0.2, _THREAD), (24, half, 0.2, _THREAD), (24, half, 0.4, _THREAD)]
    if not quick:
        cases += [(24, half, 0.4, 1e-2), (24, half, 0.4, 1e-4)]
        cases += [(48, half, 0.4, _THREAD), (48, 2 * half, 0.2, _THREAD)]
    found = [capstan.slide(*case)[0] for case in cases]
    _, seen = capstan.slide(24, half, 0.2, _THREAD, _SEEN)
    page = motion(seen, folder, "capstan", "A rod is pulled around a post (animation)")
    numbers = {
        f"f = {one.friction:g}, EI = {one.bending:g}, kink {one.kink:.4f}, angle {one.wrap:.4f}": {
            "ratio": one.ratio, "law": one.law, "per kink": one.per_kink,
            "per kink, (3)": one.kink_law, "least gap": one.least,
        }
        for one in found
    }  # fmt: skip
    pictures = write_drawings(folder, [figures.capstan(found)])
    said = tuple(findings.capstan(found))
    return Reproduction(said, {"capstan": numbers}, pictures, extras=(page,))


def threshold(folder: Path, quick: bool) -> Reproduction:
    """Find the twist at which the ring buckles, on several lattices."""
    sizes = (20,) if quick else (20, 40, 80)
    found = {n: ring.threshold(n) for n in sizes}
    pictures = write_drawings(folder, [figures.thresholds(found)])
    numbers = {"critical twist": {str(n): twist for n, twist in found.items()},
               "closed form": ring.CRITICAL}  # fmt: skip
    return Reproduction(tuple(findings.threshold(found)), {"ring": numbers}, pictures)


def writhing(folder: Path, quick: bool) -> Reproduction:
    """Twist a ring up to its threshold, and beyond until it touches itself."""
    n, most = (120, 1.5) if quick else (160, 1.7)
    below, _ = ring.twisted(40 if quick else 80, 0.2, 0.9, 60.0)
    found, run = ring.twisted(n, 0.2, most, 60.0)
    what = "A ring is twisted: see it leave its plane and touch itself (animation)"
    page = motion(run, folder, "ring", what)
    numbers = {
        "height below the threshold": float(below.height.max()),
        "height above it": float(found.height.max()),
        "least gap": float(min(below.gap.min(), found.gap.min())),
    }
    pictures = write_drawings(folder, [figures.writhe(found, run)])
    said = tuple(findings.writhe(below, found))
    return Reproduction(said, {"writhe": numbers}, pictures, extras=(page,))


def overhand(folder: Path, quick: bool) -> Reproduction:
    """Pull an overhand knot slowly, without and with friction."""
    sizes = [(110, 14.0, 4.8e-4 if quick else 2.4e-4, 10.0)]
    if not quick:
        sizes.append((210, 20.0, 1.2e-4, 20.0))
    frictions = (0.0, 0.1) if quick else (0.0, 0.1, 0.2)
    runs = [knot.pulled(n, frictions, way, speed, size) for n, way, speed, size in sizes]
    found = [[one for one, _ in of_size] for of_size in runs]
    what = "An overhand knot is pulled: see the loop close (animation)"
    last = runs[0][-1][1]
    page = motion(last, folder, "knot", what)
    numbers = {
        f"f = {one.friction:g}, R = {one.radius:.1f} a": {
            "T R^2/EI": one.scaled, "loose knot": one.theory, "P a^2/EI": one.push,
            "least gap": one.gap,
        }
        for knots in found for one in knots
    }  # fmt: skip
    pictures = write_drawings(folder, [figures.knot(found, last)])
    return Reproduction(tuple(findings.knot(found)), {"knot": numbers}, pictures, extras=(page,))


PAPER = Paper(
    "touching",
    "Rods that touch",
    "A rod around a post, a twisted ring and an overhand knot, beside what is known about them in "
    "closed form; nothing overlaps, to round-off.",
    (
        Part("capstan", "a rod around a post", around_a_post, (60, 180)),
        Part("threshold", "where a twisted ring buckles", threshold, (20, 40)),
        Part("writhe", "a ring beyond its threshold", writhing, (30, 60)),
        Part("knot", "an overhand knot", overhand, (60, 400)),
    ),
    cover="knot",
    published="Michell 1889; Zajac 1962; Audoly, Clauvelin, Neukirch 2007",
    link="https://doi.org/10.1103/PhysRevLett.99.164301",
    seen="A thin rod is pulled around a post; friction lets its tension grow from the loaded end "
    "to the pulled one.",
)
