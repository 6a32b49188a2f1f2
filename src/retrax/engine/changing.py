"""Which numbers of functions are parameters of a program: those that have been seen to change.

A number that a function holds is a constant at first, and a program does its arithmetic with it
while it is built: a zero drops a product. Where a later run finds another number in its place, that
place becomes a parameter of the program, and no further change costs anything. A number that cannot
be traced (it decides an `if`, it is a count) is a constant always.
"""

from collections import OrderedDict
from collections.abc import Hashable

from retrax.numerics.fingerprint import Content
from retrax.numerics.reuse import remember

# Functions of so many kinds are kept in mind.
_MOST = 256


class _Seen:
    """The numbers first seen, and the places of those that change, that work, and that must not."""

    def __init__(self, contents: tuple[bytes, ...]):
        self.contents = contents
        self.changing: set[int] = set()
        self.traced: set[int] = set()
        self.fixed: set[int] = set()


class ChangingNumbers:
    """What has been seen of the numbers of functions, by all else that these consist of."""

    def __init__(self) -> None:
        self._seen: OrderedDict[Hashable, _Seen] = OrderedDict()
        remember(self)

    def cache_clear(self) -> None:
        self._seen.clear()

    def of(self, found: Content) -> tuple[int, ...]:
        """Return the places of the numbers that are parameters."""
        if found.held.curious or not found.complete or not found.held.values:
            return ()
        contents = found.held.contents()
        seen = self._seen.setdefault(found.parts, _Seen(contents))
        self._seen.move_to_end(found.parts)
        if len(self._seen) > _MOST:
            self._seen.popitem(last=False)
        pairs = enumerate(zip(contents, seen.contents, strict=True))
        seen.changing |= {k for k, (now, then) in pairs if now != then} - seen.fixed
        return tuple(sorted(seen.changing))

    def worked(self, found: Content, places: tuple[int, ...]) -> None:
        """Note that a program was made with these parameters."""
        if found.parts in self._seen:
            self._seen[found.parts].traced.update(places)

    def failed(self, found: Content, places: tuple[int, ...]) -> bool:
        """Have those of these parameters that are new stay constants; tell whether any is."""
        seen = self._seen.get(found.parts)
        new = set() if seen is None else set(places) - seen.traced
        if seen is None or not new:
            return False
        seen.fixed |= new
        seen.changing -= new
        return True


CHANGING = ChangingNumbers()
