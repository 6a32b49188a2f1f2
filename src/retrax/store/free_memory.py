"""How much memory is free, and whether a file fits into it."""

import os
from pathlib import Path

from retrax.errors import BadInput

# Fewer bytes always fit, and to look how much memory is free takes longer than to read them.
_SMALL = 2**26


def available() -> int | None:
    """Return the bytes that this process can still have; `None` if unknown."""
    limits = [*_free(), *_container()]
    return min(limits) if limits else None


def _free() -> list[int]:
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
        return [1024 * int(line.split()[1]) for line in lines if line.startswith("MemAvailable")]
    except OSError:
        try:
            return [os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")]
        except (ValueError, OSError, AttributeError):
            return []


def _container() -> list[int]:
    """Return what a container leaves: its limit less what it uses."""
    folder = Path("/sys/fs/cgroup")
    try:
        limit = (folder / "memory.max").read_text().strip()
        used = int((folder / "memory.current").read_text())
        return [] if limit == "max" else [max(int(limit) - used, 0)]
    except (OSError, ValueError):
        return []


def require_readable(path: Path, needed: int, otherwise: str) -> None:
    """Reject a file whose numbers do not fit into memory, before they are read."""
    free = available() if needed > _SMALL else None
    if free is not None and needed > free:
        raise BadInput(
            f"path = {str(path)!r} declares {gigabytes(needed)} of numbers, but "
            f"{gigabytes(free)} of memory are free: {otherwise} reads parts of it."
        )


def gigabytes(count: int) -> str:
    """Write a number of bytes for people."""
    if count < 1e6:
        return f"{count / 1e3:.3g} kB"
    return f"{count / 1e6:.3g} MB" if count < 1e9 else f"{count / 1e9:.3g} GB"
