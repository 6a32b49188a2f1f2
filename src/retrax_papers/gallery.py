"""A gallery of papers: their parts made one after the other, kept, and shown on pages."""

import json
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from retrax.errors import BadInput
from retrax_papers.catalogue import Paper, Part
from retrax_papers.manifest import Manifest, open_gallery
from retrax_papers.pages import Shown, index_page, paper_page
from retrax_papers.report import Reproduction, markdown, together, write_json, write_text
from retrax_papers.workers import made_parts, record


class Event(NamedTuple):
    """A part that begins (`seconds` is `None`) or ends, and the part of all work that is done.

    **Attributes:**

    - `paper`, `part`: which.
    - `seconds`: how long it took; `kept`: it had been finished by an earlier call.
    - `done`: the part of the estimated work that is behind, between 0 and 1.
    - `left`: an estimate of the seconds to come, from the pace so far.
    """

    paper: Paper
    part: Part
    seconds: float | None
    kept: bool
    done: float
    left: float


class Gallery(NamedTuple):
    """What was made: for each paper its parts together, and the seconds that they took."""

    folder: Path
    mode: str
    papers: dict[str, Reproduction]
    seconds: dict[str, float]
    index: Path


def make_gallery(
    papers: Sequence[Paper],
    folder: Path,
    *,
    quick: bool = False,
    force: bool = False,
    workers: int = 1,
    watch: Callable[[Event], object] = lambda event: None,
) -> Gallery:
    """Make the parts that are not finished, then all pages.

    **Arguments:**

    - `papers`: whose parts are made; papers that the gallery has already keep their pages.
    - `quick`: shorter runs and coarser samples.
    - `force`: make everything again, and write into a folder that is not a gallery.
    - `workers`: processes that share the parts.
    - `watch`: is called with an `Event` before and after each part.

    **Raises:** `BadInput` where the folder must not be written to.
    """
    mode = "quick" if quick else "full"
    names = [paper.name for paper in papers]
    if not folder.parent.is_dir():
        raise BadInput(
            f"output = {str(folder)!r}: the folder {str(folder.parent)!r} does not exist."
        )
    manifest = open_gallery(folder, names, mode, force)
    folder.mkdir(exist_ok=True)
    manifest.write()
    manifest = _make_parts(manifest, papers, quick, workers, watch)
    made = {paper.name: _of_paper(folder, paper) for paper in papers}
    seconds = {
        paper.name: float(sum(manifest.parts[key(paper, part)]["seconds"] for part in paper.parts))
        for paper in papers
    }
    for paper in papers:
        shown = Shown(paper, made[paper.name], mode, seconds[paper.name])
        _write_paper(folder, shown)
    manifest = manifest._replace(complete=(*manifest.complete, *names))
    index = write_text(folder / "index.html", index_page(folder, manifest.complete, mode))
    manifest.write()  # complete only when everything is there
    return Gallery(folder, mode, made, seconds, index)


def key(paper: Paper, part: Part) -> str:
    """The name of a part in the manifest."""
    return f"{paper.name}/{part.name}"


def _make_parts(
    manifest: Manifest,
    papers: Sequence[Paper],
    quick: bool,
    workers: int,
    watch: Callable[[Event], object],
) -> Manifest:
    """Make what is missing; the manifest is written after every part."""
    every = [(paper, part) for paper in papers for part in paper.parts]
    there = {job: manifest.intact(key(*job)) for job in every}
    jobs = [job for job in every if not there[job]]
    work = sum(_cost(part, quick) for _, part in jobs)
    behind, begun = 0.0, time.perf_counter()

    def tell(paper: Paper, part: Part, seconds: float | None = None) -> None:
        pace = (time.perf_counter() - begun) / behind if behind > 0 else 1.0
        share = behind / work if work > 0 else 1.0
        left = (work - behind) * pace
        watch(Event(paper, part, seconds, there[paper, part], share, left))

    for job in every:
        if there[job]:
            tell(*job, manifest.parts[key(*job)]["seconds"])
    for made in made_parts(manifest.folder, jobs, quick, workers, tell):
        behind += _cost(made.part, quick)
        manifest = manifest.with_part(key(made.paper, made.part), made.files, made.seconds)
        manifest.write()
        tell(made.paper, made.part, made.seconds)
    return manifest


def _cost(part: Part, quick: bool) -> float:
    return float(part.cost[0 if quick else 1])


def _of_paper(folder: Path, paper: Paper) -> Reproduction:
    texts = [record(folder, paper, part).read_text(encoding="utf-8") for part in paper.parts]
    return together([Reproduction.from_data(json.loads(text)) for text in texts])


def _write_paper(folder: Path, shown: Shown) -> None:
    """The page, the table and the numbers of a paper."""
    place, paper, done = folder / shown.paper.name, shown.paper, shown.done
    write_text(place / "table.md", markdown(paper.title, done))
    write_json(place / "numbers.json", numbers(shown))
    write_text(place / "index.html", paper_page(place, shown))


def numbers(shown: Shown) -> dict[str, object]:
    """Everything about a paper as one JSON object; also what the index page is made from."""
    paper, done = shown.paper, shown.done
    return {
        "paper": paper.title,
        "about": paper.about,
        "cover": paper.cover,
        "authors": paper.authors,
        "published": paper.published,
        "link": paper.link,
        "seen": paper.seen,
        "mode": shown.mode,
        "seconds": round(shown.seconds, 1),
        "findings": [finding._asdict() for finding in done.findings],
        "invariants": [row._asdict() for row in done.invariants],
        "numbers": dict(done.numbers),
        "figures": [f"{one.name}.png" for one in done.pictures],
        "data": [f"{one.name}.nc" for one in done.pictures],
        "extras": [extra._asdict() for extra in done.extras],
    }
