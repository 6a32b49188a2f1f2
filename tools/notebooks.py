"""The tutorial as notebooks: `python tools/notebooks.py` writes notebooks/ from docs/tutorial.

The pages are the source: their Python becomes cells of code, the rest cells of text. Blocks that
show what a program prints are left out, since a cell prints it. No outputs are kept.
"""

import hashlib
import json
import re
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

ROOT = Path(__file__).parents[1]
PAGES, FOLDER = ROOT / "docs" / "tutorial", ROOT / "notebooks"
_CODE = re.compile(r"^```python\n(.*?)^```\n?", re.M | re.S)
_PRINTED = re.compile(r"^```text\n.*?^```\n?", re.M | re.S)
_LINK = re.compile(r"(!?\[(?:[^\[\]]|\[[^\]]*\])*\])\(([^()\s]+)\)")


def notebook(page: Path) -> dict[str, Any]:
    """A page as a notebook."""
    names = {one.name for one in PAGES.glob("*.md")}

    def moved(match: re.Match) -> str:
        target, parts = match[2], urlsplit(match[2])
        if parts.scheme or not parts.path:
            return match[0]
        if parts.path in names:
            target = target.replace(".md", ".ipynb", 1)
        else:
            found = (page.parent / parts.path).resolve().relative_to(ROOT)
            target = f"../{found.as_posix()}" + (f"#{parts.fragment}" if parts.fragment else "")
        return f"{match[1]}({target})"

    cells, pieces = [], _CODE.split(page.read_text(encoding="utf-8"))
    for k, piece in enumerate(pieces):
        text = piece if k % 2 else _LINK.sub(moved, _PRINTED.sub("", piece))
        if text.strip():
            cells.append(_cell("code" if k % 2 else "markdown", text.strip(), len(cells)))
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    about = {"kernelspec": kernel, "language_info": {"name": "python"}}
    return {"cells": cells, "metadata": about, "nbformat": 4, "nbformat_minor": 5}


def written(page: Path) -> str:
    """The file of a notebook."""
    return json.dumps(notebook(page), indent=1, ensure_ascii=False) + "\n"


def _cell(kind: str, text: str, k: int) -> dict[str, Any]:
    name = hashlib.sha256(f"{k} {text}".encode()).hexdigest()[:8]
    cell = {"cell_type": kind, "id": name, "metadata": {}, "source": text.splitlines(True)}
    return cell | ({"execution_count": None, "outputs": []} if kind == "code" else {})


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for one in sorted(PAGES.glob("*.md")):
        (FOLDER / f"{one.stem}.ipynb").write_text(written(one), encoding="utf-8")
        print(FOLDER / f"{one.stem}.ipynb")
