"""The events of contacts as data: when they close, slip, stick and let go."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

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
