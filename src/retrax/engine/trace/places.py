"""Places in arrays that are found at run time, and JAX's rules for those out of range."""

from collections.abc import Callable, Iterable, Sequence

from retrax.engine.kinds import Constant, Kind, bounds, constant, is_unsigned
from retrax.engine.program import Operand, Value, kind_of

Emit = Callable[..., Operand]


def clamp(emit: Emit, place: Operand, last: int) -> Operand:
    """Move a place into the range from 0 to `last`."""
    if not isinstance(place, Value):
        return min(max(int(place), 0), last)
    if last == 0:
        return 0
    kind = kind_of(place)
    from_zero = place if is_unsigned(kind) else emit("max", place, constant(0, kind))
    return emit("min", from_zero, _most(last, kind))


def all_within(emit: Emit, places: Iterable[Operand], limits: Sequence[int]) -> Operand:
    """Tell whether all places are within their bounds."""
    within: Operand = True
    for place, last in zip(places, limits, strict=True):
        if isinstance(place, Value):
            low, high = constant(0, kind_of(place)), _most(last, kind_of(place))
            for test in (emit("ge", place, low), emit("le", place, high)):
                within = emit("and", within, test)
        elif not 0 <= int(place) <= last:
            return False
    return within


def _most(last: int, kind: Kind) -> Constant:
    """Return the last place as a number of a kind, which may have no place so far out."""
    return constant(min(last, bounds(kind)[1]), kind)
