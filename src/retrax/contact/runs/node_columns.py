"""What contacts of rods and of many balls do along a run, for each pair of things that touch.

A rod slides along another, and other segments touch: so contacts are told by who touches, a rod and
itself, two rods, or a rod and a body in space. All balls are one thing.
"""

from typing import Any

import numpy as np

from retrax.contact.node_contact import AbstractNodeContact
from retrax.contact.runs.replay import ReplayedSteps
from retrax.contact.shapes import number_names
from retrax.contact.solver.complementarity import OPEN

# What all contacts of rods together are called.
ALL = "all"
_SUMS = (
    "normal", "tangential", "friction_work", "impact_loss", "friction_doubt", "impact_doubt",
)  # fmt: skip


class Things:
    """Rods or balls and what stands in space, with names and numbers for the pairs of them."""

    def __init__(self, contact: AbstractNodeContact):
        strands = contact.strands
        self._contact, self.spread = contact, contact.spread
        self._strands, self._count = strands, len(strands) + len(contact.against)
        self._rod = np.repeat(np.arange(len(strands)), strands)
        bodies = number_names([shape.name for shape in contact.against])
        self._names = (*contact.things, *bodies)

    def pairs(self, first: np.ndarray, second: np.ndarray) -> np.ndarray:
        """Return the number of the pair at each contact."""
        return self._rod[first] * self._count + self.others(second)

    def others(self, second: np.ndarray) -> np.ndarray:
        """Return the numbers of the things that segments touch."""
        bodies = len(self._strands) - 1 - second
        return np.where(second < 0, bodies, self._rod[np.maximum(second, 0)])

    def rods(self, first: np.ndarray) -> np.ndarray:
        """Return the numbers of the rods of segments."""
        return self._rod[first]

    def name(self, pair: int) -> str:
        """Return what a pair is called."""
        one, other = divmod(pair, self._count)
        own = "itself" if self.spread else "each other"
        return f"{self._names[one]} on {own if one == other else self._names[other]}"

    def sides(self, first: int, second: int) -> tuple[str, str]:
        """Return what touches: two segments or balls, or one of them and a body."""
        body = self._names[len(self._strands) - 1 - second] if second < 0 else ""
        return self._contact.part(first), body or self._contact.part(second)


class RodColumns:
    """Sums between saved states and numbers at them, for each pair that touches and for all.

    **Arguments:** `count`: of saved states.
    """

    def __init__(self, things: Things, count: int):
        self._things, self._count = things, count
        self._columns: dict[int, dict[str, np.ndarray]] = {}
        self._gaps: dict[int, np.ndarray] = {}
        self._all = self._blank()
        self._least = np.full(count, np.inf)

    def _blank(self) -> dict[str, np.ndarray]:
        sums = {name: np.zeros(max(self._count - 1, 0)) for name in _SUMS}
        return sums | {"mode": np.zeros(self._count, int), "slip": np.zeros(self._count)}

    def add(self, steps: ReplayedSteps) -> None:
        """Collect what more steps tell."""
        record, places = steps.record, steps.interval + 1
        row, spot = np.nonzero(record.mode != OPEN)
        pair = self._things.pairs(record.first[row, spot], record.second[row, spot])
        told = {
            "normal": record.normal,
            "tangential": np.linalg.norm(record.tangential, axis=-1),
            "friction_work": -record.friction_work,
            "impact_loss": -record.impact_work,
            "friction_doubt": record.friction_doubt,
            "impact_doubt": record.impact_doubt,
            "mode": record.mode,
            "slip": np.linalg.norm(record.slip, axis=-1),
        }
        told = {name: values[row, spot] for name, values in told.items()}
        ends = steps.saved[row]
        for which in (None, *np.unique(pair).tolist()):
            mine = slice(None) if which is None else pair == which
            into = self._all
            if which is not None:
                into = self._columns.setdefault(which, self._blank())
            for name in _SUMS:
                np.add.at(into[name], steps.interval[row[mine]], told[name][mine])
            last = ends[mine]
            at = places[row[mine]][last]
            for name in ("mode", "slip"):
                np.maximum.at(into[name], at, told[name][mine][last])
        if steps.near is not None and len(steps.near[0]):
            self._near(*steps.near)

    def _near(self, at: np.ndarray, closest: Any) -> None:
        row, spot = np.nonzero(np.isfinite(closest.gap))
        gap = closest.gap[row, spot]
        pair = self._things.pairs(closest.first[row, spot], closest.second[row, spot])
        np.minimum.at(self._least, at[row], gap)
        for which in np.unique(pair).tolist():
            mine = pair == which
            if which not in self._gaps:
                self._gaps[which] = np.full(self._count, np.inf)
            np.minimum.at(self._gaps[which], at[row[mine]], gap[mine])

    def columns(self) -> tuple[tuple[str, ...], dict[str, np.ndarray]]:
        """Return the names, all first, and what was collected, a column for each."""
        touched = sorted(self._columns)
        never = np.full(self._count, np.inf)
        parts = [self._all | {"gap": self._least}]
        parts += [self._columns[k] | {"gap": self._gaps.get(k, never)} for k in touched]
        for part in parts:  # what the first state does is not known: as after the first step
            part["slip"][0] = np.nan
            if self._count > 1:
                part["mode"][0] = part["mode"][1]
        names = (ALL, *(self._things.name(k) for k in touched))
        return names, {name: np.stack([p[name] for p in parts], axis=1) for name in parts[0]}
