"""Many bodies at once on JAX: the step on arrays of members, as an XLA program.

An array has one entry a member, and the loop over steps is a JAX loop over such arrays.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from jaxtyping import Array, Bool, Float

from retrax.engine.backends.interpret import interpret, interpret_opening
from retrax.engine.backends.members import Members, pad
from retrax.engine.kinds import DTYPE, Kind
from retrax.engine.program import Program
from retrax.engine.progress import FAILURE, INTERVAL, Packing
from retrax.engine.step_program import guarded_step, memory_of
from retrax.integrators.base import AbstractIntegrator, StepInfo
from retrax.numerics.fingerprint import fingerprint
from retrax.numerics.reuse import reading

Rows = tuple[Float[Array, " member"], ...]
# Parameters: like rows, or single numbers that all members share.
Params = tuple[Array, ...]

# Members that a processor takes through all steps together: they fit its cache.
_CPU_BLOCK = 256


class ArrayStep(NamedTuple):
    """One step of all members, as functions of parameters, rows, times and h.

    - `step` goes from the numbers of the states and the memory behind them, for those who are still
        running, to the same after the step, how the step went and whether it is finite.
    - `memory` makes the memory from the numbers of the states, before the first step.
    """

    step: Callable[
        [Params, Rows, Array, Array, Bool[Array, " member"]], tuple[Rows, StepInfo, Array]
    ]
    memory: Callable[[Params, Rows, Array, Array], Rows]


class _Group(NamedTuple):
    """Members on their way: the numbers that they carry, their starts, what happened to them."""

    carried: Rows
    t0: Float[Array, " member"]
    failure: Rows
    interval: Rows


def program_step(program: Program, size: int) -> ArrayStep:
    """Return the step that a scalar program describes, on arrays; `size` numbers are a state."""

    def inputs(params: Params, numbers: Rows, time: Array, h: Array) -> list[Array]:
        given = zip(program.inputs, (*params, *numbers, time, h), strict=True)
        return [_convert(v.kind, x, time.shape) for v, x in given]

    def step(params, carried, time, h, active):
        given = inputs(params, carried[:size], time, h)
        outputs, memory = interpret(program, given, active, carried[size:])
        *info, finite = outputs[size + 1 :]
        return (*outputs[:size], *memory), StepInfo(*info), finite

    def memory(params, numbers, time, h):
        given = inputs(params, numbers, time, h)
        return tuple(interpret_opening(program, given, jnp.ones(time.shape, bool)))

    return ArrayStep(step, memory)


def vmapped_step(system: Any, integrator: AbstractIntegrator, state: Any) -> ArrayStep:
    """Return the step as it is, for systems without a scalar program."""
    own, whole = Packing((system, integrator)), Packing(state)
    carried_over, size = Packing(memory_of(system, integrator, state)), whole.size - 1
    identity = fingerprint(jax.tree.structure((system, integrator)))

    def step_of_one(params, carried, time, h):
        system, integrator = own.trace(params)
        state, memory = whole.trace((*carried[:size], time)), carried_over.trace(carried[size:])
        with reading(identity):
            new, info, finite, memory = guarded_step(system, integrator, state, h, memory)
        return (*_numbers(new)[:size], *_numbers(memory)), info, finite

    def memory_of_one(params, numbers, time, h):
        system, integrator = own.trace(params)
        with reading(identity):
            return _numbers(integrator.memory(system, whole.trace((*numbers, time))))

    def of_all(function: Callable[..., Any], params: Params, *rest: Any) -> Any:
        axis = 0 if params and params[0].ndim else None
        return jax.vmap(function, in_axes=(axis, 0, 0, None))(params, *rest)

    return ArrayStep(
        lambda params, carried, time, h, active: of_all(step_of_one, params, carried, time, h),
        partial(of_all, memory_of_one),
    )


def _numbers(tree: Any) -> Rows:
    return tuple(x for leaf in jax.tree.leaves(tree) for x in leaf.ravel())


def _convert(kind: Kind, x: Array, shape: tuple[int, ...]) -> Array:
    """Convert a row for the program: rows are floats, and what all members share is one number."""
    return jnp.broadcast_to(x.astype(DTYPE[kind]), shape)


def _attempt(step: ArrayStep, params: Params, h: Array, k: Array, at: _Group) -> _Group:
    """Step k of every member. A step that fails is written down, and its member stays put."""
    alive = at.failure[0] != at.failure[0]
    time = at.t0 + k.astype(h.dtype) * h
    new, info, finite = step.step(params, at.carried, time, h, alive)
    good = info.converged & info.in_chart & finite
    moves, fails = good & alive, ~good & alive
    keep = partial(lax.select, moves)
    numbers = {name: getattr(info, name).astype(h.dtype) for name in StepInfo._fields}
    numbers["step"] = jnp.full(alive.shape, k.astype(h.dtype))
    iterations, residual, increment = at.interval
    return _Group(
        carried=tuple(keep(n, o) for n, o in zip(new, at.carried, strict=True)),
        t0=at.t0,
        failure=tuple(
            lax.select(fails, numbers[name], old)
            for name, old in zip(FAILURE, at.failure, strict=True)
        ),
        interval=(
            keep(iterations + numbers["iterations"], iterations),
            keep(jnp.maximum(residual, numbers["residual"]), residual),
            keep(jnp.maximum(increment, numbers["increment"]), increment),
        ),
    )


def _record(step: ArrayStep, params: Params, h, first, every, at: _Group) -> _Group:
    """Take `every` steps from step `first` on; the interval counts from here."""
    quiet = tuple(jnp.zeros_like(at.t0) for _ in INTERVAL)
    return lax.fori_loop(
        first, first + every, partial(_attempt, step, params, h), at._replace(interval=quiet)
    )


def _run(step, block, size, params, carried, failure, h, first, every, records: int):
    """Run all members of one device through `records` records; rows in, rows out.

    Of what they carry the first `size` numbers are saved, and the start is last.
    """
    shared = params.shape[1] == 1

    def work(carried, failure, params):
        *numbers, t0 = carried
        quiet = tuple(jnp.zeros_like(t0) for _ in INTERVAL)
        at = _Group(tuple(numbers), t0, tuple(failure), quiet)

        def next_record(carry, _):
            at, k = carry
            at = _record(step, tuple(params), h, k, every, at)
            k = k + every
            time = at.t0 + k.astype(h.dtype) * h
            return (at, k), (jnp.stack([*at.carried[:size], time]), jnp.stack(at.interval))

        (at, _), saved = lax.scan(next_record, (at, first), None, length=records)
        states, intervals = saved
        return jnp.stack([*at.carried, t0]), jnp.stack(at.failure), states, intervals

    members = carried.shape[1]
    if block is None:
        return work(carried, failure, params[:, 0] if shared else params)

    def split(rows):
        return jnp.moveaxis(rows.reshape(len(rows), -1, block), 1, 0)

    if shared:
        parts = lax.map(lambda x: work(x[0], x[1], params[:, 0]), (split(carried), split(failure)))
    else:
        parts = lax.map(
            lambda x: work(x[0], x[1], x[2]), (split(carried), split(failure), split(params))
        )
    joined = [jnp.moveaxis(x, 0, -2) for x in parts]
    return tuple(x.reshape(*x.shape[:-2], members) for x in joined)


class ArrayMembers(Members):
    """Members in arrays, shared out to `devices`, which do not wait for each other."""

    name = "xla"

    def __init__(
        self,
        step: ArrayStep,
        params: np.ndarray,
        state: np.ndarray,
        h: float,
        devices: Sequence[Any],
    ):
        block = _CPU_BLOCK if devices[0].platform == "cpu" else None
        portion = len(devices) * (block or 1)
        self.columns = -(-state.shape[1] // portion) * portion
        mesh = Mesh(np.array(devices), ("member",))
        rows, everywhere = PartitionSpec(None, "member"), PartitionSpec()
        own = rows if params.shape[1] > 1 else everywhere

        @partial(jax.jit, static_argnames="records")
        def run(params, carried, failure, h, first, every, records):
            body = partial(_run, step, block, len(state) - 1, records=records)
            records_of = PartitionSpec(None, None, "member")
            return jax.shard_map(
                body,
                mesh=mesh,
                in_specs=(own, rows, rows, everywhere, everywhere, everywhere),
                out_specs=(rows, rows, records_of, records_of),
                check_vma=False,
            )(params, carried, failure, h, first, every)

        @jax.jit
        def begin(params, state, h):
            *numbers, t0 = state
            own = params[:, 0] if params.shape[1] == 1 else params
            return jnp.stack([*numbers, *step.memory(tuple(own), tuple(numbers), t0, h), t0])

        def place(x, spec):
            return jax.device_put(x, NamedSharding(mesh, spec))

        self._run, self._h, self._step = run, jnp.asarray(h), 0
        self._params = place(pad(params, self.columns) if params.shape[1] > 1 else params, own)
        start = place(pad(state, self.columns), rows)
        self._carried = place(begin(self._params, start, self._h), rows)
        self._failure = place(np.full((len(FAILURE), self.columns), np.nan), rows)

    @property
    def failure(self) -> np.ndarray:
        return np.asarray(self._failure)

    def write_start(self, saved: np.ndarray) -> None:
        carried = np.asarray(self._carried)
        saved[:-1], saved[-1] = carried[: len(saved) - 1], carried[-1]

    def compile(self, saved: np.ndarray, interval: np.ndarray) -> None:
        for _ in self.run(saved, interval, 0):
            pass

    def run(self, saved: np.ndarray, interval: np.ndarray, every: int) -> Iterator[int]:
        self._carried, self._failure, states, intervals = self._run(
            self._params,
            self._carried,
            self._failure,
            self._h,
            jnp.asarray(self._step),
            jnp.asarray(every),
            records=len(saved),
        )
        saved[...], interval[...] = states, intervals
        self._step += len(saved) * every
        yield len(saved) * every
