"""Rules for loops and choices."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from retrax.numerics.host.program import Call, Equation, HostProgram, Rule, Rules

# Makes the program of the inside of a loop.
Make = Callable[[Any], HostProgram]


def control_rules(make: Make) -> Rules:
    """Return the rules; `make` turns the jaxprs inside into programs."""
    return {
        "while": _while(make),
        "scan": _scan(make),
        "cond": _cond(make),
        "custom_linear_solve": _linear_solve(make),
        "platform_index": _platform,
    }


def _while(make: Make) -> Rule:
    def rule(equation: Equation) -> Call:
        p = equation.params
        test, body = make(p["cond_jaxpr"]), make(p["body_jaxpr"])
        tested, moved = p["cond_nconsts"], p["body_nconsts"]

        def loop(*arrays: Any) -> list[Any]:
            of_test, of_body = arrays[:tested], arrays[tested : tested + moved]
            carry = list(arrays[tested + moved :])
            going = test([*of_test, *carry])[0]
            while np.any(going):
                new = body([*of_body, *carry])
                carry = new if np.ndim(going) == 0 else _where(going, new, carry)
                going = test([*of_test, *carry])[0]
            return carry

        return loop

    return rule


def _where(going: Any, new: list[Any], old: list[Any]) -> list[Any]:
    """Renew what goes on, along the first axes; the rest stays as it is."""

    def choose(x: Any, y: Any) -> Any:
        return np.where(going.reshape(going.shape + (1,) * (np.ndim(x) - going.ndim)), x, y)

    return [choose(x, y) for x, y in zip(new, old, strict=True)]


def scan_counts(params: Mapping[str, Any]) -> tuple[int, int]:
    """Count the constants and the carried arrays of a scan."""
    if "num_consts" in params:
        return params["num_consts"], params["num_carry"]
    consts, carry, _ = params["ft_in"].unpack()  # JAX 0.11
    return len(list(consts)), len(list(carry))


def _scan(make: Make) -> Rule:
    def rule(equation: Equation) -> Call:
        p = equation.params
        body, length = make(p["jaxpr"]), p["length"]
        consts, carried = scan_counts(p)
        order = range(length)[::-1] if p["reverse"] else range(length)
        outs: Any = [v.aval for v in equation.outvars[carried:]]

        def scan(*arrays: Any) -> list[Any]:
            fixed, carry = arrays[:consts], list(arrays[consts : consts + carried])
            rows = arrays[consts + carried :]
            found = [np.empty(aval.shape, aval.dtype) for aval in outs]
            for k in order:
                results = body([*fixed, *carry, *[x[k] for x in rows]])
                carry = results[:carried]
                for array, row in zip(found, results[carried:], strict=True):
                    array[k] = row
            return [*carry, *found]

        return scan

    return rule


def _cond(make: Make) -> Rule:
    def rule(equation: Equation) -> Call:
        branches = [make(branch) for branch in equation.params["branches"]]

        def choose(index: Any, *arrays: Any) -> list[Any]:
            return branches[min(max(int(index), 0), len(branches) - 1)](arrays)

        return choose

    return rule


def _linear_solve(make: Make) -> Rule:
    """Make a rule for a linear system that brings its own solver."""

    def rule(equation: Equation) -> Call:
        p = equation.params
        solve, lengths = make(p["jaxprs"].solve), p["const_lengths"]
        before = lengths.matvec + lengths.vecmat
        after = before + lengths.solve + lengths.transpose_solve

        def call_solver(*arrays: Any) -> list[Any]:
            return solve([*arrays[before : before + lengths.solve], *arrays[after:]])

        return call_solver

    return rule


def _platform(equation: Equation) -> Call:
    """Return which of several branches is that for this processor."""
    platforms = equation.params["platforms"]
    index = next(k for k, names in enumerate(platforms) if names is None or "cpu" in names)
    return lambda: np.int32(index)
