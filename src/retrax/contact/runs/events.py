"""When contacts close, slip, stick and let go.

A contact is closed from the step on in which it first pushes with its gap closed, up to the step at
whose end its gap is open: above a billionth of the coordinates, so that rounding errors make no
events. Where a contact is closed, it slips or sticks at the end of a step. It jams, which is
Painlevé's case, where friction is so large that pushing harder makes it sink faster: an impact
without a collision.
"""

import numpy as np

from retrax.contact.runs.replay import ReplayedSteps
from retrax.contact.solver.complementarity import OPEN, SLIPS, STICKS
from retrax.mechanics.contact import AbstractContacts
from retrax.trajectory.contact_events import KINDS, ContactEvent


class Listening:
    """A listener that collects the events of contacts, step by step.

    **Arguments:** `contact`: the contacts; `closed`, `mode`: what they are before the first step.
    """

    def __init__(self, contact: AbstractContacts, closed: np.ndarray, mode: np.ndarray):
        self.events: list[ContactEvent] = []
        self._names, self._parties = contact.names, contact.parties
        self._last, self._jams = np.where(closed, mode, OPEN), np.zeros(closed.shape, bool)

    def hear(self, steps: ReplayedSteps) -> None:
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
