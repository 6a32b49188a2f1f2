"""How the command ends: one sentence for every error, and a status that programs can read."""

import contextlib
import errno
import json
import warnings
from collections.abc import Iterator
from typing import Any

import typer
from rich.console import Console
from rich.text import Text
from typer.core import TyperGroup

from retrax.cases.makers import choose, did_you_mean
from retrax.cli.flags import without_types
from retrax.errors import BadInput, Interrupted, RetraxError, printable

FAILED, BAD_INPUT, DEFECT, INTERRUPTED, TERMINATED = 1, 2, 70, 130, 143
STATUSES = {
    0: "all went well",
    FAILED: "a run failed, a claim does not hold, or a file could not be written",
    BAD_INPUT: "a name, an option, a value or a file is wrong",
    DEFECT: "a bug in retrax: please report it",
    INTERRUPTED: "interrupted from the keyboard",
    TERMINATED: "stopped by a signal to terminate; the checkpoint can be resumed",
}

# What the command line itself rejects: a class of typer or of click, depending on the version.
_UsageError: Any = typer.BadParameter.__mro__[1]
_JSON, _TRACEBACK = "retrax.json", "retrax.traceback"


class Sentences(TyperGroup):
    """Commands whose errors are sentences on standard error.

    With `--json` the error is printed as a JSON object as well, so that whoever reads standard
    output always finds exactly one object there.
    """

    def get_params(self, ctx: Any) -> list[Any]:
        return without_types(super().get_params(ctx))

    def parse_args(self, ctx: Any, args: list[str]) -> Any:
        ctx.meta[_JSON] = "--json" in args
        ctx.meta[_TRACEBACK] = "--traceback" in args
        with _ending(ctx):
            return super().parse_args(ctx, args)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        if args and not args[0].startswith("-"):
            choose("command", args[0], self.commands)
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: Any) -> Any:
        with _ending(ctx):
            return super().invoke(ctx)


@contextlib.contextmanager
def _ending(ctx: Any) -> Iterator[None]:
    """Turn an error that is raised inside into a sentence and a status."""
    try:
        with warnings.catch_warnings():
            warnings.showwarning = _show_warning
            yield
    except RetraxError as error:
        _end(ctx, error, str(error), _status(error))
    except _UsageError as error:
        if type(error).__name__ == "NoArgsIsHelpError":
            raise
        _end(ctx, error, _usage(error), BAD_INPUT)
    except KeyboardInterrupt as error:
        _end(ctx, error, "Interrupted: what was not yet written is lost.", INTERRUPTED)
    except OSError as error:
        if error.errno == errno.EPIPE:  # the reader has closed the pipe
            raise
        where = f"{str(error.filename)!r}: " if error.filename else ""
        _end(ctx, error, f"{where}{error.strerror or error}.", FAILED)
    except Exception as error:
        if ctx.meta[_TRACEBACK] or type(error).__module__.startswith(("typer", "click")):
            raise
        told = " ".join(f"{type(error).__name__}: {error}".split())
        _end(
            ctx,
            error,
            f"This is an error in retrax: {told}; `retrax --traceback ...` shows where it is.",
            DEFECT,
        )


def _status(error: RetraxError) -> int:
    if isinstance(error, Interrupted):  # the convention of shells
        return 128 + error.signal
    return BAD_INPUT if isinstance(error, BadInput) else FAILED


def _end(ctx: Any, error: BaseException, sentence: str, status: int) -> None:
    sentence = printable(sentence)
    Console(stderr=True, soft_wrap=True).print(Text(sentence, style="red"))
    if ctx.meta[_JSON]:
        kind = type(error).__name__
        typer.echo(json.dumps({"error": {"kind": kind, "sentence": sentence, "status": status}}))
    raise typer.Exit(status) from error


def _usage(error: Any) -> str:
    """Return the sentence for an option, an argument or a value that a command does not take."""
    if type(error).__name__ == "NoSuchOption" and error.ctx is not None:
        unknown = error.option_name
        known = [name for p in error.ctx.command.params for name in p.opts if name.startswith("--")]
        known += [name for p in error.ctx.command.params for name in p.secondary_opts]
        return (
            f"The option {unknown} is not known to `{error.ctx.command_path}`."
            f"{did_you_mean(unknown, known)} The options are {', '.join(sorted(known))}."
        )
    told = " ".join(error.format_message().split())
    return told if told.endswith((".", "?")) else f"{told}."


def _show_warning(message: Warning | str, *_: Any, **__: Any) -> None:
    Console(stderr=True, soft_wrap=True).print(Text(printable(f"Note: {message}"), style="yellow"))
