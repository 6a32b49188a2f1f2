r"""What can be measured on the states of a run: observations, drifts, aliasing.

Rotations by $\alpha$ and $\alpha + 2\pi$ are one attitude, so saved states cannot tell how often a
body went round in a step with $|h\xi| > \pi$. A method of low order takes such a step wrongly
without noticing: it may keep all its invariants to round-off. `aliasing` finds such steps.
"""

import math
from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PyTree

from retrax.errors import BadInput
from retrax.groups.base import AbstractLieGroup
from retrax.integrators.base import AbstractIntegrator
from retrax.integrators.driven import Driven
from retrax.mechanics.remembered import RememberedSystem
from retrax.mechanics.state import State
from retrax.mechanics.symmetry import Symmetries
from retrax.mechanics.system import AbstractGroupSystem
from retrax.numerics.checks import host_float64, is_traced, outputs, quote, require_finite
from retrax.numerics.evaluate import Evaluated, evaluate

if TYPE_CHECKING:
    from retrax.trajectory.trajectory import Trajectory

# States are measured in blocks of this many, or of this many numbers, so that a long run needs no
# more memory than its own.
_BLOCK, _NUMBERS = 8192, 2**18
# Below this increment no method turns a body by pi: solved in Cayley's coordinates u a step turns
# by h xi = (1 + u^2 / 4) u about a fixed axis, which is 2.93 here.
SHORT = 1.7

# Arrays of NumPy, as an editor knows them; of JAX while it traces a run.
if TYPE_CHECKING:
    Values = np.ndarray
else:
    Values = np.ndarray | Array
Series = Float[np.ndarray, " time"]


class Observations(NamedTuple):
    """Body velocity, invariants by name, and distance from the group, along time.

    Under a constraint also the multipliers and the reaction they make, in continuous time at each
    state, and by how much the velocity breaks the constraint; empty and zero without one. What
    else the system can measure is in `observables`, by name. `energy` is there for every system
    that has one; `power` is its rate, and `None` where the energy is an invariant. In a driven run
    `inputs` are those that act from each state on, and `rates` the velocities on which they do
    work; `None` in others.
    """

    velocity: Values
    invariants: dict[str, Values]
    defect: Values
    multipliers: Values
    reaction: Values
    violation: Values
    observables: dict[str, Values]
    energy: Values | None = None
    power: Values | None = None
    inputs: Values | None = None
    rates: Values | None = None


def observe(
    system: AbstractGroupSystem,
    states: State,
    integrator: AbstractIntegrator | None = None,
    h: float | Array | None = None,
    owner: np.ndarray | None = None,
) -> Observations:
    """Measure everything that `Observations` holds at every state.

    With `integrator` and `h` the integrals of the steps themselves join the invariants. With
    `owner` the arrays of `system` have a first axis, and it says which row is that of each state;
    symmetries are then those of the first.
    """
    one = system if owner is None else jax.tree.map(lambda x: np.asarray(x)[0], system)
    method = integrator if owner is None else None
    found = method.symmetries(one) if isinstance(method, Driven) else one.symmetries()
    rows_of = (tuple(map(tuple, generators.tolist())) for generators in found)
    # Members with systems of their own may differ in what depends on their numbers.
    kept = () if integrator is None or owner is not None else integrator.integrals_kept(one)
    look = _look(*rows_of, owner is not None, kept)
    size = None if h is None else np.float64(h)
    if owner is None:
        return Observations(
            *in_blocks(look, make_picker(states), len(states.t), system, integrator, size)
        )

    def pairs(rows: np.ndarray) -> tuple[AbstractGroupSystem, State]:
        return make_picker(system)(owner[rows]), make_picker(states)(rows)

    return Observations(*in_blocks(look, pairs, len(states.t), integrator, size))


def along(function: Callable[[State], object], states: State) -> Values:
    """Return the values of a function of the state, written in JAX, at every state."""
    one = jax.tree.map(lambda x: jax.ShapeDtypeStruct(np.shape(x)[1:], x.dtype), states)
    if not jax.tree.leaves(outputs("function", function, (one,))):
        raise BadInput(f"function = {quote(function)} of run.along(...) returns no numbers.")

    def each(states: State) -> Any:
        return jax.vmap(function)(states)

    if is_traced(states):
        return evaluate(each, states)
    return in_blocks(Evaluated(each), make_picker(states), len(states.t))


# Picks rows of arrays along their first axis.
Pick = Callable[[np.ndarray], PyTree]


def make_picker(arrays: PyTree) -> Pick:
    """Make the function that picks rows, the numbers of all rows side by side.

    So they lie in NumPy's fastest loops.
    """

    def rows_of(x: Array | np.ndarray, rows: np.ndarray) -> np.ndarray:
        return np.moveaxis(np.ascontiguousarray(np.moveaxis(np.asarray(x)[rows], 0, -1)), -1, 0)

    return lambda rows: jax.tree.map(lambda x: rows_of(x, rows), arrays)


def in_blocks(look: Evaluated, pick: Pick, count: int, *shared: PyTree) -> PyTree:
    """Look at `count` rows, block by block."""
    numbers = sum(x.size for x in jax.tree.leaves(pick(np.zeros(1, int))))
    block = min(_BLOCK, count, max(_NUMBERS // max(numbers, 1), 16))
    parts, prepared = [], None
    for first in range(0, count, block):
        # The last block is filled up by repeating the last state: one program for all.
        here = pick(np.minimum(np.arange(first, first + block), count - 1))
        prepared = look.prepare(here, *shared) if prepared is None else prepared
        parts.append(jax.tree.map(np.asarray, prepared(here, *shared)))
    return jax.tree.map(lambda *xs: np.concatenate(xs)[:count], *parts)


def observe_remembered(system: RememberedSystem, states: State) -> Observations:
    """Measure what needs no function of the system: the velocity where it can be had, the defect.

    Constraints are functions too, so there is nothing to tell about them.
    """
    momenta = np.asarray(states.momentum)
    space = system.configuration_space
    defect = along(lambda state: space.defect(state.g), states)
    nothing = np.zeros((len(momenta), 0))
    return Observations(
        velocity=system.velocities(momenta),
        invariants={},
        defect=defect,
        multipliers=nothing,
        reaction=np.full_like(momenta, np.nan),
        violation=np.full(len(momenta), np.nan),
        observables={},
    )


def observe_driven(system: AbstractGroupSystem, states: State, inputs: np.ndarray) -> Observations:
    """Measure a driven run whose controller is not known: nothing is called an invariant."""
    seen = observe(system, states)
    return seen._replace(
        invariants={},
        multipliers=np.full_like(seen.multipliers, np.nan),
        reaction=np.full_like(seen.reaction, np.nan),
        power=None,
        inputs=inputs,
    )


def observe_traced(
    system: AbstractGroupSystem,
    states: State,
    integrator: AbstractIntegrator | None = None,
    h: float | Array | None = None,
    symmetries: Symmetries | None = None,
) -> Observations:
    """Measure states that JAX is tracing, in arrays of JAX.

    Without `symmetries` there are no invariants: to find symmetries takes numbers, which `jax.jit`
    hides.
    """
    look = _looking(symmetries)
    size = None if h is None else jnp.asarray(h, jnp.float64)
    seen = jax.vmap(lambda state: look(system, state, integrator, size))(
        jax.tree.map(jnp.asarray, states)
    )
    return Observations(*seen)


@lru_cache(maxsize=256)
def _look(space: tuple, body: tuple, motions: tuple, each: bool, kept: tuple) -> Evaluated:
    """Make the function that looks at states.

    Depends on the symmetries, on whether each state comes with a system of its own, and on the
    integrals of the steps that the numbers of the system bring.
    """
    look = _looking(Symmetries(np.array(space), np.array(body), np.array(motions)), kept)

    def looks(states, system, integrator, size):
        return jax.vmap(lambda state: look(system, state, integrator, size))(states)

    def looks_at_pairs(pairs, integrator, size):
        return jax.vmap(lambda pair: look(*pair, integrator, size))(pairs)

    return Evaluated(looks_at_pairs if each else looks)


def _looking(symmetries: Symmetries | None, kept: tuple = ()) -> Callable:
    """Make the function that looks at one state; without symmetries it leaves invariants out."""

    def look(system, state, integrator, size):
        exact = {} if integrator is None else integrator.exact_integrals(system, state, size, kept)
        xi = system.velocity_at(state)
        energy = system.energy(state, xi) if system.has_energy else None
        invariants, inputs, rates = {}, None, None
        if isinstance(integrator, Driven):
            inputs = integrator.inputs(system, state, size)
            rates = integrator.actuators.rates(state.g, xi)
            system = integrator.acting(system, state, size)
            if symmetries is not None:  # what else a system keeps, inputs may break
                invariants = system.momenta_of(symmetries, state)
        elif symmetries is not None:
            invariants = system.invariants(state, symmetries, energy) | exact
        return (
            xi,
            invariants,
            system.configuration_space.defect(state.g),
            system.multipliers(state),
            system.reaction(state),
            system.constraint_violation(state),
            system.observables(state),
            energy,
            None if system.conservative else system.power(state),
            inputs,
            rates,
        )

    return look


def deviations(values: np.ndarray) -> np.ndarray:
    """Return the values less the first one."""
    values = np.asarray(values)
    return values - values[0]


def drift(t: np.ndarray, values: np.ndarray) -> float:
    r"""Return the slope of the least-squares line through the values, per second.

    $$ \frac{\sum_k (t_k - \bar t)(x_k - \bar x)}{\sum_k (t_k - \bar t)^2} $$

    A bounded oscillation has none in the long run; a secular error has nothing else.
    """
    t, x = host_float64("t", t), host_float64("values", values)
    if t.ndim != 1 or t.shape != x.shape:
        raise BadInput(
            f"t and values have shapes {t.shape} and {x.shape}, but must be two vectors of one "
            "length."
        )
    require_finite("t", t)
    require_finite("values", x)
    if len(t) < 2:
        return 0.0
    t, x = t - t.mean(), deviations(x)
    squares = float(t @ t)
    if not 0 < squares < math.inf:
        raise BadInput(
            f"t goes from {t.min():.3g} s to {t.max():.3g} s about its mean: a slope needs times "
            "that differ, and whose squares are numbers."
        )
    with np.errstate(all="ignore"):
        slope = float(t @ (x - x.mean()) / squares)
    if not math.isfinite(slope):
        raise BadInput(f"values differ by up to {np.ptp(x):g}, too much for a slope in float64.")
    return slope


def turns(
    group: AbstractLieGroup, increment: np.ndarray, h: float, velocity: Callable[[], object]
) -> np.ndarray:
    """Return how far a body turns in a step near each saved state: the largest angle of $h\\xi$.

    The `increment` of a method may be a coordinate of its retraction and less than that; so the
    velocities of the saved states, which `velocity` returns, decide where an increment is long
    enough. Zero on a group without angles among its coordinates.
    """
    angles = group.angles()
    if not angles.any() or not np.nanmax(increment, initial=0.0) > SHORT:
        return np.zeros(np.shape(increment))
    turn = np.abs(h) * np.max(np.abs(np.asarray(velocity())[..., angles]), axis=-1)
    return np.fmax(turn, increment) if angles.all() else turn


def aliasing(run: "Trajectory") -> str | None:
    """Warn, in one sentence, of a step of more than half a turn; `None` without one."""
    if run.system is None:
        return None
    turn = turns(
        run.system.group,
        np.asarray(run.info.increment),
        run.h,
        lambda: run.velocity,
    )
    if not np.nanmax(turn) > math.pi:
        return None
    worst = int(np.nanargmax(turn))
    return (
        f"a step near t = {float(run.t[worst]):.6g} s turned the {run.system.name} by |h xi| = "
        f"{turn[worst]:.4g} rad: beyond pi the states cannot tell how often it went round, and "
        f"its errors do not show in the invariants; use a step below "
        f"{abs(run.h) * math.pi / turn[worst]:.2g} s."
    )
