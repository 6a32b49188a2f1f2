"""The verification ledger: every integrator on hard problems, every claim with its measurement."""

import json
import warnings
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

from retrax.cases.names import fits
from retrax.errors import CheckFailed
from retrax.files import write_whole
from retrax.integrators.base import AbstractIntegrator
from retrax.run.progress_bar import ProgressOption, reporter
from retrax.systems.integrators import INTEGRATORS
from retrax.testing import measurements
from retrax.testing.constrained import claims_problem, constrained_problem
from retrax.testing.held import HELD, held_problem
from retrax.testing.integrators import check_integrator, check_order
from retrax.testing.measurements import Problem
from retrax.testing.outside import OUTSIDE
from retrax.testing.problems import FIELDS, PROBLEMS
from retrax.trajectory.provenance import versions

# Every claim is measured on the problem that `claims_problem` chooses, the order on these as well.
ORDERS_ON = ("tethered body on SE(3)", "forced top")
CONSTRAINED_ORDERS_ON = (
    "Chaplygin sleigh on SE(2)",
    "blade on SE(3)",
    "forced body with a skew plane",
    "Veselova's body",
)
HELD_CLAIMS_ON, *HELD_ORDERS_ON = HELD

_INTRODUCTION = """\
# Verification

Every integrator is measured on problems without accidental symmetry: an asymmetric heavy top, a
rigid body on SE(3) tied to a stiffening spring away from its centre of mass, and a top that is
damped, pushed and steered by forces that depend on time. Methods for constraints are measured on
Suslov's problem with a full inertia, with and without a weight, on Chaplygin's sleigh, on a blade
on SE(3), on a forced body whose velocities lie in a skew plane, and on Veselova's problem, where
the constraint depends on the configuration. Kahan's method is measured on quadratic fields: a
gyrostat whose rotor has no principal axis, a body in a fluid that is not integrable, and Euler's
top; the methods for strings in contact on a pair of strings that differ in everything. Methods that
keep constraints on positions are measured on a body whose hook slides on a sphere, by an equation
that is written twice, on a forced body on a moving support, and on a plate on a plane and a knife
edge. Contact is measured on a body with a ball off its centre that rolls, slips and flies, and
steps that are driven on a top with a law that acts within the step.
`retrax verify -o docs/verification.md` writes this page; the tests make the same measurements, and
fail if a claim does not hold. What is left after 1e8 steps stands under
[very long runs](long-runs.md).

*Order*: the slope of the last halving of the step, from differences of successive runs that stand
clear of rounding errors; the claim holds within 0.05. The laws are measured at a coarse step,
where one that holds only as h goes to 0 fails. *Group*: the distance from the group, and
*momentum*: the error of the momenta of symmetries, over 2,000 steps of h = 0.1, as is *constraint*:
the velocity across it, relative to the fastest one, and *positions*: that or the value of phi, if
larger. *Symplectic*: the
defect of the symplectic form in one step of h = 0.2. *Symmetric*: the way missed after 100 steps
of h = 0.1 forward and back. *Energy*: the largest error over 20,000 steps of h = 0.05, and *drift*:
the part of it that a straight line explains. A number in brackets belongs to no claim: it shows
what the measurement gives where the law does not hold.
"""


class Row(NamedTuple):
    """One integrator on one problem; numbers that were not measured are `None`."""

    integrator: str
    problem: str
    claimed_order: int
    measured_order: float
    preserves: tuple[str, ...]
    group: float | None = None
    momentum: float | None = None
    symplectic: float | None = None
    symmetric: float | None = None
    constraint: float | None = None
    positions: float | None = None
    energy: float | None = None
    drift: float | None = None
    failure: str | None = None


class Ledger(NamedTuple):
    """All rows, and whether every claim held."""

    rows: tuple[Row, ...]

    @property
    def passed(self) -> bool:
        return all(row.failure is None for row in self.rows)

    def json(self) -> str:
        rows = [row._asdict() for row in self.rows]
        return json.dumps({"passed": self.passed, "rows": rows}, indent=2)

    def markdown(self) -> str:
        """Return the page of the documentation."""
        tables = [_table(title, columns, rows) for title, columns, rows in self.tables()]
        made = ", ".join(f"{name} {version}" for name, version in versions().items())
        return "\n".join([_INTRODUCTION, *tables, f"Measured with {made}.", ""])

    def write(self, path: str | Path) -> Path:
        path = Path(path)
        with write_whole(path) as temporary:
            temporary.write_text(self.markdown())
        return path

    def tables(self) -> Iterable[tuple[str, list[str], list[list[str]]]]:
        """Return the tables of the page: title, columns, rows."""
        always = ["group", "momentum", "symplectic", "symmetric"]
        columns = ["integrator", "order", "measured"]
        claims = [row for row in self.rows if row.energy is not None]
        for problem in dict.fromkeys(row.problem for row in claims):
            laws = [*always, "positions" if problem in HELD else "constraint"]
            rows = [_claims_row(row, laws) for row in claims if row.problem == problem]
            headings = [*columns, *laws, "energy", "drift", "claims hold"]
            yield f"On the {problem}", headings, rows
        orders = [row for row in self.rows if row.energy is None]
        for problem in dict.fromkeys(row.problem for row in orders):
            rows = [_order_cells(row) for row in orders if row.problem == problem]
            yield f"Order on the {problem}", columns, rows


def order_problems(integrator: AbstractIntegrator) -> dict[str, Problem]:
    """Return the problems, by title, on which the order of an integrator is measured as well."""
    if "constraint" in integrator.preserves:
        problems = {title: constrained_problem(title) for title in CONSTRAINED_ORDERS_ON}
    else:
        problems = {title: Problem(*PROBLEMS[title]()) for title in ORDERS_ON}
        if not claims_problem(integrator)[1].system.has_momentum:
            problems = {title: Problem(*make()) for title, make in FIELDS.items()}
            del problems[claims_problem(integrator)[0]]
    if "positions" in integrator.preserves:
        problems |= {title: held_problem(title) for title in HELD_ORDERS_ON}
    return {title: p for title, p in problems.items() if fits(p.system, integrator)}


def verify(
    progress: ProgressOption = None, integrators: Mapping[str, AbstractIntegrator] | None = None
) -> Ledger:
    """Measure every claim of the integrators, those of retrax unless others are given."""
    chosen = INTEGRATORS if integrators is None else integrators
    jobs: list[tuple[str, AbstractIntegrator, str, Problem, Callable]] = [
        (name, integrator, *claims_problem(integrator), _claims)
        for name, integrator in chosen.items()
    ]
    jobs += [
        (name, integrator, HELD_CLAIMS_ON, held_problem(HELD_CLAIMS_ON), _claims)
        for name, integrator in chosen.items()
        if "positions" in integrator.preserves
    ]
    jobs += [
        (name, integrator, title, problem, _order)
        for name, integrator in chosen.items()
        for title, problem in order_problems(integrator).items()
    ]
    if integrators is None:
        found = [make() for make in OUTSIDE.values()]
        jobs += [(one.name, one.integrator, one.title, one.problem, _order) for one in found]
    rows = []
    with reporter(progress, "verifying") as report, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a method that warns of its order is measured like others
        for done, (name, integrator, title, problem, measure) in enumerate(jobs):
            report(done, len(jobs))
            rows.append(measure(Row, name, integrator, title, problem))
        report(len(jobs), len(jobs))
    return Ledger(tuple(rows))


def _claims(make, name: str, integrator: AbstractIntegrator, title: str, problem: Problem) -> Row:
    """Measure all claims, and the laws that are not claimed as well."""
    failure = None
    try:
        measured = check_integrator(integrator, problem)
    except CheckFailed as reason:
        failure, measured = str(reason), {"order": measurements.order(integrator, problem).order}
    kept = measurements.conservation(integrator, problem)
    measured.setdefault("group", kept.group)
    measured.setdefault("momentum", kept.momentum)
    if problem.system.constraint is not None and title not in HELD:
        measured.setdefault(
            "constraint", measurements.constraint_errors(integrator, problem).constraint
        )
    if "group" in integrator.preserves:
        measured.setdefault("symmetric", measurements.symmetry_defect(integrator, problem))
    amplitude, drift = measurements.energy(integrator, problem)
    measured.update(energy=amplitude, drift=drift)
    return _row(make, name, integrator, title, problem, measured, failure)


def _order(make, name: str, integrator: AbstractIntegrator, title: str, problem: Problem) -> Row:
    failure = None
    try:
        order = check_order(integrator, problem)
    except CheckFailed as reason:
        failure, order = str(reason), measurements.order(integrator, problem).order
    return _row(make, name, integrator, title, problem, {"order": order}, failure)


def _row(make, name, integrator, title, problem, measured: dict[str, float], failure) -> Row:
    order = measured.pop("order")
    return make(
        integrator=name,
        problem=title,
        claimed_order=integrator.order_on(problem.system),
        measured_order=order,
        preserves=tuple(sorted(integrator.preserves)),
        failure=failure,
        **measured,
    )


def _order_cells(row: Row) -> list[str]:
    return [f"`{row.integrator}`", str(row.claimed_order), f"{row.measured_order:.3f}"]


def _claims_row(row: Row, laws: list[str]) -> list[str]:
    def cell(law: str) -> str:
        value = getattr(row, law)
        if value is None:
            return ""
        return f"{value:.0e}" if law in row.preserves else f"({value:.0e})"

    energy = [f"{row.energy:.1e}", f"{row.drift:+.0e}"]
    verdict = "yes" if row.failure is None else row.failure
    return [*_order_cells(row), *map(cell, laws), *energy, verdict]


def _table(title: str, columns: list[str], rows: list[list[str]]) -> str:
    lines = [columns, ["---"] * len(columns), *rows]
    return "\n".join([f"## {title}", "", *("| " + " | ".join(line) + " |" for line in lines), ""])
