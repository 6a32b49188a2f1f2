"""The paper on the elastic string pendulum: its figures, and what they cannot show."""

from pathlib import Path

import numpy as np

from retrax.systems.strings.string_pendulum import StringPendulum
from retrax_papers.catalogue import Paper, Part
from retrax_papers.drawings import write_drawings
from retrax_papers.report import Reproduction, kept_by, nearest
from retrax_papers.report import motion as watched
from retrax_papers.string_pendulum import figures, findings, runs


def motion(folder: Path, quick: bool) -> Reproduction:
    """Figs. 1 to 3: five seconds, as in the paper."""
    run, every = runs.paper_run(), runs.every_step()
    naive, readings = runs.naive_momentum(), runs.readings(run)
    kept, length = every.invariants(), every.observables()["stretched length"]
    energy = kept["energy"] - kept["energy"][0]
    early = every.t <= 2.2  # later peaks move with the step
    peaks = [one for one in runs.peaks(every.t[early], length[early], 0.1) if one[1] > 1.08]
    numbers = {
        "energy deviation": [float(np.min(energy)), float(np.max(energy))],
        "largest deviation of J3": float(np.ptp(kept["angular momentum e3"])),
        "largest distance from SO(3)": float(np.max(every.group_defect())),
        "stretched length": [float(np.min(length)), float(np.max(length))],
        "peaks of the stretched length": peaks,
        "first compressed": runs.compressed_from(every),
        "J3 read off differences": naive,
        "readings, r(0.5 s) from A": readings,
    }
    said = (*findings.equations(), *findings.left_open(readings), *findings.kept(every, numbers))
    pictures = write_drawings(
        folder, [figures.figure_1(run), figures.figure_2(run), figures.figure_3(every)]
    )
    page = watched(run, folder, "motion", "The manoeuvre of the paper, coloured by tension")
    rows = tuple(kept_by("LieVerlet, h = 1e-4, every step", every))
    return Reproduction(said, numbers, pictures, rows, (page,))


def growth(folder: Path, quick: bool) -> Reproduction:
    """How fast errors grow."""
    measured = runs.growth(runs.paper_run())
    at = [nearest(measured.t, t) for t in runs.TIMES]
    numbers = {
        "times": list(runs.TIMES),
        "error of position": [float(measured.step[k]) for k in at],
        "error of attitude": [float(measured.turn[k]) for k in at],
        "growth of a nudge of 1e-9": [float(measured.nudge[k]) for k in at],
        "growth from 1 s to 5 s": {
            what: measured.factor(what) for what in ("step", "turn", "nudge")
        },
        "highest swing": [measured.swing, measured.fine_swing],
    }
    pictures = write_drawings(folder, [figures.growth(measured)])
    return Reproduction(tuple(findings.comparable(measured)), numbers, pictures)


def long_run(folder: Path, quick: bool) -> Reproduction:
    """The energy deviation of long runs at three step sizes."""
    measured = {h: runs.plateau(h, 20.0 if quick else 100.0) for h in runs.SIZES}
    numbers = {
        "plateau": {f"h = {h:g}": one.level for h, one in measured.items()},
        "fifth before": {f"h = {h:g}": one.before for h, one in measured.items()},
        "powers of h": findings.powers(measured),
    }
    pictures = write_drawings(folder, [figures.long_run(measured)])
    return Reproduction(tuple(findings.long_run(measured)), numbers, pictures)


def solver(folder: Path, quick: bool) -> Reproduction:
    """The paper's fixed-point iteration against Newton's with the string eliminated."""
    system, _, h, _ = StringPendulum.paper()
    run = runs.paper_run()
    states = [runs.state_at(run, t) for t in runs.LOOKED_AT]
    both = [runs.solvers(system, state, h) for state in states]
    rates = {scale: runs.fixed_point(scale) for scale in runs.SCALES}
    along = [count for count, _ in both]
    newton = float(np.sum(run.info.iterations)) / run.completed
    agreement = max(apart for _, apart in both)
    numbers = {
        "fixed point": {f"arm x {s:g}": list(v) for s, v in rates.items()},
        "fixed-point iterations along the run": along,
        "Newton iterations a step": newton,
        "largest difference of the two solvers": agreement,
    }
    pictures = write_drawings(folder, [figures.solver(rates, newton)])
    return Reproduction(tuple(findings.solver(along, newton, agreement, rates)), numbers, pictures)


PAPER = Paper(
    "string-pendulum",
    "Dynamics of a 3D elastic string pendulum",
    "The discrete equations are right as printed, and the step can be made at a cost in proportion "
    "to the elements. Curves can be compared for two or three seconds only: the motion is chaotic, "
    "and errors grow too fast after that.",
    (
        Part("motion", "Figs. 1 to 3, five seconds", motion, (17, 17)),
        Part("growth", "growth of errors", growth, (2, 2)),
        Part("long-run", "energy over a long time", long_run, (7, 25)),
        Part("solver", "the fixed-point iteration", solver, (12, 12)),
    ),
    cover="figure-2",
    authors="Taeyoung Lee, Melvin Leok, N. Harris McClamroch",
    published="48th IEEE Conference on Decision and Control, 2009",
    link="https://arxiv.org/abs/0903.0332",
    seen="A cylinder on an elastic string falls from the horizontal, swings and bounces.",
)
