"""The paper on elastic rods in perfect friction contact: rods in space, strings, and friction."""

from pathlib import Path

from retrax.reproduce import rods_strings as strings
from retrax.reproduce import rods_strings_figures as figures
from retrax.reproduce import rods_strings_findings as found
from retrax.reproduce.drawings import write_drawings
from retrax.reproduce.paper import Paper, Part
from retrax.reproduce.report import Extra, Reproduction
from retrax.reproduce.rods_contact import contact
from retrax.reproduce.rods_friction import friction
from retrax.show.sound import write_sound


def figure_2(folder: Path, quick: bool) -> Reproduction:
    """The string of Fig. 2, spectra, and the sound of a contact."""
    n = 64 if quick else 256
    motions, lines = strings.motions(n), strings.frozen_lines(*strings.PLACES)
    run = strings.picture(n)
    drawings = [figures.figure_2(run, motions["moving contact"]), figures.spectra(motions, lines)]
    write_sound(strings.sounding(1.0 if quick else 3.0), folder / "contact.wav")
    numbers = {
        "energies": {
            name: {"energy": one.energy, "modified": one.modified} for name, one in motions.items()
        },
        "lines above -40 dB": {n: one.spectrum.peaks().tolist() for n, one in motions.items()},
        "floors (dB)": {name: one.spectrum.floor(4.0) for name, one in motions.items()},
        "frozen lines, exact": lines,
    }
    said = (*found.model(motions["moving contact"]), *found.spectra(motions, lines))
    kept = tuple(row for one in motions.values() for row in one.kept)
    sound = Extra("contact.wav", "The sound of a string in contact, its first harmonic at 220 Hz")
    return Reproduction(said, numbers, write_drawings(folder, drawings), kept, (sound,))


def paths(folder: Path, quick: bool) -> Reproduction:
    """Exact solutions that are not chaotic."""
    measured = strings.paths((32, 64) if quick else (64, 128, 256))
    return Reproduction(tuple(found.exact(measured)), {"exact paths": measured._asdict()})


def exponents(folder: Path, quick: bool) -> Reproduction:
    """Is it chaotic? Exponents on several lattices, and along characteristics."""
    time = 300.0 if quick else 2000.0
    sizes = (32, 64) if quick else (64, 128, 256)
    n = sizes[len(sizes) // 2]
    measured = {(G, m): strings.exponent(time, n=m, G=G) for m in sizes for G in strings.COUPLINGS}
    variations = strings.variations(time, n, quick)
    steps = (0.08,) if quick else (0.04, 0.02)
    parting = {h: strings.parting(time / 2, h) for h in steps}
    numbers = {
        "exponents": {f"G = {G:g}, n = {m}": strings.short(o) for (G, m), o in measured.items()},
        "variations": {name: strings.short(one) for name, one in variations.items()},
        "characteristics": {f"h = {h:g}": rate for h, rate in parting.items()},
    }
    pictures = write_drawings(folder, [figures.exponents(measured, time)])
    said = tuple(found.chaos(measured, variations, parting, time))
    return Reproduction(said, numbers, pictures)


PAPER = Paper(
    "rods",
    "Dynamics of elastic rods in perfect friction contact",
    "As printed, the contact of two rods does not keep their distance; corrected, it does to "
    "round-off. The strings are not chaotic for all initial conditions, and far fewer contacts "
    "hold without slip than estimated.",
    (
        Part("contact", "Fig. 1, two rods in rolling contact", contact, (63, 80)),
        Part("figure-2", "Fig. 2, strings in contact", figure_2, (6, 11)),
        Part("paths", "exact paths", paths, (3, 4)),
        Part("exponents", "Lyapunov exponents", exponents, (9, 150)),
        Part("friction", "contacts that hold", friction, (1, 1)),
    ),
    cover="figure-2",
)
