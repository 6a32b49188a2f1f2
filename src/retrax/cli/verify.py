"""`retrax verify`: measure every claim of every integrator."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from retrax.cli.options import AsJson, Progress
from retrax.cli.sentences import FAILED
from retrax.cli.tables import on_terminal, print_lines, print_table
from retrax.files import require_place

if TYPE_CHECKING:
    from retrax.testing.ledger import Ledger


def verify(
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Write the table to this Markdown file.")
    ] = None,
    as_json: AsJson = False,
    progress: Progress = None,
) -> None:
    """Measure the order of every integrator and everything it claims to preserve.

    Prints tables on a terminal, Markdown elsewhere. Ends with status 1 if a claim does not hold.

    Example: retrax verify -o docs/verification.md
    """
    if output is not None:
        require_place(output)
    from retrax.testing.ledger import verify as measure

    ledger = measure(progress=progress)
    if output is not None:
        ledger.write(output)
    if as_json:
        rows = [row._asdict() for row in ledger.rows]
        typer.echo(json.dumps({"passed": ledger.passed, "rows": rows}, indent=2))
    else:
        _print(ledger)
        if output is not None:
            print_lines("", f"The table is in {output}.")
    if not ledger.passed:
        raise typer.Exit(FAILED)


def _print(ledger: "Ledger") -> None:
    if not on_terminal():
        typer.echo(ledger.markdown())
        return
    for title, columns, rows in ledger.tables():
        cells = [[cell.strip("`") for cell in row] for row in rows]
        wrong = [row for row in cells if len(row) > 3 and row[-1] != "yes"]
        print_table(columns, cells, title, marked=wrong)
    failed = [f"{row.integrator}: {row.failure}" for row in ledger.rows if row.failure is not None]
    print_lines(*(failed or ["Every claim holds."]))
