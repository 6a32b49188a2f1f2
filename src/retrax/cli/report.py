"""`retrax report run.nc`: a page and figures of a run."""

from pathlib import Path
from typing import Annotated

import typer

from retrax.trajectory.storage import load


def report(
    path: Annotated[Path, typer.Argument(help="A run that `retrax run -o` wrote.", metavar="RUN")],
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", help="The page.", show_default="the run's name, ending in .html"
        ),
    ] = None,
) -> None:
    """Make a page of a run, with the moving body and its invariants, and figures beside it.

    Example: retrax report top.nc -o top.html
    """
    from retrax.show.figures import write_figures
    from retrax.show.page import write_page

    trajectory = load(path)
    page = write_page(trajectory, path.with_suffix(".html") if output is None else output)
    figures = write_figures(trajectory, page.with_suffix(""))
    typer.echo(f"The page is {page} (open it in a browser; it needs no network).")
    typer.echo("The figures are\n" + "\n".join(f"  {figure}" for figure in figures))
