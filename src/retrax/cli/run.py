"""`retrax run CASE`: simulate, say how well it went, keep the run if asked to."""

import json
from pathlib import Path
from typing import Annotated

import typer

from retrax.cli.choices import choose
from retrax.errors import StepFailed
from retrax.integrators.catalogue import INTEGRATORS, ROLLING
from retrax.simulate.simulate import simulate
from retrax.systems.catalogue import CASES
from retrax.trajectory.files import require_folder
from retrax.trajectory.provenance import labelled
from retrax.trajectory.trajectory import Trajectory

_SAVED_STATES = 2000
_OF_THE_CASE = "that of the case"


def run(
    case: Annotated[str, typer.Argument(help="A name from `retrax list`.")],
    integrator: Annotated[
        str | None, typer.Option(help="A name from `retrax list`.", show_default=_OF_THE_CASE)
    ] = None,
    h: Annotated[
        float | None, typer.Option("--h", help="The step in seconds.", show_default=_OF_THE_CASE)
    ] = None,
    steps: Annotated[
        int | None, typer.Option(help="How many steps.", show_default=_OF_THE_CASE)
    ] = None,
    save_every: Annotated[
        int | None,
        typer.Option(help="Steps between saved states.", show_default=f"{_SAVED_STATES} states"),
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Keep the run in this NetCDF file.")
    ] = None,
    checkpoint: Annotated[
        Path | None,
        typer.Option(help="Keep the run here as it goes on; `retrax resume` goes on with it."),
    ] = None,
    every: Annotated[
        int | None,
        typer.Option(help="Steps between commits to the checkpoint.", show_default="10 s"),
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
    """Simulate a case and print how well its invariants were kept.

    Example: retrax run heavy-top --integrator composition-4 --h 0.02 --steps 5000 -o top.nc
    """
    chosen = choose("case", case, CASES)
    name = integrator or chosen.integrator
    method = choose("integrator", name, INTEGRATORS | ROLLING)
    if output is not None:
        require_folder(output)
    system, state, default_h, default_steps = chosen.make()
    count = default_steps if steps is None else steps
    try:
        trajectory = labelled(case=chosen.name)(simulate)(
            system,
            method,
            state,
            h=default_h if h is None else h,
            steps=count,
            save_every=max(1, round(count / _SAVED_STATES)) if save_every is None else save_every,
            progress=progress,
            checkpoint=checkpoint,
            every=every,
        )
    except StepFailed as failure:
        if output is None:
            raise
        path = _keep(failure.trajectory, chosen.name, output)
        raise StepFailed(f"{failure} It was saved to {path}.", failure.trajectory) from failure
    if output is not None:
        _keep(trajectory, chosen.name, output)
    if as_json:
        measured = {**trajectory.measures(), "case": chosen.name, "integrator": name}
        typer.echo(json.dumps(measured, indent=2))
        return
    typer.echo(trajectory.summary())
    if checkpoint is not None:
        typer.echo(f"\nThe run is in {checkpoint}; `retrax resume {checkpoint}` goes on with it.")
    if output is not None:
        typer.echo(f"\nThe run is in {output}; `retrax report {output}` makes a page of it.")


def _keep(trajectory: Trajectory, case: str, path: Path) -> Path:
    trajectory.provenance["case"] = case
    return trajectory.save(path)
