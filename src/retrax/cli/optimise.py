"""`retrax optimise`: solve a built-in optimal-control problem."""

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from retrax.cases.makers import choose
from retrax.cli import options
from retrax.cli.options import AsJson
from retrax.cli.tables import print_lines, print_table
from retrax.files import require_place
from retrax.planning.catalogue import PROBLEMS

_USUAL = "that of the case"


def optimise(
    case: Annotated[
        str | None,
        typer.Argument(
            help="A problem from the list that is printed without one.",
            autocompletion=options.problems,
        ),
    ] = None,
    steps: Annotated[
        int | None,
        typer.Option(help="How many steps the plan is divided into.", show_default=_USUAL),
    ] = None,
    duration: Annotated[
        float | None,
        typer.Option(
            help="The duration in seconds; where it is free, the first guess.", show_default=_USUAL
        ),
    ] = None,
    tries: Annotated[
        int | None,
        typer.Option(
            help="How many guesses to start from.",
            show_default="a few where inputs have bounds, else one",
        ),
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Keep the plan in this NetCDF file.")
    ] = None,
    report: Annotated[
        Path | None, typer.Option("--report", help="Write a page of the plan to this HTML file.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Find the inputs that bring a plant to its end at the least cost.

    Example: retrax optimise fastest-slew --steps 200 -o slew.nc --report slew.html
    """
    if case is None:
        _list(as_json)
        return
    ready = choose("case", case, PROBLEMS)
    for place in (output, report):
        if place is not None:
            require_place(place)
    from retrax.planning.optimise import optimise as find
    from retrax.planning.plan import Plan

    problem = ready.make(
        ready.duration if duration is None else duration, ready.steps if steps is None else steps
    )
    plan = find(problem, tries=tries)
    assert isinstance(plan, Plan)
    if output is not None:
        plan.save(output)
    if report is not None:
        plan.report(report)
    if as_json:
        told = {"case": ready.name, **plan.measures()}
        typer.echo(json.dumps(told, indent=2, allow_nan=False))
        return
    heading, *rows = plan.summary().splitlines()
    print_lines(heading, "")
    print_table(["quantity", "value"], [_pair(row) for row in rows])
    if plan.kind == "extremal":
        more = 16 if tries is None else 2 * tries
        print_lines(
            "Note: the conditions of first order hold, but this may be no minimum. Look from more "
            f"guesses: retrax optimise {ready.name} --tries {more}"
        )
    for path, what in ((output, "plan is in"), (report, "page is")):
        if path is not None:
            print_lines(f"The {what} {path}.")


def _pair(line: str) -> list[str]:
    """Return a line of a summary as a name and a value."""
    name, _, value = line.partition("  ")
    return [name.strip(), value.strip()]


def _list(as_json: bool) -> None:
    if as_json:
        told: dict[str, Any] = {
            name: {"description": p.description, "duration": p.duration, "steps": p.steps}
            for name, p in PROBLEMS.items()
        }
        typer.echo(json.dumps({"problems": told}, indent=2))
        return
    rows = [
        [name, p.description, f"{p.duration:g} s{' (guess)' if p.free else ''}", f"{p.steps}"]
        for name, p in PROBLEMS.items()
    ]
    print_table(["problem", "what it is", "duration", "steps"], rows, "Problems")
