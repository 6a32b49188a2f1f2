"""`retrax reproduce`: the figures and tables of papers, computed again."""

from pathlib import Path
from typing import Annotated

import typer

from retrax.cli.choices import choose
from retrax.reproduce.catalogue import PAPERS
from retrax.trajectory.files import require_folder


def reproduce(
    paper: Annotated[str, typer.Argument(help="A paper, or `all`.")] = "all",
    output: Annotated[
        Path,
        typer.Option("--output", "-o", help="The folder; one for each paper is made in it."),
    ] = Path("reproduced"),
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object and nothing else.")
    ] = False,
) -> None:
    """Compute a paper's figures and tables again, and compare them with what it says.

    Leaves figures, `table.md` and `numbers.json` in a folder.

    Example: retrax reproduce nonholonomic -o papers
    """
    names = list(PAPERS) if paper == "all" else [paper]
    makers = {name: choose("paper", name, PAPERS) for name in names}
    require_folder(output)
    texts = {}
    for name, make in makers.items():
        folder = output / name
        folder.mkdir(parents=True, exist_ok=True)
        done = make(folder)
        paths = done.write(folder)
        texts[name] = done.json()
        if not as_json:
            typer.echo(done.markdown())
            typer.echo("Written:\n" + "\n".join(f"  {path}" for path in paths))
    if as_json:
        parts = ", ".join(f'"{name}": {text}' for name, text in texts.items())
        typer.echo(f"{{{parts}}}" if len(texts) > 1 else next(iter(texts.values())))
