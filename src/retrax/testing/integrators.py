"""The claims of an integrator, measured: for the integrators of retrax and for yours."""

from collections.abc import Callable

from retrax.errors import CheckFailed
from retrax.integrators.base import VOCABULARY, AbstractIntegrator, as_integrator
from retrax.mechanics.holonomic import AbstractHolonomic
from retrax.numerics.checks import require_instance
from retrax.testing import measurements
from retrax.testing.constrained import claims_problem
from retrax.testing.held import held_problem
from retrax.testing.measurements import COARSE_STEPS, Problem, roundoff

# A claimed order and the slope of the last halving may differ by this much.
ORDER_TOLERANCE = 0.05
SYMPLECTIC_ALLOWED = 5e-15
# There and back is `BACK_STEPS` coarse steps each way; the motion spreads the rounding errors.
SYMMETRY_ALLOWED = 3e-13
# In ten times as many steps the largest energy error may grow by this factor. The straight line
# through the errors would not do: a bounded error that wanders leans one way or the other by
# chance, in a chaotic motion by up to 0.3 of its size, and differently on every processor.
GROWTH_ALLOWED, LONGER = 2.0, 10
# Claims about systems without external force: a force does work and exerts a torque.
WITHOUT_FORCE = frozenset({"momentum", "spatial momentum", "symplectic", "energy"})


def check_integrator(
    integrator: AbstractIntegrator | str, problem: Problem | None = None
) -> dict[str, float]:
    r"""Measure the order of `integrator` and everything that it claims to preserve.

    Laws are measured at a coarse step, where one that holds only as $h \to 0$ fails.

    **Arguments:** `problem`: a `retrax.testing.Problem(system, state, unit)`; the unit is the time
    in which the motion is of order one. Left out, it is an asymmetric heavy top, or for an
    integrator that keeps constraints Suslov's problem; one that keeps positions has all of its
    claims measured on a body that is held by its hook as well. Choose one without accidental
    symmetry: on an easy problem many false claims come out true.

    **Returns:** the numbers measured, by name: `order`, and for each word of `preserves` its
    defect; for `symplectic` also the `energy` error of a long run and its `drift`.

    **Raises:** `CheckFailed`, with a sentence that names the claim, the measurement and the bound.
    """
    integrator = as_integrator(integrator)
    if problem is not None:
        require_instance("problem", problem, Problem, "a rx.testing.Problem")
    if problem is None and "positions" in integrator.preserves:
        held = check_integrator(integrator, held_problem())["positions"]
        return check_integrator(integrator, claims_problem(integrator)[1]) | {"positions": held}
    problem = claims_problem(integrator)[1] if problem is None else problem
    unknown = integrator.preserves - set(VOCABULARY)
    if unknown:
        raise CheckFailed(
            f"{integrator!r} claims to preserve {sorted(unknown)}, which nothing measures; "
            f"the words are {sorted(VOCABULARY)}."
        )
    measured = {"order": check_order(integrator, problem)}
    forced = problem.system.force is not None
    held = isinstance(problem.system.constraint, AbstractHolonomic)
    skipped = (WITHOUT_FORCE if forced else set()) | (set() if held else {"positions"})
    for word in sorted(integrator.preserves - skipped):
        measured.update(_MEASURE[word](integrator, problem))
    return measured


def check_order(integrator: AbstractIntegrator, problem: Problem) -> float:
    """Measure the order on a problem; raise `CheckFailed` unless it is the order claimed."""
    claimed = integrator.order_on(problem.system)
    measured = measurements.order(integrator, problem).order
    _require(
        abs(measured - claimed) < ORDER_TOLERANCE,
        f"{integrator!r} claims order {claimed} on the {problem.system.name}, but the measured "
        f"order is {measured:.3f} (the two may differ by {ORDER_TOLERANCE}).",
    )
    return measured


def _require(holds: bool, sentence: str) -> None:
    if not holds:
        raise CheckFailed(sentence)


def _limit(integrator: AbstractIntegrator, what: str, measured: float, allowed: float) -> None:
    _require(
        measured <= allowed,
        f"{integrator!r} claims to keep {what}: the defect is {measured:.1e}, "
        f"allowed {allowed:.1e}.",
    )


def _group(integrator: AbstractIntegrator, problem: Problem) -> dict[str, float]:
    defect = measurements.conservation(integrator, problem).group
    _limit(integrator, "the group", defect, roundoff(COARSE_STEPS))
    return {"group": defect}


def _momentum(integrator: AbstractIntegrator, problem: Problem) -> dict[str, float]:
    error = measurements.conservation(integrator, problem).momentum
    _limit(integrator, "the momenta of the symmetries", error, roundoff(COARSE_STEPS))
    return {"momentum": error}


def _spatial_momentum(integrator: AbstractIntegrator, problem: Problem) -> dict[str, float]:
    error = measurements.conservation(integrator, problem).spatial
    _limit(integrator, "the momenta of the symmetries of space", error, roundoff(COARSE_STEPS))
    return {"momentum": error}


def _constraint(integrator: AbstractIntegrator, problem: Problem) -> dict[str, float]:
    violation = measurements.constraint_errors(integrator, problem).constraint
    _limit(integrator, "the constraint", violation, roundoff(COARSE_STEPS))
    return {"constraint": violation}


def _positions(integrator: AbstractIntegrator, problem: Problem) -> dict[str, float]:
    violation = measurements.constraint_errors(integrator, problem).constraint
    _limit(integrator, "the constraint on positions", violation, roundoff(COARSE_STEPS))
    return {"positions": violation}


def _energy(integrator: AbstractIntegrator, problem: Problem) -> dict[str, float]:
    error = measurements.constraint_errors(integrator, problem).energy
    _limit(integrator, "the energy", error, roundoff(COARSE_STEPS))
    return {"energy": error}


def _symmetric(integrator: AbstractIntegrator, problem: Problem) -> dict[str, float]:
    defect = measurements.symmetry_defect(integrator, problem)
    _limit(integrator, "the symmetry in time", defect, SYMMETRY_ALLOWED)
    return {"symmetric": defect}


def _symplectic(integrator: AbstractIntegrator, problem: Problem) -> dict[str, float]:
    defect = measurements.symplectic_defect(integrator, problem)
    _limit(integrator, "the symplectic form", defect, SYMPLECTIC_ALLOWED)
    amplitude, drift = measurements.energy(integrator, problem)
    steps = LONGER * measurements.LONG_STEPS
    grown = measurements.energy(integrator, problem, steps).amplitude
    _require(
        grown < GROWTH_ALLOWED * amplitude + roundoff(steps),
        f"{integrator!r} claims to be symplectic, but its energy error grows from {amplitude:.1e} "
        f"in {measurements.LONG_STEPS} steps to {grown:.1e} in {steps}.",
    )
    return {"symplectic": defect, "energy": amplitude, "drift": drift}


_MEASURE: dict[str, Callable[[AbstractIntegrator, Problem], dict[str, float]]] = {
    "constraint": _constraint,
    "energy": _energy,
    "group": _group,
    "momentum": _momentum,
    "positions": _positions,
    "spatial momentum": _spatial_momentum,
    "symmetric": _symmetric,
    "symplectic": _symplectic,
}
