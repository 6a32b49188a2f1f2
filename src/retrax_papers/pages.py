"""Pages of a gallery: one for each paper, and an index. They open without a network or a server."""

import base64
import html
import io
import json
import re
from collections.abc import Iterable, Sequence
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import Any, NamedTuple

from retrax.trajectory.provenance import versions
from retrax_papers.catalogue import Paper
from retrax_papers.mathematics import set_as_mathematics
from retrax_papers.report import Extra, FigureFiles, Finding, Kept, Reproduction

_WIDTH = 900  # of the picture on a card, in pixels
_SHRUNK = 0.58  # of figures on a page: 93 pixels an inch
_MODES = {
    "quick": "the papers' parameters, with long runs cut short and fewer samples",
    "full": "the papers' own parameters and lengths",
}


class Shown(NamedTuple):
    """A paper with everything that was found, and how long that took."""

    paper: Paper
    done: Reproduction
    mode: str
    seconds: float


def paper_page(folder: Path, shown: Shown) -> str:
    """The page of a paper, with its pictures inside; data and other files are linked to."""
    paper, done = shown.paper, shown.done
    return _filled(
        "paper.html",
        title=html.escape(paper.title),
        about=_marked(paper.about),
        source=_source(paper.authors, paper.published, paper.link),
        motion=_motion(paper, done),
        mode=shown.mode,
        mode_words=_MODES[shown.mode],
        figures="\n".join(_figure(folder, one) for one in done.pictures),
        findings=_findings(done.findings),
        invariants=_invariants(done.invariants),
        extras="\n".join(_extra(extra) for extra in done.extras),
        has_extras="" if done.extras else "hidden",
        has_invariants="" if done.invariants else "hidden",
        counts=f"{len(done.pictures)} figures, {len(done.findings)} findings",
        seconds=f"{shown.seconds:.0f}",
        command=f"retrax reproduce {paper.name}" + (" --quick" if shown.mode == "quick" else ""),
        made=_made(),
    )


def index_page(folder: Path, names: Sequence[str], mode: str) -> str:
    """The page of a gallery, from the numbers that its papers left."""
    told = {
        name: json.loads((folder / name / "numbers.json").read_text(encoding="utf-8"))
        for name in names
    }
    findings = sum(len(one["findings"]) for one in told.values())
    figures = sum(len(one["figures"]) for one in told.values())
    return _filled(
        "index.html",
        mode=mode,
        mode_words=_MODES[mode],
        cards="\n".join(_card(folder, name, one) for name, one in told.items()),
        counts=f"{len(told)} papers, {figures} figures, {findings} findings",
        seconds=f"{sum(one['seconds'] for one in told.values()):.0f}",
        made=_made(),
    )


def _card(folder: Path, name: str, told: dict[str, Any]) -> str:
    stills = [row["still"] for row in told["extras"] if row.get("still")]
    picture = _thumbnail(folder / name / (stills[0] if stills else f"{told['cover']}.png"))
    watch = "".join(
        f'<li><a href="{name}/{_url(row["file"])}">{html.escape(row["what"])}</a></li>'
        for row in told["extras"]
        if row["file"].endswith(".html")
    )
    return (
        f'<article><a class="cover" href="{name}/index.html" tabindex="-1" aria-hidden="true">'
        f'<img src="{picture}" alt=""></a><div>'
        f'<h2><a href="{name}/index.html">{html.escape(told["paper"])}</a></h2>'
        f"{_source(told['authors'], told['published'], told['link'])}"
        + (f"<p>{_marked(told['seen'])}</p>" if told["seen"] else "")
        + f"<p>{_marked(told['about'])}</p>"
        f'<p class="small">{len(told["figures"])} figures with their data, '
        f"{len(told['findings'])} findings, {told['seconds']:.0f} s.</p>"
        + (f'<ul class="watch">{watch}</ul>' if watch else "")
        + "</div></article>"
    )


def _figure(folder: Path, one: FigureFiles) -> str:
    source = base64.b64encode((folder / f"{one.name}.png").read_bytes()).decode()
    links = " ".join(
        f'<a href="{_url(one.name)}.{end}">{what}</a>'
        for end, what in (("nc", "data (NetCDF)"), ("pdf", "PDF"), ("png", "PNG"))
    )
    return (
        f'<figure id="{_url(one.name)}"><h3>{html.escape(one.title)}</h3>'
        f'<div class="plate"><img alt="{html.escape(one.title)}" loading="lazy" '
        f'style="max-width:{_width(folder / f"{one.name}.png")}px" '
        f'src="data:image/png;base64,{source}"></div>'
        f'<figcaption>{_marked(one.caption)} <span class="links">{links}</span></figcaption>'
        "</figure>"
    )


def _findings(rows: Iterable[Finding]) -> str:
    columns = ("what", "the paper says", "measured here", "why")
    return _table(columns, [[_marked(cell) for cell in row] for row in rows])


def _invariants(rows: Iterable[Kept]) -> str:
    columns = ("run", "quantity", "at the start", "largest error", "drift per second")
    cells = [
        (row.run, row.name, f"{row.initial:.10g}", f"{row.largest_error:.2e}", f"{row.drift:+.1e}")
        for row in rows
    ]
    return _table(columns, [[_marked(cell) for cell in row] for row in cells])


def _table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table whose cells know their column, so that narrow screens can stack them."""
    head = "".join(f'<th scope="col">{name}</th>' for name in columns)
    body = []
    for first, *rest in rows:
        pairs = zip(columns[1:], rest, strict=True)
        cells = "".join(f'<td data-column="{name}">{cell}</td>' for name, cell in pairs)
        body.append(f'<tr><th scope="row">{first}</th>{cells}</tr>')
    return f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(body)}</tbody></table>"


def _source(authors: str, published: str, link: str) -> str:
    """Authors, year and link of a paper, as far as they are known."""
    words = ", ".join(html.escape(part) for part in (authors, published) if part)
    if link:
        shown = re.sub(r"^https://(doi.org/)?", "", link)
        words += f' <a href="{html.escape(link)}">{html.escape(shown)}</a>'
    return f'<p class="source">{words.strip()}</p>' if words else ""


def _motion(paper: Paper, done: Reproduction) -> str:
    """The first motion of a paper, on its page, with a sentence on what is seen."""
    pages = [extra for extra in done.extras if extra.file.endswith(".html")]
    if not pages:
        return ""
    said = _marked(paper.seen or pages[0].what)
    return (
        f'<figure class="motion"><iframe src="{_url(pages[0].file)}" loading="lazy" '
        f'title="{html.escape(pages[0].what)}"></iframe>'
        f'<figcaption>{said} <a href="{_url(pages[0].file)}">Open it alone</a></figcaption>'
        "</figure>"
    )


def _extra(extra: Extra) -> str:
    link = f'<a href="{_url(extra.file)}">{html.escape(extra.what)}</a>'
    if extra.file.endswith(".wav"):
        link += f'<br><audio controls preload="none" src="{_url(extra.file)}"></audio>'
    return f"<li>{link}</li>"


def _thumbnail(path: Path) -> str:
    """A small copy of a picture, as a data address."""
    from PIL import Image

    with Image.open(path) as image:
        small = image.convert("RGB")
        small.thumbnail((_WIDTH, _WIDTH))
    out = io.BytesIO()
    small.save(out, "JPEG", quality=85, optimize=True)
    return f"data:image/jpeg;base64,{base64.b64encode(out.getvalue()).decode()}"


def _width(path: Path) -> int:
    """How wide a picture is shown at most, in pixels, so that all have letters of one size."""
    from PIL import Image

    with Image.open(path) as image:
        return round(image.width * _SHRUNK)


def _marked(text: str) -> str:
    """Text with `names of code` marked, and symbols and numbers set as mathematics."""
    return set_as_mathematics(text)


def _url(name: str) -> str:
    return html.escape(name.replace(" ", "%20"))


def _made() -> str:
    return ", ".join(f"{name} {version}" for name, version in versions().items())


def _filled(name: str, **values: str) -> str:
    folder = files("retrax_papers").joinpath("assets")
    style = folder.joinpath("gallery.css").read_text(encoding="utf-8")
    page = Template(folder.joinpath(name).read_text(encoding="utf-8"))
    return page.substitute(style=style, **values)
