"""`retrax list`: what there is to run, and with what."""

import json
from typing import Annotated, Any

import typer

from retrax.cases.integrators import READY
from retrax.cli import completion
from retrax.cli.details import details, print_details
from retrax.cli.options import AsJson
from retrax.cli.tables import print_lines, print_table
from retrax.integrators.base import VOCABULARY
from retrax.systems.catalogue import CASES


def list_(
    name: Annotated[
        str | None,
        typer.Argument(
            help="A case, a ready system or an integrator: tell all about it.",
            autocompletion=completion.names,
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """List the cases and the integrators, with the order of each and what it preserves.

    Example: retrax list heavy-top
    """
    if name is not None:
        told = details(name)
        if as_json:
            typer.echo(json.dumps(told, indent=2))
        else:
            print_details(told)
        return
    cases, integrators = _cases(), _integrators()
    if as_json:
        typer.echo(json.dumps({"cases": cases, "integrators": integrators}, indent=2))
        return
    rows = [
        [name, case["description"], case["integrator"], f"{case['h']:g} s", f"{case['steps']:,}"]
        for name, case in cases.items()
    ]
    print_table(["case", "what it is", "integrator", "h", "steps"], rows, "Cases")
    rows = [
        [name, str(claims["order"]), *_marks(claims["preserves"])]
        for name, claims in integrators.items()
    ]
    print_table(["integrator", "order", *VOCABULARY], rows, "Integrators")
    print_lines(*(f"{word}: {meaning}" for word, meaning in VOCABULARY.items()))
    print_lines("", "`retrax list NAME` tells more about one of them.")


def _marks(kept: list[str]) -> list[str]:
    return ["yes" if word in kept else "-" for word in VOCABULARY]


def _cases() -> dict[str, dict[str, Any]]:
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


def _integrators() -> dict[str, dict[str, Any]]:
    return {
        name: {
            "integrator": repr(integrator),
            "order": integrator.order,
            "preserves": [word for word in VOCABULARY if word in integrator.preserves],
        }
        for name, integrator in READY.items()
    }
