"""The paper on Kahan's integrator for the free rigid body: its theorem, and what lies beyond."""

from pathlib import Path

import jax.numpy as jnp

from retrax.run.simulate import simulate
from retrax.systems.kahan_attitude import KahanAttitude
from retrax.systems.rigid_body import FreeRigidBody
from retrax_papers.catalogue import Paper, Part
from retrax_papers.drawings import write_drawings
from retrax_papers.kahan import figures, findings, runs
from retrax_papers.report import Reproduction, kept_by, motion


def theorem(folder: Path, quick: bool) -> Reproduction:
    """Bracket, energy and momentum in one step, of three tops."""
    measured = {name: runs.structure(moments) for name, moments in runs.TOPS.items()}
    numbers = {
        "sizes": list(runs.SIZES),
        "structure": {name: one._asdict() for name, one in measured.items()},
    }
    pictures = write_drawings(folder, [figures.theorem(measured)])
    return Reproduction(tuple(findings.theorem(measured)), numbers, pictures)


def long_runs(folder: Path, quick: bool) -> Reproduction:
    """A million steps: what stays bounded, and what stays."""
    measured = {h: runs.long_run(h, 100_000 if quick else 1_000_000) for h in (0.1, 1.0)}
    numbers = {"long runs": {f"h = {h:g}": one.numbers() for h, one in measured.items()}}
    pictures = write_drawings(folder, [figures.long_runs(measured)])
    kept = tuple(row for one in measured.values() for row in one.kept)
    return Reproduction(tuple(findings.long_runs(measured)), numbers, pictures, kept)


def orbits(folder: Path, quick: bool) -> Reproduction:
    """Momenta on the sphere by four methods, and a body that turns with them."""
    pictures = write_drawings(folder, [figures.orbits(runs.orbit_runs())])
    body = FreeRigidBody(runs.MOMENTS)
    state = body.state(jnp.eye(3), momentum=runs.START)
    run = simulate(body, KahanAttitude(project=True), state, h=0.05, steps=1200, progress=False)
    page = motion(run, folder, "body", "A free rigid body whose momentum takes Kahan's steps")
    kept = tuple(kept_by("KahanAttitude, projected, h = 0.05", run))
    return Reproduction((), {}, pictures, kept, (page,))


def orders(folder: Path, quick: bool) -> Reproduction:
    """Errors of the momentum at t = 100 against the step."""
    errors = runs.error_runs()
    numbers = {"errors at t = 100": {name: dict(rows) for name, rows in errors.items()}}
    pictures = write_drawings(folder, [figures.orders(errors)])
    return Reproduction(tuple(findings.accuracy(errors)), numbers, pictures)


def predators(folder: Path, quick: bool) -> Reproduction:
    """Predators and prey, the system of the theorem that the paper cites."""
    prey = runs.prey_runs()
    pictures = write_drawings(folder, [figures.predators(prey)])
    return Reproduction(tuple(findings.symplectic(prey)), {}, pictures)


def poles(folder: Path, quick: bool) -> Reproduction:
    """Which starts meet a pole of the map."""
    edge = runs.boundary(cells=50 if quick else 100)
    step, determinant = runs.pole()
    numbers = {
        "safe step bound": edge.bound,
        "pole": {"step": step, "determinant": determinant},
    }
    pictures = write_drawings(folder, [figures.poles(edge)])
    return Reproduction(tuple(findings.blow_up(edge, step, determinant)), numbers, pictures)


PAPER = Paper(
    "kahan",
    "Kahan's integrator for the free rigid body dynamics",
    "The theorem's equivalence holds: for bodies with two equal moments the map is Poisson and "
    "preserves the energy, for three different ones it does neither. The map is integrable, and "
    "its poles have a sharp bound.",
    (
        Part("theorem", "bracket, energy and momentum in one step", theorem, (3, 3)),
        Part("long-runs", "long runs", long_runs, (3, 4)),
        Part("orbits", "momenta on the sphere", orbits, (5, 5)),
        Part("orders", "errors against the step", orders, (2, 2)),
        Part("predators", "predators and prey", predators, (2, 2)),
        Part("poles", "starts that meet a pole", poles, (2, 3)),
    ),
    cover="orbits",
    published="authors and year are not named in the copy that was used",
    seen="A free body turns, and its momentum goes round on a sphere in Kahan's steps.",
)
