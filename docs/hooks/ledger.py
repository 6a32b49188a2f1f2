"""The measured numbers on the theory pages: rows of verification.md, put where a page asks.

A page says `<!-- ledger: lie-verlet, lie-verlet-exp -->` and gets one table with these rows.
"""

import re
from functools import cache
from pathlib import Path
from typing import NamedTuple

from mkdocs.exceptions import PluginError

_PAGE = Path(__file__).parent.parent / "verification.md"
_PLACE = re.compile(r"<!-- ledger: (.*?) -->")
_LAWS = ("group", "momentum", "symplectic", "symmetric", "constraint", "energy", "drift")


class Measured(NamedTuple):
    """One integrator: its claims on one problem, and its order on all of them."""

    problem: str
    cells: dict[str, str]
    orders: dict[str, tuple[int, float]]


@cache
def ledger() -> dict[str, Measured]:
    """All integrators of the verification page, by name."""
    claims: dict[str, tuple[str, dict[str, str]]] = {}
    orders: dict[str, dict[str, tuple[int, float]]] = {}
    title, columns = "", []
    for line in _PAGE.read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if line.startswith("## "):
            title = re.sub(r"^(Order )?[oO]n the ", "", line[3:])
        elif line.startswith("| integrator"):
            columns = cells
        elif line.startswith("| `"):
            row = dict(zip(columns, cells, strict=True))
            name = row["integrator"].strip("`")
            orders.setdefault(name, {})[title] = (int(row["order"]), float(row["measured"]))
            if "energy" in row:
                claims.setdefault(name, (title, row))
    return {name: Measured(*claims[name], orders[name]) for name in claims}


def on_page_markdown(markdown: str, page, **_) -> str:
    def table(match: re.Match) -> str:
        names = [name.strip() for name in match[1].split(",")]
        unknown = [name for name in names if name not in ledger()]
        if unknown:
            raise PluginError(f"{page.file.src_uri}: {unknown} are not in the verification ledger.")
        return _table(names)

    return _PLACE.sub(table, markdown)


def _table(names: list[str]) -> str:
    rows = [(name, ledger()[name]) for name in names]
    laws = [law for law in _LAWS if any(row.cells[law] for _, row in rows)]
    lines = [["integrator", "order", "measured", *laws], ["---"] * (len(laws) + 3)]
    for name, row in rows:
        claimed = _range(sorted({order for order, _ in row.orders.values()}), "{}")
        measured = _range(sorted(value for _, value in row.orders.values()), "{:.3f}")
        lines.append([f"`{name}`", claimed, measured, *(row.cells[law] for law in laws)])
    where = dict.fromkeys(row.problem for _, row in rows)
    return "\n".join(
        [
            *("| " + " | ".join(line) + " |" for line in lines),
            "",
            f"Laws and energy were measured on the {', the '.join(where)}.",
        ]
    )


def _range(values: list, form: str) -> str:
    first, last = form.format(values[0]), form.format(values[-1])
    return first if first == last else f"{first} to {last}"
