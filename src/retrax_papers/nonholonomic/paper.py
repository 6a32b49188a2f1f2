"""The paper on nonholonomic retraction maps: its two figures, its equations, and orders."""

from pathlib import Path

import jax.numpy as jnp

from retrax.groups.retractions import Exp
from retrax.integrators.lagrange_d_alembert import LagrangeDAlembert
from retrax.run.simulate import simulate
from retrax.systems.suslov import Suslov
from retrax_papers.catalogue import Paper, Part
from retrax_papers.drawings import write_drawings
from retrax_papers.nonholonomic import figures, findings, runs
from retrax_papers.report import Reproduction, kept_by
from retrax_papers.report import motion as watched


def figure_1(folder: Path, quick: bool) -> Reproduction:
    """The adapted integrators of Fig. 1, their momentum, and others beside them."""
    return _schemes(
        folder, runs.constrained_runs(runs.ADAPTED), figures.figure_1, findings.figure_1
    )


def figure_2(folder: Path, quick: bool) -> Reproduction:
    """The unadapted integrator."""
    return _schemes(folder, runs.free_runs(), figures.figure_2, findings.figure_2)


def equations(folder: Path, quick: bool) -> Reproduction:
    """Equations (18) and (19), as they follow from (16) and as the damaged copy reads."""
    measured = runs.constrained_runs({**runs.FIGURE_1, **runs.AS_READ})
    done = _schemes(folder, measured, figures.equations, findings.equations)
    rows = tuple(row for row in done.invariants if row.run in runs.AS_READ)  # the others: Fig. 1
    return done._replace(invariants=rows)


def orders(folder: Path, quick: bool) -> Reproduction:
    """Errors against a closed form, with a full inertia."""
    errors = runs.order_runs()
    pictures = write_drawings(folder, [figures.orders(errors)])
    numbers = {"errors": {name: dict(rows) for name, rows in errors.items()}}
    return Reproduction(tuple(findings.orders(errors)), numbers, pictures)


def motion(folder: Path, quick: bool) -> Reproduction:
    """Suslov's body with a full inertia, which tumbles into a steady turn."""
    body = Suslov(runs.FULL, physical=False)
    state = body.state(jnp.eye(3), velocity=[1.0, 0.5, 0.0])
    run = simulate(body, LagrangeDAlembert(Exp()), state, h=0.02, steps=1500, progress=False)
    page = watched(run, folder, "motion", "Suslov's body with a full inertia")
    rows = kept_by("LagrangeDAlembert, full inertia, h = 0.02", run)
    return Reproduction(invariants=tuple(rows), extras=(page,))


def _schemes(folder: Path, measured, draw, find) -> Reproduction:
    return Reproduction(
        tuple(find(measured)),
        {name: one.numbers() for name, one in measured.items()},
        write_drawings(folder, [draw(measured)]),
        tuple(row for name, one in measured.items() for row in one.kept(name)),
    )


PAPER = Paper(
    "nonholonomic",
    "Geometric integrators for nonholonomic systems on Lie groups",
    "The integrators of Fig. 1 keep the group, the constraint and nearly the energy, as the paper "
    "says. Their momentum drifts from (1, 1) to (1.0488, 0.0001), where the exact motion is a "
    "steady turn. Inverting the paper's definition (11) gives a step that stays at (1, 1).",
    (
        Part("figure-1", "Fig. 1, adapted integrators", figure_1, (12, 12)),
        Part("figure-2", "Fig. 2, unadapted integrator", figure_2, (4, 4)),
        Part("equations", "equations (18) and (19)", equations, (3, 3)),
        Part("orders", "errors against the step", orders, (7, 7)),
        Part("motion", "a motion to watch", motion, (4, 4)),
    ),
    cover="figure-1",
    published="2026",
    link="https://arxiv.org/abs/2604.04962v1",
    seen="A rigid body that may not turn about one of its axes tumbles until it turns steadily "
    "about another.",
)
