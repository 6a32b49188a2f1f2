"""Two tiers: what `make test` runs in minutes, and what `make test-all` adds.

`tiers.txt` lists the files of the first tier, longest first, and the tests of the second, by what
they took when they were last timed. `make tiers` times all tests and writes it anew. The rule:

- a test below `SHORT` seconds of processor time is in the first tier;
- of a test with several parameters the quickest stays, if it is below `LONGEST`; of a test that
  the page of guarantees names, if it is below `PROMISED`;
- a fixture of a module counts for each of the tests that use it, since one of them has to make it.

Tests that carry the mark `campaign` are in the second tier in any case: papers in full, kills,
hostile calls, forged files, mutants, full matrices. Their seconds are listed too, so that parts of
the second tier can be made that take equally long (`shards.py`).
"""

import json
import re
import resource
import sys
import time
from collections import defaultdict
from pathlib import Path

import pytest

LIST = Path(__file__).parent / "tiers.txt"
SHORT, LONGEST, PROMISED = 0.4, 1.5, 10.0
PAGE = Path(__file__).parents[1] / "docs" / "guarantees.md"


def named_in(text: str) -> set[str]:
    """The tests that a text names, without their parameters."""
    return {"::".join(name) for name in re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", text)}


def seconds_listed() -> dict[str, float]:
    """The files and tests of the list, by their names from the folder of the repository on."""
    lines = LIST.read_text().splitlines() if LIST.exists() else []
    rows = (line.split(maxsplit=1) for line in lines if not line.startswith("#"))
    return {name: float(seconds) for seconds, name in rows}


class Clock:
    """Writes down the processor time of each test, and of what was set up for it."""

    def __init__(self, path: Path):
        self.path = path

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_setup(self, item):
        return (yield from self._timed(item, "setup"))

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_call(self, item):
        return (yield from self._timed(item, "call"))

    def _timed(self, item, phase):
        before, begun = _processor_seconds(), time.monotonic()
        try:
            return (yield)
        finally:
            made = item._fixtureinfo.name2fixturedefs.items()
            of_module = [n for n, defs in made if defs[-1].scope == "module" and n[0] != "_"]
            row = {
                "test": item.nodeid,
                "phase": phase,
                "seconds": round(_processor_seconds() - before, 3),
                "wall": round(time.monotonic() - begun, 3),
                "fixtures": of_module,
                "marked": item.get_closest_marker("campaign") is not None,
            }
            with self.path.open("a") as file:
                file.write(json.dumps(row) + "\n")


def _processor_seconds() -> float:
    """Of this process and of those that it has waited for."""
    both = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(x.ru_utime + x.ru_stime for x in both)


def chosen(rows: list[dict]) -> dict[str, float]:
    """The tests of the second tier, with their seconds."""
    made: dict[tuple[str, str], float] = defaultdict(float)
    for row in rows:
        if row["phase"] == "setup" and row["seconds"] > SHORT / 2:
            for fixture in row["fixtures"]:
                key = (row["test"].partition("::")[0], fixture)
                made[key] = max(made[key], row["seconds"])
    seconds: dict[str, float] = defaultdict(float)
    marked: set[str] = set()
    for row in rows:
        module = row["test"].partition("::")[0]
        if row["phase"] == "call":
            marked |= {row["test"]} if row["marked"] else set()
            shared = max((made[module, f] for f in row["fixtures"]), default=0.0)
            seconds[row["test"]] += row["seconds"] + shared
    quickest: dict[str, str] = {}
    for test in sorted(seconds.keys() - marked, key=lambda name: (seconds[name], name)):
        quickest.setdefault(test.partition("[")[0], test)
    promised = named_in(PAGE.read_text())
    stay = {
        test
        for name, test in quickest.items()
        if seconds[test] < (PROMISED if name in promised else LONGEST)
    }
    second = {t for t, s in seconds.items() if t in marked or (s >= SHORT and t not in stay)}
    return {t: s for t, s in sorted(seconds.items()) if t in second}


def main(folder: Path) -> None:
    rows = [json.loads(line) for path in folder.glob("*.jsonl") for line in path.open()]
    slow = chosen(rows)
    total = sum(row["seconds"] for row in rows)
    files: dict[str, float] = defaultdict(float)
    for row in rows:
        if row["test"] not in slow and not row["marked"]:
            files[row["test"].partition("::")[0]] += row["seconds"]
    longest = sorted(files.items(), key=lambda pair: -pair[1])
    lines = ["# Written by `make tiers`. Seconds and files of the first tier:"]
    lines += [f"{seconds:6.1f} {file}" for file, seconds in longest]
    lines += ["# Seconds and tests of the second tier:"]
    lines += [f"{seconds:6.1f} {test}" for test, seconds in slow.items()]
    LIST.write_text("\n".join(lines) + "\n")
    left = sum(files.values())
    print(
        f"{len(slow)} tests are in the second tier; the others take {left:.0f} s of {total:.0f} s."
    )


if __name__ == "__main__":
    main(Path(sys.argv[1]))
