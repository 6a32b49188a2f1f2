r"""A run, its tangents and its cotangents as primitives of JAX.

    run    parameters, start, step                     -> saved states, intervals, failures, kept
    push   the same, what was kept, tangents           -> tangents of the saved states
    pull   the same, what was kept, cotangents         -> cotangents of parameters, start, step

The derivative of `run` is `push`, which is linear in the tangents; its transpose is `pull`. Their
own derivatives, of the second order, are those of the JAX program of the run. Under `jax.vmap` runs
become members of one call; where JAX compiles, machine code is called back.

All three are given the leaves of a `Problem`, and which arguments have an axis of members.
"""

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax._src.callback import emit_python_callback
from jax.core import ShapedArray
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir
from jaxtyping import Array

from retrax.derivatives.kernels import (
    Shape,
    has_pull,
    has_push,
    is_large,
    pull_kernel,
    push_kernel,
    step_kernel,
)
from retrax.derivatives.native_runs import Leaf, Numbers, forward, pull, push
from retrax.derivatives.problem import Problem
from retrax.derivatives.xla_runs import run_by_xla
from retrax.engine.backends.members import lanes
from retrax.engine.derivative_programs import Wanted

# Which of some arguments have an axis of members, or are there at all.
Flags = tuple[bool, ...]
# Iterations, residual, increment and failures come after the leaves of the state.
_INFO = (np.int64, np.float64, np.float64, np.bool_)

run_p, push_p, pull_p = (Primitive(f"retrax_{name}") for name in ("run", "push", "pull"))
for _primitive in (run_p, push_p, pull_p):
    _primitive.multiple_results = True


def run(problem: Problem, leaves: Sequence[Array]) -> list[Array]:
    """The saved leaves of the state but its time, intervals and failures."""
    return run_p.bind(
        *leaves, problem=problem, members=None, own=(False,) * len(leaves), keeps=False
    )[:-1]


def _saved(problem: Problem, members: int | None) -> list[ShapedArray]:
    """The shapes of saved states, without their times."""
    return [_shaped(members, (len(problem.plan.saved), *s)) for s in problem.state.shapes[:-1]]


def _shaped(members: int | None, shape: tuple[int, ...], dtype: Any = np.float64) -> ShapedArray:
    return ShapedArray(shape if members is None else (members, *shape), np.dtype(dtype))


def _leaf_shapes(problem: Problem) -> list[tuple[int, ...]]:
    """The shapes of parameters, start and step."""
    return [*problem.params.shapes, *problem.state.shapes, ()]


# ---------------------------------------------------------------------------------------- run


@run_p.def_abstract_eval
def _run_shapes(
    *leaves: Any, problem: Problem, members: int | None, own: Flags, keeps: bool
) -> list[ShapedArray]:
    records = (len(problem.plan.saved),)
    info = [_shaped(members, records, dtype) for dtype in _INFO]
    kept = ShapedArray(problem.kept if keeps else (0, 0), np.dtype(np.float64))
    return [*_saved(problem, members), *info, kept]


def _run_natively(
    *leaves: Any, problem: Problem, members: int | None, own: Flags, keeps: bool
) -> list[np.ndarray]:
    numbers = _numbers(problem, leaves, own, members)
    outs, kept = forward(numbers, keeps)
    return [*outs, kept]


def _numbers(problem: Problem, leaves: Sequence[Any], own: Flags, members: int | None) -> Numbers:
    return Numbers(problem, [Leaf(np.asarray(x), o) for x, o in zip(leaves, own)], members)


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
    moving = [ad.instantiate_zeros(t) for t, g in zip(tangents, given, strict=True) if g]
    if not has_push(*problem.made_for, _wanted(problem, given)):
        by_xla = _of_members(_by_xla(problem), members, own)
        fixed = [ad.instantiate_zeros(t) for t in tangents]
        outs, ways = jax.jvp(by_xla, tuple(primals), tuple(fixed))
        none = jnp.zeros(problem.kept if keeps else (0, 0))
        return [*outs, none], [*ways, _zero(none)]
    keeps = members is None and problem.reverses
    *outs, kept = run_p.bind(*primals, **common, own=own, keeps=keeps)
    theirs = tuple(o for o, g in zip(own, given, strict=True) if g)
    ways = push_p.bind(
        *primals, kept, *moving, **common, own=(*own, False, *theirs), given=given
    )
    *states, increment = ways
    *_, iterations, residual, _, failed = outs
    rest = [_zero(iterations), _zero(residual), increment, _zero(failed), _zero(kept)]
    return [*outs, kept], [*states, *rest]


def _moves(x: Any, tangent: Any) -> bool:
    return type(tangent) is not ad.Zero and jnp.issubdtype(jax.typeof(x).dtype, jnp.floating)


def _zero(x: Any) -> ad.Zero:
    return ad.Zero(jax.typeof(x).to_tangent_aval())


# --------------------------------------------------------------------------------------- push


@push_p.def_abstract_eval
def _push_shapes(
    *arguments: Any, problem: Problem, members: int | None, own: Flags, given: Flags
) -> list[ShapedArray]:
    return [*_saved(problem, members), _shaped(members, (len(problem.plan.saved),))]


def _push_natively(
    *arguments: Any, problem: Problem, members: int | None, own: Flags, given: Flags
) -> list[np.ndarray]:
    leaves, _, ways = _split(arguments, given)
    numbers = _numbers(problem, leaves, own[: len(leaves)], members)
    theirs = iter(zip(ways, own[len(leaves) + 1 :], strict=True))
    tangents: list[Leaf | None] = []
    count = len(problem.params.shapes)
    for k, there in enumerate(given):
        if there:
            tangents.append(Leaf(*next(theirs)))
        elif count <= k < len(given) - 1:
            tangents.append(Leaf(np.zeros(np.shape(leaves[k])[own[k] :]), False))
        else:
            tangents.append(None)
    shape = _shaped(members, (len(problem.plan.saved),)).shape
    # The largest increment of a record depends on which step has it: its derivative is not known.
    return [*push(numbers, tangents), np.full(shape, np.nan)]


def _split(arguments: Sequence[Any], given: Flags) -> tuple[list[Any], Any, list[Any]]:
    """Leaves, what was kept, and tangents or cotangents."""
    count = len(given)
    return list(arguments[:count]), arguments[count], list(arguments[count + 1 :])


def _push_jvp(
    primals: Sequence[Array],
    tangents: Sequence[Any],
    *,
    problem: Problem,
    members: int | None,
    own: Flags,
    given: Flags,
) -> tuple[list[Array], list[Any]]:
    """Of the second order, unless only the tangents move."""
    params: dict[str, Any] = {"problem": problem, "members": members, "own": own, "given": given}
    outs = push_p.bind(*primals, **params)
    leaves, kept, _ = _split(primals, given)
    moved, _, ways = _split(tangents, given)
    if not any(_moves(x, t) for x, t in zip(leaves, moved, strict=True)):
        fixed = [ad.instantiate_zeros(t) for t in ways]
        return outs, push_p.bind(*leaves, kept, *fixed, **params)

    def tangent(*arguments: Array) -> list[Array]:
        point, ways = arguments[: len(given)], iter(arguments[len(given) :])
        full = [next(ways) if g else _still(x) for x, g in zip(point, given, strict=True)]
        return _states(jax.jvp(_by_xla(problem), tuple(point), tuple(full))[1], problem)

    mapped = _of_members(tangent, members, (*own[: len(given)], *own[len(given) + 1 :]))
    arguments = [*leaves, *primals[len(given) + 1 :]]
    fixed = [ad.instantiate_zeros(t) for t in (*moved, *ways)]
    _, second = jax.jvp(mapped, tuple(arguments), tuple(fixed))
    unknown = jnp.full_like(outs[-1], jnp.nan)
    return outs, [*second, unknown]


def _still(x: Array) -> Any:
    """The tangent of what does not move."""
    if jnp.issubdtype(jax.typeof(x).dtype, jnp.floating):
        return jnp.zeros_like(x)
    return np.zeros(jax.typeof(x).shape, jax.dtypes.float0)


def _states(outs: Sequence[Array], problem: Problem) -> list[Array]:
    return list(outs[: len(problem.state.shapes) - 1])


def _push_transpose(
    cotangents: Sequence[Any],
    *arguments: Any,
    problem: Problem,
    members: int | None,
    own: Flags,
    given: Flags,
) -> list[Any]:
    leaves, kept, ways = _split(arguments, given)
    *states, increment = cotangents
    saved = [ad.instantiate_zeros(c) for c in states]
    found = _pulled(problem, members, own, given, leaves, kept, saved)
    if type(increment) is not ad.Zero:  # nobody knows
        found = [x * jnp.nan for x in found]
    theirs = own[len(leaves) + 1 :]
    if members is not None:
        found = [x if o else jnp.sum(x, axis=0) for x, o in zip(found, theirs, strict=True)]
    return [*[None] * (len(leaves) + 1), *found]


def _pulled(
    problem: Problem,
    members: int | None,
    own: Flags,
    given: Flags,
    leaves: Sequence[Array],
    kept: Array,
    saved: Sequence[Array],
) -> list[Array]:
    """Cotangents of the leaves that are given, by machine code where there is some."""
    flags = (*own[: len(leaves)], False, *[members is not None] * len(saved))
    if problem.reverses and has_pull(*problem.made_for, _wanted(problem, given)):
        return pull_p.bind(
            *leaves, kept, *saved, problem=problem, members=members, own=flags, given=given
        )
    mapped = _of_members(_pull_by_xla(problem, given), members, _without_kept(flags, given))
    return mapped(*leaves, *saved)


# --------------------------------------------------------------------------------------- pull


@pull_p.def_abstract_eval
def _pull_shapes(
    *arguments: Any, problem: Problem, members: int | None, own: Flags, given: Flags
) -> list[ShapedArray]:
    shapes = zip(_leaf_shapes(problem), given, strict=True)
    return [_shaped(members, shape) for shape, there in shapes if there]


def _pull_natively(
    *arguments: Any, problem: Problem, members: int | None, own: Flags, given: Flags
) -> list[np.ndarray]:
    leaves, kept, ends = _split(arguments, given)
    numbers = _numbers(problem, leaves, own[: len(leaves)], members)
    cotangents = [Leaf(np.asarray(x), o) for x, o in zip(ends, own[len(leaves) + 1 :], strict=True)]
    wanted = _wanted(problem, given)
    rows = np.asarray(kept) if members is None and len(kept) else None
    *sums, h, states = _sorted(problem, wanted, pull(numbers, wanted, cotangents, rows))
    starts = given[len(problem.params.shapes) : -1]
    return [*sums, *[x for x, there in zip(states, starts, strict=True) if there], *h]


def _sorted(problem: Problem, wanted: Wanted, found: list[np.ndarray]) -> list[Any]:
    """Cotangents of parameters, those of the step as a list, and those of the state."""
    params = sum(wanted.params)
    split = params + wanted.h
    return [*found[:params], found[params:split], found[split:]]


def _wanted(problem: Problem, given: Flags) -> Wanted:
    return Wanted(given[: len(problem.params.shapes)], given[-1])


def _pull_jvp(
    primals: Sequence[Array],
    tangents: Sequence[Any],
    *,
    problem: Problem,
    members: int | None,
    own: Flags,
    given: Flags,
) -> tuple[list[Array], list[Any]]:
    """Of the second order, unless only the cotangents move."""
    params: dict[str, Any] = {"problem": problem, "members": members, "own": own, "given": given}
    outs = pull_p.bind(*primals, **params)
    leaves, kept, ends = _split(primals, given)
    moved, _, ways = _split(tangents, given)
    if not any(_moves(x, t) for x, t in zip(leaves, moved, strict=True)):
        fixed = [ad.instantiate_zeros(t) for t in ways]
        return outs, pull_p.bind(*leaves, kept, *fixed, **params)
    mapped = _of_members(_pull_by_xla(problem, given), members, _without_kept(own, given))
    fixed = [ad.instantiate_zeros(t) for t in (*moved, *ways)]
    _, second = jax.jvp(mapped, (*leaves, *ends), tuple(fixed))
    return outs, second


def _pull_transpose(
    cotangents: Sequence[Any],
    *arguments: Any,
    problem: Problem,
    members: int | None,
    own: Flags,
    given: Flags,
) -> list[Any]:
    """The transpose of a transpose is the push."""
    leaves, kept, _ = _split(arguments, given)
    ways = [ad.instantiate_zeros(c) for c in cotangents]
    flags = (*own[: len(leaves)], False, *[members is not None] * len(ways))
    *found, _ = push_p.bind(
        *leaves, kept, *ways, problem=problem, members=members, own=flags, given=given
    )
    theirs = own[len(leaves) + 1 :]
    if members is not None:
        found = [x if o else jnp.sum(x, axis=0) for x, o in zip(found, theirs, strict=True)]
    return [*[None] * (len(leaves) + 1), *found]


# ------------------------------------------------------------------------- the JAX program


def _by_xla(problem: Problem) -> Callable[..., list[Array]]:
    """The run of one body as a JAX program: what `run` gives but what is kept."""
    count = len(problem.params.shapes)

    def outs(*leaves: Array) -> list[Array]:
        system, integrator = problem.parts.of(leaves[:count])
        state = jax.tree.unflatten(problem.state.structure, leaves[count:-1])
        states, info, failed = run_by_xla(system, integrator, state, leaves[-1], problem.plan)
        return [*jax.tree.leaves(states)[:-1], *info, failed]

    return outs


def _pull_by_xla(problem: Problem, given: Flags) -> Callable[..., list[Array]]:
    def cotangents(*arguments: Array) -> list[Array]:
        leaves, ends = arguments[: len(given)], arguments[len(given) :]

        def states(*chosen: Array) -> list[Array]:
            left = iter(chosen)
            full = [next(left) if g else x for x, g in zip(leaves, given, strict=True)]
            return _states(_by_xla(problem)(*full), problem)

        chosen = [x for x, g in zip(leaves, given, strict=True) if g]
        return list(jax.vjp(states, *chosen)[1](list(ends)))

    return cotangents


def _of_members(function: Callable, members: int | None, own: Flags) -> Callable:
    """The function itself, or mapped over members."""
    if members is None:
        return function
    return jax.vmap(function, in_axes=tuple(0 if o else None for o in own), axis_size=members)


def _without_kept(own: Flags, given: Flags) -> Flags:
    return (*own[: len(given)], *own[len(given) + 1 :])


# ------------------------------------------------------- members, evaluation, compilation


def _batched(primitive: Primitive) -> Callable[..., tuple[list[Array], list[int | None]]]:
    """The rule for `jax.vmap`: a run for each member, those of maps inside each other as one axis."""

    def rule(
        arguments: Sequence[Array],
        axes: Sequence[int | None],
        *,
        members: int | None,
        own: Flags,
        **params: Any,
    ) -> tuple[list[Array], list[int | None]]:
        size = next(x.shape[a] for x, a in zip(arguments, axes, strict=True) if a is not None)
        kept = params["given"] and len(params["given"]) if "given" in params else None
        joined = [
            _joined(x, a, o, size, members, k == kept)
            for k, (x, a, o) in enumerate(zip(arguments, axes, own, strict=True))
        ]
        flags = tuple(
            (a is not None or o) and k != kept
            for k, (a, o) in enumerate(zip(axes, own, strict=True))
        )
        every = size * (members or 1)
        outs = primitive.bind(*joined, **params, members=every, own=flags)
        found: list[Array] = []
        places: list[int | None] = []
        for k, x in enumerate(outs):
            alike = primitive is run_p and k == len(outs) - 1  # what is kept is for single runs
            parted = members is not None and not alike
            found.append(x.reshape(size, members, *x.shape[1:]) if parted else x)
            places.append(None if alike else 0)
        return found, places

    return rule


def _joined(
    x: Array, axis: int | None, own: bool, size: int, members: int | None, kept: bool
) -> Array:
    """An argument with one axis for the members of this map and of those inside it."""
    if kept:
        return x if axis is None else jnp.moveaxis(x, axis, 0)[0]
    if axis is not None:
        x = jnp.moveaxis(x, axis, 0)
    if members is None or (axis is None and not own):
        return x
    inner = x.shape[int(axis is not None) + int(own) :]
    if axis is None:
        x = x[None]
    elif not own:
        x = x[:, None]
    return jnp.broadcast_to(x, (size, members, *inner)).reshape(size * members, *inner)


def _evaluated(natively: Callable[..., list[np.ndarray]]) -> Callable[..., list[Array]]:
    def impl(*arguments: Any, **params: Any) -> list[Array]:
        return [jnp.asarray(x) for x in natively(*arguments, **params)]

    return impl


def _lowered(natively: Callable[..., list[np.ndarray]], prepare: Callable) -> Callable:
    """The rule for `jax.jit`: machine code is made now, and called back when the program runs."""

    def rule(context: Any, *arguments: Any, **params: Any) -> Any:
        prepare(**params)

        def called(*arrays: Any) -> tuple[np.ndarray, ...]:
            outs = natively(*map(np.asarray, arrays), **params)
            shapes = zip(outs, context.avals_out, strict=True)
            return tuple(np.asarray(x, aval.dtype, order="C") for x, aval in shapes)

        results, _, _ = emit_python_callback(
            context,
            called,
            None,
            list(arguments),
            context.avals_in,
            context.avals_out,
            has_side_effect=False,
            returns_token=False,
        )
        return results

    return rule


def _shape(problem: Problem, members: int | None, own: Flags) -> Shape:
    """How members will lie in memory."""
    count = len(problem.params.shapes)
    alone = members in (None, 1) or own[len(_leaf_shapes(problem)) - 1]
    if alone or is_large(problem.made_for):
        return Shape(1, True)
    return Shape(lanes(), not any(own[:count]))


def _prepare_run(problem: Problem, members: int | None, own: Flags, keeps: bool) -> None:
    step_kernel(problem.made_for, _shape(problem, members, own))


def _prepare_push(problem: Problem, members: int | None, own: Flags, given: Flags) -> None:
    wanted, count = _wanted(problem, given), len(given)
    theirs = own[count + 1 :]
    moving = [k for k, there in enumerate(given) if there]
    params = len(problem.params.shapes)
    alike = not any(o for k, o in zip(moving, theirs, strict=True) if k < params or k == count - 1)
    shape = _shape(problem, members, own)
    shape = shape._replace(shared=shape.shared and alike) if shape.lanes > 1 else shape
    push_kernel(*problem.made_for, wanted, shape)


def _prepare_pull(problem: Problem, members: int | None, own: Flags, given: Flags) -> None:
    shape = _shape(problem, members, own)
    step_kernel(problem.made_for, shape)
    pull_kernel(*problem.made_for, _wanted(problem, given), shape)


for _primitive, _natively, _prepare, _jvp in (
    (run_p, _run_natively, _prepare_run, _run_jvp),
    (push_p, _push_natively, _prepare_push, _push_jvp),
    (pull_p, _pull_natively, _prepare_pull, _pull_jvp),
):
    _primitive.def_impl(_evaluated(_natively))
    ad.primitive_jvps[_primitive] = _jvp
    batching.primitive_batchers[_primitive] = _batched(_primitive)
    mlir.register_lowering(_primitive, _lowered(_natively, _prepare))
ad.primitive_transposes[push_p] = _push_transpose
ad.primitive_transposes[pull_p] = _pull_transpose
