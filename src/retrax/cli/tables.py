"""Tables for people: framed on a terminal, plain and never cut anywhere else."""

from collections.abc import Sequence

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from retrax.errors import printable

Rows = Sequence[Sequence[str]]


def print_table(columns: Sequence[str], rows: Rows, title: str = "", marked: Rows = ()) -> None:
    """Print a table; columns of numbers to the right, rows in `marked` in red.

    In a pipe or a file it is aligned text, one line a row whatever the width. Control characters
    are spelled out, as in `print_lines`.
    """
    columns, title = [printable(name) for name in columns], printable(title)
    rows, marked = ([[printable(cell) for cell in row] for row in some] for some in (rows, marked))
    if not on_terminal():
        print("\n".join([*([title] if title else []), *align(columns, rows), ""]))
        return
    table = Table(box=box.SIMPLE_HEAD, title=title or None, title_justify="left")
    for k, column in enumerate(columns):
        right = _numbers([row[k] for row in rows])
        table.add_column(column, justify="right" if right else "left", no_wrap=k == 0)
    for row in rows:
        table.add_row(*map(Text, row), style="red" if row in marked else None)
    Console().print(table)


def on_terminal() -> bool:
    """Return whether standard output is a terminal."""
    return Console().is_terminal


def print_lines(*lines: str) -> None:
    """Print sentences, each on a line that the terminal wraps."""
    console = Console(soft_wrap=True, highlight=False)
    for line in lines:
        console.print(Text(printable(line)))


def align(columns: Sequence[str], rows: Rows) -> list[str]:
    """Return a table as lines of text, the names of the columns first."""
    everything = [list(columns), *(list(row) for row in rows)]
    widths = [max(len(row[k]) for row in everything) for k in range(len(columns))]
    right = [_numbers([row[k] for row in rows]) for k in range(len(columns))]

    def line(row: Sequence[str]) -> str:
        cells = zip(row, widths, right, strict=True)
        return "  ".join(c.rjust(w) if r else c.ljust(w) for c, w, r in cells).rstrip()

    return [line(everything[0]), "  ".join("-" * w for w in widths), *map(line, everything[1:])]


def _numbers(cells: Sequence[str]) -> bool:
    """Return whether a column holds numbers, some with a unit, and gaps."""
    filled = [cell for cell in cells if cell not in ("", "-")]
    return bool(filled) and all(cell.lstrip("+-(")[:1].isdigit() for cell in filled)
