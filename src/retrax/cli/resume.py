"""`retrax resume run.zarr`: go on with a run from its checkpoint."""

import json
from pathlib import Path
from typing import Annotated

import typer

from retrax.simulate.resume import resume as resume_run
from retrax.trajectory.files import require_folder


def resume(
    path: Annotated[Path, typer.Argument(help="What `retrax run --checkpoint` made.")],
    steps: Annotated[
        int | None,
        typer.Option(help="How many steps in all.", show_default="what the run was to have"),
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Keep the whole run in this NetCDF file.")
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object and nothing else.")
    ] = False,
    progress: Annotated[
        bool | None,
        typer.Option(
            "--progress/--no-progress", help="Show progress.", show_default="on a terminal"
        ),
    ] = None,
) -> None:
    """Go on with a run that was stopped, or take it further.

    Example: retrax resume top.zarr --steps 1000000
    """
    if output is not None:
        require_folder(output)
    trajectory = resume_run(path, steps, progress)
    if output is not None:
        trajectory.save(output)
    if as_json:
        typer.echo(json.dumps(trajectory.measures(), indent=2))
        return
    typer.echo(trajectory.summary())
    typer.echo(f"\nThe run is in {path}.")
