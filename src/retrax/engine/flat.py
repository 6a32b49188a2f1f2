"""Arrays of one axis that are made of many alike things, kept along the things.

Coordinates of many nodes come as one long axis: all numbers of the first node, then those of the
second. Work on them that is alike for all entries, sums over all of them and the way back to one
row a node are done node by node, in the loops that the nodes have anyway. Anything else sees a
plain row.
"""

import math
from typing import Any

from retrax.engine.entry_rules import kind_of_aval
from retrax.engine.kept import Flat, Kept, shifted, stacked
from retrax.engine.kept_rules import ALIKE, KeptRules, dispatch


def dispatch_flat(evaluator: Any, equation: Any, ins: list) -> list:
    """The results of an equation of which some input is flat."""
    name, like = equation.primitive.name, next(x for x in ins if isinstance(x, Flat))
    things, rules = like.things, KeptRules(evaluator, equation)
    if name in evaluator.same_names:
        return ins
    if name in evaluator.entrywise_names or name in ALIKE:
        (out,) = dispatch(evaluator, equation, [_along(evaluator, x, things) for x in ins])
        return [Flat(out)]
    if name in evaluator.reductions:
        kind = kind_of_aval(equation.outvars[0].aval)
        return [rules.reduce(evaluator.reductions[name], things, (0, 1), kind)]
    if name == "reshape":
        first, *others = equation.params["new_sizes"]
        if first == things.length and math.prod(others) == things.cells.size:
            return [Kept(things.cells.reshape(others), 0, first)]
    return evaluator.equation(equation, [evaluator.plain(x) for x in ins])


def _along(evaluator: Any, x: Any, things: Kept) -> Any:
    """An operand of a flat array as one with a row for each of its things; single numbers stay."""
    if isinstance(x, Flat) and x.things.length != things.length:
        x = evaluator.plain(x)
    if isinstance(x, Flat):
        return x.things
    if isinstance(x, Kept):
        width = things.cells.size
        return stacked([shifted(x, c, things.length, width) for c in range(width)])
    return x if x.ndim == 0 else evaluator.loops.keep(x.reshape(things.length, -1), 0)
