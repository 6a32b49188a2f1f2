"""A part of the second tier at a time: all parts take about as long, and go round with the commits.

`python tests/shards.py --of 3 --budget 1500` runs one part of three within so many seconds, and a
test that fails there once more by itself before it counts. Which part it is follows from the number
of commits; where a clone does not have them all, from the name of the last one, and without any
from the day.
"""

import argparse
import json
import math
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

import pytest

from tiers import seconds_listed

ROOT = Path(__file__).parents[1]
# What a test takes whose time is not listed; and the most that are run again, each by itself.
UNKNOWN, MOST_AGAIN = 2.0, 10
# Seconds that are kept for these, and the least for each; what is said of those that pass then.
AGAIN, LEAST = 180.0, 30.0
BESIDE_OTHERS = "failed beside others and passed by itself"
# How pytest ends: all passed, some failed, none was selected.
PASSED, FAILED, NONE = 0, 1, 5


def parts(tests: Iterable[str], count: int, seconds: dict[str, float]) -> list[list[str]]:
    """Share the files of tests out to so many parts, the longest first to the shortest part.

    A file stays whole, since its fixtures are made once.
    """
    files: dict[str, float] = defaultdict(float)
    for test in tests:
        files[test.partition("::")[0]] += seconds.get(test, UNKNOWN)
    shares: list[list[str]] = [[] for _ in range(count)]
    taken = [0.0] * count
    for file, length in sorted(files.items(), key=lambda pair: (-pair[1], pair[0])):
        least = taken.index(min(taken))
        shares[least].append(file)
        taken[least] += length
    return shares


def chosen(text: str) -> tuple[int, int]:
    """Read `k/n`: the part, counted from 1, and how many there are."""
    part, _, count = text.partition("/")
    if not (part.isdigit() and count.isdigit() and 1 <= int(part) <= int(count)):
        raise pytest.UsageError(f"--shard {text}: write it as 2/3, the second of three parts")
    return int(part), int(count)


class Shard:
    """Leaves the tests of one part, the files that take longest first."""

    def __init__(self, text: str):
        self.part, self.count = chosen(text)

    @pytest.hookimpl(trylast=True)  # after the marks have been looked at
    def pytest_collection_modifyitems(self, config, items):
        names = [item.nodeid for item in items]
        mine = parts(names, self.count, seconds_listed())[self.part - 1]
        place = {file: k for k, file in enumerate(mine)}
        kept = [item for item in items if item.nodeid.partition("::")[0] in place]
        left = [item for item in items if item.nodeid.partition("::")[0] not in place]
        config.hook.pytest_deselected(items=left)
        items[:] = sorted(kept, key=lambda item: place[item.nodeid.partition("::")[0]])


def turn(count: int, say=print) -> int:
    """Return the part whose turn it is, counted from 1, and say what it follows from."""
    commits, last = _git("rev-list", "--count", "HEAD"), _git("rev-parse", "HEAD")
    whole = _git("rev-parse", "--is-shallow-repository") == "false"
    if commits is not None and whole:
        number, why = int(commits), f"commit number {commits}"
    elif last is not None:
        number, why = int(last[:8], 16), f"commit {last[:8]}, of a clone without its history"
    else:
        number, why = math.floor(time.time() / 86400), "the day, for there are no commits"
    part = number % count + 1
    say(f"Second tier, part {part} of {count}: {why}.")
    return part


def _git(*words: str) -> str | None:
    try:
        done = subprocess.run(
            ["git", *words], cwd=ROOT, capture_output=True, text=True, check=True, timeout=60
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip() or None


def failures(folder: Path) -> list[str]:
    """Return the tests that failed, as pytest keeps them in its cache."""
    file = folder / "v" / "cache" / "lastfailed"
    return sorted(json.loads(file.read_text())) if file.exists() else []


def run_part(part: int, count: int, budget: float, workers: str, run=subprocess.call) -> int:
    """Run a part; return the status: what fails twice, the second time by itself, has failed."""
    words = [sys.executable, "-m", "pytest", "-q", "-m", "campaign"]
    cache, end = ROOT / ".pytest_cache", time.monotonic() + budget
    (cache / "v" / "cache" / "lastfailed").unlink(missing_ok=True)
    status = run([
        *words, "-n", workers, "--dist", "loadfile", "--no-loadscope-reorder",
        "--shard", f"{part}/{count}", "--budget", f"{budget - min(AGAIN, budget / 10):.0f}",
    ], cwd=ROOT)  # fmt: skip
    if status != FAILED:
        return PASSED if status == NONE else status
    failed = failures(cache)
    if not failed or len(failed) > MOST_AGAIN:
        return FAILED
    said = {test: _alone([*words, "-n", "0", test], end - time.monotonic(), run) for test in failed}
    for test, outcome in said.items():
        print(f"{test}: {outcome}", flush=True)
    return PASSED if set(said.values()) == {BESIDE_OTHERS} else FAILED


def _alone(words: list[str], seconds: float, run) -> str:
    """Run one test by itself; return what came of it."""
    print(f"Once more, by itself: {words[-1]}", flush=True)
    try:
        status = run(words, cwd=ROOT, timeout=max(seconds, LEAST))
    except subprocess.TimeoutExpired:
        return "failed, and there was no time to see it fail again"
    return BESIDE_OTHERS if status == PASSED else "failed twice"


def main(words: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--of", type=int, default=1, help="how many parts there are")
    parser.add_argument("--budget", type=float, default=480, help="seconds for all of it")
    parser.add_argument("--workers", default="2")
    given = parser.parse_args(words)
    return run_part(turn(given.of), given.of, given.budget, given.workers)


if __name__ == "__main__":
    sys.exit(main())
