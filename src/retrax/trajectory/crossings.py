"""The events of a run: when they happened, and where the system was then."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np
from jaxtyping import Float, Int

from retrax.engine.progress import Packing
from retrax.mechanics.state import State
from retrax.trajectory.contact_events import KINDS, ContactEvent, ContactEvents

# Of more times a text tells only the first.
_SHOWN = 4


class Crossings:
    """Zero crossings of one event of a run, in the order of time.

    **Attributes:**

    - `t`: the times.
    - `states`: the states there, stacked.
    - `directions`: 1 where the function of the event rises, -1 where it falls, in the direction in
        which the run goes.
    """

    __slots__ = ("directions", "states", "t")

    def __init__(self, states: State, directions: Int[np.ndarray, " crossing"]):
        self.states, self.directions = states, directions
        self.t: Float[np.ndarray, " crossing"] = np.asarray(states.t)

    def __len__(self) -> int:
        return len(self.t)

    def __repr__(self) -> str:
        times = ", ".join(f"{t:.6g}" for t in self.t[:_SHOWN])
        more = ", ..." if len(self) > _SHOWN else ""
        at = f" at t = {times}{more} s" if len(self) else ""
        return f"<{len(self)} crossing{'s' if len(self) != 1 else ''}{at}>"

    def __getitem__(self, k: int) -> State:
        """Return the state of one crossing."""
        return jax.tree.map(lambda x: np.asarray(x)[k], self.states)


class Found(NamedTuple):
    """A crossing: which event, the numbers of the state there, and the direction."""

    event: int
    numbers: np.ndarray
    direction: int


class Events(Mapping[str, Any]):
    """The events of a run by name: `run.events["ground"].t`.

    A system with contact has "impact", "slip", "stick", "release" and "jam" among them, unless an
    event of the user's has that name. They are found when somebody asks.

    **Attributes:** `names`: of the events that were looked for; `ended_by`: the name of the event
    that ended the run, or `None`; `end`: the state there.
    """

    def __init__(
        self,
        names: Sequence[str],
        found: Sequence[Found],
        like: State,
        ended_by: str | None = None,
    ):
        self.names, self.found, self.ended_by = tuple(names), tuple(found), ended_by
        self._of_contacts: Callable[[], tuple[ContactEvent, ...]] | None = None
        self._told = True
        packing = Packing(like)
        self._crossings: dict[str, Crossings] = {}
        self._moving = Packing((like.g, like.momentum)).size
        for k, name in enumerate(self.names):
            own = [one for one in self.found if one.event == k]
            numbers = np.array([one.numbers for one in own]).reshape(len(own), packing.size)
            turns = np.array([one.direction for one in own], int)
            self._crossings[name] = Crossings(packing.unpack_one(numbers, copy=True), turns)

    def of_contacts(
        self, found: Callable[[], tuple[ContactEvent, ...]], told: bool = True
    ) -> "Events":
        """Return the same events, and those of contacts, which a function finds.

        `told` says whether to describe them in words too.
        """
        both = Events.__new__(Events)
        vars(both).update(vars(self), _of_contacts=found, _told=told)
        return both

    @property
    def entries(self) -> tuple[ContactEvent, ...]:
        """What happened to contacts, in the order of time: kind, time, contact, bodies, impulse."""
        return () if self._of_contacts is None else self._of_contacts()

    @property
    def end(self) -> State | None:
        """The state at which an event ended the run, or `None`."""
        return None if self.ended_by is None else self._crossings[self.ended_by][-1]

    def __getitem__(self, name: str) -> Crossings | ContactEvents:
        if name in self._crossings:
            return self._crossings[name]
        if name not in self._kinds:
            known = ", ".join(map(repr, self)) or "none: this run looked for no events"
            raise KeyError(f"{name!r}: the events are {known}.")
        return ContactEvents(tuple(event for event in self.entries if event.kind == name))

    @property
    def _kinds(self) -> tuple[str, ...]:
        """The kinds of events of contacts that go by their names."""
        if self._of_contacts is None:
            return ()
        return tuple(kind for kind in KINDS if kind not in self.names)

    def __iter__(self) -> Iterator[str]:
        return iter((*self.names, *self._kinds))

    def __len__(self) -> int:
        return len(self.names) + len(self._kinds)

    def __repr__(self) -> str:
        names = tuple(self) if self._told else self.names
        told = ", ".join(f"{name!r}: {self[name]!r}" for name in names)
        end = "" if self.ended_by is None else f", ended by {self.ended_by!r}"
        return f"<Events {{{told}}}{end}>"

    def words(self) -> dict[str, str]:
        """Tell each event in words, by name; of contacts what has happened at all."""
        ended = {self.ended_by: "; it ended the run"}
        names = tuple(self) if self._told else self.names
        told = {name: self[name] for name in names if name in self.names or len(self[name])}
        return {name: repr(one)[1:-1] + ended.get(name, "") for name, one in told.items()}

    def data(self) -> dict[str, Any]:
        """Return the events as JSON keeps them, without what a controller keeps."""

        def numbers(one: Found) -> list[str]:
            return [float(x).hex() for x in (*one.numbers[: self._moving], one.numbers[-1])]

        return {
            "names": list(self.names),
            "ended_by": self.ended_by,
            "found": [[one.event, one.direction, numbers(one)] for one in self.found],
        }


def events_of(data: Any, like: State) -> Events:
    """Read the events that a file stores.

    **Raises:** `ValueError` where they are not those of states like this one.
    """
    like = State(like.g, like.momentum, like.t)
    size = Packing(like).size
    if not isinstance(data, dict) or not isinstance(data.get("names"), list):
        raise ValueError("its events are damaged")
    names, ended_by = data["names"], data.get("ended_by")
    whole = all(isinstance(name, str) for name in names) and len(set(names)) == len(names)
    if not whole or not (ended_by is None or ended_by in names):
        raise ValueError("the names of its events are damaged")
    found = []
    for one in data.get("found", ()):
        event, direction, numbers = one
        row = np.array([float.fromhex(x) for x in numbers])
        fits = type(event) is int and 0 <= event < len(names) and direction in (-1, 1)
        if not fits or row.shape != (size,) or not np.isfinite(row).all():
            raise ValueError("one of its events is damaged")
        found.append(Found(event, row, direction))
    return Events(names, found, like, ended_by)
