"""Whether the results of a run fit into memory."""

import math

from retrax.errors import BadInput
from retrax.trajectory.free_memory import available, gigabytes

# Results may take this part of the memory that is free; the rest is for those who look at them.
_PART = 0.8
# The solver statistics that are saved with each state, in bytes.
_STATISTICS = 24
# Results of fewer bytes always fit, and to look how much memory is free takes longer than a step.
_SMALL = 2**26


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
