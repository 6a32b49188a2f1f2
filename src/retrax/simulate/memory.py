"""Whether the results of a run fit into memory."""

import math
import os
from pathlib import Path

from retrax.errors import BadInput

# Results may take this part of the memory that is free; the rest is for those who look at them.
_PART = 0.8
# The solver statistics that are saved with each state, in bytes.
_STATISTICS = 24
# Results of fewer bytes always fit, and to look how much memory is free takes longer than a step.
_SMALL = 2**26


def available() -> int | None:
    """Bytes of memory that this process can still have; `None` where that cannot be known."""
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
    """What a container leaves: its limit less what it uses."""
    folder = Path("/sys/fs/cgroup")
    try:
        limit = (folder / "memory.max").read_text().strip()
        used = int((folder / "memory.current").read_text())
        return [] if limit == "max" else [max(int(limit) - used, 0)]
    except (OSError, ValueError):
        return []


def gigabytes(count: int) -> str:
    """A number of bytes for people."""
    if count < 1e6:
        return f"{count / 1e3:.3g} kB"
    return f"{count / 1e6:.3g} MB" if count < 1e9 else f"{count / 1e9:.3g} GB"


def require_memory(needed: int, members: int, records: int) -> None:
    """Refuse results that do not fit, before anything runs."""
    free = available()
    if free is not None and needed > _PART * free:
        most = int(_PART * free / needed * records)
        advice = (
            f"save at most {most} states of each member (a larger save_every, or None)"
            if records > 1 and most > 0
            else "run the members in several parts"
        )
        raise BadInput(
            f"{members} members with {records} saved states each need {gigabytes(needed)} of "
            f"memory, but {gigabytes(free)} are free: {advice}."
        )


def require_room(bytes_per_record: int, steps: int, save_every: int) -> None:
    """Refuse a run of one body whose saved states do not fit, before anything runs.

    They are there twice when the chunks of a run are put together.
    """
    records = steps // save_every + 1
    needed = 2 * records * (bytes_per_record + _STATISTICS)
    free = available() if needed > _SMALL else None
    if free is not None and needed > _PART * free:
        raise BadInput(
            f"steps = {steps} with save_every = {save_every} saves {records} states, which need "
            f"{gigabytes(needed)} of memory, but {gigabytes(free)} are free: save_every = "
            f"{math.ceil(save_every * needed / (_PART * free))} would fit."
        )
