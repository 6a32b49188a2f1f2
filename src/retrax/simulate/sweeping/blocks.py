"""A sweep in blocks of members: one task each, and one region of the store."""

import itertools
import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

# The default: about this many blocks, none of less work, in steps times numbers of a state, or of
# more bytes than these.
_BLOCKS, _LEAST_WORK, _MOST_BYTES = 64, 2.5e7, 2**26


class Block(NamedTuple):
    """The number of a block and of its setting, its region, and which members are in it.

    The region has a slice for each dimension, those of the settings first.
    """

    number: int
    setting: int
    region: tuple[slice, ...]
    members: np.ndarray

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(s.stop - s.start for s in self.region)


def block_shape(sizes: Sequence[int], most: int) -> tuple[int, ...]:
    """The sides of a block of at most `most` members, as long as can be from the last dimension.

    Nothing but the sweep itself has a say in this, so that it is cut up alike wherever it runs.
    """
    sides: list[int] = []
    for size in reversed(sizes):
        sides.append(max(1, min(size, most)))
        most = most // size if size <= most else 1
    return tuple(reversed(sides))


def usual_block(members: int, work: int, bytes_per_member: int) -> int:
    """How many members go into a block where nobody says; `work` is that of one member."""
    enough = max(math.ceil(members / _BLOCKS), math.ceil(_LEAST_WORK / work))
    return max(1, min(enough, _MOST_BYTES // bytes_per_member, members))


def blocks(settings: Sequence[int], sizes: Sequence[int], sides: Sequence[int]) -> Iterator[Block]:
    """All blocks of all settings, in order."""
    numbers = np.arange(math.prod(sizes)).reshape(tuple(sizes))
    count = itertools.count()
    for which, setting in enumerate(itertools.product(*map(range, settings))):
        for corner in itertools.product(
            *(range(0, size, side) for size, side in zip(sizes, sides, strict=True))
        ):
            region = tuple(
                slice(first, min(first + side, size))
                for first, side, size in zip(corner, sides, sizes, strict=True)
            )
            here = tuple(slice(k, k + 1) for k in setting)
            yield Block(next(count), which, here + region, numbers[region].ravel())
