"""Which back end runs a loop."""

import warnings
from typing import Any

from retrax.engine.native import NativeLoop
from retrax.engine.scalarise import Unscalarisable
from retrax.engine.xla import XLALoop
from retrax.errors import BadInput
from retrax.integrators.base import AbstractIntegrator

BACKENDS = ("auto", "native", "xla")


def make_loop(
    backend: str, system: Any, integrator: AbstractIntegrator, state: Any, h: float
) -> NativeLoop | XLALoop:
    """The loop that `backend` names. `auto` is native wherever the step has a scalar form."""
    if backend not in BACKENDS:
        raise BadInput(f"backend = {backend!r} must be one of {', '.join(BACKENDS)}.")
    if backend == "xla":
        return XLALoop(system, integrator, state, h)
    try:
        return NativeLoop(system, integrator, state, h)
    except Unscalarisable as reason:
        sentence = f"{integrator!r} on the {system.name} has no native form: {reason}."
        if backend == "native":
            raise BadInput(f"backend = 'native': {sentence} Use backend='auto'.") from reason
        warnings.warn(f"{sentence} It runs on XLA, which is slower.", stacklevel=4)
        return XLALoop(system, integrator, state, h)
