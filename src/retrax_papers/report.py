"""What a reproduction found: a table of what a paper says, what was measured, and why."""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from retrax.files import write_whole
from retrax.trajectory.observe import deviations, drift
from retrax.trajectory.provenance import versions
from retrax.trajectory.trajectory import Trajectory


class Finding(NamedTuple):
    """One statement of a paper, what was measured, and the explanation."""

    what: str
    paper: str
    measured: str
    explanation: str


class Kept(NamedTuple):
    """How well a quantity that should stay constant did in a run."""

    run: str
    name: str
    initial: float
    largest_error: float
    drift: float


class FigureFiles(NamedTuple):
    """A figure: its files are `name.png`, `name.pdf` and, with the numbers behind it, `name.nc`."""

    name: str
    title: str
    caption: str


class Extra(NamedTuple):
    """Another file beside the figures, and what it is: a page, a sound, an animation.

    `still` is the file of a picture of it, if it has one.
    """

    file: str
    what: str
    still: str = ""


def motion(run: Trajectory, folder: Path, name: str, what: str) -> Extra:
    """Write the page of a run, and a still of it: what a reader may watch."""
    run.report(folder / f"{name}.html")
    run.movie(folder / f"{name}-still.png", size=(960, 640))
    return Extra(f"{name}.html", what, f"{name}-still.png")


class Reproduction(NamedTuple):
    """Findings, the numbers behind them, pictures, invariants and other files."""

    findings: tuple[Finding, ...] = ()
    numbers: Mapping[str, Any] = MappingProxyType({})
    pictures: tuple[FigureFiles, ...] = ()
    invariants: tuple[Kept, ...] = ()
    extras: tuple[Extra, ...] = ()

    def files(self) -> list[str]:
        """The names of all files of the pictures and extras."""
        drawn = [f"{one.name}.{end}" for one in self.pictures for end in ("png", "pdf", "nc")]
        stills = [extra.still for extra in self.extras if extra.still]
        return [*drawn, *(extra.file for extra in self.extras), *stills]

    def data(self) -> dict[str, Any]:
        """The same as nested dictionaries and lists, ready for JSON."""
        rows = ("findings", "pictures", "invariants", "extras")
        told = {name: [one._asdict() for one in getattr(self, name)] for name in rows}
        return {**told, "numbers": dict(self.numbers)}

    @classmethod
    def from_data(cls, data: dict[str, Any]) -> "Reproduction":
        """Read back what `data` wrote."""
        return cls(
            tuple(Finding(**row) for row in data["findings"]),
            data["numbers"],
            tuple(FigureFiles(**row) for row in data["pictures"]),
            tuple(Kept(**row) for row in data["invariants"]),
            tuple(Extra(**row) for row in data["extras"]),
        )


def together(parts: list[Reproduction]) -> Reproduction:
    """Several parts of a paper as one."""
    return Reproduction(
        tuple(finding for part in parts for finding in part.findings),
        {name: value for part in parts for name, value in part.numbers.items()},
        tuple(picture for part in parts for picture in part.pictures),
        tuple(kept for part in parts for kept in part.invariants),
        tuple(extra for part in parts for extra in part.extras),
    )


def kept(run: str, name: str, t: np.ndarray, values: np.ndarray) -> Kept:
    """The row of a quantity along a run."""
    along = np.asarray(values, dtype=float)
    worst = float(np.max(np.abs(deviations(along))))
    return Kept(run, name, float(along[0]), worst, drift(np.asarray(t), along))


def kept_by(label: str, run: Trajectory) -> list[Kept]:
    """The rows of all invariants of a run, and of its distance from the group."""
    rows = [kept(label, name, run.t, values) for name, values in run.invariants().items()]
    return [*rows, kept(label, f"distance from {run.provenance['group']}", run.t,
                        run.group_defect())]  # fmt: skip


def nearest(times: np.ndarray, t: float) -> int:
    """The index of the record that is closest to the time `t`."""
    return int(np.argmin(np.abs(times - t)))


def listed(values: Iterable[float]) -> str:
    """Small numbers in a row, with two digits each."""
    return ", ".join(f"{value:.1e}" for value in values)


def markdown(title: str, done: Reproduction) -> str:
    """The findings as a table, with the pictures below it and links to the other files."""
    columns = ("", "the paper", "measured", "explanation")
    lines = [columns, ("---",) * 4, *done.findings]
    escaped = ([cell.replace("|", "\\|") for cell in line] for line in lines)
    table = "\n".join("| " + " | ".join(line) + " |" for line in escaped)
    pictures = [f"![{one.title}]({one.name}.png)" for one in done.pictures]
    links = [f"[{extra.what}]({extra.file})" for extra in done.extras]
    made = ", ".join(f"{name} {version}" for name, version in versions().items())
    return "\n\n".join([f"# {title}", table, *pictures, *links, f"Measured with {made}.\n"])


def write_text(path: Path, text: str) -> Path:
    """Write a file whole or not at all."""
    with write_whole(path) as temporary:
        temporary.write_text(text, encoding="utf-8")
    return path


def write_json(path: Path, data: object) -> Path:
    """Write JSON whole or not at all."""
    return write_text(path, json.dumps(data, indent=1) + "\n")
