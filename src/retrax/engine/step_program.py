"""The scalar program of one step of an integrator on a system."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.tree_util import Partial

from retrax.engine.changing import CHANGING
from retrax.engine.kinds import Unscalarisable
from retrax.engine.passes.fusion import fuse
from retrax.engine.passes.live import live
from retrax.engine.passes.sinking import sink
from retrax.engine.program import Program
from retrax.engine.progress import Packing, StepInputs
from retrax.engine.trace.scalarise import scalarise_in_turn
from retrax.errors import BadInput
from retrax.integrators.base import AbstractIntegrator, Memory, StepInfo, watch
from retrax.numerics.checks import shape_and_dtype
from retrax.numerics.fingerprint import Content, Fingerprint, Place, content
from retrax.numerics.looks import Bound, UserFunction, settings
from retrax.numerics.reuse import Reused, Signature

# Axes of a step that has no program with them kept are taken apart if they are shorter than this,
# and the program is not longer than that.
_TAKEN_APART, _LONG = 64, 20_000
# No axis is kept without being asked.
_NEVER = 1 << 30


class Structure:
    """What a program is made from; whether it can be used again is for its identity to tell.

    Two structures with one identity hold functions of equal content, though not the same functions.

    **Attributes:**

    - `tree`: the structure of (system, integrator, state).
    - `content`: what system and integrator consist of.
    - `places`: which of the numbers in their functions are parameters.
    """

    __slots__ = ("content", "places", "state", "tree")

    def __init__(self, tree: Any, content: Content, places: tuple[Place, ...]):
        self.tree, self.content, self.places = tree, content, places
        self.state = tree.children()[2]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Structure) and self.state == other.state

    def __hash__(self) -> int:
        return hash(self.state)

    @property
    def numbers(self) -> list[Any]:
        """The numbers of functions that are parameters, in order."""
        looks = self.content.looks
        return [looks[i].capture(call).numbers[k] for i, call, k in self.places]


def signature(
    system: Any,
    integrator: AbstractIntegrator,
    state: Any,
    places: tuple[Place, ...] | None = (),
    takes_traced: bool = False,
) -> Signature:
    """Return what the program of a step depends on; a state has no functions and nothing static.

    `places` are those of the numbers of functions that are parameters; with `None`, of those that
    have been seen to change. Where it `takes_traced` numbers, those that JAX traces are among them.
    """
    leaves, tree = jax.tree.flatten((system, integrator, state))
    avals = tuple([shape_and_dtype(x) for x in leaves])
    found = content(*tree.children()[:2], settings(), takes_traced=takes_traced)
    places = CHANGING.of(found) if places is None else places
    return Signature(Structure(tree, found, places), avals, found.fingerprint(places))


def step_identity(system: Any, integrator: AbstractIntegrator) -> Fingerprint:
    """Return all that a step reads besides the arrays of system and integrator."""
    parts = jax.tree.structure((system, integrator)).children()
    return content(*parts, settings()).fingerprint()


class Parts:
    """The shapes of what a program is made from, and systems and integrators made of parameters.

    **Attributes:** `params`: those of all parameters; `system`, `integrator`, `state`.
    """

    def __init__(self, structure: Structure, avals: tuple):
        leaves = [jax.ShapeDtypeStruct(*aval) for aval in avals]
        self._structure = structure
        self.system, self.integrator, self.state = jax.tree.unflatten(structure.tree, leaves)
        arrays, self._inner = jax.tree.flatten((self.system, self.integrator))
        self._own = len(arrays)
        numbers = [jax.ShapeDtypeStruct(np.shape(x), np.float64) for x in structure.numbers]
        self.params: list[Any] = [*arrays, *numbers]

    def of(self, params: Sequence[Any]) -> tuple[Any, AbstractIntegrator]:
        """Return the system and the integrator with these parameters."""
        own = jax.tree.unflatten(self._inner, params[: self._own])
        places, looks = self._structure.places, self._structure.content.looks
        others: dict[UserFunction, Bound] = {}
        for (i, call, k), number in zip(places, params[self._own :], strict=True):
            bound = others.setdefault(looks[i].function, Bound(looks[i]))
            bound.put(call, k, number)
        return _bind(own, others) if others else own


def _bind(tree: Any, others: Mapping[UserFunction, Bound]) -> Any:
    """Return a pytree with other functions in place of some of the user's."""

    def swap(node: Any) -> Any:
        if not isinstance(node, Partial):
            return node
        func = (
            others.get(node.func, node.func) if isinstance(node.func, UserFunction) else node.func
        )
        return Partial(func, *_bind(node.args, others), **_bind(node.keywords, others))

    return jax.tree.map(swap, tree, is_leaf=lambda node: isinstance(node, Partial))


@partial(Reused, fails=Unscalarisable)
def step_program(
    structure: Structure, avals: tuple, identity: Fingerprint, unroll: bool = False
) -> tuple[Program, StepInputs]:
    """Trace `guarded_step` to a program: parameters, state (its time last) and h are inputs.

    Everything in the system and the integrator that is an array stays an input, and then the
    numbers of functions that are parameters. With `unroll` short axes are taken apart even where
    the step asks to keep them.
    """
    parts = Parts(structure, avals)
    params, state = parts.params, parts.state

    def opening(params, state, h):
        system, integrator = parts.of(params)
        return integrator.memory(system, state)

    def step(params, state, h, memory):
        system, integrator = parts.of(params)
        return guarded_step(system, integrator, state, h, memory)

    examples = (params, state, jax.ShapeDtypeStruct((), jnp.float64))
    memory = Packing(memory_of(parts.system, parts.integrator, state))

    def program_of(**settings: int) -> Program:
        how = {"invariant": len(params), "unroll": unroll, **settings}
        return fuse(sink(live(scalarise_in_turn(opening, step, *examples, **how))))

    contact = parts.system.contact
    apart = contact is not None and not contact.in_a_row
    try:
        program = program_of(keep=_NEVER) if apart else program_of()
    except Unscalarisable:  # some work goes along two axes: take both apart, if they are short
        longest = max((x.shape[0] for x in jax.tree.leaves(examples) if x.shape), default=0)
        if longest >= _TAKEN_APART or apart:
            raise
        program = program_of(keep=_TAKEN_APART)
        if program.count() > _LONG:
            raise
    items = len(program.outputs) - len(StepInfo._fields) - 1
    return program, StepInputs(len(program.inputs) - items - 1, items, memory)


def guarded_step(
    system: Any, integrator: AbstractIntegrator, state: Any, h: Any, memory: Memory
) -> tuple[Any, StepInfo, Any, Memory]:
    """Return the new state, how the step went, whether all numbers are finite, and its memory."""
    new, info, memory = integrator.next_step(system, state, h, memory)
    return new, watch(system, new, info), is_finite(new), memory


def memory_of(system: Any, integrator: AbstractIntegrator, state: Any) -> Memory:
    """Return the shapes of what steps of this integrator hand on, seen to be float64 numbers."""
    memory = jax.eval_shape(lambda s, i, x: i.memory(s, x), system, integrator, state)
    odd = [x for x in jax.tree.leaves(memory) if x.dtype != np.float64]
    if odd:
        raise BadInput(
            f"{integrator!r} has {odd[0].dtype} numbers in its memory, but loops carry float64."
        )
    return memory


def is_finite(new: Any) -> Any:
    """Return whether all numbers of a state are finite: a sum is only if everything in it is."""
    sums = [jnp.sum(leaf) for leaf in jax.tree.leaves(eqx.tree_at(lambda s: s.t, new, None))]
    return jnp.isfinite(sum(sums[1:], sums[0]))
