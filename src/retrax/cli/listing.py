"""`retrax list`: what there is to run, and with what."""

import json
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Column, Table

from retrax.integrators.base import VOCABULARY
from retrax.integrators.catalogue import INTEGRATORS, ROLLING
from retrax.systems.catalogue import CASES


def list_(
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """List the cases and the integrators, with the order of each and what it preserves.

    Example: retrax list --json
    """
    if as_json:
        typer.echo(json.dumps({"cases": _cases(), "integrators": _integrators()}, indent=2))
        return
    console = Console()
    cases = Table(
        Column("case", min_width=max(map(len, CASES))),
        "what it is",
        "integrator",
        "h",
        "steps",
        title="Cases",
    )
    for name, case in _cases().items():
        cases.add_row(
            name, case["description"], case["integrator"], f"{case['h']:g} s", f"{case['steps']:,}"
        )
    widest = Column("integrator", min_width=max(map(len, INTEGRATORS)))
    integrators = Table(widest, "order", *VOCABULARY, title="Integrators")
    for name, claims in _integrators().items():
        kept = ["yes" if word in claims["preserves"] else "-" for word in VOCABULARY]
        integrators.add_row(name, str(claims["order"]), *kept)
    meaning = "\n".join(f"{word}: {meaning}" for word, meaning in VOCABULARY.items())
    console.print(cases, integrators, meaning, sep="\n")


def _cases() -> dict[str, dict]:
    rows = {}
    for name, case in CASES.items():
        h, steps = case.length or case.make()[2:]
        rows[name] = {
            "description": case.description,
            "integrator": case.integrator,
            "h": h,
            "steps": steps,
        }
    return rows


def _integrators() -> dict[str, dict]:
    return {
        name: {
            "integrator": repr(integrator),
            "order": integrator.order,
            "preserves": [word for word in VOCABULARY if word in integrator.preserves],
        }
        for name, integrator in (INTEGRATORS | ROLLING).items()
    }
