"""What a reproduction found: a table of what a paper says, what was measured, and why."""

import json
from pathlib import Path
from typing import Any, NamedTuple

from retrax.trajectory.files import written_whole
from retrax.trajectory.provenance import versions


class Finding(NamedTuple):
    """One statement of a paper, what was measured, and the explanation."""

    what: str
    paper: str
    measured: str
    explanation: str


class Reproduction(NamedTuple):
    """The findings, the numbers behind them, figures that were drawn and files that were left."""

    name: str
    title: str
    findings: tuple[Finding, ...]
    numbers: dict[str, Any]
    figures: tuple[Path, ...]
    files: tuple[Path, ...] = ()

    def json(self) -> str:
        findings = [finding._asdict() for finding in self.findings]
        out = {"paper": self.title, "findings": findings, "numbers": self.numbers}
        return json.dumps({**out, "figures": [str(path) for path in self.figures]}, indent=2)

    def markdown(self) -> str:
        columns = ("", "the paper", "measured", "explanation")
        lines = [columns, ("---",) * 4, *self.findings]
        table = "\n".join("| " + " | ".join(line) + " |" for line in lines)
        # Pages are linked to, pictures shown.
        shown = ("" if path.suffix == ".html" else "!" for path in self.figures)
        pairs = zip(shown, self.figures, strict=True)
        pictures = "\n\n".join(f"{mark}[{path.stem}]({path.name})" for mark, path in pairs)
        made = ", ".join(f"{name} {version}" for name, version in versions().items())
        return f"# {self.title}\n\n{table}\n\n{pictures}\n\nMeasured with {made}.\n"

    def write(self, folder: Path) -> tuple[Path, ...]:
        """Write `table.md` and `numbers.json` beside the figures; returns all paths."""
        written = []
        for name, text in (("table.md", self.markdown()), ("numbers.json", self.json())):
            with written_whole(folder / name) as temporary:
                temporary.write_text(text)
            written.append(folder / name)
        return (*written, *self.figures, *self.files)
