"""The list of works cited, and a link wherever a page says [Key]: both from references.bib."""

import re
from functools import cache
from pathlib import Path

from mkdocs.utils import get_relative_url

_BIBLIOGRAPHY = Path(__file__).parents[2] / "src" / "retrax" / "references.bib"
_ENTRY = re.compile(r"^@(\w+)\{(\w+),\n(.*?)^\}", re.DOTALL | re.MULTILINE)
_FIELD = re.compile(r"^\s*(\w+)\s*=\s*\{(.*)\},?$", re.MULTILINE)
_CITATION = re.compile(r"\[(\w+\d{4})\]")
_PLACE = "<!-- works cited -->"


@cache
def works() -> dict[str, dict[str, str]]:
    """The fields of every entry, by key."""
    text = _BIBLIOGRAPHY.read_text(encoding="utf-8")
    return {key: dict(_FIELD.findall(body)) for _, key, body in _ENTRY.findall(text)}


def on_page_markdown(markdown: str, **_) -> str:
    return markdown.replace(_PLACE, "\n".join(_line(key) for key in sorted(works())))


def on_page_content(content: str, page, **_) -> str:
    target = get_relative_url("references.html", page.url)

    def link(match: re.Match) -> str:
        key = match[1]
        return f'<a href="{target}#{key}">[{key}]</a>' if key in works() else match[0]

    return content if page.url == "references.html" else _CITATION.sub(link, content)


def _line(key: str) -> str:
    work = works()[key]
    source = work.get("journal") or work.get("booktitle")
    where = f"*{source}*" if source else work.get("publisher") or work["institution"]
    if "volume" in work:
        number = f"({work['number']})" if "number" in work else ""
        where += f" {work['volume']}{number}:{work['pages']}".replace("--", "–")
    authors = work["author"].replace(" and ", ", ").rstrip(".")
    title = work["title"].replace("``", "“").replace("''", "”")
    line = f'- <span id="{key}"></span>`{key}` {authors}. {title}. {where}, {work["year"]}.'
    line = line.replace("{", "").replace("}", "")
    return f"{line} [doi:{work['doi']}](https://doi.org/{work['doi']})" if "doi" in work else line
