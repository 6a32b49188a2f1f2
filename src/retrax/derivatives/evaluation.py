"""How a primitive of a run gets its numbers: from machine code, or from a JAX program."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax._src.callback import emit_python_callback
from jax.extend.core import Primitive
from jax.interpreters import mlir
from jaxtyping import Array

from retrax.derivatives.problem import Flags, Problem


def _always(problem: Problem, given: Flags) -> bool:
    return True


class Evaluation(NamedTuple):
    """Machine code and what stands in for it.

    **Attributes:**

    - `natively`: from arguments to results, on the host; `prepare`: compiles what it needs.
    - `is_there`: whether the step has a scalar program for it.
    - `program`: the JAX program of the same, where it has not.
    """

    natively: Callable[..., list[np.ndarray]]
    prepare: Callable[..., None]
    is_there: Callable[[Problem, Flags], bool] = _always
    program: Callable[..., Callable[..., list[Array]]] | None = None

    def has_code(self, problem: Problem, given: Flags = (), **rest: Any) -> bool:
        return self.is_there(problem, given)


def evaluate_by(primitive: Primitive, how: Evaluation) -> None:
    """Give a primitive its values, now and where JAX compiles."""

    def values(*arguments: Any, **params: Any) -> list[Array]:
        if how.has_code(**params) or how.program is None:
            return [jnp.asarray(x) for x in how.natively(*arguments, **params)]
        return jax.jit(how.program(**params))(*arguments)

    def lower(context: Any, *arguments: Any, **params: Any) -> Any:
        if not how.has_code(**params) and how.program is not None:
            rule = mlir.lower_fun(how.program(**params), multiple_results=True)
            return rule(context, *arguments)
        how.prepare(**params)  # no step is traced while a compiled program runs

        def call(*arrays: Any) -> tuple[np.ndarray, ...]:
            outs = how.natively(*map(np.asarray, arrays), **params)
            pairs = zip(outs, context.avals_out, strict=True)
            return tuple(np.asarray(x, aval.dtype, order="C") for x, aval in pairs)

        results, _, _ = emit_python_callback(
            context,
            call,
            None,
            list(arguments),
            context.avals_in,
            context.avals_out,
            has_side_effect=False,
            returns_token=False,
        )
        return results

    primitive.def_impl(values)
    mlir.register_lowering(primitive, lower)


def evaluate_by_program(primitive: Primitive, program: Callable[..., Any]) -> None:
    """Give a primitive the values of a JAX program: there is no machine code for it."""

    def values(*arguments: Any, **params: Any) -> list[Array]:
        return program(**params)(*arguments)

    primitive.def_impl(lambda *arguments, **params: jax.jit(program(**params))(*arguments))
    mlir.register_lowering(primitive, mlir.lower_fun(values, multiple_results=True))
