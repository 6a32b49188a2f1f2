"""The paper on elastic rods in perfect friction contact: rods in space, strings, and friction."""

from pathlib import Path

from retrax.show.sound import write_sound
from retrax.systems.rods.rolling_verlet import RollingDKD, RollingVerlet
from retrax_papers.catalogue import Paper, Part
from retrax_papers.drawings import write_drawings
from retrax_papers.report import Extra, Reproduction, kept_by, motion
from retrax_papers.rods import figures, findings, runs, sliding


def contact(folder: Path, quick: bool) -> Reproduction:
    """The rods of the test problem, by both integrators and by the equations as printed."""
    time = 10.0 if quick else runs.TIME
    methods = (RollingVerlet(),) if quick else (RollingVerlet(), RollingDKD())
    found = runs.crossed(time, methods)
    drawings = [figures.figure_1(found.rolling), figures.contact_force(found.rolling)]
    pictures = write_drawings(folder, drawings)
    what = "Two rods that roll on each other, with the contact force"
    page = motion(found.rolling, folder, "rods", what)
    numbers = found._asdict()
    del numbers["rolling"]
    kept = tuple(kept_by("RollingVerlet, h = 0.02", found.rolling))
    said = tuple(findings.contact(found, time))
    return Reproduction(said, {"contact": numbers}, pictures, kept, (page,))


def beyond(folder: Path, quick: bool) -> Reproduction:
    """The same rods where the paper leaves them: they slip, part and meet again."""
    time = 2.0 if quick else 10.0
    found = sliding.slides(time)
    pictures = write_drawings(folder, [sliding.figure(found)])
    numbers = {name: one.numbers() for name, one in found.items()}
    return Reproduction(tuple(sliding.findings(found, time)), {"sliding": numbers}, pictures)


def figure_2(folder: Path, quick: bool) -> Reproduction:
    """The string of Fig. 2, spectra, and the sound of a contact."""
    n = 64 if quick else 256
    motions, lines = runs.motions(n), runs.frozen_lines(*runs.PLACES)
    run = runs.picture(n)
    drawings = [figures.figure_2(run, motions["moving contact"]), figures.spectra(motions, lines)]
    write_sound(runs.sounding(1.0 if quick else 3.0), folder / "contact.wav")
    numbers = {
        "energies": {
            name: {"energy": one.energy, "modified": one.modified} for name, one in motions.items()
        },
        "lines above -40 dB": {n: one.spectrum.peaks().tolist() for n, one in motions.items()},
        "floors (dB)": {name: one.spectrum.floor(4.0) for name, one in motions.items()},
        "frozen lines, exact": lines,
    }
    said = (*findings.model(motions["moving contact"]), *findings.spectra(motions, lines))
    kept = tuple(row for one in motions.values() for row in one.kept)
    sound = Extra("contact.wav", "The sound of a string in contact, its first harmonic at 220 Hz")
    return Reproduction(said, numbers, write_drawings(folder, drawings), kept, (sound,))


def paths(folder: Path, quick: bool) -> Reproduction:
    """Exact solutions that are not chaotic."""
    measured = runs.paths((32, 64) if quick else (64, 128, 256))
    return Reproduction(tuple(findings.exact(measured)), {"exact paths": measured._asdict()})


def exponents(folder: Path, quick: bool) -> Reproduction:
    """Is it chaotic? Exponents on several lattices, and along characteristics."""
    time = 300.0 if quick else 2000.0
    sizes = (32, 64) if quick else (64, 128, 256)
    n = sizes[len(sizes) // 2]
    measured = {(G, m): runs.exponent(time, n=m, G=G) for m in sizes for G in runs.COUPLINGS}
    variations = runs.variations(time, n, quick)
    steps = (0.08,) if quick else (0.04, 0.02)
    parting = {h: runs.parting(time / 2, h) for h in steps}
    numbers = {
        "exponents": {f"G = {G:g}, n = {m}": runs.short(o) for (G, m), o in measured.items()},
        "variations": {name: runs.short(one) for name, one in variations.items()},
        "characteristics": {f"h = {h:g}": rate for h, rate in parting.items()},
    }
    pictures = write_drawings(folder, [figures.exponents(measured, time)])
    said = tuple(findings.chaos(measured, variations, parting, time))
    return Reproduction(said, numbers, pictures)


def friction(folder: Path, quick: bool) -> Reproduction:
    """The estimate of the paper by Monte Carlo, against its own formula and (1)."""
    samples = 200_000 if quick else 1_000_000
    found = {k: runs.holding(k, samples) for k in runs.COEFFICIENTS}
    numbers = {f"k = {k:g}": one._asdict() for k, one in found.items()}
    pictures = write_drawings(folder, [figures.friction(found)])
    said = tuple(findings.friction(found, samples))
    return Reproduction(said, {"friction": numbers}, pictures)


PAPER = Paper(
    "rods",
    "Dynamics of elastic rods in perfect friction contact",
    "As printed, the contact of two rods does not keep their distance; corrected, it does to "
    "round-off. The strings are not chaotic for all initial conditions, and far fewer contacts "
    "hold without slip than estimated.",
    (
        Part("contact", "Fig. 1, two rods in rolling contact", contact, (63, 80)),
        Part("beyond", "two rods beyond the end of rolling", beyond, (40, 45)),
        Part("figure-2", "Fig. 2, strings in contact", figure_2, (6, 11)),
        Part("paths", "exact paths", paths, (3, 4)),
        Part("exponents", "Lyapunov exponents", exponents, (9, 150)),
        Part("friction", "contacts that hold", friction, (1, 1)),
    ),
    cover="figure-2",
    authors="François Gay-Balmaz, Vakhtang Putkaradze",
    published="Physical Review Letters 109, 244303, 2012",
    link="https://doi.org/10.1103/PhysRevLett.109.244303",
    seen="Two crossed elastic rods roll on each other without slipping, and the arrow is the force "
    "between them.",
)
