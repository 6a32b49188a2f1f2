"""When contacts close, slip, stick and let go.

A contact is closed from the step on in which it first pushes with its gap closed, up to the step at
whose end its gap is open: above a billionth of the coordinates, so that rounding errors make no
events. Where a contact is closed, it slips or sticks at the end of a step. It jams, which is
Painlevé's case, where friction is so large that pushing harder makes it sink faster: an impact
without a collision.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from retrax.mechanics.contact import AbstractContacts
from retrax.numerics.complementarity import OPEN, SLIPS, STICKS

if TYPE_CHECKING:
    from retrax.trajectory.retaken import Retaken

KINDS = ("impact", "jam", "slip", "stick", "release")
# Of more times a text tells only the first.
_SHOWN = 4


class ContactEvent(NamedTuple):
    """Something that happened to a contact.

    **Attributes:** `kind`: "impact", "slip", "stick", "release" or "jam"; `time`: the end of the
    step in which it happened (s); `contact`: its name; `bodies`: who touches; `impulse`: the normal
    impulse of that step (N s).
    """

    kind: str
    time: float
    contact: str
    bodies: tuple[str, ...]
    impulse: float


class ContactEvents:
    """The events of one kind, in the order of time.

    **Attributes:** `t`: the times; `contact`, `bodies`, `impulse`: of each event.
    """

    def __init__(self, events: tuple[ContactEvent, ...]):
        self._events = events
        self.t = np.array([event.time for event in events], float)
        self.impulse = np.array([event.impulse for event in events], float)
        self.contact = tuple(event.contact for event in events)
        self.bodies = tuple(event.bodies for event in events)

    def __len__(self) -> int:
        return len(self._events)

    def __iter__(self) -> Iterator[ContactEvent]:
        return iter(self._events)

    def __getitem__(self, k: int) -> ContactEvent:
        return self._events[k]

    def __repr__(self) -> str:
        times = ", ".join(f"{t:.6g}" for t in self.t[:_SHOWN])
        more = ", ..." if len(self) > _SHOWN else ""
        return f"<{len(self)}{f' at t = {times}{more} s' if len(self) else ''}>"


class Listening:
    """What happens to contacts, step after step.

    **Arguments:** `contact`: the contacts; `closed`, `mode`: what they are before the first step.
    """

    def __init__(self, contact: AbstractContacts, closed: np.ndarray, mode: np.ndarray):
        self.events: list[ContactEvent] = []
        self._names, self._parties = contact.names, contact.parties
        self._last, self._jams = np.where(closed, mode, OPEN), np.zeros(closed.shape, bool)

    def hear(self, steps: "Retaken") -> None:
        """Find the events of more steps."""
        mode, normal = np.asarray(steps.record.mode), np.asarray(steps.record.normal)
        pushes = normal > 0
        # 1 where a contact closes or stays closed, 0 where it is open; between, as it was before.
        known = np.where(mode == OPEN, 0, np.where(pushes, 1, -1))
        known = np.concatenate([(self._last != OPEN)[None].astype(int), known])
        rows = np.arange(len(known))[:, None]
        latest = np.maximum.accumulate(np.where(known >= 0, rows, 0), axis=0)
        closed = np.take_along_axis(known, latest, axis=0)[1:] == 1
        now = np.where(closed, mode, OPEN)
        before = np.concatenate([self._last[None], now[:-1]])
        jams = np.zeros(now.shape, bool)
        if hasattr(steps.record, "jams"):
            jams = (before != OPEN) & pushes & np.asarray(steps.record.jams)
        jammed = np.concatenate([self._jams[None], jams[:-1]])
        self._last, self._jams = now[-1], jams[-1]
        changes = {
            "impact": (before == OPEN) & (now != OPEN),
            "jam": jams & ~jammed,
            "slip": (before == STICKS) & (now == SLIPS),
            "stick": (before == SLIPS) & (now == STICKS),
            "release": (before != OPEN) & (now == OPEN),
        }
        happens = np.stack([changes[kind] for kind in KINDS], axis=2)
        for k, i, kind in zip(*np.nonzero(happens), strict=True):
            name, who, push = self._names[i], self._parties[i], float(normal[k, i])
            self.events.append(ContactEvent(KINDS[kind], float(steps.t[k]), name, who, push))
