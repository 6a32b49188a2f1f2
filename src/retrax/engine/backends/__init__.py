"""Choose the back end that runs a loop."""

import warnings
from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import TYPE_CHECKING, Any, TypeVar

import jax
import numpy as np
from jaxtyping import PyTree

from retrax.engine.backends.array_members import ArrayMembers, program_step, vmapped_step
from retrax.engine.backends.members import LargeMembers, Members, NativeMembers, pad
from retrax.engine.backends.native import Kernel, NativeLoop, loop_kernel, single_kernel
from retrax.engine.backends.stepping import OneByOne, Single, Stepping, Steps, XLASteps
from retrax.engine.backends.team import cores
from retrax.engine.backends.xla import XLALoop
from retrax.engine.changing import CHANGING
from retrax.engine.llvm.host import lanes
from retrax.engine.llvm.kernel import assemble
from retrax.engine.progress import Packing
from retrax.engine.step_program import signature, step_program
from retrax.engine.trace.scalarise import Unscalarisable
from retrax.errors import BadInput, warn
from retrax.integrators.base import AbstractIntegrator
from retrax.mechanics.state import State
from retrax.mechanics.system import AbstractGroupSystem
from retrax.numerics.checks import quote
from retrax.numerics.fingerprint import Fingerprint
from retrax.numerics.reuse import Reused

if TYPE_CHECKING:
    from retrax.engine.backends.gpu_kernels import GPUKernel

BACKENDS = ("auto", "native", "xla", "gpu")
# What back ends were called before.
_RENAMED = {"pallas": "gpu"}
# JAX devices; type checkers do not know their class.
Devices = Sequence[Any]
Loop = TypeVar("Loop")
# Operations of a program that XLA compiles on arrays in a reasonable time: half a minute.
_MOST_ON_ARRAYS = 5000
# Operations of a program that LLVM compiles in about a minute; its time grows like their square.
_MOST_NATIVE = 40_000
# What XLA takes to compile a step, and from which time on a user is told.
_SECONDS_PER_EQUATION, _LONG = 2.5e-3, 15.0


def require_backend(backend: str) -> str:
    """Reject what is not the name of a back end; return it as it is called now."""
    if isinstance(backend, str) and backend in _RENAMED:
        return _rename(backend)
    if not isinstance(backend, str) or backend not in BACKENDS:
        raise BadInput(f"backend = {quote(backend)} must be one of {', '.join(BACKENDS)}.")
    return backend


@cache
def _rename(backend: str) -> str:
    """Return the new name of a back end, and warn once."""
    now = _RENAMED[backend]
    warn(
        f"backend = {backend!r} is called {now!r} now, and the old name will go.",
        DeprecationWarning,
    )
    return now


def make_loop(
    backend: str,
    system: AbstractGroupSystem,
    integrator: AbstractIntegrator,
    state: PyTree,
    h: float,
    adapts: bool = False,
) -> NativeLoop | XLALoop:
    """Make the loop of one body. `auto` is native wherever the step has a scalar form.

    Where it `adapts`, numbers of functions that have been seen to change are parameters; its bits
    then depend on what ran before.
    """
    backend = require_backend(backend)
    if backend == "gpu":
        raise BadInput(
            "backend = 'gpu' runs many bodies on a GPU; one body runs on 'native' or 'xla', "
            "and ensemble(...) runs many."
        )
    if backend == "xla":
        return XLALoop(system, integrator, state, h)

    def scalar() -> NativeLoop:
        made_for = signature(system, integrator, state, None if adapts else ())
        found, places = made_for.tree.content, made_for.tree.places
        try:
            if backend == "auto":
                require_quick(*made_for)
            loop = NativeLoop(system, integrator, state, h, made_for)
        except Exception:
            # A number that decides an `if`, or is a count, cannot be traced.
            if not places or not CHANGING.note_failure(found, places):
                raise
            return scalar()
        CHANGING.note_success(found, places)
        return loop

    return _scalar_or_xla(
        scalar,
        lambda: XLALoop(system, integrator, state, h),
        backend,
        lambda: _describe(system, integrator),
    )


def make_members(
    backend: str,
    system: AbstractGroupSystem,
    integrator: AbstractIntegrator,
    states: State,
    h: float,
    devices: Devices | None,
    shared: bool,
    threads: int | None = None,
) -> Members:
    """Make the loop of many bodies: by default native, or a kernel on NVIDIA GPUs.

    `shared` says whether all members have the same system and integrator; otherwise all arrays of
    both have a first axis of members.
    `threads` is how many the native back end may use: all cores by default.
    """
    backend = require_backend(backend)
    chosen, devices = _choice(backend, devices)
    one = jax.tree.map(_of_one, states)
    both = system, integrator
    own, method = both if shared else jax.tree.map(_of_one, both)
    made_for = signature(own, method, one)

    def rows() -> tuple[np.ndarray, np.ndarray]:
        """Return parameters and states, a column for each member."""
        state = Packing(one).member_rows(states)
        params = Packing.rows(both) if shared else Packing((own, method)).member_rows(both)
        return params, state

    def scalar() -> Members:
        if chosen == "gpu":
            from retrax.engine.backends.gpu import GPUMembers

            kernel = _gpu_kernel(*made_for, shared)
            return GPUMembers(kernel, both, states, h, shared, devices)
        # Arrays of members have no rows: short axes that a step keeps are taken apart.
        program, _ = step_program(*made_for, chosen != "native")
        if chosen == "native" and backend == "auto":
            require_quick(*made_for)
        if chosen == "native" and program.is_large:
            return LargeMembers(single_kernel(*made_for), *rows(), h, threads)
        if chosen == "native":
            kernel = member_kernel(*made_for, shared)
            return NativeMembers(kernel, *rows(), h, shared, threads)
        if program.has_buffers:
            raise Unscalarisable("it has a long axis, and arrays of members have no room for it")
        if program.count() > _MOST_ON_ARRAYS:
            raise Unscalarisable(
                f"that has {program.count()} operations, and XLA takes minutes to compile more "
                f"than {_MOST_ON_ARRAYS} of them on arrays"
            )
        params, state = rows()
        return ArrayMembers(program_step(program, len(state) - 1), params, state, h, devices)

    def plain() -> Members:
        return ArrayMembers(vmapped_step(own, method, one), *rows(), h, devices)

    required = backend if chosen in ("native", "gpu") else "auto"
    return _scalar_or_xla(scalar, plain, required, lambda: _describe(own, method))


def make_single(
    system: AbstractGroupSystem,
    integrator: AbstractIntegrator,
    state: State,
    h: float,
    backend: str = "auto",
) -> Single:
    """Make what steps one body from any state, with steps of any size."""
    if backend == "xla":
        return XLASteps(XLALoop(system, integrator, state, h), state)
    steps = make_steps(system, integrator, state, h, False)
    assert not isinstance(steps, OneByOne)
    return steps


def make_steps(
    system: AbstractGroupSystem,
    integrator: AbstractIntegrator,
    states: State,
    h: float,
    many: bool,
) -> Steps:
    """Make what steps one body, or many with a leading axis, a few steps at a time."""
    one = jax.tree.map(_of_one, states) if many else states
    made_for, params = signature(system, integrator, one), Packing.rows((system, integrator))

    def each() -> OneByOne:
        def body(k: int) -> Steps:
            return make_steps(system, integrator, jax.tree.map(lambda x: x[k], states), h, False)

        return OneByOne([body(k) for k in range(len(states.t))])

    def scalar() -> Steps:
        require_quick(*made_for)
        if not many:
            return Stepping(loop_kernel(*made_for, cores()), params, Packing.rows(states), h)
        if step_program(*made_for)[0].is_large:
            return each()
        columns = -(-len(states.t) // lanes()) * lanes()
        rows = pad(Packing(one).member_rows(states), columns)
        return Stepping(member_kernel(*made_for, True), params, rows, h, lanes())

    def plain() -> Steps:
        if many:
            with warnings.catch_warnings(action="ignore"):  # it has been said once
                return each()
        return XLASteps(XLALoop(system, integrator, states, h), states)

    return _scalar_or_xla(scalar, plain, "auto", lambda: _describe(system, integrator))


def gpu_of(backend: str, devices: Devices | None) -> Any:
    """Return the first GPU that an ensemble runs on, or `None` where it runs on something else."""
    chosen, given = _choice(require_backend(backend), devices)
    return given[0] if chosen == "gpu" else None


def _of_one(x: Any) -> jax.ShapeDtypeStruct:
    """Return the part of one member of an array with a first axis of members."""
    return jax.ShapeDtypeStruct(np.shape(x)[1:], x.dtype)


@partial(Reused, fails=Unscalarisable)
def require_quick(tree: Any, avals: tuple, identity: Fingerprint) -> None:
    """Leave a program to XLA for which LLVM would take minutes."""
    program, _ = step_program(tree, avals, identity)
    if program.count() > _MOST_NATIVE:
        reason = Unscalarisable(
            f"it has {program.count()} operations, and more than {_MOST_NATIVE} take minutes to "
            "compile"
        )
        reason.equations = program.count() // 2  # measured: 1.4 to 2.5 operations each
        raise reason


def _choice(backend: str, devices: Devices | None) -> tuple[str, Devices]:
    """Choose the back end that `auto` leaves open, and the devices it runs on."""
    if backend == "native" and devices is not None:
        raise BadInput(
            "backend = 'native' uses all cores of the processor and takes no devices; "
            "leave devices out, or use backend='xla'."
        )
    listed = isinstance(devices, list | tuple)
    given = jax.devices() if devices is None else list(devices) if listed else []
    if not given or not all(isinstance(d, jax.Device) for d in given):
        raise BadInput(
            f"devices = {quote(devices)} must be a list of JAX devices, as jax.devices()."
        )
    others = [device for device in given if not _is_nvidia(device)]
    if backend == "auto":
        backend = "gpu" if not others else "native" if devices is None else "xla"
    if backend == "gpu" and others:
        raise BadInput(
            f"backend = 'gpu' needs an NVIDIA GPU, but JAX sees {others[0].device_kind}."
        )
    return backend, given


def _is_nvidia(device: Any) -> bool:
    return device.platform == "gpu" and "rocm" not in device.client.platform_version.lower()


def _scalar_or_xla(
    scalar: Callable[[], Loop], plain: Callable[[], Loop], backend: str, what: Callable[[], str]
) -> Loop:
    """Run the scalar program; without one run plain XLA, if `backend` allows it."""
    try:
        return scalar()
    except Unscalarisable as reason:
        if backend != "auto":
            raise BadInput(
                f"backend = {backend!r}: {what()} has no scalar program here: {reason}. Use "
                "backend='auto'."
            ) from reason
        warn(f"{what()} {_slowness(reason)}")
        return plain()


def _describe(system: AbstractGroupSystem, integrator: AbstractIntegrator) -> str:
    contacts = len(getattr(system.contact, "names", ()))
    touching = f" with {contacts} contact{'s' * (contacts > 1)}" if contacts else ""
    return f"{integrator!r} on the {system.name}{touching}"


def _slowness(reason: Unscalarisable) -> str:
    """Tell what it means for a user that a step runs on XLA."""
    seconds = _SECONDS_PER_EQUATION * reason.equations
    if seconds < _LONG:
        return f"has no machine code of retrax: {reason}. It runs on XLA as it is, which is slower."
    time = f"{round(seconds, -1):.0f} s" if seconds < 100 else f"{seconds / 60:.0f} minutes"
    return (
        f"is too large for the machine code of retrax: XLA compiles it in about {time} before the "
        "first step, and takes steps many times more slowly. Fewer bodies, joints and contacts in "
        "one system run at full speed."
    )


@Reused
def member_kernel(tree: Any, avals: tuple, identity: Any, shared: bool) -> Kernel:
    """Return the machine code for blocks of members."""
    from retrax.engine.llvm.machine_code import compile_code

    program, layout = step_program(tree, avals, identity)
    code = compile_code(assemble(program, layout, lanes(), shared))
    return Kernel(code.run, layout.memory, code)


@Reused
def _gpu_kernel(tree: Any, avals: tuple, identity: Any, shared: bool) -> "GPUKernel":
    """Return the kernel with a thread for each member, or a warp where an axis is long."""
    from retrax.engine.backends.gpu_kernels import GPUKernel

    program, inputs = step_program(tree, avals, identity, unroll=True)
    return GPUKernel(program, inputs, shared)
