"""Options that several commands share, and the names that the shell completes."""

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

import typer

from retrax.cases.names import READY
from retrax.planning.catalogue import PROBLEMS
from retrax.systems.catalogue import CASES

AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")]
Progress = Annotated[
    bool | None,
    typer.Option("--progress/--no-progress", help="Show progress.", show_default="on a terminal"),
]


def runnable(incomplete: str) -> list[tuple[str, str]]:
    """Return cases with their descriptions, then the run files of this folder."""
    files = [(file.name, "a run file") for file in sorted(Path().glob("*.toml"))]
    return [*cases(incomplete), *beginning(incomplete, files)]


def cases(incomplete: str) -> list[tuple[str, str]]:
    """Return cases with their descriptions."""
    return beginning(incomplete, [(name, case.description) for name, case in CASES.items()])


def integrators(incomplete: str) -> list[tuple[str, str]]:
    """Return integrators with their descriptions."""
    return beginning(incomplete, [(name, repr(ready)) for name, ready in READY.items()])


def problems(incomplete: str) -> list[tuple[str, str]]:
    """Return problems of optimal control with their descriptions."""
    known = [(name, problem.description) for name, problem in PROBLEMS.items()]
    return beginning(incomplete, known)


def names(incomplete: str) -> list[tuple[str, str]]:
    """Return everything that `retrax list NAME` describes."""
    return cases(incomplete) + integrators(incomplete)


def beginning(incomplete: str, known: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    """Keep the names that begin with what has been typed."""
    return [(name, told) for name, told in known if name.startswith(incomplete)]
