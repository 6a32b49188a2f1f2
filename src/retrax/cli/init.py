"""`retrax init`: a run file, or a Python file, to start from."""

import json
from importlib.resources import files
from pathlib import Path
from typing import Annotated

import typer

from retrax.cli.options import AsJson
from retrax.cli.tables import print_lines
from retrax.errors import BadInput
from retrax.files import require_place, write_whole

_EXAMPLES = {".toml": "my_case.toml", ".py": "my_system.py"}


def init(
    path: Annotated[
        Path, typer.Argument(help="The file: a run file *.toml, or a Python file *.py.")
    ] = Path("my_case.toml"),
    force: Annotated[bool, typer.Option("--force", help="Write over a file that exists.")] = False,
    as_json: AsJson = False,
) -> None:
    """Write a commented example that runs as it stands.

    Example: retrax init my_case.toml, then retrax run my_case.toml
    """
    if path.suffix not in _EXAMPLES:
        raise BadInput(
            f"path = {str(path)!r} must end in .toml for a run file, or in .py for a Python file."
        )
    require_place(path)
    if path.is_dir() or (path.exists() and not force):
        raise BadInput(f"path = {str(path)!r} exists already; --force writes over a file.")
    example = files("retrax.cases") / "examples" / _EXAMPLES[path.suffix]
    with write_whole(path) as temporary:
        temporary.write_text(example.read_text(encoding="utf-8"), encoding="utf-8")
    command = f"retrax run {path}" + (":make" if path.suffix == ".py" else "")
    if as_json:
        typer.echo(json.dumps({"written": str(path), "run": command}))
    else:
        print_lines(f"{path} is written; `{command}` runs it.")
