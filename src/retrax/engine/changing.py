"""Which numbers of functions are parameters of a program: those that have been seen to change.

A number in a user's function is a constant at first, and a program does its arithmetic with it
while it is built: a zero drops a product. Where a later run finds another number in its place, that
place becomes a parameter of the program, and no further change costs anything. A number with which
no program can be made as a parameter is a constant always.
"""

from collections import OrderedDict
from collections.abc import Hashable

from retrax.numerics.fingerprint import Content, Looks, Place
from retrax.numerics.reuse import remember

# Functions of so many kinds are kept in mind.
_MOST = 256


class _Seen:
    """The functions first seen, and the places of numbers that change, work, and must not."""

    def __init__(self, looks: Looks):
        self.looks = looks
        self.changing: dict[Place, None] = {}
        self.traced: set[Place] = set()
        self.fixed: set[Place] = set()


class ChangingNumbers:
    """What has been seen of the numbers of functions, by all else that these consist of."""

    def __init__(self) -> None:
        self._seen: OrderedDict[Hashable, _Seen] = OrderedDict()
        remember(self)

    def cache_clear(self) -> None:
        self._seen.clear()

    def of(self, found: Content) -> tuple[Place, ...]:
        """Return the places of the numbers that are parameters."""
        if not found.complete or not found.looks:
            return ()
        seen = self._seen.setdefault(found.parts, _Seen(found.looks))
        self._seen.move_to_end(found.parts)
        if len(self._seen) > _MOST:
            self._seen.popitem(last=False)
        new = [place for place in changes(seen.looks, found.looks) if place not in seen.fixed]
        seen.changing |= dict.fromkeys(new)
        return tuple(seen.changing)

    def note_success(self, found: Content, places: tuple[Place, ...]) -> None:
        """Note that a program was made with these parameters."""
        if found.parts in self._seen:
            self._seen[found.parts].traced.update(places)

    def note_failure(self, found: Content, places: tuple[Place, ...]) -> bool:
        """Have those of these parameters that are new stay constants; tell whether any is."""
        seen = self._seen.get(found.parts)
        new = set() if seen is None else set(places) - seen.traced
        if seen is None or not new:
            return False
        seen.fixed |= new
        seen.changing = {place: None for place in seen.changing if place not in new}
        return True


def changes(then: Looks, now: Looks) -> list[Place]:
    """Return the places of the numbers that differ between looks at functions of one structure."""
    return [
        (i, call, k)
        for i, (old, new) in enumerate(zip(then, now, strict=True))
        for call, capture in tuple(old.captures.items())
        if old is not new
        for k, (a, b) in enumerate(
            zip(capture.contents(), new.capture(call).contents(), strict=True)
        )
        if a != b
    ]


CHANGING = ChangingNumbers()
