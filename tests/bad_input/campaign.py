"""Many calls: strategies for the arguments of an entry, and the count of how they end."""

import collections
import dataclasses
from typing import Any

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from .entries import Entry
from .judge import Verdict, judge
from .values import wrong

_CHECKS = list(HealthCheck)


@st.composite
def calls(draw: st.DrawFn, entry: Entry, right: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """One or two arguments wrong, two exchanged, one missing or one unknown; rarely all right."""
    names = sorted(right)
    how = draw(st.integers(0, 19))
    if how == 1 or not names:
        return "unknown", right | {"unknown": 1}
    if how == 19:
        return "right", right
    if how == 2:
        name = draw(st.sampled_from(names))
        return f"no {name}", {k: v for k, v in right.items() if k != name}
    if how == 3 and len(names) > 1:
        a, b = draw(st.permutations(names))[:2]
        return f"{a} and {b} exchanged", right | {a: right[b], b: right[a]}
    changed = [draw(st.sampled_from(names)) for _ in range(1 + (entry.pairs and how > 15))]
    values = {
        name: draw(entry.values[name] if name in entry.values else wrong(right[name]))
        for name in changed
    }
    return ", ".join(f"{k}={_text(v)}" for k, v in values.items()), right | values


def _text(value: Any) -> str:
    return " ".join(repr(value).split())[:120]


@dataclasses.dataclass
class Count:
    """How the examples of one entry ended."""

    outcomes: collections.Counter[str]
    wrong: list[tuple[str, Verdict]]


def examine(entry: Entry, examples: int, number: int = 0) -> Count:
    """Run `examples` calls of one entry: those of the seed `number`, the same ones every time."""
    count = Count(collections.Counter(), [])
    right = entry.arguments()
    first = judge(entry, right)
    count.outcomes[first.outcome] += 1
    if first.outcome != "accepted":
        count.wrong.append(("right arguments", first))

    @seed(number)
    @settings(
        max_examples=examples,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=_CHECKS,
    )
    @given(calls(entry, right))
    def run(call: tuple[str, dict[str, Any]]) -> None:
        what, arguments = call
        verdict = judge(entry, arguments, complete=arguments.keys() == right.keys())
        count.outcomes[verdict.outcome] += 1
        if verdict.outcome == "wrong":
            count.wrong.append((what, verdict))

    run()
    return count
