r"""A run, its tangents and its cotangents as primitives of JAX.

    run    parameters, start, step                     -> saved states, intervals, failures, kept
    push   the same, what was kept, tangents           -> tangents of the saved states
    pull   the same, what was kept, cotangents         -> cotangents of parameters, start, step

The derivative of `run` is `push`, which is linear in the tangents; its transpose is `pull`. Machine
code evaluates all three, where the step has scalar programs for it; their own derivatives, of the
second order, are those of the JAX program of the run. Under `jax.vmap` runs become members of one
call (`member_axes`); where JAX compiles, machine code is called back (`evaluation`).

All three are given the leaves of a `Problem`, and which arguments have an axis of members.
"""

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import ShapedArray
from jax.extend.core import Primitive
from jax.interpreters import ad, batching
from jax.interpreters.partial_eval import JaxprTracer
from jaxtyping import Array

from retrax.derivatives import native_calls as native
from retrax.derivatives.evaluation import Evaluation, evaluate_by
from retrax.derivatives.kernels import has_pull, has_push
from retrax.derivatives.member_axes import batched
from retrax.derivatives.native_calls import split, wanted_of
from retrax.derivatives.problem import Flags, Problem
from retrax.derivatives.xla_runs import of_members, pull_by_xla, push_by_xla

# Iterations, residual, increment and failures come after the leaves of the state.
_INFO = (np.int64, np.float64, np.float64, np.bool_)

run_p, push_p, pull_p = (Primitive(f"retrax_{name}") for name in ("run", "push", "pull"))


def run(problem: Problem, leaves: Sequence[Array]) -> list[Array]:
    """The saved leaves of the state but its time, intervals and failures."""
    own = (False,) * len(leaves)
    return run_p.bind(*leaves, problem=problem, members=None, own=own, keeps=False)[:-1]


def _shaped(members: int | None, shape: tuple[int, ...], dtype: Any = np.float64) -> ShapedArray:
    return ShapedArray(shape if members is None else (members, *shape), np.dtype(dtype))


def _saved(problem: Problem, members: int | None) -> list[ShapedArray]:
    """The shapes of saved states, without their times."""
    return [_shaped(members, (len(problem.plan.saved), *s)) for s in problem.state.shapes[:-1]]


def _run_shapes(
    *leaves: Any, problem: Problem, members: int | None, own: Flags, keeps: bool
) -> list[ShapedArray]:
    records = (len(problem.plan.saved),)
    info = [_shaped(members, records, dtype) for dtype in _INFO]
    kept = ShapedArray(problem.kept if keeps else (0, 0), np.dtype(np.float64))
    return [*_saved(problem, members), *info, kept]


def _push_shapes(
    *arguments: Any, problem: Problem, members: int | None, own: Flags, given: Flags
) -> list[ShapedArray]:
    return [*_saved(problem, members), _shaped(members, (len(problem.plan.saved),))]


def _pull_shapes(
    *arguments: Any, problem: Problem, members: int | None, own: Flags, given: Flags
) -> list[ShapedArray]:
    shapes = [*problem.params.shapes, *problem.state.shapes, ()]
    return [_shaped(members, s) for s, there in zip(shapes, given, strict=True) if there]


def _run_jvp(
    primals: Sequence[Array],
    tangents: Sequence[Any],
    *,
    problem: Problem,
    members: int | None,
    own: Flags,
    keeps: bool,
) -> tuple[list[Array], list[Any]]:
    given = tuple(_moves(x, t) for x, t in zip(primals, tangents, strict=True))
    common: dict[str, Any] = {"problem": problem, "members": members}
    if not any(given):
        outs = run_p.bind(*primals, **common, own=own, keeps=keeps)
        return outs, [_zero(x) for x in outs]
    # Of members nothing is kept: they are run again, a few at a time.
    linearised = any(isinstance(t, JaxprTracer) for t in tangents)
    keeps = linearised and members is None and problem.reverses
    outs = run_p.bind(*primals, **common, own=own, keeps=keeps)
    *_, iterations, residual, _, failed, kept = outs
    moving = [ad.instantiate_zeros(t) for t, there in zip(tangents, given, strict=True) if there]
    theirs = tuple(o for o, there in zip(own, given, strict=True) if there)
    flags = (*own, False, *theirs)
    *states, increment = push_p.bind(*primals, kept, *moving, **common, own=flags, given=given)
    rest = [_zero(iterations), _zero(residual), increment, _zero(failed), _zero(kept)]
    return outs, [*states, *rest]


def _moves(x: Any, tangent: Any) -> bool:
    return type(tangent) is not ad.Zero and jnp.issubdtype(jax.typeof(x).dtype, jnp.floating)


def _zero(x: Any) -> ad.Zero:
    return ad.Zero(jax.typeof(x).to_tangent_aval())


def _push_jvp(primals: Sequence[Array], tangents: Sequence[Any], **params: Any) -> tuple:
    """Linear in the tangents; all else is of the second order."""
    outs = push_p.bind(*primals, **params)
    linear, second = _second(push_p, push_by_xla, primals, tangents, **params)
    return outs, second if linear else [*second, jnp.full_like(outs[-1], jnp.nan)]


def _pull_jvp(primals: Sequence[Array], tangents: Sequence[Any], **params: Any) -> tuple:
    """Linear in the cotangents; all else is of the second order."""
    return pull_p.bind(*primals, **params), _second(
        pull_p, pull_by_xla, primals, tangents, **params
    )[1]


def _second(
    primitive: Primitive,
    by_xla: Callable[[Problem, Flags], Callable[..., list[Array]]],
    primals: Sequence[Array],
    tangents: Sequence[Any],
    *,
    problem: Problem,
    members: int | None,
    own: Flags,
    given: Flags,
) -> tuple[bool, list[Array]]:
    """The derivative of a push or a pull, and whether it is one of the same kind."""
    leaves, kept, ways = split(primals, given)
    moved, _, turned = split(tangents, given)
    rest = [ad.instantiate_zeros(t) for t in turned]
    if not any(_moves(x, t) for x, t in zip(leaves, moved, strict=True)):
        params: dict[str, Any] = {"problem": problem, "members": members}
        return True, primitive.bind(*leaves, kept, *rest, **params, own=own, given=given)
    function = of_members(by_xla(problem, given), members, without_kept(own, given))
    full = [ad.instantiate_zeros(t) for t in moved]
    return False, jax.jvp(function, (*leaves, *ways), (*full, *rest))[1]


def without_kept(own: Flags, given: Flags) -> Flags:
    """The flags of all arguments but of what was kept."""
    return (*own[: len(given)], *own[len(given) + 1 :])


def _push_transpose(cotangents: Sequence[Any], *arguments: Any, **params: Any) -> list[Any]:
    *states, increment = cotangents
    found = _transposed(pull_p, states, arguments, **params)
    if type(increment) is not ad.Zero:  # its derivative is not known
        found = [None if x is None else x * jnp.nan for x in found]
    return found


def _pull_transpose(cotangents: Sequence[Any], *arguments: Any, **params: Any) -> list[Any]:
    return _transposed(push_p, cotangents, arguments, **params)


def _transposed(
    primitive: Primitive,
    cotangents: Sequence[Any],
    arguments: Sequence[Any],
    *,
    problem: Problem,
    members: int | None,
    own: Flags,
    given: Flags,
) -> list[Any]:
    """What the transpose makes of cotangents: of tangents that members share, for all together."""
    leaves, kept, ways = split(arguments, given)
    ends = [ad.instantiate_zeros(c) for c in cotangents]
    flags = (*own[: len(leaves)], False, *[members is not None] * len(ends))
    found = primitive.bind(
        *leaves, kept, *ends, problem=problem, members=members, own=flags, given=given
    )[: len(ways)]
    if members is not None:
        pairs = zip(found, own[len(leaves) + 1 :], strict=True)
        found = [x if o else jnp.sum(x, axis=0) for x, o in pairs]
    return [*[None] * (len(leaves) + 1), *found]


def _pushes(problem: Problem, given: Flags) -> bool:
    return has_push(*problem.made_for, wanted_of(problem, given))


def _pulls(problem: Problem, given: Flags) -> bool:
    return problem.reverses and has_pull(*problem.made_for, wanted_of(problem, given))


def _push_program(
    problem: Problem, members: int | None, own: Flags, given: Flags
) -> Callable[..., list[Array]]:
    def program(*arguments: Array) -> list[Array]:
        leaves, _, ways = split(arguments, given)
        function = of_members(push_by_xla(problem, given), members, without_kept(own, given))
        unknown = _shaped(members, (len(problem.plan.saved),))
        return [*function(*leaves, *ways), jnp.full(unknown.shape, jnp.nan)]

    return program


def _pull_program(
    problem: Problem, members: int | None, own: Flags, given: Flags
) -> Callable[..., list[Array]]:
    def program(*arguments: Array) -> list[Array]:
        leaves, _, ends = split(arguments, given)
        function = of_members(pull_by_xla(problem, given), members, without_kept(own, given))
        return function(*leaves, *ends)

    return program


_RULES = (
    (run_p, _run_shapes, _run_jvp, Evaluation(native.run_natively, native.prepare_run)),
    (
        push_p,
        _push_shapes,
        _push_jvp,
        Evaluation(native.push_natively, native.prepare_push, _pushes, _push_program),
    ),
    (
        pull_p,
        _pull_shapes,
        _pull_jvp,
        Evaluation(native.pull_natively, native.prepare_pull, _pulls, _pull_program),
    ),
)
for _primitive, _shapes, _jvp, _evaluation in _RULES:
    _primitive.multiple_results = True
    _primitive.def_abstract_eval(_shapes)
    ad.primitive_jvps[_primitive] = _jvp
    batching.primitive_batchers[_primitive] = batched(_primitive, keeps=_primitive is run_p)
    evaluate_by(_primitive, _evaluation)
ad.primitive_transposes[push_p] = _push_transpose
ad.primitive_transposes[pull_p] = _pull_transpose
