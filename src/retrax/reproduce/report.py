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
    """The findings, the numbers behind them, and the figures that were drawn."""

    name: str
    title: str
    findings: tuple[Finding, ...]
    numbers: dict[str, Any]
    figures: tuple[Path, ...]

    def json(self) -> str:
        findings = [finding._asdict() for finding in self.findings]
        out = {"paper": self.title, "findings": findings, "numbers": self.numbers}
        return json.dumps({**out, "figures": [str(path) for path in self.figures]}, indent=2)

    def markdown(self) -> str:
        columns = ("", "the paper", "measured", "explanation")
        lines = [columns, ("---",) * 4, *self.findings]
        table = "\n".join("| " + " | ".join(line) + " |" for line in lines)
        pictures = "\n\n".join(f"![{path.stem}]({path.name})" for path in self.figures)
        made = ", ".join(f"{name} {version}" for name, version in versions().items())
        return f"# {self.title}\n\n{table}\n\n{pictures}\n\nMeasured with {made}.\n"

    def write(self, folder: Path) -> tuple[Path, ...]:
        """Write `table.md` and `numbers.json` beside the figures; returns all paths."""
        written = []
        for name, text in (("table.md", self.markdown()), ("numbers.json", self.json())):
            with written_whole(folder / name) as temporary:
                temporary.write_text(text)
            written.append(folder / name)
        return (*written, *self.figures)
