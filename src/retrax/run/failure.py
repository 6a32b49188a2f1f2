"""What a run says when a step has failed: who, where, how bad, why, what to try."""

import jax
import jax.numpy as jnp
import numpy as np

from retrax.engine.progress import Progress
from retrax.errors import ContactLost, StepFailed
from retrax.integrators.base import LONG, AbstractIntegrator, StepInfo, shorter_step
from retrax.integrators.diagnosis import (
    Takes,
    advised_step,
    fault_of_constraint,
    reach,
    shortest,
)
from retrax.integrators.driven import Driven
from retrax.mechanics.state import Ending, State
from retrax.mechanics.system import AbstractGroupSystem
from retrax.numerics.frozen import numbers_of
from retrax.numerics.roundoff import ACCEPT
from retrax.trajectory.run import Run

# A step whose increment is so many times that of its start has run away.
_RUN_AWAY = 20
# A step shorter than this part of another is no advice: nobody runs on with it.
_USEFUL = 1e-2
# A residual below this was nearly accepted; a step that moves by less than this does so at rest.
_NEARLY, _AT_REST = 1e-10, 1e-8


def ending_of(
    system: AbstractGroupSystem, integrator: AbstractIntegrator, at: Progress, h: float
) -> Ending | None:
    """Return where the model ends within the step that failed, if that is why it did."""
    if not bool(at.failure.converged) or bool(at.failure.in_chart):
        return None
    if type(system).ending is AbstractGroupSystem.ending:
        return None
    state = jax.tree.map(jnp.asarray, at.state)
    one = jax.jit(lambda system, integrator, size: integrator.step(system, state, size)[0])
    return system.ending(lambda size: one(system, integrator, jnp.asarray(size)), h)


def explain(
    run: Run, at: Progress, takes: Takes, ended: Ending | None
) -> tuple[type[StepFailed], str]:
    """Return what to raise: which run failed, where, how badly, why, and what to try.

    `takes` says whether steps of another size can be taken from where the run stopped: what is
    advised has been tried.
    """
    system, integrator, h = run.system, run.integrator, float(run.plan.h)
    k, info = int(at.step), at.failure
    where = (
        f"{integrator!r} on the {system.name}: step {k + 1} of {run.plan.steps} "
        f"(from t = {float(at.state.t):.6g} s)"
    )
    kept = "the run up to there is in `.trajectory`."
    culprit = integrator.culprit(system, at.state, h) if isinstance(integrator, Driven) else None
    if culprit is not None:
        return StepFailed, f"{where} could not be taken: {culprit}; {kept}"
    moved, tried = _move(system, at.state, h), float(info.increment)
    shorter, error = shorter_step(h, moved), StepFailed
    driven = integrator if isinstance(integrator, Driven) and ended is None else None
    blamed, unsolved = None, ended is None and not bool(info.converged)
    if ended is not None:
        what, why, error, _ = ended
    elif bool(info.converged) and not bool(info.in_chart):
        # What a step that failed came to last says little where it has run away.
        near = tried if tried <= _RUN_AWAY * max(moved, LONG) else moved
        what, why, shorter, error = integrator.refusal(system, at.state, h, near)
    elif bool(info.converged):
        what = "gave numbers that are not finite"
        why = (
            f"The state before it is finite and moves by |h xi| = {moved:.3g} in a step; an energy "
            "or a force may be singular there, or the motion unstable at this step size."
        )
    else:
        what, why = _explain_equations(system, info, moved)
        blamed = integrator.fault(system, at.state, h) or fault_of_constraint(system, at.state, h)
    said = [why, _describe_inputs(driven, system, at.state, h) if driven else None]
    if issubclass(error, ContactLost) or (ended is not None and error is StepFailed):
        return error, _join(f"{where} {what}.", *said, kept.capitalize())
    advice = advised_step(shorter, h, takes)
    if unsolved:
        said.insert(1, blamed or reach(system, at.state, h, takes, advice))
    useless = advice is None or (moved <= LONG and abs(advice) < _USEFUL * abs(h))
    if blamed is not None and useless:
        last = "Shorter steps come to the same"
    elif advice is None:
        last = f"No shorter step was found that works there, down to h = {shortest(h):.1g}"
    elif useless:
        last = "No step longer than a hundredth of it works there either"
    else:
        last = f"Try h = {advice:.2g} (it is {h:.2g} now)"
    return error, _join(f"{where} {what}.", *said, f"{last}; {kept}")


def _join(*sentences: str | None) -> str:
    return " ".join(filter(None, sentences))


def _explain_equations(
    system: AbstractGroupSystem, info: StepInfo, moved: float
) -> tuple[str, str | None]:
    """Say what became of the equations of a step that moves by `moved`, and what was seen."""
    left, count = float(info.residual), int(info.iterations)
    if left <= ACCEPT and system.constraint is not None:
        return (
            f"was solved, to a relative residual of {left:.1e} in {count} iterations, but to an "
            "end at which the constraint does not hold"
        ), None
    what = f"did not converge: relative residual {left:.1e} after {count} iterations"
    if not moved <= LONG / 2:
        return what, (
            f"The step moves by |h xi| = {moved:.3g} on the group; above about {LONG:g} a step is "
            "too long to solve for."
        )
    if left <= _NEARLY:
        still = "; the system is almost at rest" if moved <= _AT_REST else ""
        return what, f"The solver stopped just above its tolerance{still}."
    return what, f"The step is short: it moves by |h xi| = {moved:.3g} on the group."


def _describe_inputs(
    integrator: Driven, system: AbstractGroupSystem, state: State, h: float
) -> str:
    """Return the inputs at the start of a step, which may be why it failed."""
    now = jax.tree.map(jnp.asarray, state)
    u = jax.jit(lambda driven, size: driven.inputs(system, now, size))(integrator, jnp.asarray(h))
    return f"The inputs are {numbers_of(np.asarray(u))} at its start."


def _move(system: AbstractGroupSystem, state: State, h: float) -> float:
    """Return $|h\\xi|$ with the velocity at the start of a step."""
    xi = system.velocity_at(jax.tree.map(jnp.asarray, state))
    return float(jnp.max(jnp.abs(xi))) * abs(h)
