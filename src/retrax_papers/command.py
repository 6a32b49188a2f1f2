"""`retrax reproduce`: the figures and tables of papers, computed again, as a gallery."""

import contextlib
import json
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from retrax.cases.makers import choose
from retrax.cli.options import AsJson, beginning
from retrax.cli.sentences import INTERRUPTED
from retrax.cli.tables import print_lines, print_table
from retrax_papers import catalogue
from retrax_papers.gallery import Event, Gallery, make_gallery


def papers(incomplete: str) -> list[tuple[str, str]]:
    """Papers that can be reproduced."""
    known = [(name, "the figures and tables of this paper") for name in catalogue.PAPERS]
    return beginning(incomplete, [*known, ("all", "all of them")])


def reproduce(
    paper: Annotated[str, typer.Argument(help="A paper, or `all`.", autocompletion=papers)] = "all",
    output: Annotated[
        Path, typer.Option("--output", "-o", help="The folder of the gallery.")
    ] = Path("gallery"),
    quick: Annotated[
        bool,
        typer.Option(
            "--quick",
            help="Shorter runs that still fill every figure; all papers take a few minutes.",
        ),
    ] = False,
    force: Annotated[
        bool,
        typer.Option(
            "--force",
            help="Make finished parts again, and write into a folder that is not a gallery.",
        ),
    ] = False,
    workers: Annotated[
        int | None,
        typer.Option(
            "--workers",
            min=1,
            help="Processes that share the work.",
            show_default="2, on one core 1",
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Compute the figures and tables of papers again and compare them with the papers.

    Writes a gallery: `index.html`, and for each paper a page, `table.md`,
    `numbers.json`, and its figures with their data (NetCDF).
    After an interruption the same command continues where it stopped.

    Example: retrax reproduce all --quick -o gallery
    """
    names = list(catalogue.PAPERS) if paper == "all" else [paper]
    for name in names:
        choose("paper", name, {**catalogue.PAPERS, "all": ""})
    try:
        with _watching(as_json) as watch:
            wanted = [catalogue.paper(name) for name in names]
            made = make_gallery(
                wanted,
                output,
                quick=quick,
                force=force,
                workers=workers or min(2, os.cpu_count() or 1),
                watch=watch,
            )
    except KeyboardInterrupt as interruption:
        told = "Interrupted: finished parts are kept, and the same command continues from there."
        Console(stderr=True, soft_wrap=True).print(told, style="red")
        raise typer.Exit(INTERRUPTED) from interruption
    if as_json:
        texts = {name: json.loads(_numbers(made, name).read_text()) for name in names}
        typer.echo(json.dumps(texts if paper == "all" else texts[paper], indent=1))
    else:
        _tell(made)


def _numbers(made: Gallery, name: str) -> Path:
    return made.folder / name / "numbers.json"


def _tell(made: Gallery) -> None:
    rows = [
        [name, f"{len(done.pictures)}", f"{len(done.findings)}", f"{made.seconds[name]:.0f}"]
        for name, done in made.papers.items()
    ]
    print_lines("")
    print_table(["paper", "figures", "findings", "seconds"], rows)
    print_lines(f"The gallery is {made.index} (open it in a browser; it needs no network).")


@contextlib.contextmanager
def _watching(silent: bool) -> Iterator[Callable[[Event], None]]:
    """Lines for finished parts and, on a terminal, a bar with the time left; or nothing at all."""
    if silent:
        yield lambda event: None
        return
    console = Console(stderr=True, highlight=False, soft_wrap=True)
    bar = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f} %,"),
        TimeElapsedColumn(),
        TextColumn("gone, {task.fields[left]}"),
        console=console,
        transient=True,
        disable=not sys.stderr.isatty(),
    )
    with bar:
        task = bar.add_task("Starting", total=1.0, left="")

        def watch(event: Event) -> None:
            what = f"{event.paper.name}: {event.part.what}"
            bar.update(task, description=what, completed=event.done, left=_left(event))
            if event.seconds is not None:
                note = "there already" if event.kept else f"{event.seconds:.1f} s"
                console.print(f"{what} ({note})", markup=False)

        yield watch


def _left(event: Event) -> str:
    """About how long it will take, in words."""
    minutes, seconds = divmod(round(event.left), 60)
    return f"about {minutes} min {seconds:02d} s left" if minutes else f"about {seconds} s left"
