"""Where a motion crosses a section."""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import jax
import numpy as np
from jaxtyping import Float, Int

from retrax.errors import BadInput
from retrax.mechanics.state import State
from retrax.numerics.checks import require_choice, require_instance, require_output
from retrax.numerics.crossing import crossing
from retrax.numerics.evaluate import evaluate
from retrax.run.prepare import prepare
from retrax.trajectory.observe import along
from retrax.trajectory.trajectory import Trajectory

_DIRECTIONS = (-1, 0, 1)

Section = Callable[[State], Any]


class Poincare(NamedTuple):
    """The states at which a motion crosses a section, in the order of time.

    **Attributes:** `t`: the times; `states`: the states, stacked; `values`: what the function of
    the section is there, zero to round-off; `directions`: 1 where it rises, -1 where it falls.
    """

    t: Float[np.ndarray, " crossing"]
    states: State
    values: Float[np.ndarray, " crossing"]
    directions: Int[np.ndarray, " crossing"]

    def __repr__(self) -> str:
        if not len(self.t):
            return "<no crossings of a section>"
        up = int(np.sum(self.directions > 0))
        return (
            f"<{len(self.t)} crossings of a section, {up} of them upwards, from t = "
            f"{float(self.t[0]):.6g} to {float(self.t[-1]):.6g} s>"
        )

    def along(self, function: Section) -> np.ndarray:
        """Return the values of a function of the state, written in JAX, at every crossing."""
        return along(function, self.states)


def poincare(run: Trajectory, section: Section, *, direction: int = 0) -> Poincare:
    r"""Find where a run crosses the section $s(z) = 0$.

    Within the step in which $s$ changes sign, the time is found of a shorter step of the same
    method that ends on the section,

    $$ s(\Phi_\tau(z_k)) = 0, \quad 0 < \tau \le h, \tag{1} $$

    to round-off, by regula falsi between ends that stay on both sides. The state there has the
    error of one step beside that of the run. To find crossings while a run goes on, and to end it
    there, use `simulate(..., events=...)`.

    **Arguments:**

    - `run`: with its system and its integrator. Of several crossings between two saved states at
        most one is seen: save every step.
    - `section`: a function of the state, written in JAX, with a number as result.
    - `direction`: 1 for crossings at which it rises, -1 where it falls, 0 for both.

    **Raises:** `BadInput` if nothing crosses it.
    """
    run = require_instance("run", run, Trajectory, "a run, as simulate returns it")
    require_output("section", section, (_like(run),), ())
    require_choice("direction", direction, _DIRECTIONS)
    if run.system is None or run.integrator is None or run.lacking is not None:
        raise BadInput("this run has no system and no integrator to take shorter steps with.")
    values = run.along(section)
    found = [
        _solve_crossing(run, section, *step) for step in _steps(run, section, values, direction)
    ]
    if not found:
        raise BadInput(
            f"the run does not cross the section: its function goes from {np.min(values):.4g} to "
            f"{np.max(values):.4g} along it"
            + (", or not in this direction." if np.min(values) < 0 < np.max(values) else ".")
        )
    states = jax.tree.map(lambda *xs: np.stack(xs), *(state for state, _, _ in found))
    ends = np.array([value for _, value, _ in found])
    return Poincare(np.asarray(states.t), states, ends, np.array([turn for *_, turn in found]))


def _like(run: Trajectory) -> State:
    """Return a state of the run without its numbers."""
    return jax.tree.map(lambda x: jax.ShapeDtypeStruct(x.shape[1:], x.dtype), run.states)


def _steps(
    run: Trajectory, section: Section, values: np.ndarray, direction: int
) -> Iterator[tuple[State, float, float]]:
    """Yield the state before each step that crosses, and the values at both of its ends."""
    system, integrator = run.system, run.integrator
    assert system is not None and integrator is not None
    again = run.as_it_was(lambda: prepare(system, integrator, h=float(run.h)))
    for k in _crossings(values, direction):
        state = jax.tree.map(lambda x, k=k: np.asarray(x[k]), run.states)
        apart = round(abs(float(run.t[k + 1] - run.t[k]) / float(run.h)))
        if apart == 1:
            yield state, float(values[k]), float(values[k + 1])
            continue
        part = again(state, apart)
        seen = part.along(section)
        for j in _crossings(seen, direction):
            before = jax.tree.map(lambda x, j=j: np.asarray(x[j]), part.states)
            yield before, float(seen[j]), float(seen[j + 1])


def _crossings(values: np.ndarray, direction: int) -> np.ndarray:
    """Return after which values the sign changes; a zero belongs to the step that reaches it."""
    before, after = values[:-1], values[1:]
    rises, falls = (before < 0) & (after >= 0), (before > 0) & (after <= 0)
    wanted = {1: rises, -1: falls, 0: rises | falls}[direction]
    return np.flatnonzero(wanted)


def _solve_crossing(
    run: Trajectory, section: Section, state: State, before: float, after: float
) -> tuple[State, float, int]:
    """Solve (1), and return the state, the value and the direction."""
    dense = run.dense

    def end(tau: float) -> State:
        return dense.after(state, tau)

    def value(tau: float) -> float:
        return float(evaluate(section, end(tau)))

    h = float(run.h)
    tau = crossing(value, h, before, after)
    there = end(tau)
    return there, float(evaluate(section, there)), 1 if after > before else -1
