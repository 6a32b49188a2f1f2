"""`retrax verify`: measure every claim of every integrator."""

import json
from pathlib import Path
from typing import Annotated

import typer

from retrax.trajectory.files import require_folder


def verify(
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Write the table to this Markdown file.")
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
    """Measure the order of every integrator and everything it claims to preserve.

    Ends with status 1 when a claim does not hold.

    Example: retrax verify -o docs/verification.md
    """
    if output is not None:
        require_folder(output)
    from retrax.testing.ledger import verify as measure

    ledger = measure(progress=progress)
    if output is not None:
        ledger.write(output)
    if as_json:
        rows = [row._asdict() for row in ledger.rows]
        typer.echo(json.dumps({"passed": ledger.passed, "rows": rows}, indent=2))
    else:
        typer.echo(ledger.markdown())
        if output is not None:
            typer.echo(f"\nThe table is in {output}.")
    if not ledger.passed:
        raise typer.Exit(1)
