"""When rods and balls come to touch, slip, stick and let go.

Contacts of a rod move along it. So spots that push within two segments of each other, on both of
the things that touch, are one contact, and it goes on as long as something within two segments of
it pushes in the next step. It slips where one of its spots does. Two balls are one contact.

- An impact: something pushes that did not in the step before, nor did anything beside it.
- A release: nothing of a contact pushes any more, nor does anything beside it.
- Slip, stick: a contact that goes on does so, and did not in the step before.

Contacts that grow together or come apart make no events.
"""

from typing import Any, NamedTuple

import numpy as np

from retrax.contact.runs.node_columns import Things
from retrax.contact.runs.replay import ReplayedSteps
from retrax.contact.solver.complementarity import OPEN, SLIPS, STICKS
from retrax.trajectory.contact_events import ContactEvent

# Numbers of different things are this far apart: further than spots of one contact.
_APART = 20
# More than there are nodes.
_MANY = 2**30
# A speed below this, relative to others, is that of something which already rests.
_SMALL = 1e-9


class _Spots(NamedTuple):
    """What pushes in one step: segments, where they are on both things, modes and pushes."""

    first: np.ndarray
    second: np.ndarray
    place: np.ndarray
    mode: np.ndarray
    push: np.ndarray

    def some(self, chosen: np.ndarray) -> "_Spots":
        return _Spots(*(x[chosen] for x in self))


class RodListening:
    """Hears the events of rods in steps that come one after the other."""

    def __init__(self, things: Things):
        self.events: list[ContactEvent] = []
        self._things = things
        self._last: _Spots | None = None

    def hear(self, steps: ReplayedSteps) -> None:
        """Find the events of more steps."""
        record = steps.record
        pushes = record.mode != OPEN
        key = np.stack([record.first, record.second, record.mode], axis=2)
        key = np.where(pushes[:, :, None], key, -(2**30))
        same = np.concatenate([[False], np.all(key[1:] == key[:-1], axis=(1, 2))])
        for k in np.flatnonzero(~same).tolist():
            now = self._spots(record, k, pushes[k])
            if k > 0:
                before = self._spots(record, k - 1, pushes[k - 1])
            else:
                before = self._last or _resting(record, now, pushes[0])
            self._compare(before, now, float(steps.t[k]))
        self._last = self._spots(record, -1, pushes[-1])

    def _spots(self, record: Any, k: int, pushes: np.ndarray) -> _Spots:
        first, second, mode, push = (
            np.asarray(getattr(record, name))[k][pushes]
            for name in ("first", "second", "mode", "normal")
        )
        on = np.where(second < 0, _APART * second, second + _APART * self._things.others(second))
        place = np.stack([first + _APART * self._things.rods(first), on], axis=1)
        return _Spots(first, second, place, mode, push)

    def _compare(self, before: _Spots, now: _Spots, t: float) -> None:
        near = self._things.spread
        if near == 0:  # a spot is a contact, and what goes on as it was tells nothing
            before, now = before.some(~_among(before, now)), now.some(~_among(now, before))
        meets = _beside(now, before, near)
        for patch in _patches(now, near):
            went_on = np.any(meets[patch], axis=0)
            if not went_on.any():
                self._tell("impact", t, now.some(patch))
                continue
            mode, was = np.max(now.mode[patch]), np.max(before.mode[went_on])
            if mode != was:
                kind = {SLIPS: "slip", STICKS: "stick"}[int(mode)]
                self._tell(kind, t, now.some(patch))
        for patch in _patches(before, near):
            if not np.any(meets[:, patch]):
                self._tell("release", t, before.some(patch), 0.0)

    def _tell(self, kind: str, t: float, spots: _Spots, impulse: float | None = None) -> None:
        """Tell an event where its contact pushes most."""
        worst = int(np.argmax(spots.push))
        first, second = spots.first[worst], spots.second[worst]
        (pair,) = self._things.pairs(first[None], second[None])
        push = float(np.sum(spots.push)) if impulse is None else impulse
        sides = self._things.sides(int(first), int(second))
        self.events.append(ContactEvent(kind, t, self._things.name(int(pair)), sides, push))


def _resting(record: Any, now: _Spots, pushes: np.ndarray) -> _Spots:
    """Return what touches before the first step: what pushes in it and does not land."""
    approach, fast = record.approach[0], max(np.abs(record.slip[0]).max(initial=0.0), 0.0)
    fast = max(np.abs(approach).max(initial=0.0), fast)
    return now.some(approach[pushes] >= -_SMALL * fast)


def _among(one: _Spots, other: _Spots) -> np.ndarray:
    """Return which spots are the same among others, and do the same."""
    mine, theirs = ((x.place[:, 0] * _MANY + x.place[:, 1]) * 4 + x.mode for x in (one, other))
    return np.isin(mine, theirs)


def _beside(one: _Spots, other: _Spots, near: int) -> np.ndarray:
    """Return which spots are beside which."""
    apart = np.abs(one.place[:, None] - other.place[None])
    return np.all(apart <= near, axis=2)


def _patches(spots: _Spots, near: int) -> list[np.ndarray]:
    """Return the spots of each contact: chains of spots that are beside each other."""
    beside, left, found = _beside(spots, spots, near), np.ones(len(spots.first), bool), []
    while left.any():
        patch = np.zeros(len(left), bool)
        patch[np.argmax(left)] = True
        while True:
            more = np.any(beside[patch], axis=0)
            if np.array_equal(more, patch):
                break
            patch = more
        found.append(patch)
        left &= ~patch
    return found
