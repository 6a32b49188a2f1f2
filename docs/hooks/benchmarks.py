"""The fastest methods at each accuracy: tables of benchmarks.md, put where a page asks."""

import re
from pathlib import Path

_PAGE = Path(__file__).parent.parent / "benchmarks.md"
_PLACE = "<!-- fastest at each accuracy -->"
_TABLE = re.compile(r"^To (\S+) rad, on the grid.*?\n\n(.*?)\n\n", re.M | re.S)
_ROW = re.compile(r"^\| ([^|]*) \| `(.*?)` \| (\d+) \|$", re.M)


def fastest() -> dict[str, dict[str, tuple[str, int]]]:
    """Method and microseconds of each library, by error in rad."""
    tables = _TABLE.findall(_PAGE.read_text(encoding="utf-8"))
    return {
        error: {library: (method, int(time)) for library, method, time in _ROW.findall(table)}
        for error, table in tables
    }


def on_page_markdown(markdown: str, **_) -> str:
    return markdown.replace(_PLACE, _table()) if _PLACE in markdown else markdown


def _table() -> str:
    ours = ("retrax, loop alone", "retrax")
    lines = [["error", *ours, "elsewhere"], ["---"] * 4]
    for error, methods in fastest().items():
        others = {name: found for name, found in methods.items() if name not in ours}
        name, (method, time) = min(others.items(), key=lambda item: item[1][1])
        cells = [f"`{method}` {time} µs" for method, time in map(methods.get, ours)]
        lines.append([f"{float(error):.0e} rad", *cells, f"{name} `{method}` {time} µs"])
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)
