"""A run as a piece of a page: what notebooks show."""

from html import escape
from typing import TYPE_CHECKING

from retrax.trajectory.summary import COLUMNS, heading, rows

if TYPE_CHECKING:
    from retrax.trajectory.trajectory import Trajectory


def html(run: "Trajectory", image: str | None = None) -> str:
    """The summary of a run as HTML, every name in it escaped; `image`: an address to show below."""
    title, *lines = map(escape, heading(run))
    head = "".join(f"<th>{escape(name)}</th>" for name in COLUMNS)
    body = "".join(
        f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>" for row in rows(run)
    )
    picture = (
        f'<img alt="velocity and errors of the invariants over time" src="{escape(image)}">'
        if image
        else ""
    )
    return (
        f"<div><strong>{title}</strong><br>{'<br>'.join(lines)}"
        f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{picture}</div>"
    )
