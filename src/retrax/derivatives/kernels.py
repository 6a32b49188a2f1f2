"""The machine code of steps, of their tangents and of their pullbacks, for one body or a block."""

from collections.abc import Callable
from typing import Any, NamedTuple

from retrax.engine.backends import member_kernel
from retrax.engine.backends.native import Kernel, single_kernel
from retrax.engine.derivative_programs import Wanted, pull_program, push_program
from retrax.engine.kinds import Unscalarisable
from retrax.engine.llvm.kernel import assemble
from retrax.engine.llvm.pull_kernel import assemble_pull
from retrax.engine.program import Program
from retrax.engine.progress import Packing
from retrax.engine.step_program import step_program
from retrax.numerics.reuse import Reused, Signature

# Operations of a derivative that LLVM compiles in a few seconds.
_MOST = 10_000


class Shape(NamedTuple):
    """How bodies lie in memory: so many to a block, with parameters in common or of their own."""

    lanes: int
    shared: bool


def is_large(made_for: Signature) -> bool:
    """Tell whether a body fills the vector units by itself, so that each has a kernel to itself."""
    return step_program(*made_for)[0].is_large


def step_kernel(made_for: Signature, shape: Shape) -> Kernel:
    """Return the time loop of the step itself."""
    return single_kernel(*made_for) if shape.lanes == 1 else member_kernel(*made_for, shape.shared)


@Reused
def push_kernel(tree: Any, avals: tuple, identity: Any, wanted: Wanted, shape: Shape) -> Kernel:
    """Return the time loop of a step with a tangent beside it."""
    from retrax.engine.llvm.machine_code import compile_code

    program, layout = push_program(tree, avals, identity, wanted)
    _require_quick(program)
    code = compile_code(assemble(program, layout, *shape))
    return Kernel(code.run, layout.memory, code)


@Reused
def pull_kernel(tree: Any, avals: tuple, identity: Any, wanted: Wanted, shape: Shape) -> Kernel:
    """Return the backward time loop of a pullback."""
    from retrax.engine.llvm.machine_code import compile_code

    program, inputs = pull_program(tree, avals, identity, wanted)
    _require_quick(program)
    code = compile_code(assemble_pull(program, inputs, *shape))
    return Kernel(code.run, Packing(()), code)


def _require_quick(program: Program) -> None:
    if program.count() > _MOST:
        raise Unscalarisable(
            f"it has {program.count()} operations, and more than {_MOST} take minutes to compile"
        )


@Reused
def has_push(tree: Any, avals: tuple, identity: Any, wanted: Wanted) -> bool:
    """Tell whether tangents have a scalar program that is worth compiling."""
    return _is_there(lambda: push_program(tree, avals, identity, wanted)[0])


@Reused
def has_pull(tree: Any, avals: tuple, identity: Any, wanted: Wanted) -> bool:
    """Tell whether cotangents have a scalar program that is worth compiling."""
    return _is_there(lambda: pull_program(tree, avals, identity, wanted)[0])


def _is_there(made: Callable[[], Program]) -> bool:
    try:
        _require_quick(made())
    except (Unscalarisable, ValueError):  # JAX has none in reverse through some loops
        return False
    return True
