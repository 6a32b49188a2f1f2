"""The paper on geometric pseudospectral methods: its figures, its algorithm, and long runs."""

from pathlib import Path

from retrax.integrators.collocation import Collocation
from retrax.numerics.nodes import gauss
from retrax.run.simulate import simulate
from retrax.systems.rigid_body import Pendulum3D
from retrax_papers.catalogue import Paper, Part
from retrax_papers.drawings import write_drawings
from retrax_papers.pseudospectral import figures, findings, runs
from retrax_papers.report import Reproduction
from retrax_papers.report import motion as watched


def diagrams(folder: Path, quick: bool) -> Reproduction:
    """Figs. 1 to 3: the commuting diagrams."""
    measured = runs.commuting()
    pictures = write_drawings(folder, [figures.figures_1_to_3(measured)])
    return Reproduction(
        tuple(findings.diagrams(measured)), {"diagrams": measured._asdict()}, pictures
    )


def pendulum(folder: Path, quick: bool) -> Reproduction:
    """Figs. 4 and 6: the pendulum for 30 s, by every method."""
    short = {name: runs.short_run(method) for name, method in runs.SHORT.items()}
    start = short["geometric Gauss"]
    printed = (runs.printed_energy(start, 0), runs.printed_energy(start, 20))  # t = 0 and 1
    drawings = [figures.figure_4(start), figures.figure_6(short)]
    numbers = {
        "30 s": {name: one.numbers() for name, one in short.items()},
        "printed energy": printed,
    }
    rows = tuple(row for name, one in short.items() for row in one.kept(name))
    said = (*findings.equations(printed), *findings.conservation(short))
    return Reproduction(said, numbers, write_drawings(folder, drawings), rows)


def motion(folder: Path, quick: bool) -> Reproduction:
    """The pendulum of the paper, to watch."""
    system, state, h, steps = Pendulum3D.paper()
    run = simulate(system, Collocation(gauss(2)), state, h=h, steps=steps, progress=False)
    page = watched(run, folder, "motion", "The paper's pendulum for 30 s, by two Gauss nodes")
    return Reproduction(extras=(page,))


def algorithm(folder: Path, quick: bool) -> Reproduction:
    """Fig. 5: Algorithm 1 as printed, corrected, and with all stages solved together."""
    printed = {
        name: [runs.end_error(method, 10.0, h)[0] for h in runs.SIZES]
        for name, method in runs.PRINTED.items()
    }
    at_one = runs.end_error(runs.PRINTED["as printed"], 1.0, 0.0125)[1:]
    errors = runs.convergence((1, 2, 3, 4))
    nodes = runs.spectral((4, 6, 8) if quick else (4, 6, 8, 10, 12))
    numbers = {
        "printed, t = 10": printed,
        "printed, t = 1": at_one,
        "errors at t = 10": {f"s = {s}": dict(rows) for s, rows in errors.items()},
        "h = 1": dict(nodes),
    }
    pictures = write_drawings(folder, [figures.convergence(printed, errors, nodes)])
    said = (*findings.algorithm(printed, at_one), *findings.spectral(nodes))
    return Reproduction(said, numbers, pictures)


def long_runs(folder: Path, quick: bool) -> Reproduction:
    """Energy over long times, on a regular and on a chaotic orbit."""
    steps = 20_000 if quick else 100_000
    start, wild = Pendulum3D.paper()[1], runs.chaotic_start()
    long = {name: runs.long_run(method, start, steps) for name, method in runs.LONG.items()}
    chaotic = {
        name: runs.long_run(method, wild, steps // 4, 0.05) for name, method in runs.LONG.items()
    }
    both = ("geometric Gauss", "variational Gauss")
    defects = runs.symplectic_defects(both[:1] if quick else both)  # the second takes long
    numbers = {
        "long runs": {name: [one.largest, one.slope] for name, one in long.items()},
        "chaotic": {name: [one.largest, one.slope] for name, one in chaotic.items()},
        "symplectic defects": defects,
    }
    pictures = write_drawings(folder, [figures.energy(long, chaotic)])
    return Reproduction(tuple(findings.long_runs(long, chaotic, defects)), numbers, pictures)


PAPER = Paper(
    "pseudospectral",
    "Geometric Pseudospectral Method on Lie Group with application to 3D Pendulum",
    "Collocation in the algebra is spectrally accurate; the algorithm as printed needs two "
    "corrections to converge with order 4. On a group it is not symplectic, and of the two methods "
    "compared converged plain Gauss collocation conserves energy and momentum to round-off.",
    (
        Part("diagrams", "Figs. 1 to 3, commuting diagrams", diagrams, (4, 4)),
        Part("pendulum", "Figs. 4 and 6, the pendulum for 30 s", pendulum, (16, 16)),
        Part("motion", "a motion to watch", motion, (2, 2)),
        Part("algorithm", "Fig. 5, the algorithm and its errors", algorithm, (12, 16)),
        Part("long-runs", "energy over long times", long_runs, (7, 20)),
    ),
    cover="figure-6",
    authors="Jie Li, Honglei An, Xueqiang Gu, Hongtao Xue",
    seen="A rigid body hangs by a point and swings and turns for thirty seconds.",
)
