"""How a run is cut into chunks: what runs between two looks at the clock."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

# A chunk has at most this many steps, this many saved states and this many bytes.
_CHUNK_STEPS, _CHUNK_RECORDS, _CHUNK_BYTES = 50_000, 1024, 2**25
# Of larger states fewer steps, for each takes longer.
_SMALL_STATE = 2048
# The members of an ensemble together save so many bytes on a device.
_MEMBER_BYTES = 2**30


def saved_steps(steps: int, save_every: int | None) -> np.ndarray:
    """Return the number of steps behind each saved state; by default only the end is saved."""
    every = save_every or steps
    return np.minimum(np.arange(0 if save_every else every, steps + every, every), steps)


class Chunks(NamedTuple):
    """How many steps are taken at once: several saved states, or a part of the way to one.

    Where chunks end has no effect on the numbers of a run.

    **Attributes:**

    - `save_every`: the steps between two saved states.
    - `records`: how many saved states a chunk has, where one has no more than `most` steps.
    - `most`: how many steps it has, where a saved state has more.
    - `capacity`: how many saved states there is room for; a compiled loop depends on it.
    """

    save_every: int
    records: int
    most: int
    capacity: int

    @classmethod
    def of_run(cls, bytes_per_record: int, save_every: int, commit_every: int | None) -> "Chunks":
        """Return the chunks of one run, none longer than the steps between two commits."""
        room = max(1, min(_CHUNK_RECORDS, _CHUNK_BYTES // bytes_per_record))
        most = _CHUNK_STEPS * _SMALL_STATE // max(_SMALL_STATE, bytes_per_record)
        if commit_every is not None:
            most = min(most, commit_every)
        most = max(1, most)
        return cls(save_every, min(room, max(1, most // save_every)), most, room)

    @classmethod
    def of_members(
        cls, members: int, bytes_per_record: int, save_every: int, steps: int, work: float
    ) -> "Chunks":
        """Return the chunks of many runs side by side, with `work` steps of members in each."""
        at_once = min(work / (save_every * members), _MEMBER_BYTES / bytes_per_record)
        records = max(1, min(int(at_once), steps // save_every))
        most = save_every if work >= save_every * members else max(1, int(work / members))
        return cls(save_every, records, most, records)

    @classmethod
    def all_at_once(cls, steps: int, save_every: int) -> "Chunks":
        """Return a chunk for all saved states, and one for what is left at the end."""
        return cls(save_every, steps, steps, steps)

    def between(self, first: int, steps: int) -> Iterator[tuple[int, int]]:
        """Return pairs (records, steps to each) from step `first` on; the last may be shorter."""
        every, step = self.save_every, first
        while step < steps:
            whole = (steps - step) // every
            if step % every == 0 and every <= self.most and whole:
                records, length = min(self.records, whole), every
            else:
                left = min(every - step % every, steps - step)
                records, length = 1, min(self.most, left)
            yield records, length
            step += records * length

    @property
    def length(self) -> int:
        """The steps of a chunk, those at the end of a record or a run left out."""
        return self.save_every * self.records if self.save_every <= self.most else self.most
