"""Options that several commands share."""

from typing import Annotated

import typer

AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")]
Progress = Annotated[
    bool | None,
    typer.Option("--progress/--no-progress", help="Show progress.", show_default="on a terminal"),
]
