"""`retrax report run.nc`: a page and figures of a run, or the page of a plan."""

import json
from pathlib import Path
from typing import Annotated

import typer

from retrax.cli.options import AsJson
from retrax.cli.tables import print_lines
from retrax.files import require_place
from retrax.store.netcdf import load


def report(
    path: Annotated[
        Path,
        typer.Argument(
            help="A run that `retrax run -o` wrote, or a plan of `retrax optimise -o`.",
            metavar="RUN",
        ),
    ],
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            help="Where to write the page.",
            show_default="the file's name, ending in .html",
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Make a page of a run, with the moving body and its invariants, and figures beside it.

    The page of a run that stopped before its end says where and why. A plan has a page as well:
    its motion, its inputs between their bounds, and its costates.

    Example: retrax report top.nc -o top.html
    """
    from retrax.planning.plan_file import holds_plan
    from retrax.show.figures import write_figures
    from retrax.show.page import write_page

    page = path.with_suffix(".html") if output is None else output
    require_place(page)
    if holds_plan(path):
        _report_plan(path, page, as_json)
        return
    run = load(path)
    page = write_page(run, page)
    figures = write_figures(run, page.with_suffix(""))
    if as_json:
        written = {"page": str(page), "figures": [str(figure) for figure in figures]}
        typer.echo(
            json.dumps({**written, "steps": run.steps, "completed": run.completed}, indent=2)
        )
        return
    print_lines(f"The page is {page} (open it in a browser; it needs no network).")
    print_lines("The figures are", *(f"  {figure}" for figure in figures))
    if run.completed < run.steps:
        print_lines(f"The run stopped after {run.completed:,} of {run.steps:,} steps.")


def _report_plan(path: Path, page: Path, as_json: bool) -> None:
    from retrax.planning.plan_file import load_plan

    plan = load_plan(path)
    page = plan.report(page)
    if as_json:
        typer.echo(json.dumps({"page": str(page), **plan.measures()}, indent=2))
        return
    print_lines(f"The page is {page} (open it in a browser; it needs no network).")
