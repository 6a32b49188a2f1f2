"""Call the kernels of functions of columns, and of recursions along them."""

import ctypes
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np

from retrax.engine.kinds import Unscalarisable
from retrax.engine.llvm.sweep_kernel import Ports, assemble_sweep
from retrax.engine.passes.fusion import fuse
from retrax.engine.passes.live import live
from retrax.engine.passes.sinking import sink
from retrax.engine.program import Program
from retrax.engine.trace.scalarise import scalarise

_CALL = ctypes.CFUNCTYPE(None, ctypes.c_void_p, *[ctypes.c_int64] * 4)
_NUMBER = jax.ShapeDtypeStruct((), np.float64)
_BYTES = 8


class Rows(NamedTuple):
    """Numbers in memory: one of `rows` by their place and that of the rounds along them.

    **Attributes:** `array`: holds the memory; `first`: where the first number lies, in numbers from
    the start of the array; `row`, `round`: how far apart rows and rounds lie.
    """

    array: np.ndarray
    first: int
    row: int
    round: int


class Sweep:
    """A program with its ports, compiled for one member and for blocks of them when first asked."""

    def __init__(self, program: Program, ports: Ports):
        self.program, self.ports = program, ports
        self._codes: dict[int, Any] = {}

    def compile(self, lanes: int) -> None:
        """Make the machine code for blocks of this number of members."""
        from retrax.engine.llvm.machine_code import compile_code

        if lanes not in self._codes:
            code = compile_code(assemble_sweep(self.program, self.ports, lanes), plainly=True)
            self._codes[lanes] = code, _CALL(code.address("run"))

    def bind(
        self, arrays: Sequence[Rows], rounds: int, members: int, lanes: int
    ) -> Callable[[], None]:
        """Return a call for these arrays: shared numbers, carried ones, reads and writes."""
        self.compile(lanes)
        code, call = self._codes[lanes]
        table = np.empty((len(arrays), 3), np.int64)
        for k, (array, first, row, step) in enumerate(arrays):
            assert array.dtype == np.float64 and array.flags.c_contiguous
            table[k] = (array.ctypes.data + _BYTES * first, row, step)
        held = (table, code, [x.array for x in arrays])
        sizes = (table.ctypes.data, rounds, members, 0, -(-members // lanes))

        def run(held: object = held) -> None:
            call(*sizes)

        return run


def sweep_of(function: Callable[..., tuple[Sequence[Any], ...]], ports: Ports, most: int) -> Sweep:
    """Make the program of `function`, which takes numbers and returns numbers.

    Its arguments are lists: of shared numbers, of carried ones, then one list for each array that
    is read. It returns a list of what is carried on, and one for each array that is written.

    **Raises:** `Unscalarisable` where it has no program of at most `most` operations.
    """
    counts = (ports.shared, ports.carried, *ports.reads)
    examples = [[_NUMBER] * count for count in counts]
    program = fuse(sink(live(scalarise(function, *examples, invariant=ports.shared))))
    if program.count() > most:
        raise Unscalarisable(
            f"it has {program.count()} operations, and more than {most} take minutes to compile"
        )
    return Sweep(program, ports)
