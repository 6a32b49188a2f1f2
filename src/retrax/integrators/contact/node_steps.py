"""The memories of many steps of nodes, stacked, without the room for what is not there."""

from typing import Any

import numpy as np
from jaxtyping import Float

from retrax.integrators.contact.last_touch import LastTouch
from retrax.integrators.contact.neighbours import Neighbours


def pushing(memory: LastTouch, kinds: int) -> LastTouch:
    """Return memories of the pairs that push alone, as many as do in any of the steps.

    **Arguments:** `kinds`: how many spots a pair has.
    """
    near, room = memory.near, memory.near.first.shape[1]
    first, last, where = (np.asarray(x) for x in (memory.first, memory.last, memory.where))
    pairs = slice(0, kinds * room)
    acts = np.any((first[:, pairs] != 0) | (last[:, pairs] != 0), axis=2)
    acts = np.any(acts.reshape(len(acts), kinds, room), axis=1)
    number = np.sum(acts, axis=1)
    few = min(room, enough(int(np.max(number, initial=0))))
    order = np.argsort(~acts, axis=1, kind="stable")[:, :few]

    def cut(x: Float[np.ndarray, "steps m k"]) -> Any:
        parts = [x[:, k * room : (k + 1) * room] for k in range(kinds)]
        parts = [np.take_along_axis(part, order[:, :, None], axis=1) for part in parts]
        return np.concatenate([*parts, x[:, kinds * room :]], axis=1)

    one: Any = np.take_along_axis(np.asarray(near.first), order, axis=1)
    other: Any = np.take_along_axis(np.asarray(near.second), order, axis=1)
    count: Any = number.astype(float)
    short = Neighbours(one, other, count, near.places, near.skin)
    return LastTouch(memory.force, short, cut(first), cut(last), cut(where))


def listed(near: Neighbours) -> Neighbours:
    """Return lists of as many pairs as the longest has."""
    most = enough(int(np.max(near.number, initial=0.0)))
    return near._replace(first=near.first[:, :most], second=near.second[:, :most])


def enough(number: int) -> int:
    """Return a power of two that is not below a number, so that few shapes are met."""
    return 1 << max(number - 1, 0).bit_length()
