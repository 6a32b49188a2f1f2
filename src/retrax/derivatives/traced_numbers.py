"""Numbers that functions hold and JAX is tracing, taken out: a run becomes a function of arrays."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import numpy as np
from jax import Array
from jax.core import Tracer

from retrax.engine.step_program import signature
from retrax.integrators.base import AbstractIntegrator
from retrax.mechanics.state import State
from retrax.mechanics.system import AbstractGroupSystem
from retrax.numerics.checks import shape_and_dtype
from retrax.numerics.fingerprint import content
from retrax.numerics.held import replaced
from retrax.numerics.reuse import Signature


class TakenOut(NamedTuple):
    """What the programs of a step depend on, without a traced number, and its parameters."""

    made_for: Signature
    params: Sequence[Array]


def take_out(
    system: AbstractGroupSystem, integrator: AbstractIntegrator, state: State
) -> TakenOut | None:
    """Separate a step from its numbers; `None` where a traced number cannot be taken out.

    What holds a traced number is copied, with a stand-in for the number: nothing that is kept
    longer than this run refers to what JAX is tracing.
    """
    leaves, tree = jax.tree.flatten((system, integrator))
    found = content(tree.children(), takes_traced=True)
    if not found.complete:
        return None
    traced = {k: x for k, x in enumerate(found.held.values) if isinstance(x, Tracer)}
    stand_ins: dict[int, float | np.ndarray] = {}
    if traced:
        stand_ins = {k: _stand_in(x) for k, x in traced.items()}
        shapes = jax.tree.unflatten(
            tree, [jax.ShapeDtypeStruct(*shape_and_dtype(x)) for x in leaves]
        )
        try:
            system, integrator = replaced(shapes, found.held, stand_ins)
        except LookupError:
            return None
    made_for = signature(system, integrator, state, tuple(traced))
    held = made_for.tree.content.held.values
    ids = {id(x) for x in stand_ins.values()}
    # Each stand-in must be where its number was, and nowhere else.
    if {k for k, x in enumerate(held) if id(x) in ids} != set(traced):
        return None
    if any(held[k] is not x for k, x in stand_ins.items()):
        return None
    return TakenOut(made_for, [*leaves, *traced.values()])


def _stand_in(x: Tracer) -> float | np.ndarray:
    """A number of the same type and shape, which no program uses."""
    aval: Any = x.aval
    return float("nan") if aval.weak_type and not x.shape else np.full(x.shape, np.nan)
