"""The claims of an integrator, as one function: its order and every word of `preserves`."""

from collections.abc import Callable
from typing import NamedTuple

from retrax.errors import CheckFailed
from retrax.integrators.base import AbstractIntegrator
from retrax.mechanics.state import State
from retrax.mechanics.system import AbstractGroupSystem
from retrax.testing import measurements as measured
from retrax.testing.derivatives import derivative_error
from retrax.testing.measurements import Bench
from retrax.testing.problems import asymmetric_top

ALLOWED_ORDER = 0.05
ALLOWED_SYMPLECTIC = 1e-12
ALLOWED_DERIVATIVE = 1e-9
# Of the energy errors of a symplectic method at most this part may be a steady drift.
ALLOWED_DRIFT = 0.1


class Claim(NamedTuple):
    """How a word of `preserves` is measured, what is allowed, and how to say that it failed."""

    measure: Callable[[AbstractIntegrator, Bench], float]
    allowed: float
    failure: str


CLAIMS: dict[str, Claim] = {
    "group": Claim(
        measured.group_defect,
        measured.roundoff(measured.COARSE_STEPS),
        f"leaves the group in {measured.COARSE_STEPS} steps of h = {measured.COARSE}",
    ),
    "momentum": Claim(
        measured.momentum_error,
        measured.roundoff(measured.COARSE_STEPS),
        f"changes a conserved momentum in {measured.COARSE_STEPS} steps of h = {measured.COARSE}",
    ),
    "symplectic": Claim(
        measured.symplectic_defect,
        ALLOWED_SYMPLECTIC,
        f"changes the symplectic form in one step of h = {measured.ONE_STEP}",
    ),
    "symmetric": Claim(
        measured.symmetry_defect,
        10 * measured.roundoff(2 * measured.BACK_STEPS),
        f"does not come back after {measured.BACK_STEPS} steps of h = {measured.COARSE} and back",
    ),
}
# These speak of systems without external force: a force does work and exerts torque.
WITHOUT_FORCE = frozenset({"momentum", "symplectic"})


def check_integrator(
    integrator: AbstractIntegrator,
    problem: tuple[AbstractGroupSystem, State] | None = None,
    *,
    unit: float = 1.0,
    derivatives: bool = True,
) -> dict[str, float]:
    r"""Check the order of an integrator and every word of its `preserves`, each by a measurement.

    - order: from successive differences, $|p - \text{order}| < 0.05$: better than claimed fails too;
    - group, momentum: round-off over 2,000 steps of $h = 0.1$;
    - symplectic: the Jacobian of one step of $h = 0.2$, to $10^{-12}$, and an energy error without
        drift over 20,000 steps of $h = 0.05$;
    - symmetric: 100 steps of $h = 0.1$ and back, to round-off;
    - derivatives of a run of 20 steps, forward and reverse, against finite differences.

    **Arguments:**

    - `problem`: a system and a state; the asymmetric heavy top of `retrax.testing.problems` if not
        given. Choose one without accidental symmetry: on an easy problem much comes out true.
    - `unit`: the time, in seconds, in which the problem moves by something of order one. All step
        sizes above are multiples of it.
    - `derivatives`: whether to check these too.

    **Returns:** what was measured, by name.

    **Raises:** `CheckFailed` at the first claim that does not hold, with the number measured and
    the number allowed; `StepFailed` where a run cannot be finished.
    """
    on = measured.bench(*(asymmetric_top() if problem is None else problem), unit)
    integrator.check(on.system)
    unknown = sorted(integrator.preserves - CLAIMS.keys())
    if unknown:
        raise CheckFailed(f"{integrator!r} claims {unknown[0]!r}, which nothing measures.")
    found: dict[str, float] = {"order": measured.order(integrator, on).order}
    _require(order_failure(integrator, on, found["order"]))
    for word in sorted(integrator.preserves & applicable(on)):
        found[word] = CLAIMS[word].measure(integrator, on)
        _require(claim_failure(integrator, on, word, found[word]))
        if word == "symplectic":
            energy = measured.energy(integrator, on)
            found["energy error"], found["energy drift"] = energy
            _require(drift_failure(integrator, on, energy))
    if derivatives:
        h = measured.LONG * unit
        found["derivatives"] = derivative_error(integrator, on.system, on.state, h=h)
        _require(_derivative_failure(integrator, on, found["derivatives"]))
    return found


def applicable(on: Bench) -> frozenset[str]:
    """The words that can be measured on a system."""
    words = frozenset(CLAIMS)
    if on.system.force is not None:
        words -= WITHOUT_FORCE
    return words if len(on.symmetries.space) + len(on.symmetries.body) else words - {"momentum"}


def order_failure(integrator: AbstractIntegrator, on: Bench, order: float) -> str | None:
    claimed = integrator.order_on(on.system)
    if abs(order - claimed) < ALLOWED_ORDER:
        return None
    return (
        f"{integrator!r} on the {on.system.name} has order {order:.3f}, but claims {claimed} "
        f"(allowed difference {ALLOWED_ORDER})."
    )


def claim_failure(integrator: AbstractIntegrator, on: Bench, word: str, value: float) -> str | None:
    _, allowed, failure = CLAIMS[word]
    if value <= allowed:
        return None
    return (
        f"{integrator!r} on the {on.system.name} claims to be or preserve '{word}', but {failure}: "
        f"measured {value:.1e}, allowed {allowed:.1e}."
    )


def drift_failure(integrator: AbstractIntegrator, on: Bench, energy: measured.Energy) -> str | None:
    rounding = on.size * measured.roundoff(measured.LONG_STEPS)
    allowed = max(ALLOWED_DRIFT * energy.amplitude, rounding)
    if abs(energy.drift) <= allowed:
        return None
    return (
        f"{integrator!r} on the {on.system.name} claims to be 'symplectic', but its energy drifts "
        f"by {energy.drift:.1e} in {measured.LONG_STEPS} steps of h = {measured.LONG}, of an error "
        f"of at most {energy.amplitude:.1e} (allowed {allowed:.1e})."
    )


def _derivative_failure(integrator: AbstractIntegrator, on: Bench, error: float) -> str | None:
    if error <= ALLOWED_DERIVATIVE:
        return None
    return (
        f"{integrator!r} on the {on.system.name}: the derivative of a run differs from finite "
        f"differences by {error:.1e} (allowed {ALLOWED_DERIVATIVE:.0e})."
    )


def _require(failure: str | None) -> None:
    if failure is not None:
        raise CheckFailed(failure)
