"""Numbers in functions that JAX is tracing, taken out: a run becomes a function of arrays."""

from collections import OrderedDict
from collections.abc import Hashable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array
from jax.core import Tracer

from retrax.engine.step_program import guarded_step, signature
from retrax.integrators.base import AbstractIntegrator
from retrax.mechanics.state import State
from retrax.mechanics.system import AbstractGroupSystem
from retrax.numerics.checks import shape_and_dtype
from retrax.numerics.fingerprint import Looks, Place, content
from retrax.numerics.looks import Look, looking
from retrax.numerics.reuse import Signature, remember

# Steps of so many kinds are remembered to have asked their functions all that they ask.
_MOST = 64


class TakenOut(NamedTuple):
    """What the programs of a step depend on, without a traced number, and its parameters."""

    made_for: Signature
    params: Sequence[Array]


def take_out(
    system: AbstractGroupSystem, integrator: AbstractIntegrator, state: State
) -> TakenOut | None:
    """Separate a step from its numbers; `None` where a traced number cannot be taken out.

    Programs are made from looks with stand-ins for the numbers: nothing that is kept longer than
    this run refers to what JAX is tracing.
    """
    leaves, tree = jax.tree.flatten((system, integrator))
    with looking():
        found = content(tree, takes_traced=True)
        if not found.complete:
            return None
        traced: dict[Place, Any] = {}
        looks = found.looks
        if not all(look.known for look in looks):
            key = (found.parts, tuple([shape_and_dtype(x) for x in leaves]))
            asked = _ASKED.holds(key)
            if not asked:
                with looking(looks):
                    _ask_all(system, integrator, state)
            traced = _find_traced(looks)
            if any(look.holds_traced for look in looks):
                return None
            looks = Looks([_without(look, i, traced) for i, look in enumerate(looks)])
            if not asked:
                with looking(looks):
                    _ASKED.keep((content(tree, takes_traced=True).parts, key[1]))
        with looking(looks):
            made_for = signature(system, integrator, state, tuple(traced), takes_traced=True)
    return TakenOut(made_for, [*leaves, *traced.values()])


class _Asked:
    """Systems and integrators of which all functions have been asked what a step asks them.

    Looks compare as guards do: one that is found here has been asked all of that too.
    """

    def __init__(self) -> None:
        self._keys: OrderedDict[Hashable, None] = OrderedDict()
        remember(self)

    def cache_clear(self) -> None:
        self._keys.clear()

    def holds(self, key: Hashable) -> bool:
        return key in self._keys

    def keep(self, key: Hashable) -> None:
        self._keys[key] = None
        if len(self._keys) > _MOST:
            self._keys.popitem(last=False)


_ASKED = _Asked()


def _ask_all(system: AbstractGroupSystem, integrator: AbstractIntegrator, state: State) -> None:
    """Have a step call all functions that it calls."""

    def step(state: State, h: Array) -> Any:
        return guarded_step(system, integrator, state, h, integrator.memory(system, state))

    jax.eval_shape(step, state, jnp.ones(()))


def _find_traced(looks: Looks) -> dict[Place, Any]:
    """Return the numbers that JAX is tracing, by their places."""
    return {
        (i, call, k): x
        for i, look in enumerate(looks)
        for call, capture in look.captures.items()
        for k, x in enumerate(capture.numbers)
        if isinstance(x, Tracer)
    }


def _without(look: Look, i: int, traced: dict[Place, Any]) -> Look:
    """Return the look with stand-ins for its traced numbers."""
    places = {(call, k) for which, call, k in traced if which == i}
    return look.close(places)
