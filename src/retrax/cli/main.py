"""The command `retrax`. Nothing computes here."""

from importlib.metadata import version
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.text import Text
from typer.core import TyperGroup

from retrax.cli.bench import bench
from retrax.cli.listing import list_
from retrax.cli.report import report
from retrax.cli.reproduce import reproduce
from retrax.cli.resume import resume
from retrax.cli.run import run
from retrax.cli.verify import verify
from retrax.errors import BadInput, Interrupted, RetraxError


class Sentences(TyperGroup):
    """Commands whose errors are sentences: status 2 for bad input, 1 for a run that failed.

    As shells have it, a run that a signal stopped ends with 128 and the number of the signal.
    """

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except RetraxError as error:
            Console(stderr=True, soft_wrap=True).print(Text(str(error), style="red"))
            raise typer.Exit(_status(error)) from error


def _status(error: RetraxError) -> int:
    if isinstance(error, Interrupted):
        return 128 + error.signal
    return 2 if isinstance(error, BadInput) else 1


app = typer.Typer(
    cls=Sentences,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["--help"]},
)
app.command("list")(list_)
app.command()(run)
app.command()(resume)
app.command()(report)
app.command()(reproduce)
app.command()(verify)
app.command()(bench)


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
) -> None:
    """Simulate mechanical systems on Lie groups so that the numbers stay true.

    Example: retrax run heavy-top -o top.nc, then retrax report top.nc
    """
