"""How a run is cut into chunks: what runs between two looks at the clock."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

# A chunk has at most this many steps, this many saved states and this many bytes.
_CHUNK_STEPS, _CHUNK_RECORDS, _CHUNK_BYTES = 50_000, 1024, 2**25
# Of larger states fewer steps, for each takes longer.
_SMALL_STATE = 2048


def saved_steps(steps: int, save_every: int | None) -> np.ndarray:
    """The number of steps behind each saved state; without `save_every` only the end is saved."""
    every = save_every or steps
    return np.minimum(np.arange(0 if save_every else every, steps + every, every), steps)


class Plan(NamedTuple):
    """Where the chunks of a run end, whichever step it starts from and however long it is.

    Some integrators carry numbers from step to step that are computed afresh where a chunk begins.
    So a run gives the same bits when it is taken up again only where chunks end in the same places.

    **Attributes:**

    - `save_every`: the steps between two saved states.
    - `capacity`: how many saved states a chunk has room for.
    - `records`: how many it has, where a saved state has no more than `most` steps behind it.
    - `most`: how many steps it has, where one has more.
    """

    save_every: int
    capacity: int
    records: int
    most: int

    @classmethod
    def of(cls, bytes_per_record: int, save_every: int, commit_every: int | None) -> "Plan":
        """The plan of a run whose commits are asked for every so many steps."""
        capacity = max(1, min(_CHUNK_RECORDS, _CHUNK_BYTES // bytes_per_record))
        most = _CHUNK_STEPS * _SMALL_STATE // max(_SMALL_STATE, bytes_per_record)
        if commit_every is not None:
            most = min(most, commit_every)
        most = max(1, most)
        return cls(save_every, capacity, min(capacity, max(1, most // save_every)), most)

    def chunks(self, first: int, steps: int) -> Iterator[tuple[int, int]]:
        """Pairs (records, steps to each) from step `first` on; the last record may be shorter."""
        every, step = self.save_every, first
        while step < steps:
            whole = (steps - step) // every
            if every <= self.most and whole:
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

    def ends_record(self, step: int, steps: int) -> bool:
        return step % self.save_every == 0 or step == steps

    def ends_chunk(self, step: int) -> bool:
        """Whether a chunk ends here in every run that is long enough."""
        within = step if self.save_every <= self.most else step % self.save_every
        return within % self.length == 0
