"""Parameters of a ready system, by the names of its constructor."""

import dataclasses
import inspect
from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np

from retrax.errors import BadInput
from retrax.mechanics.system import AbstractGroupSystem

SystemOf = Callable[[dict[str, Any]], AbstractGroupSystem]


def free_fields(
    system: AbstractGroupSystem, names: Sequence[str]
) -> tuple[SystemOf, dict[str, np.ndarray]]:
    """Return a function that makes the system anew with other numbers, and those it has.

    **Raises:** `BadInput` where its constructor has no such numbers, or does not make it again.
    """
    kind, fields = type(system), {f.name for f in dataclasses.fields(system)}
    known = inspect.signature(kind).parameters
    kept = {name: getattr(system, name) for name in known if name in fields}
    needed = [k for k, p in known.items() if p.default is p.empty and k not in kept]
    if needed:
        raise BadInput(
            f"a {kind.__name__} does not keep its {needed[0]}, so it cannot be made with other "
            "numbers: write system_of(p) in Python and call rx.fit."
        )
    numbers = {k: np.asarray(x) for k, x in kept.items() if isinstance(x, jax.Array | np.ndarray)}
    for name in names:
        if name not in numbers:
            listed = ", ".join(numbers) or "none"
            raise BadInput(
                f"{name!r} is not a number of the {system.name} that can be fitted: there are "
                f"{listed}."
            )
    if "physical" in known and "physical" not in kept:
        kept["physical"] = False

    def system_of(p: dict[str, Any]) -> AbstractGroupSystem:
        return kind(**(kept | p))

    start = {name: numbers[name] for name in names}
    _require_the_same(system, system_of(start))
    return system_of, start


def _require_the_same(system: AbstractGroupSystem, again: AbstractGroupSystem) -> None:
    pairs = zip(jax.tree.leaves(system), jax.tree.leaves(again), strict=False)
    alike = jax.tree.structure(system) == jax.tree.structure(again)
    if not (alike and all(np.array_equal(x, y) for x, y in pairs)):
        raise BadInput(
            f"the {system.name} is not made again from its own numbers: write system_of(p) in "
            "Python and call rx.fit."
        )
