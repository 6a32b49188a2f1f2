"""A run in words and numbers: a table for people, and a piece of a page for notebooks."""

from html import escape
from typing import TYPE_CHECKING, Any

import jax
import numpy as np

from retrax.errors import printable
from retrax.trajectory.contact_events import KINDS
from retrax.trajectory.energy_balance import balance_of
from retrax.trajectory.observe import aliasing, deviations, drift
from retrax.trajectory.reactions import had_contact, has_contact

if TYPE_CHECKING:
    from retrax.trajectory.trajectory import Trajectory


COLUMNS = ("invariant", "initial", "largest error", "drift per second")


def summary(run: "Trajectory") -> str:
    """Tell what was run, how fast, and how well each invariant held."""
    return "\n".join([*heading(run), "", *_align([COLUMNS, *rows(run)])])


def heading(run: "Trajectory") -> list[str]:
    """Tell what was run, how far and how fast, and where an energy went that changed."""
    rate = run.completed / run.seconds if run.seconds > 0 else 0.0
    per_step = float(np.sum(run.info.iterations)) / max(run.completed, 1)
    warning = aliasing(run)
    balance = energy_balance_line(run)
    return [
        f"{run.provenance['system']} by {run.provenance['integrator']}",
        f"{run.completed:,} steps of h = {run.h:g} s, from t = {run.t[0]:g} to {run.t[-1]:g} s, "
        f"{len(run.t):,} states saved",
        f"{run.seconds:.3g} s ({rate:,.0f} steps/s), compiled in {run.compile_seconds:.2g} s; "
        f"{per_step:.2f} {name_counts(run)} a step",
        *(f"event {printable(name)!r}: {told}" for name, told in run.events.words().items()),
        *(line for line in (balance, warning and f"Note: {warning}") if line is not None),
        *([f"Energy and invariants are not known: {run.lacking}."] if run.lacking else []),
    ]


def energy_balance_line(run: "Trajectory") -> str | None:
    """Tell in one sentence where the energy went; `None` where it is an invariant."""
    if has_contact(run):
        return f"energy {run.energy()[0]:.10g} J at the start; {run.energy_book().words()}"
    found = balance_of(run)
    if found is None:
        return None
    end = found.at_the_end()
    if had_contact(run):
        return (
            f"energy {run.energy()[0]:.10g} J at the start; it changed by {end['change']:+.6g} J. "
            "What of it friction and impacts took, this file does not tell: it lacks functions."
        )
    known = "" if np.isnan(found.uncertainty) else f", known to {found.uncertainty:.1e} J or better"
    return (
        f"energy {run.energy()[0]:.10g} J at the start; it changed by {end['change']:+.6g} J, and "
        f"the work done on the system is {end['work']:+.6g} J (from {len(run.t):,} saved states"
        f"{known}): difference {end['difference']:+.2e} J"
    )


def rows(run: "Trajectory") -> list[tuple[str, ...]]:
    """Tell how well each invariant held, one row each under `COLUMNS`."""
    found = []
    for name, values in run.observations.invariants.items():
        worst = float(np.max(np.abs(deviations(values))))
        found.append((name, f"{values[0]:.10g}", f"{worst:.2e}", f"{drift(run.t, values):+.2e}"))
    defect = run.group_defect()
    found.append(
        (f"distance from {run.provenance['group']}", f"{defect[0]:.2g}", f"{max(defect):.2e}", "")
    )
    if run.multipliers.shape[1]:
        broken = run.constraint_violation()
        found.append(
            ("velocity across the constraint", f"{broken[0]:.2g}", f"{max(broken):.2e}", "")
        )
    return found


def name_counts(run: "Trajectory") -> str:
    """Name what the iterations of a run count."""
    return run.provenance.get("counted", "iterations")


def _align(rows: list[tuple[str, ...]]) -> list[str]:
    widths = [max(len(row[k]) for row in rows) for k in range(len(rows[0]))]

    def line(row: tuple[str, ...]) -> str:
        cells = [
            row[0].ljust(widths[0]),
            *(c.rjust(w) for c, w in zip(row[1:], widths[1:], strict=True)),
        ]
        return "  ".join(cells).rstrip()

    rule = "  ".join("-" * w for w in widths)
    return [line(rows[0]), rule, *(line(row) for row in rows[1:])]


def html(run: "Trajectory", image: str | None = None) -> str:
    """Write the summary as HTML, every name escaped; `image`: an address to show below."""
    title, *lines = map(escape, heading(run))
    head = "".join(f"<th>{escape(name)}</th>" for name in COLUMNS)
    body = "".join(
        f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>" for row in rows(run)
    )
    picture = (
        f'<img alt="velocity and errors of the invariants over time" src="{escape(image)}">'
        if image
        else ""
    )
    return (
        f"<div><strong>{title}</strong><br>{'<br>'.join(lines)}"
        f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{picture}</div>"
    )


def measures(run: "Trajectory") -> dict[str, Any]:
    """Return the run in numbers."""
    steps_per_second = run.completed / run.seconds if run.seconds > 0 else 0.0
    found = balance_of(run)
    events = {name: run.events[name].t.tolist() for name in run.events.names}
    balance = None if found is None else found.at_the_end()
    return {
        "case": run.provenance.get("case", run.provenance["system"]),
        "integrator": run.provenance["integrator"],
        "h": run.h,
        "steps": run.completed,
        "seconds": run.seconds,
        "compile_seconds": run.compile_seconds,
        "steps_per_second": steps_per_second,
        "group_defect": float(np.max(run.group_defect())),
        "constraint_violation": _number_or_none(np.max(run.constraint_violation())),
        "invariants": {
            name: {
                "initial": float(values[0]),
                "max_error": float(np.max(np.abs(deviations(values)))),
                "drift": drift(run.t, values),
            }
            for name, values in run.observations.invariants.items()
        },
        "energy_balance": balance,
        **({"events": events} if events else {}),
        **({"contacts": _contacts(run)} if has_contact(run) else {}),
        "final": {
            "t": float(run.t[-1]),
            "g": jax.tree.map(lambda x: np.asarray(x[-1]).tolist(), run.g),
            "momentum": np.asarray(run.momentum[-1]).tolist(),
            "velocity": [_number_or_none(x) for x in run.velocity[-1]],
        },
    }


def _contacts(run: "Trajectory") -> dict[str, Any]:
    """Return what contacts did: how often what happened, and what each took of the energy."""
    book = run.energy_book()
    return {
        "events": {kind: sum(event.kind == kind for event in run.events.entries) for kind in KINDS},
        "friction_work": float(book.friction_work[-1]),
        "friction_uncertainty": float(book.friction_uncertainty[-1]),
        "impact_loss": float(book.impact_loss[-1]),
        "impact_uncertainty": float(book.impact_uncertainty[-1]),
        "difference": float(book.difference[-1]),
        "by_name": {
            name: {
                "friction_work": float(np.sum(one.friction_work)),
                "impact_loss": float(np.sum(one.impact_loss)),
                "smallest_gap": _number_or_none(np.min(one.gap)),
            }
            for name, one in run.contacts.items()
        },
    }


def _number_or_none(x: Any) -> float | None:
    """Return a number for JSON; `None` where a file lacks the functions that it takes."""
    return None if np.isnan(x) else float(x)
