"""What the native loop makes of a step without contracted products, which C has not either."""

import numpy as np

from retrax.engine.backends.native import Kernel, NativeLoop
from retrax.engine.llvm.kernel import assemble
from retrax.engine.llvm.machine_code import compile_code
from retrax.engine.progress import start
from retrax.engine.step_program import signature, step_program


def uncontracted(system, integrator, state, h: float, steps: int) -> np.ndarray:
    """The numbers of a state after so many native steps, every product rounded on its own."""
    loop = NativeLoop(system, integrator, state, h)
    program, inputs = step_program(*signature(system, integrator, state))
    code = compile_code(assemble(program, inputs, lanes=1, shared=True).replace(" contract", " "))
    loop._kernel = Kernel(code.run, loop._kernel.memory, code)
    progress, *_ = loop.run(start(state), 1, steps, 1)
    return loop._packing.rows(progress.state)[:, 0]
