r"""A run, its tangents and its cotangents as primitives of JAX.

    run    parameters, start, step                     -> saved states, intervals, failures, kept
    push   the same, what was kept, tangents           -> tangents of the saved states
    pull   the same, what was kept, cotangents         -> cotangents of parameters, start, step
    turn   the same, and tangents                      -> how these cotangents change

The derivative of `run` is `push`, which is linear in the tangents; its transpose is `pull`. Machine
code evaluates these three, where the step has scalar programs for it. Derivatives of the second
order are those of the JAX program of the run: `turn` is the derivative of `pull` by parameters,
start and step, the second derivative of a number, and so is its own transpose. Under `jax.vmap`
runs become members of one call (`member_axes`); where JAX compiles, machine code is called back
(`evaluation`).

All four are given the leaves of a `Problem`, and which arguments have an axis of members.
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
from retrax.derivatives.evaluation import Evaluation, evaluate_by, evaluate_by_program
from retrax.derivatives.kernels import has_pull, has_push
from retrax.derivatives.member_axes import make_batch_rule
from retrax.derivatives.native_calls import split, wanted_of
from retrax.derivatives.problem import Flags, Problem
from retrax.derivatives.xla_runs import of_members, pull_by_xla, push_by_xla, turn_by_xla

# Iterations, residual, increment and failures come after the leaves of the state.
_INFO = (np.int64, np.float64, np.float64, np.bool_)

run_p, push_p, pull_p, turn_p = (
    Primitive(f"retrax_{name}") for name in ("run", "push", "pull", "turn")
)


def run(problem: Problem, leaves: Sequence[Array]) -> list[Array]:
    """Return the saved leaves of the state but its time, intervals and failures."""
    own = (False,) * len(leaves)
    return run_p.bind(*leaves, problem=problem, members=None, own=own, keeps=False)[:-1]


def _shape_of(members: int | None, shape: tuple[int, ...], dtype: Any = np.float64) -> ShapedArray:
    return ShapedArray(shape if members is None else (members, *shape), np.dtype(dtype))


def _saved_shapes(problem: Problem, members: int | None) -> list[ShapedArray]:
    """Return the shapes of saved states, without their times."""
    return [_shape_of(members, (len(problem.plan.saved), *s)) for s in problem.state.shapes[:-1]]


def _run_shapes(
    *leaves: Any, problem: Problem, members: int | None, own: Flags, keeps: bool
) -> list[ShapedArray]:
    records = (len(problem.plan.saved),)
    info = [_shape_of(members, records, dtype) for dtype in _INFO]
    kept = ShapedArray(problem.kept if keeps else (0, 0), np.dtype(np.float64))
    return [*_saved_shapes(problem, members), *info, kept]


def _push_shapes(
    *arguments: Any, problem: Problem, members: int | None, own: Flags, given: Flags
) -> list[ShapedArray]:
    return [*_saved_shapes(problem, members), _shape_of(members, (len(problem.plan.saved),))]


def _pull_shapes(
    *arguments: Any, problem: Problem, members: int | None, given: Flags, **rest: Flags
) -> list[ShapedArray]:
    shapes = [*problem.params.shapes, *problem.state.shapes, ()]
    return [_shape_of(members, s) for s, there in zip(shapes, given, strict=True) if there]


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


def _push_jvp(
    primals: Sequence[Array],
    tangents: Sequence[Any],
    *,
    problem: Problem,
    members: int | None,
    own: Flags,
    given: Flags,
) -> tuple[list[Array], list[Any]]:
    """Differentiate a push, which is linear in the tangents; all else is of the second order."""
    params: dict[str, Any] = {"problem": problem, "members": members, "own": own, "given": given}
    outs = push_p.bind(*primals, **params)
    leaves, kept, ways = split(primals, given)
    moved, _, turned = split(tangents, given)
    rest = [ad.instantiate_zeros(t) for t in turned]
    if not any(_moves(x, t) for x, t in zip(leaves, moved, strict=True)):
        return outs, push_p.bind(*leaves, kept, *rest, **params)
    function = of_members(push_by_xla(problem, given), members, without_kept(own, given))
    full = [ad.instantiate_zeros(t) for t in moved]
    second = jax.jvp(function, (*leaves, *ways), (*full, *rest))[1]
    return outs, [*second, jnp.full_like(outs[-1], jnp.nan)]


def _pull_jvp(
    primals: Sequence[Array],
    tangents: Sequence[Any],
    *,
    problem: Problem,
    members: int | None,
    own: Flags,
    given: Flags,
) -> tuple[list[Array], list[Any]]:
    """Differentiate a pull, linear in the cotangents; how it changes with all else is a turn."""
    common: dict[str, Any] = {"problem": problem, "members": members, "given": given}
    outs = pull_p.bind(*primals, **common, own=own)
    leaves, kept, _ = split(primals, given)
    changes, _, rest = split(tangents, given)
    moved = tuple(_moves(x, t) for x, t in zip(leaves, changes, strict=True))
    found: list[Any] = [_zero(x) for x in outs]
    if any(type(t) is not ad.Zero for t in rest):
        ends = [ad.instantiate_zeros(t) for t in rest]
        found = pull_p.bind(*leaves, kept, *ends, **common, own=own)
    if any(moved):
        ways = [ad.instantiate_zeros(t) for t, m in zip(changes, moved, strict=True) if m]
        flags = (*own, *[o for o, m in zip(own, moved, strict=False) if m])
        turns = turn_p.bind(*primals, *ways, **common, own=flags, moved=moved)
        found = [ad.add_tangents(x, y) for x, y in zip(found, turns, strict=True)]
    return outs, found


def _turn_jvp(primals: Sequence[Array], tangents: Sequence[Any], **params: Any) -> tuple:
    """Differentiate a turn, linear in its last tangents; all else is of the third order."""
    count = len(primals) - sum(params["moved"])
    outs = turn_p.bind(*primals, **params)
    full = [ad.instantiate_zeros(t) for t in tangents]
    if all(type(t) is ad.Zero for t in tangents[:count]):
        return outs, turn_p.bind(*primals[:count], *full[count:], **params)
    return outs, jax.jvp(_turn_program(**params), tuple(primals), tuple(full))[1]


def without_kept(own: Flags, given: Flags) -> Flags:
    """Return the flags of all arguments but of what was kept."""
    return (*own[: len(given)], *own[len(given) + 1 :])


def _push_transpose(cotangents: Sequence[Any], *arguments: Any, **params: Any) -> list[Any]:
    *states, increment = cotangents
    found = _transpose(pull_p, states, arguments, **params)
    if type(increment) is not ad.Zero:  # its derivative is not known
        found = [None if x is None else x * jnp.nan for x in found]
    return found


def _pull_transpose(cotangents: Sequence[Any], *arguments: Any, **params: Any) -> list[Any]:
    return _transpose(push_p, cotangents, arguments, **params)


def _transpose(
    primitive: Primitive,
    cotangents: Sequence[Any],
    arguments: Sequence[Any],
    *,
    problem: Problem,
    members: int | None,
    own: Flags,
    given: Flags,
) -> list[Any]:
    """Transpose a push or a pull: tangents that members share get one cotangent for all."""
    leaves, kept, ways = split(arguments, given)
    ends = [ad.instantiate_zeros(c) for c in cotangents]
    flags = (*own[: len(leaves)], False, *[members is not None] * len(ends))
    found = primitive.bind(
        *leaves, kept, *ends, problem=problem, members=members, own=flags, given=given
    )[: len(ways)]
    return [*[None] * (len(leaves) + 1), *_of_shared(found, members, own[len(leaves) + 1 :])]


def _turn_transpose(
    cotangents: Sequence[Any],
    *arguments: Any,
    problem: Problem,
    members: int | None,
    own: Flags,
    given: Flags,
    moved: Flags,
) -> list[Any]:
    """Return the turn itself: second derivatives of a number are symmetric."""
    count = len(arguments) - sum(moved)
    ways = [ad.instantiate_zeros(c) for c in cotangents]
    flags = (*own[:count], *[members is not None] * len(ways))
    params: dict[str, Any] = {"problem": problem, "members": members, "own": flags}
    found = turn_p.bind(*arguments[:count], *ways, **params, given=moved, moved=given)
    return [*[None] * count, *_of_shared(found, members, own[count:])]


def _of_shared(found: Sequence[Array], members: int | None, own: Flags) -> list[Array]:
    """Sum what members share over all of them."""
    if members is None:
        return list(found)
    return [x if o else jnp.sum(x, axis=0) for x, o in zip(found, own, strict=True)]


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
        unknown = _shape_of(members, (len(problem.plan.saved),))
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


def _turn_program(
    problem: Problem, members: int | None, own: Flags, given: Flags, moved: Flags
) -> Callable[..., list[Array]]:
    def program(*arguments: Array) -> list[Array]:
        leaves, _, rest = split(arguments, given)
        flags = without_kept(own, given)
        return of_members(turn_by_xla(problem, given, moved), members, flags)(*leaves, *rest)

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
for _primitive, _shapes, _jvp, _evaluation in (*_RULES, (turn_p, _pull_shapes, _turn_jvp, None)):
    _primitive.multiple_results = True
    _primitive.def_abstract_eval(_shapes)
    ad.primitive_jvps[_primitive] = _jvp
    batching.primitive_batchers[_primitive] = make_batch_rule(_primitive, keeps=_primitive is run_p)
    if _evaluation is not None:
        evaluate_by(_primitive, _evaluation)
evaluate_by_program(turn_p, _turn_program)
ad.primitive_transposes[push_p] = _push_transpose
ad.primitive_transposes[pull_p] = _pull_transpose
ad.primitive_transposes[turn_p] = _turn_transpose
