"""The record of a gallery: which parts are finished, by which code, and what their files were."""

import datetime
import hashlib
import json
from functools import lru_cache
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import retrax
from retrax.errors import BadInput
from retrax.numerics.checks import within
from retrax_papers.report import write_json

NAME, FORMAT = "manifest.json", "retrax-gallery"


class Manifest(NamedTuple):
    """What is known about a gallery.

    **Attributes:**

    - `folder`: where it is.
    - `made`: `mode` (quick or full), `version` and `code`, a digest of the sources; parts that were
        made otherwise are not used.
    - `parts`: for each part that is finished, the seconds it took and the digests of its files.
    - `complete`: the papers whose pages are written.
    """

    folder: Path
    made: dict[str, str]
    parts: dict[str, dict[str, Any]]
    complete: tuple[str, ...]

    def write(self) -> None:
        told = {"format": FORMAT, **self.made, "complete": list(self.complete)}
        write_json(self.folder / NAME, {**told, "parts": self.parts})

    def with_part(self, part: str, files: list[str], seconds: float) -> "Manifest":
        """The manifest with one more part, whose files are measured now."""
        now = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
        digests = {name: digest(self.folder / name) for name in files}
        entry = {"seconds": round(seconds, 2), "finished": now, "files": digests}
        return self._replace(parts={**self.parts, part: entry})

    def intact(self, part: str) -> bool:
        """Whether a part is finished and its files are what they were."""
        entry = self.parts.get(part)
        return entry is not None and all(
            (self.folder / name).is_file() and digest(self.folder / name) == known
            for name, known in entry["files"].items()
        )


def open_gallery(folder: Path, papers: list[str], mode: str, force: bool) -> Manifest:
    """The manifest to go on with, or a sentence on why this folder must not be written to.

    A folder that is new, empty, or holds an unfinished gallery is taken; a gallery of the same kind
    is added to; `force` takes anything, and leaves alone what is not the gallery's.
    """
    made = {"mode": mode, "version": version("retrax"), "code": code()}
    fresh = Manifest(folder, made, {}, ())
    if folder.exists() and not folder.is_dir():
        raise BadInput(f"output = {str(folder)!r} is a file: name a folder.")
    if not folder.exists() or not any(folder.iterdir()):
        return fresh
    found = _read(folder)
    if found is None:
        if force:
            return fresh
        raise BadInput(
            f"output = {str(folder)!r} is not empty and not a gallery: name another folder, or "
            "give --force to write into this one."
        )
    if force:
        _remove(found, papers)
    same = found.made == made
    if not force and found.complete and (not same or set(papers) <= set(found.complete)):
        raise BadInput(
            f"output = {str(folder)!r} holds a complete gallery ({found.made['mode']} mode, retrax "
            f"{found.made['version']}, {', '.join(found.complete)}): give --force to make it "
            "again, or name another folder."
        )
    if not same:
        return fresh
    left = {name: part for name, part in found.parts.items() if not (force and _of(name, papers))}
    return found._replace(
        parts=left, complete=tuple(name for name in found.complete if name not in papers)
    )


def digest(path: Path) -> str:
    """The SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@lru_cache
def code() -> str:
    """A digest of the sources of retrax and of the papers."""
    total = hashlib.sha256()
    for root in (Path(retrax.__file__).parent, Path(__file__).parent):
        for path in sorted(root.rglob("*.py")):
            total.update(path.relative_to(root).as_posix().encode() + path.read_bytes())
    return total.hexdigest()[:16]


def _read(folder: Path) -> Manifest | None:
    """Read the manifest of a folder; `None` if it is missing or cannot be read."""
    try:
        told = json.loads((folder / NAME).read_text(encoding="utf-8"))
        if told["format"] != FORMAT:
            return None
        made = {name: str(told[name]) for name in ("mode", "version", "code")}
        parts, complete = dict(told["parts"]), tuple(told["complete"])
        named = [*complete, *(name for entry in parts.values() for name in dict(entry["files"]))]
        if any(within(folder, name) is None for name in named):  # what it names may be deleted
            return None
        return Manifest(folder, made, parts, complete)
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None


def _remove(found: Manifest, papers: list[str]) -> None:
    """Delete the files of the parts that are to be made again, the index, and nothing else."""
    (found.folder / "index.html").unlink(missing_ok=True)  # it is there when all papers are
    for name, entry in found.parts.items():
        if _of(name, papers):
            for file in entry["files"]:
                (found.folder / file).unlink(missing_ok=True)


def _of(part: str, papers: list[str]) -> bool:
    return part.split("/")[0] in papers
