"""The string pendulum (W5): the native back end against C, and how both grow with the string."""

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from retrax.engine.backends import make_loop
from retrax.engine.progress import start
from retrax.integrators.lie_verlet import LieVerlet
from retrax.mechanics.state import State
from retrax.run.simulate import simulate
from retrax.systems.strings.string_pendulum import StringPendulum
from retrax_papers.bench import kernels
from retrax_papers.bench.timing import nanoseconds, paired

# Elements of the strings that are timed, and how many node steps a timed run takes.
ELEMENTS = (4, 20, 63, 200, 632, 2000)
NODE_STEPS = 400_000
# The stable step of the paper's string is 20 times this over the number of elements.
H = 1e-4


def measure(pairs: int = 7) -> dict[str, Any]:
    """Nanoseconds per step for strings of several lengths, and the exponent of their growth."""
    rows = [per_step(elements, pairs) for elements in ELEMENTS]
    long = [row for row in rows if row["elements"] >= 20]
    slope = np.polyfit(
        np.log([row["elements"] for row in long]), np.log([row["ns"] for row in long]), 1
    )
    return {"rows": rows, "exponent": float(slope[0])}


def problem(elements: int) -> tuple[StringPendulum, State, float]:
    """The paper's pendulum with that many elements, and a step that is stable on it."""
    system, state, _, _ = StringPendulum.paper(elements=elements)
    return system, state, H * min(1.0, 20 / elements)


def per_step(elements: int, pairs: int) -> dict[str, Any]:
    """The compiled loop against the C kernel, the end of the run saved."""
    system, state, h = problem(elements)
    steps = max(200, NODE_STEPS // elements)
    row: dict[str, Any] = {"elements": elements, "steps": steps, "h": h}
    c = None
    if kernels.compiler() is not None:
        row["difference"] = difference = disagreement(elements)
        kernels.require_agreement(f"string of {elements} elements", difference)
        c = in_c(system, state, h, steps)
    native = make_loop("native", system, LieVerlet(), state, h)
    at = start(state)
    timing = paired(lambda: native.run(at, 1, steps, 1), c, pairs)
    return {**row, **nanoseconds(timing, steps), "loop": timing}


def disagreement(elements: int, steps: int = 100) -> float:
    """The largest difference between a state of retrax and that of the C kernel."""
    system, state, h = problem(elements)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        run = simulate(system, LieVerlet(), state, h=h, steps=steps, progress=False)
    ours = np.concatenate(
        [run.g[0].reshape(steps + 1, -1), run.g[1].reshape(steps + 1, 9), run.momentum], axis=1
    )
    theirs, _ = kernels.string_pendulum(system, state, h, steps, save_every=1)
    return float(np.max(np.abs(ours[1:] - theirs)))


def in_c(
    system: StringPendulum, state: State, h: float, steps: int
) -> Callable[[], tuple[np.ndarray, int]]:
    return lambda: kernels.string_pendulum(system, state, h, steps)
