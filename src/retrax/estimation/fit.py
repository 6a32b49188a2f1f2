"""Parameters and the start of a motion from measurements."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import PyTree

from retrax.cases.names import READY, default_integrator, fits
from retrax.errors import BadInput, warn
from retrax.estimation.first_state import first_state
from retrax.estimation.grid import grid
from retrax.estimation.least_squares import Found, levenberg_marquardt
from retrax.estimation.measurements import Measurements, as_measurements
from retrax.estimation.plausibility import require_units
from retrax.estimation.problem import Along, Problem
from retrax.estimation.quasi_newton import limited_memory_bfgs
from retrax.estimation.result import Fit, misfit
from retrax.estimation.sensors import Sensor, bind, require_measured
from retrax.estimation.unknowns import (
    Point,
    Unknowns,
    make_plant,
    parameters,
    require_any_start,
    unknowns,
    without_inputs,
)
from retrax.integrators.base import AbstractIntegrator, as_integrator, require_fit
from retrax.mechanics.controls import AbstractControl
from retrax.mechanics.sampled import Sampled
from retrax.mechanics.signal import Signal
from retrax.mechanics.state import State, as_state
from retrax.mechanics.system import AbstractGroupSystem
from retrax.numerics.checks import (
    reason,
    require_choice,
    require_flag,
    require_number,
    require_whole,
)
from retrax.numerics.evaluate import evaluate
from retrax.numerics.meant import explain_keywords
from retrax.run.checks import require_state
from retrax.run.drive import Plant, unwrap

METHODS = ("auto", "levenberg-marquardt", "l-bfgs")
# Jacobians take a run for each unknown: beyond so many the adjoint is quicker.
MOST_FORWARD = 32
# More steps than this take minutes, at about a microsecond each, and a fit takes them many times.
_MANY = 10**8
# The first guess may lose its phase in a long record, so a fit begins with parts of it.
_PARTS = (1 / 8, 1 / 4, 1 / 2)
_LOOKS_AT_PARTS = 12
# A step turns or moves by so much at the most, to begin with.
_MOVE = 0.1
# The error of the steps may move no unknown by more than this part of its standard error.
_ALLOWED_SHIFT = 0.1
_HALVINGS = 6


@explain_keywords
def fit(
    system_of: Callable[[Any], Plant],
    data: Measurements | Sequence[Measurements],
    start: PyTree,
    *,
    state: State | Callable[[AbstractGroupSystem], State] | None = None,
    free_state: bool = True,
    integrator: AbstractIntegrator | str | None = None,
    h: float | None = None,
    control: AbstractControl | None = None,
    method: str = "auto",
    most: int = 200,
    tolerance: float = 1e-6,
) -> Fit:
    r"""Find the parameters with which a system moves as it was measured to move.

    With $g_k, z_k$ what the run has at the times of the measurements, the sum of squares

    $$ \chi^2 = \sum_k \bigl|\log(\bar g_k^{-1}g_k)/\sigma\bigr|^2
              + \sum_k \bigl|(z_k - \bar z_k)/\sigma\bigr|^2                              \tag{1} $$

    is made as small as possible, by the method of Levenberg and Marquardt with derivatives forward
    in time, or, with more than 32 unknowns, by L-BFGS with the adjoint. The state at the start is
    on the group and is changed by its exponential map.

    **Arguments:**

    - `system_of`: a function that builds the system of some parameters.
    - `data`: `Measurements`, or a list of these, one for each sensor.
    - `start`: the first guess of the parameters, nested as `system_of` takes them: a dictionary of
        numbers and lists, an array, or an `equinox` module.
    - `state`: the state at the start, or a function of the system that returns it; without it the
        first guess is read off the measurements.
    - `free_state`: whether the state at the start is unknown too, and `state` only a first guess.
        A `State` that is not free keeps its momentum; a function decides for itself. On spheres
        and under constraints on positions the start is not free: give it, with `False` here.
    - `integrator`: how a step is taken, by default `RKMK("dopri5")` where it can step the system.
    - `h`: the longest step. By default steps are halved until their error moves nothing by more
        than a tenth of its standard error. Measurements need not lie on steps.
    - `control`: what drove the inputs, where `system_of` makes an `Actuated` system: a `Signal` of
        what was recorded, or a `Feedback`.
    - `method`: `"levenberg-marquardt"`, `"l-bfgs"`, or `"auto"`.
    - `most`: how often the residuals are looked at, at most; 2 or more.
    - `tolerance`: the search ends where a change is expected to lower (1) by less than this, with
        noise that was given or, without it, with the noise of the residuals: the default leaves
        every parameter within a thousandth of its standard error.

    A warning says so where the search did not converge, a combination of parameters is not
    determined, or a step that was given is too long.

    **Raises:** `BadInput` where measurements, parameters and system do not fit together, or where
    the motion of the first guess fails.

    References: [More1978].
    """
    sensors = as_measurements(data)
    p, nesting = parameters(start)
    plant = make_plant(system_of, nesting.nest(p))
    _require_recorded(control)
    system = without_inputs(plant)
    free = require_flag("free_state", free_state)
    if free:
        require_any_start(system)
    given = _given_state(state, system, free)
    for one in sensors:
        require_measured(one, system)
    begin = first_state(system, sensors) if given is None else given
    require_state(system, begin)
    bound_to = tuple(bind(one, system, begin) for one in sensors)
    require_units(sensors, system, given)
    first = min(float(one.t[0]) for one in sensors)
    if float(begin.t) > first + 1e-12 * max(1.0, abs(first)):
        raise BadInput(
            f"the state is that at t = {float(begin.t):g} s, but measurements begin at "
            f"{first:g} s: give a state before them, system.state(..., t={first:g})."
        )
    chosen, point = unknowns(system_of, start, begin, free, velocity_known=callable(state))
    stepper = _method(system, integrator)
    unwrap(plant, stepper, control)  # it says what does not fit
    longest = _longest(system, begin, sensors) if h is None else require_number("h", h, "> 0", "s")
    task = _Task(
        chosen,
        stepper,
        control,
        sensors,
        bound_to,
        float(begin.t),
        _search(method, chosen.size(point)),
        require_whole("most", most, 2),
        require_number("tolerance", tolerance, "> 0"),
    )
    return _refine(task, point, longest, fixed=h is not None)


class _Task(NamedTuple):
    """What is fitted, and how: all but the step."""

    unknowns: Unknowns
    integrator: AbstractIntegrator
    control: AbstractControl | None
    data: tuple[Measurements, ...]
    sensors: tuple[Sensor, ...]
    begin: float
    search: str
    most: int
    tolerance: float

    def enough(self, size: float) -> float:
        """Return by how little a sum of squares may still be lowered."""
        known = self.data[0].noise is not None
        residuals = sum(x.noise.size * len(y) for x, y in zip(self.sensors, self.data, strict=True))
        return self.tolerance * (1.0 if known else size / residuals)

    def _jumps(self, end: float) -> list[np.ndarray]:
        """Return the times at which inputs jump, where steps should end as well."""
        if not isinstance(self.control, Signal) or not self.control.holds:
            return []
        t = np.asarray(self.control.t)
        inside = t[(t > self.begin) & (t < end)]
        return [inside] if len(inside) else []

    def problem(self, longest: float) -> Problem:
        times = [one.t for one in self.data]
        steps = grid(self.begin, [*times, *self._jumps(max(t[-1] for t in times))], longest)
        if steps.steps > _MANY:
            warn(
                f"a fit with h = {steps.h:g} s takes {steps.steps:.3g} steps each time that it "
                f"computes the motion, {steps.steps * 1e-6 / 3600:.2g} hours if one takes a "
                "microsecond: take h larger, or measurements of a shorter time."
            )
        return Problem(
            self.unknowns,
            self.integrator,
            self.control,
            tuple(
                Along(sensor, one.t - self.begin, rows, rest, bool(np.any(rest > 0)))
                for one, sensor, rows, rest in zip(
                    self.data, self.sensors, steps.rows, steps.rest, strict=False
                )
            ),
            steps.h,
            steps.steps,
            steps.save_every,
        )


def _refine(task: _Task, point: Point, longest: float, fixed: bool) -> Fit:
    """Fit, and shorten the steps until their error does not show."""
    point, looks = _by_parts(task.problem(longest), task, point)
    for _ in range(_HALVINGS):
        problem = task.problem(longest)
        found = _search_from(problem, task, point, np.inf, task.most, task.enough)
        looks += found.looks
        result = Fit(problem, found._replace(looks=looks), task.data)
        if task.search == "l-bfgs":
            return _warn(result, [])
        shift = _shift(task.problem(problem.h / 2), problem, found.point, result)
        if shift <= _ALLOWED_SHIFT:
            return _warn(result, [])
        if fixed:
            break
        point, longest = found.point, problem.h / 2
    return _warn(
        result,
        [
            f"steps of h = {problem.h:.3g} s are too long: half of it would move an unknown by "
            f"{shift:.2g} standard errors; give a smaller h, or a method of higher order"
        ],
    )


def _warn(result: Fit, doubts: list[str]) -> Fit:
    """Warn of what is doubtful about a result, and note it; run it while functions do as now."""
    _ = result.run
    if not result.converged:
        doubts = ["the search did not converge: start nearer to the truth, or raise most", *doubts]
    if len(result.names) <= MOST_FORWARD:
        doubts = [*doubts, *result.identifiability.undetermined]
    if (strange := misfit(result)) is not None:
        doubts = [*doubts, strange]
    for doubt in doubts:
        warn(f"{doubt}.")
    result.notes += tuple(doubts)
    return result


def _by_parts(problem: Problem, task: _Task, point: Point) -> tuple[Point, int]:
    """Follow the motion through growing parts of the record.

    A short part may determine so little that its noise drives the search to the edge of what can
    be a system, from where the whole record does not lead back: such a part counts nothing.
    """
    span = max(float(x.times[-1]) for x in problem.sensors)
    looks = 0
    for part in _PARTS:
        until = part * span
        rows = sum(int(np.sum(x.times <= until)) for x in problem.sensors)
        if rows < 2 * problem.unknowns.size(point):
            continue
        found = _search_from(problem, task, point, until, _LOOKS_AT_PARTS, lambda size: 1e-4 * size)
        point, looks = point if found.edge else found.point, looks + found.looks
    return point, looks


def _search_from(
    problem: Problem,
    task: _Task,
    point: Point,
    until: float,
    most: int,
    enough: Callable[[float], float],
) -> Found:
    if task.search == "l-bfgs":
        sloped = partial(problem.differentiate, until=until)
        found = limited_memory_bfgs(sloped, problem.move, point, most, enough)
    else:
        linear = partial(problem.linear, until=until)
        found = levenberg_marquardt(linear, problem.move, point, most, enough)
    if found.looks == 1 and not found.converged:
        raise BadInput(
            "the motion of the first guess fails before the last measurement, or its derivatives "
            "are not finite: start nearer to the truth, or give a smaller h."
        )
    return found


def _shift(finer: Problem, problem: Problem, point: Point, result: Fit) -> float:
    """Return by how many standard errors half the step would move the unknowns, at most."""
    there, here = finer.residuals(point), problem.residuals(point)
    known = result.identifiability
    kept = known.relative_errors < 1.0
    scaled = result.jacobian * known.scales
    moves = known.combinations[kept] @ (scaled.T @ (there - here))
    shift = moves / known.singular_values[kept] ** 2
    errors = known.relative_errors[kept]
    with np.errstate(invalid="ignore", divide="ignore"):
        ratio = np.abs(shift) / errors
    return float(np.nanmax(ratio, initial=0.0))


def _given_state(state: object, system: AbstractGroupSystem, free: bool) -> State | None:
    if state is None:
        if not free:
            raise BadInput("free_state=False needs the state: give state=...")
        return None
    made = state
    if callable(state) and not isinstance(state, State):
        try:
            made = state(system)
        except BadInput:
            raise
        except Exception as cause:
            raise BadInput(f"state(system) cannot be made: {reason(cause)}.") from cause
    return as_state(made)


def _require_recorded(control: object) -> None:
    """Reject a controller that samples: between measurements nobody knows what it did."""
    if isinstance(control, Sampled):
        raise BadInput(
            f"control = {control!r}: a fit takes the inputs that were recorded, rx.Signal(t, u), "
            "or a law that acts within each step, rx.Feedback(law)."
        )


def _method(
    system: AbstractGroupSystem, integrator: AbstractIntegrator | str | None
) -> AbstractIntegrator:
    if integrator is not None:
        chosen = as_integrator(integrator)
    elif system.constraint is None and fits(system, READY["rkmk-5"]):
        chosen = READY["rkmk-5"]
    else:
        chosen = READY[default_integrator(system)]
    require_fit(system, chosen)
    return chosen


def _longest(system: AbstractGroupSystem, begin: State, data: Sequence[Measurements]) -> float:
    """Return a step that moves little on the group, and is no longer than the usual sampling."""
    field = evaluate(lambda s, x: s.vector_field(x.g, x.momentum, x.t), system, begin)
    speed = float(np.max(np.abs(np.asarray(field.velocity)), initial=0.0))
    span = max(float(one.t[-1]) for one in data) - float(begin.t)
    return min(_MOVE / speed if speed > 0 else span, span / 20)


def _search(method: str, size: int) -> str:
    require_choice("method", method, METHODS)
    if method != "auto":
        return method
    return "levenberg-marquardt" if size <= MOST_FORWARD else "l-bfgs"
