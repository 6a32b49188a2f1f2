"""The program of a step's derivative: how changes of parameters, state and inputs go on."""

from typing import Any

import jax
import jax.numpy as jnp

from retrax.engine.passes.live import live
from retrax.engine.passes.sinking import sink
from retrax.engine.program import Program
from retrax.engine.step_program import Parts
from retrax.engine.trace.scalarise import scalarise
from retrax.exporting.model import StepModel
from retrax.mechanics.state import State
from retrax.numerics.jax_hints import matrix_free
from retrax.numerics.reuse import reading

_NUMBER = jax.ShapeDtypeStruct((), jnp.float64)


def push_program(model: StepModel) -> Program:
    """Return the program of how the state changes with parameters and state.

    Time does not change, and is left out of the result.
    """
    parts = Parts(model.made_for.tree, model.made_for.avals)
    state = parts.state

    def push(params: list, state: State, h: Any, dparams: list, dstate: tuple) -> tuple:
        floats = [k for k, x in enumerate(params) if x.dtype == jnp.float64]

        def step(chosen: list, moving: tuple) -> tuple:
            mixed = list(params)
            for k, x in zip(floats, chosen, strict=True):
                mixed[k] = x
            system, integrator = parts.of(mixed)
            g, momentum, control = moving
            new, _ = integrator.step(system, State(g, momentum, state.t, control), h)
            return new.g, new.momentum, new.control

        point = ([params[k] for k in floats], (state.g, state.momentum, state.control))
        change = ([dparams[k] for k in floats], dstate)
        return jax.jvp(step, point, change)[1]

    dparams = [jax.ShapeDtypeStruct(x.shape, jnp.float64) for x in parts.params]
    dstate = (state.g, state.momentum, state.control)
    with matrix_free(), reading(model.made_for.identity):
        program = scalarise(
            push, parts.params, state, _NUMBER, dparams, dstate, invariant=len(parts.params)
        )
    return sink(live(program))
