"""The error about a step that failed."""

import jax
import jax.numpy as jnp

from retrax.engine.progress import Progress
from retrax.errors import ContactLost, StepFailed
from retrax.integrators.base import LONG, AbstractIntegrator, shorter_step
from retrax.integrators.diagnosis import diagnose
from retrax.mechanics.ending import Ending
from retrax.mechanics.system import AbstractGroupSystem


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
    system: AbstractGroupSystem,
    integrator: AbstractIntegrator,
    at: Progress,
    h: float,
    steps: int,
    ended: Ending | None,
) -> tuple[type[StepFailed], str]:
    """What to raise, and who, where, how bad, why, what to try."""
    k, info = int(at.step), at.failure
    moved = float(info.increment)
    where = (
        f"{integrator!r} on the {system.name}: step {k + 1} of {steps} "
        f"(from t = {float(at.state.t):.6g} s)"
    )
    shorter, error = shorter_step(h, moved), StepFailed
    if ended is not None:
        what, why, error, _ = ended
    elif bool(info.converged) and not bool(info.in_chart):
        what, why, shorter, error = integrator.refusal(system, at.state, h, moved)
    elif bool(info.converged):
        what = "gave numbers that are not finite"
        why = (
            f"The state before it is finite and the step moves by |h xi| = {moved:.3g}; an energy "
            "or a force may be singular there, or the motion unstable at this step size."
        )
    else:
        what = (
            f"did not converge: relative residual {float(info.residual):.1e} after "
            f"{int(info.iterations)} iterations"
        )
        why = (
            f"The step moves by |h xi| = {moved:.3g} on the group; above about {LONG:g} a step is "
            "too long to solve for."
            if not moved <= LONG / 2
            else f"The step is short (|h xi| = {moved:.3g}), so the energy may be singular here, "
            "or not a regular function of velocity or momentum."
        )
        why = f"{why} {diagnose(system, integrator, at.state, h)}"
    kept = "the run up to there is in `.trajectory`."
    if issubclass(error, ContactLost):
        return error, f"{where} {what}. {why} {kept.capitalize()}"
    return error, f"{where} {what}. {why} Try h = {shorter:.2g} (it is {h:.2g} now); {kept}"
