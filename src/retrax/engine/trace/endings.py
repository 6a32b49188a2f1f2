"""Whether a loop ends by itself, because it counts its rounds up to a bound."""

from retrax.engine.builder import Builder
from retrax.engine.program import Operand, Value, While, kind_of

# A loop that does not count is stopped after so many rounds.
MOST_ROUNDS = 10_000_000


def ends(build: Builder, loop: While) -> bool:
    """Return whether the test of a loop fails in the end, because a count it carries grows."""
    counts = {
        value
        for value, updated in zip(loop.carried, loop.updated, strict=True)
        if value.kind not in ("float", "bool") and _grows(build, value, updated)
    }
    changing = {v for v, u in zip(loop.carried, loop.updated, strict=True) if v != u}
    return _fails(build, loop.test, counts, changing)


def _grows(build: Builder, value: Value, updated: Operand) -> bool:
    """Return whether a round adds to a count; under `vmap`, that of a member which goes on."""
    chosen = build.operands_of(updated, "select")
    if chosen is not None:
        _, otherwise, then = chosen
        return otherwise == value and _grows(build, value, then)
    added = build.operands_of(updated, "add")
    if added is None or value not in added:
        return False
    (step,) = [x for x in added if x != value] or [value]
    return not isinstance(step, Value) and bool(step > 0)


def _fails(build: Builder, test: Operand, counts: set[Value], changing: set[Value]) -> bool:
    both = build.operands_of(test, "and")
    if both is not None:
        return any(_fails(build, x, counts, changing) for x in both)
    either = build.operands_of(test, "or")
    if either is not None:
        return all(_fails(build, x, counts, changing) for x in either)
    for name, (count, most) in (("lt", (0, 1)), ("le", (0, 1)), ("gt", (1, 0)), ("ge", (1, 0))):
        compared = build.operands_of(test, name)
        if compared is not None:
            bound = compared[most]
            return compared[count] in counts and kind_of(bound) != "float" and bound not in changing
    return test is False
