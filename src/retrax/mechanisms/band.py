"""The joints of a mechanism one after the other, and which bodies are between them.

Joints are put in an order in which those that share a body are close: in a chain neighbours, in a
ladder at most two apart. Along that order the matrix of the joints is a band. Bodies stand behind
the ground, which is the first of them; where bodies look for their joints, one that does nothing
stands in front of all and one behind. So everything that the joints and the bodies of a chain read
of each other lies at the same distance.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from retrax.mechanisms.body import GROUND


class Slot(NamedTuple):
    """One of the joints of each body in which it is body number `side`, 0 for none."""

    side: int
    joints: np.ndarray


class Meeting(NamedTuple):
    """Bodies that joints some places apart have in common: the `sides` of the first and the second.

    `where` is 1 where they do and 0 else; `None` where all do, or share the ground.
    """

    sides: tuple[int, int]
    where: np.ndarray | None


@dataclass(frozen=True, eq=False)
class Band:
    """The joints in order.

    **Attributes:** `order`: the numbers of the joints; `width`: how far apart joints with a common
    body are; `rows`: the most rows of a joint; `held`: 1 for the rows that joints have, 0 for those
    that fill up; `sides`: for each body of a joint its place among ground and bodies; `slots`: for
    ground and bodies, their joints; `meetings`: for joints q = 0, ..., width places apart.
    """

    order: np.ndarray
    width: int
    rows: int
    held: np.ndarray
    sides: tuple[np.ndarray, ...]
    slots: tuple[Slot, ...]
    meetings: tuple[tuple[Meeting, ...], ...]


@lru_cache(maxsize=64)
def band(bodies: tuple[tuple[int, ...], ...], counts: tuple[int, ...], n: int) -> Band:
    """Order joints that have these bodies, among `n`, and so many rows."""
    pairs = _neighbours(bodies)
    order = _order(bodies, pairs)
    held = np.array([np.arange(max(counts)) < counts[j] for j in order]) * 1.0
    sides = []
    for s in range(max(map(len, bodies))):
        found = np.array([bodies[j][s] if s < len(bodies[j]) else GROUND for j in order])
        sides.append(found - GROUND)
    width = _width(order, pairs)
    return Band(
        np.array(order),
        width,
        max(counts),
        held,
        tuple(sides),
        tuple(_slots(sides, n + 1)),
        tuple(tuple(_meetings(sides, q)) for q in range(width + 1)),
    )


def _neighbours(bodies: Sequence[tuple[int, ...]]) -> set[tuple[int, int]]:
    """List the pairs of joints that have a body in common."""
    of: dict[int, list[int]] = {}
    for joint, ends in enumerate(bodies):
        for body in {*ends} - {GROUND}:
            of.setdefault(body, []).append(joint)
    return {(a, b) for joints in of.values() for a in joints for b in joints if a < b}


def _order(bodies: Sequence[tuple[int, ...]], pairs: set[tuple[int, int]]) -> list[int]:
    """Order joints so that neighbours are close: as they are, or by reversed Cuthill-McKee."""
    beside: list[set[int]] = [set() for _ in bodies]
    for a, b in pairs:
        beside[a].add(b)
        beside[b].add(a)
    found: list[int] = []
    seen: set[int] = set()
    for start in range(len(bodies)):
        if start not in seen:
            part = _levels(beside, _levels(beside, _levels(beside, start)[-1])[-1])
            found += part
            seen |= {*part}
    given = list(range(len(bodies)))
    return min(given, found, found[::-1], key=lambda order: _width(order, pairs))


def _width(order: Sequence[int], pairs: set[tuple[int, int]]) -> int:
    place = {joint: k for k, joint in enumerate(order)}
    return max((abs(place[a] - place[b]) for a, b in pairs), default=0)


def _levels(beside: Sequence[set[int]], start: int) -> list[int]:
    """List what is connected with a joint, nearest first, those with few neighbours first."""
    found, seen = [start], {start}
    for joint in found:
        following = sorted(beside[joint] - seen, key=lambda j: (len(beside[j]), j))
        found += following
        seen |= {*following}
    return found


def _meetings(sides: Sequence[np.ndarray], q: int) -> list[Meeting]:
    count, found = len(sides[0]) - q, []
    for s, a in enumerate(sides):
        for r, b in enumerate(sides):
            same = a[:count] == b[q:]
            common = same & (a[:count] > 0)
            if common.any():
                found.append(Meeting((s, r), None if same.all() else common * 1.0))
    return found


def _slots(sides: Sequence[np.ndarray], length: int) -> list[Slot]:
    found = []
    for s, side in enumerate(sides):
        joints: list[list[int]] = [[] for _ in range(length)]
        for k in np.flatnonzero(side):
            joints[side[k]].append(int(k) + 1)
        for depth in range(max(map(len, joints))):
            places = np.array([j[depth] if depth < len(j) else -1 for j in joints])
            found.append(Slot(s, _fill_places(places, len(side) + 1)))
    return found


def _fill_places(places: np.ndarray, last: int) -> np.ndarray:
    """Fill unknown places, which are negative, with those of no joint: 0, or `last` if even.

    The ground, which comes first, may have any joint: nothing moves it.
    """
    known = np.flatnonzero(places >= 0)
    if len(known) > 1:
        step, rest = divmod(places[known[1]] - places[known[0]], known[1] - known[0])
        even = places[known[0]] + step * (np.arange(len(places)) - known[0])
        within = np.all((even >= 0) & (even <= last))
        fine = np.where(
            places >= 0, even == places, (even % last == 0) | (np.arange(len(even)) == 0)
        )
        if not rest and within and np.all(fine):
            return even
    return np.where(places >= 0, places, 0)
