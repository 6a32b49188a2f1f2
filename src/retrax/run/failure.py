"""What a run says when a step has failed: who, where, how bad, why, what to try."""

import jax
import jax.numpy as jnp
import numpy as np

from retrax.engine.progress import Progress
from retrax.errors import ContactLost, StepFailed
from retrax.integrators.base import LONG, AbstractIntegrator, shorter_step
from retrax.integrators.diagnosis import Takes, advised_step, fault_of_constraint, reach
from retrax.integrators.driven import Driven
from retrax.mechanics.state import Ending, State
from retrax.mechanics.system import AbstractGroupSystem
from retrax.numerics.frozen import numbers_of
from retrax.trajectory.run import Run

# A step whose increment is so many times that of its start has run away.
_RUN_AWAY = 20
# A step shorter than this part of another only hides that equations contradict each other.
_USEFUL = 1e-3


def ending_of(
    system: AbstractGroupSystem, integrator: AbstractIntegrator, at: Progress, h: float
) -> Ending | None:
    """Where the model of the system ends within the step that failed, if that is why it did."""
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
    """What to raise, and who, where, how bad, why, what to try.

    `takes` says whether a step of another size can be taken from where the run stopped: what is
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
    blamed: str | None = None
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
        what = (
            f"did not converge: relative residual {float(info.residual):.1e} after "
            f"{int(info.iterations)} iterations"
        )
        blamed = integrator.fault(system, at.state, h)
        blamed = blamed or fault_of_constraint(system, at.state, h)
        reasons = [blamed or reach(system, at.state, h, takes)]
        if not moved <= LONG / 2:
            reasons.insert(
                0,
                f"The step moves by |h xi| = {moved:.3g} on the group; above about {LONG:g} a step "
                "is too long to solve for.",
            )
        elif blamed is None:
            reasons.insert(
                0,
                f"The step is short (|h xi| = {moved:.3g}), so the energy may be singular here, "
                "or not a regular function of velocity or momentum.",
            )
        why = " ".join(reasons)
    if isinstance(integrator, Driven) and ended is None:
        why = f"{why} {_told_inputs(integrator, system, at.state, h)}"
    if issubclass(error, ContactLost) or (ended is not None and error is StepFailed):
        return error, f"{where} {what}. {why} {kept.capitalize()}"
    advice = advised_step(shorter, h, takes)
    if blamed is not None and advice is not None and abs(advice) < _USEFUL * abs(h):
        return error, f"{where} {what}. {why} Shorter steps come to the same; {kept}"
    if advice is None:
        return error, f"{where} {what}. {why} No shorter step works there either; {kept}"
    return error, f"{where} {what}. {why} Try h = {advice:.2g} (it is {h:.2g} now); {kept}"


def _told_inputs(integrator: Driven, system: AbstractGroupSystem, state: State, h: float) -> str:
    """The inputs at the start of a step, which may be why it failed."""
    now = jax.tree.map(jnp.asarray, state)
    u = jax.jit(lambda driven, size: driven.inputs(system, now, size))(integrator, jnp.asarray(h))
    return f"The inputs are {numbers_of(np.asarray(u))} at its start."


def _move(system: AbstractGroupSystem, state: State, h: float) -> float:
    """$|h\\xi|$ with the velocity at the start of a step."""
    xi = system.velocity_at(jax.tree.map(jnp.asarray, state))
    return float(jnp.max(jnp.abs(xi))) * abs(h)
