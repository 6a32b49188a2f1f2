"""The command `retrax`: its subcommands, its help, its version."""

from importlib.metadata import entry_points, version
from typing import Annotated

import typer

from retrax.cli.export import export
from retrax.cli.fit import fit
from retrax.cli.flags import Command
from retrax.cli.init import init
from retrax.cli.listing import list_
from retrax.cli.optimise import optimise
from retrax.cli.report import report
from retrax.cli.resume import resume
from retrax.cli.run import run
from retrax.cli.sentences import STATUSES, Sentences
from retrax.cli.verify import verify

app = typer.Typer(
    cls=Sentences,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["--help"]},
    epilog="Ends with status "
    + "; ".join(f"{status}: {meaning}" for status, meaning in STATUSES.items())
    + ".",
)
app.command("list", cls=Command)(list_)
for _command in (init, run, resume, report, fit, export, optimise, verify):
    app.command(cls=Command)(_command)
# Packages that know retrax add commands of their own; those on papers come with it.
for _entry in sorted(entry_points(group="retrax.commands"), key=lambda entry: entry.name):
    app.command(cls=Command)(_entry.load())


def _print_version(wanted: bool) -> bool:
    if wanted:
        typer.echo(f"retrax {version('retrax')}")
        raise typer.Exit
    return wanted


@app.callback()
def main(
    show_version: Annotated[
        bool,
        typer.Option(
            "--version", help="Print the version.", callback=_print_version, is_eager=True
        ),
    ] = False,
    traceback: Annotated[
        bool, typer.Option("--traceback", help="Show where an unexpected error comes from.")
    ] = False,
) -> None:
    """Simulate mechanical systems on Lie groups so that the numbers stay true.

    Example: retrax run heavy-top -o top.nc, then retrax report top.nc
    """
