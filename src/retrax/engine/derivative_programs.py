r"""The scalar programs of a step's derivative: one for tangents, one for cotangents.

A step takes parameters $p$, a state $x$ and its size $h$ to $x' = \Phi(p, x, h)$. Time is a part of
the state here, $t' = t + h$, so that what depends on time depends on where a run starts and on $h$.

$$
\begin{aligned}
\delta_{k+1} &= D_x\Phi\,\delta_k + D_p\Phi\,\dot p + D_h\Phi\,\dot h        &&\text{(1)}\\
\lambda_k &= (D_x\Phi)^T\lambda_{k+1}, \qquad \bar p \mathrel{+}= (D_p\Phi)^T\lambda_{k+1}
                                                                             &&\text{(2)}
\end{aligned}
$$

What moves beside the configuration is the momentum and, in a driven run, what the controller keeps.
Equations that a step solves are differentiated by the implicit function theorem, as in the step.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from retrax.engine.passes.live import live
from retrax.engine.passes.sinking import sink
from retrax.engine.program import Program
from retrax.engine.progress import Packing, StepInputs, length
from retrax.engine.step_program import Parts, Structure, is_finite, memory_of
from retrax.engine.trace.scalarise import scalarise, scalarise_in_turn
from retrax.integrators.base import StepInfo, watch
from retrax.mechanics.state import State
from retrax.numerics.fingerprint import Fingerprint
from retrax.numerics.jax_hints import matrix_free
from retrax.numerics.reuse import Reused

_H = jax.ShapeDtypeStruct((), jnp.float64)


class Wanted(NamedTuple):
    """Which derivatives are asked for besides those by the state: by parameters, by the step."""

    params: tuple[bool, ...]
    h: bool

    def of(self, params: Sequence[Any], h: Any) -> list[Any]:
        """Select what is wanted from values for all parameters and the step."""
        chosen = [x for x, wanted in zip(params, self.params, strict=True) if wanted]
        return [*chosen, h] if self.h else chosen

    def put(self, chosen: Sequence[Any], params: Sequence[Any], h: Any) -> tuple[list[Any], Any]:
        """Put what was selected back among values for all parameters and the step."""
        left = iter(chosen)
        mixed = [next(left) if wanted else x for x, wanted in zip(params, self.params, strict=True)]
        return mixed, next(left) if self.h else h


@Reused
def push_program(
    structure: Structure, avals: tuple, identity: Fingerprint, wanted: Wanted
) -> tuple[Program, StepInputs]:
    """Return the program (1): a step of a state with a tangent; parameters have theirs after them.

    The state is (g, momentum and control, their tangents, the tangent of time, time).
    """
    parts = Parts(structure, avals)
    params, state = parts.params, parts.state
    memory = memory_of(parts.system, parts.integrator, state)

    def push(given: list, now: tuple, h: Any, remembered: Any, dremembered: Any) -> tuple:
        """Return the step and its derivative."""
        own, dots = given[: len(params)], given[len(params) :]
        g, mu, dg, dmu, dt, t = now

        def next_step(chosen, g, mu, t, remembered):
            p, size = wanted.put(chosen, own, h)
            system, integrator = parts.of(p)
            new, info, memory = integrator.next_step(system, _state(g, mu, t), size, remembered)
            return (new.g, _moving(new), t + size, memory), (
                watch(system, new, info),
                is_finite(new),
            )

        point = (wanted.of(own, h), g, mu, t, remembered)
        end, dend, (info, finite) = jax.jvp(
            next_step, point, (dots, dg, dmu, dt, dremembered), has_aux=True
        )
        (g, mu, t, memory), (dg, dmu, dt, dmemory) = end, dend
        return (g, mu, dg, dmu, dt, t), info, finite, (memory, dmemory)

    def opening(given: list, now: tuple, h: Any) -> tuple:
        own, dots = given[: len(params)], given[len(params) :]
        g, mu, dg, dmu, dt, t = now

        def memory(chosen, g, mu, t):
            system, integrator = parts.of(wanted.put(chosen, own, h)[0])
            return integrator.memory(system, _state(g, mu, t))

        return jax.jvp(memory, (wanted.of(own, h), g, mu, t), (dots, dg, dmu, dt))

    given = [*params, *wanted.of(params, _H)]
    now = (state.g, _moving(state), state.g, _moving(state), _H, _H)
    with matrix_free():
        program = scalarise_in_turn(
            opening,
            lambda given, now, h, memory: push(given, now, h, *memory),
            *(given, now, _H),
            invariant=len(given),
        )
    program = sink(live(program))
    items = len(program.outputs) - len(StepInfo._fields) - 1
    layout = Packing((memory, memory))
    return program, StepInputs(len(program.inputs) - items - 1, items, layout)


class PullInputs(NamedTuple):
    """How many inputs of a pullback are parameters, numbers of the point, and numbers it carries.

    The point is a state without its time. Carried are the cotangents of the state, its time the
    last of them, and the sums for what else is wanted. Then come time and step.
    """

    params: int
    point: int
    carried: int


@Reused
def pull_program(
    structure: Structure, avals: tuple, identity: Fingerprint, wanted: Wanted
) -> tuple[Program, PullInputs]:
    """Return the program (2), from step k and the cotangents at its end to those at its start.

    Inputs are parameters, point, what is carried, time and h; outputs are what is carried. What a
    step remembers only saves work, so that it is left out.
    """
    parts = Parts(structure, avals)
    params, state = parts.params, parts.state

    def pull(own: list, point: tuple, carried: tuple, t: Any, h: Any) -> tuple:
        ends, sums = carried

        def step(chosen, g, mu, t):
            p, size = wanted.put(chosen, own, h)
            system, integrator = parts.of(p)
            new, _ = integrator.step(system, _state(g, mu, t), size)
            return new.g, _moving(new), t + size

        _, back = jax.vjp(step, wanted.of(own, h), *point, t)
        added, *starts = back(ends)
        return tuple(starts), jax.tree.map(jnp.add, sums, added)

    point = (state.g, _moving(state))
    carried = ((*point, _H), wanted.of(params, _H))
    with matrix_free():
        program = scalarise(pull, params, point, carried, _H, _H, invariant=len(params))
    program = sink(live(program))
    counts = [Packing(part).size for part in (params, point, carried)]
    return program, PullInputs(*_items(program.inputs, counts))


def _moving(state: State) -> tuple[Any, Any]:
    """Return the momentum, and what a controller keeps: `None` has no numbers."""
    return state.momentum, state.control


def _state(g: Any, moving: tuple[Any, Any], t: Any) -> State:
    momentum, control = moving
    return State(g, momentum, t, control)


def _items(inputs: Sequence[Any], counts: Sequence[int]) -> list[int]:
    """Return how many inputs make up each group of numbers, whose sizes are `counts`."""
    items, left = [], iter(inputs)
    for count in counts:
        taken = 0
        found = 0
        while taken < count:
            taken, found = taken + length(next(left)), found + 1
        items.append(found)
    return items
