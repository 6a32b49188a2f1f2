"""`retrax resume run.zarr`: continue a run from its checkpoint."""

import json
from pathlib import Path
from typing import Annotated

import typer

from retrax.cli.options import AsJson, Progress
from retrax.cli.run import keep
from retrax.cli.tables import print_lines, print_table
from retrax.files import require_place
from retrax.run.resume import resume as resume_run
from retrax.trajectory.summary import COLUMNS, heading, rows


def resume(
    path: Annotated[
        Path, typer.Argument(help="The checkpoint that `retrax run --checkpoint` wrote.")
    ],
    steps: Annotated[
        int | None,
        typer.Option(help="How many steps in all.", show_default="as many as were asked for"),
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Keep the whole run in this NetCDF file.")
    ] = None,
    trust: Annotated[
        list[str] | None,
        typer.Option(
            help="A Python module of yours with functions marked @rx.factory that the checkpoint "
            "may name. It is imported, so its code runs. Repeat the option for several modules.",
            metavar="MODULE",
            show_default="none",
        ),
    ] = None,
    as_json: AsJson = False,
    progress: Progress = None,
) -> None:
    """Continue a run that was stopped, or take it further.

    Example: retrax resume top.zarr --steps 1000000
    """
    if output is not None:
        require_place(output)
    trajectory = resume_run(path, steps, progress, trust=trust or None)
    if output is not None:
        keep(trajectory, output)
    if as_json:
        typer.echo(json.dumps(trajectory.measures(), indent=2))
        return
    print_lines(*heading(trajectory), "")
    print_table(COLUMNS, rows(trajectory))
    print_lines(f"The run is in {path}.")
