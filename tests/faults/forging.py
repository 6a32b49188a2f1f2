"""Judge what retrax makes of a forged file: it refuses in a sentence, or reads what was there.

    python tests/faults/forging.py

A forgery is made well: its checksums fit. A raw exception is a failure, and so is a result that
differs from that of the file before it was forged.
"""

import shutil
import sys
import tempfile
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import retrax as rx


class Forgery(NamedTuple):
    """A change to a file, under a name; `harmless` where to read the file is no mistake."""

    name: str
    change: Callable[[Path], None]
    harmless: bool = False


class Door(NamedTuple):
    """Something that reads a file: `read` returns whether what it found is what was there."""

    name: str
    original: Path
    read: Callable[[Path], bool]


def deep(levels: int = 400) -> Any:
    nested: Any = 0
    for _ in range(levels):
        nested = [nested]
    return nested


# What may stand in the place of any value of a file. `...`: nothing, the key is missing.
VALUES: dict[str, Any] = {
    "missing": ..., "null": None, "true": True, "zero": 0, "minus one": -1, "huge": 10**30,
    "largest": 1.7e308, "fraction": 1.5, "text": "text", "no text": "", "list": [], "table": {},
    "lists": [[1, 2], [3]], "deep": deep(), "escape": "\x1b[31mred\x1b]0;title\x07",
    "long list": list(range(1000)),
}  # fmt: skip


def copied(original: Path, folder: Path) -> Path:
    path = folder / original.name
    if original.is_dir():
        return Path(shutil.copytree(original, path, symlinks=True))
    return Path(shutil.copy2(original, path))


def judge(door: Door, forgery: Forgery) -> str:
    """`refused` or `read`; otherwise what went wrong, after `WRONG`."""
    with tempfile.TemporaryDirectory() as folder:
        path = copied(door.original, Path(folder))
        forgery.change(path)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                same = door.read(path)
        except (rx.RetraxError, UserWarning) as error:
            return _sentence(str(error))
        except BaseException as error:  # a raw one, whatever it is
            if isinstance(error, KeyboardInterrupt):
                raise
            return f"WRONG: raw {type(error).__name__}: {str(error)[:200]}"
    if not same:
        return "WRONG: read as something else"
    return "read" if forgery.harmless else "WRONG: read without a word"


def _sentence(text: str) -> str:
    good = text.isprintable() and text.endswith((".", "?", "!")) and 10 < len(text) < 1500
    return "refused" if good else f"WRONG: no sentence: {text[:300]!r}"


def campaign(door: Door, forgeries: Iterator[Forgery]) -> tuple[Counter, list[str]]:
    """How all forgeries went, and which went wrong."""
    seen: Counter = Counter()
    wrong = []
    for forgery in forgeries:
        verdict = judge(door, forgery)
        seen[verdict.partition(":")[0]] += 1
        if verdict.startswith("WRONG"):
            wrong.append(f"{door.name}, {forgery.name}: {verdict}")
    return seen, wrong


def main() -> int:
    from forged_checkpoints import checkpoint_doors, checkpoint_forgeries
    from forged_netcdf import netcdf_doors, netcdf_forgeries
    from forged_sweeps import sweep_door, sweep_forgeries

    bad = 0
    with tempfile.TemporaryDirectory() as folder:
        doors = [(door, checkpoint_forgeries) for door in checkpoint_doors(Path(folder))]
        doors += [(door, netcdf_forgeries) for door in netcdf_doors(Path(folder))]
        doors += [(sweep_door(Path(folder)), sweep_forgeries)]
        for door, forgeries in doors:
            seen, wrong = campaign(door, forgeries(door.original))
            print(door.name, dict(seen), *wrong, sep="\n  ", flush=True)
            bad += len(wrong)
    return bad


if __name__ == "__main__":
    sys.exit(main() > 0)
