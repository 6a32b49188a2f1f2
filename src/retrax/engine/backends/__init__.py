"""Choose the back end that runs a loop."""

import warnings
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import jax
import numpy as np
from jaxtyping import PyTree

from retrax.engine.backends.array_members import ArrayMembers, program_step, vmapped_step
from retrax.engine.backends.members import LargeMembers, Members, NativeMembers, lanes
from retrax.engine.backends.native import Kernel, NativeLoop, single_kernel
from retrax.engine.backends.xla import XLALoop
from retrax.engine.llvm.kernel import assemble
from retrax.engine.progress import Packing
from retrax.engine.step_program import signature, step_program
from retrax.engine.trace.scalarise import Unscalarisable
from retrax.errors import BadInput
from retrax.integrators.base import AbstractIntegrator
from retrax.mechanics.state import State
from retrax.mechanics.system import AbstractGroupSystem
from retrax.numerics.checks import shown
from retrax.numerics.fingerprint import Fingerprint
from retrax.numerics.reuse import Reused

BACKENDS = ("auto", "native", "xla", "pallas")
# JAX devices; type checkers do not know their class.
Devices = Sequence[Any]
Loop = TypeVar("Loop")
# Operations of a program that XLA and Pallas compile in a reasonable time: half a minute.
_MOST_ON_ARRAYS = 5000
# Operations of a program that LLVM compiles in about a minute; its time grows like their square.
_MOST_NATIVE = 20_000


def require_backend(backend: str) -> None:
    if not isinstance(backend, str) or backend not in BACKENDS:
        raise BadInput(f"backend = {shown(backend)} must be one of {', '.join(BACKENDS)}.")


def make_loop(
    backend: str,
    system: AbstractGroupSystem,
    integrator: AbstractIntegrator,
    state: PyTree,
    h: float,
) -> NativeLoop | XLALoop:
    """Make the loop of one body. `auto` is native wherever the step has a scalar form."""
    require_backend(backend)
    if backend == "pallas":
        raise BadInput(
            "backend = 'pallas' runs many bodies on a GPU; one body runs on 'native' or 'xla', "
            "and ensemble(...) runs many."
        )
    if backend == "xla":
        return XLALoop(system, integrator, state, h)

    def scalar() -> NativeLoop:
        made_for = signature(system, integrator, state)
        if backend == "auto":
            _require_quick(*made_for)
        return NativeLoop(system, integrator, state, h, made_for)

    return _scalar_or_xla(
        scalar,
        lambda: XLALoop(system, integrator, state, h),
        backend,
        lambda: f"{integrator!r} on the {system.name}",
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
    """Make the loop of many bodies: by default native, or Pallas on an NVIDIA GPU.

    `shared` says whether all members have the same system, or each its own along the first axis.
    `threads` is how many the native back end may use: all cores by default.
    """
    chosen, devices = _choice(backend, devices)
    one = jax.tree.map(lambda x: x[0], states)
    own = system if shared else jax.tree.map(lambda x: x[0], system)
    integrator_rows = Packing(integrator).rows(integrator)
    if shared:
        params = np.concatenate([Packing(system).rows(system), integrator_rows])
    else:
        rows = Packing(own).member_rows(system)
        alike = np.broadcast_to(integrator_rows, (len(integrator_rows), rows.shape[1]))
        params = np.concatenate([rows, alike])
    state = Packing(one).member_rows(states)
    made_for = signature(own, integrator, one)

    def scalar() -> Members:
        # Arrays of members have no rows: short axes that a step keeps are taken apart.
        program, _ = step_program(*made_for, chosen != "native")
        if chosen == "native" and backend == "auto":
            _require_quick(*made_for)
        if chosen == "native" and program.is_large:
            return LargeMembers(single_kernel(*made_for), params, state, h, threads)
        if chosen == "native":
            kernel = _member_kernel(*made_for, shared)
            return NativeMembers(kernel, params, state, h, shared, threads)
        if program.has_buffers:
            raise Unscalarisable("it has a long axis, and arrays of members have no room for it")
        if backend != "pallas" and program.count() > _MOST_ON_ARRAYS:
            raise Unscalarisable(
                f"that has {program.count()} operations, and XLA takes minutes to compile more "
                f"than {_MOST_ON_ARRAYS} of them on arrays"
            )
        step = program_step(program, len(state) - 1)
        return ArrayMembers(step, params, state, h, devices, pallas=chosen == "pallas")

    def plain() -> Members:
        step = vmapped_step(own, integrator, one)
        return ArrayMembers(step, params, state, h, devices, pallas=False)

    required = backend if chosen in ("native", "pallas") else "auto"
    return _scalar_or_xla(scalar, plain, required, lambda: f"{integrator!r} on the {own.name}")


@Reused
def _require_quick(tree: Any, avals: tuple, identity: Fingerprint) -> None:
    """Leave a program to XLA for which LLVM would take minutes."""
    program, _ = step_program(tree, avals, identity)
    if program.count() > _MOST_NATIVE:
        raise Unscalarisable(
            f"it has {program.count()} operations, and more than {_MOST_NATIVE} take minutes to "
            "compile"
        )


def _choice(backend: str, devices: Devices | None) -> tuple[str, Devices]:
    """Choose the back end that `auto` leaves open, and the devices it runs on."""
    require_backend(backend)
    if backend == "native" and devices is not None:
        raise BadInput(
            "backend = 'native' uses all cores of the processor and takes no devices; "
            "leave devices out, or use backend='xla'."
        )
    listed = isinstance(devices, list | tuple)
    given = jax.devices() if devices is None else list(devices) if listed else []
    if not given or not all(isinstance(d, jax.Device) for d in given):
        raise BadInput(
            f"devices = {shown(devices)} must be a list of JAX devices, as jax.devices()."
        )
    on_gpu = given[0].platform == "gpu"
    if backend == "auto":
        backend = "pallas" if on_gpu else "native" if devices is None else "xla"
    if backend == "pallas" and not on_gpu:
        raise BadInput(
            f"backend = 'pallas' needs an NVIDIA GPU, but JAX sees {given[0].device_kind}."
        )
    return backend, given


def _scalar_or_xla(
    scalar: Callable[[], Loop], plain: Callable[[], Loop], backend: str, what: Callable[[], str]
) -> Loop:
    """Run the scalar program; without one run plain XLA, if `backend` allows it."""
    try:
        return scalar()
    except Unscalarisable as reason:
        sentence = f"{what()} has no scalar program here: {reason}."
        if backend != "auto":
            raise BadInput(f"backend = {backend!r}: {sentence} Use backend='auto'.") from reason
        warnings.warn(f"{sentence} It runs on XLA as it is, which is slower.", stacklevel=5)
        return plain()


@Reused
def _member_kernel(tree: Any, avals: tuple, identity: Any, shared: bool) -> Kernel:
    """The machine code for blocks of members."""
    from retrax.engine.llvm.machine_code import compiled

    program, layout = step_program(tree, avals, identity)
    code = compiled(assemble(program, layout, lanes(), shared))
    return Kernel(code.run, layout.memory, code)
