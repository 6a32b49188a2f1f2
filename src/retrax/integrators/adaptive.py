"""Step sizes chosen by the error, for accuracy rather than for long times."""

from functools import partial
from typing import ClassVar, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Bool, Float, Int

from retrax.errors import BadInput
from retrax.integrators.base import (
    AbstractIntegrator,
    Refusal,
    StepInfo,
    as_integrator,
    explicit_step,
    watch,
    worse,
)
from retrax.integrators.rkmk import RKMK, momentum_error
from retrax.integrators.taylor import Taylor
from retrax.mechanics.state import State
from retrax.mechanics.system import AbstractGroupSystem
from retrax.numerics.checks import as_float, float64, is_traced, quote, require_whole

Scalar = Float[Array, ""]

_EPS = float(np.finfo(np.float64).eps)
_SAFETY, _SHRINK, _GROW = 0.9, 0.05, 5.0
_FAILED = 0.25  # how much shorter the next try is where a step could not be taken at all
_FIRST_MOVE = 0.5  # the first try moves by no more than this on the group
_TINY_RATIO = 1e-8
_MOST_TRIES = 10**9
_SHORTEST = 16 * _EPS


class Attempts(NamedTuple):
    """The tries of one step of an adaptive run, along a first axis."""

    t: np.ndarray
    size: np.ndarray
    error: np.ndarray
    accepted: np.ndarray


class _At(NamedTuple):
    """Where a step is: the part `x` of it that is behind, and what the controller remembers.

    `previous` is the logarithm of the last accepted ratio.
    """

    state: State
    x: Scalar
    size: Scalar
    previous: Scalar
    attempts: Int[Array, ""]
    worst: Scalar
    longest: Scalar
    lasts: Bool[Array, ""]


# The state reached, the end of the whole step, and how all of it went.
_Ends = tuple[State, State, StepInfo]


class Adaptive(AbstractIntegrator):
    r"""As many steps of `base`, of as many sizes, as a tolerance asks for, between two saved times.

    A step of size $h$ becomes a loop of shorter ones that ends exactly at $t + h$: choose $h$ for
    how often a state is wanted, not for accuracy. With $e$ the estimated error of a short step of
    size $k$ and $p$ the order of `base`,

    $$
    \begin{aligned}
    r &= e/\texttt{tolerance}, \qquad \text{accepted where } r \le 1               &&\text{(1)}\\
    k_{\text{next}} &= k\cdot0.9\,r^{-0.7/p}\,r_{\text{last}}^{\,0.4/p}
        \ (\text{accepted}), \qquad k\cdot0.9\,r^{-1/p}\ (\text{rejected})         &&\text{(2)}\\
    e &= \max\bigl(|u - \hat u|_\infty,\ |\mu - \hat\mu|_\infty/\max(1, |\mu|_\infty)\bigr)
                                                                                   &&\text{(3)}\\
    e &= \frac hk\,\frac{d(z_1, z_2)}{2^p - 1}                                     &&\text{(4)}
    \end{aligned}
    $$

    (3) is the norm in the algebra where `base` is `RKMK` with an embedded tableau (`"dopri5"`);
    `Taylor` measures its last term and its defect, its own (4); (4) here is for every other method,
    from one step $z_1$ and two half ones $z_2$, in units of error per saved time, $d$ the largest
    difference of entries with momenta as in (3). In all the error of a run is proportional to the
    tolerance.

    **What is given up:** a step size that depends on the state ends symplecticity, symmetry and
    the momenta they conserve; energies drift. The group or space is still exact, and so are
    constraints on positions.

    **Arguments:**

    - `base`: a method of fixed steps, such as `RKMK("dopri5")`, or its name, such as `"rkmk-5"`.
    - `tolerance`: the estimated error allowed, from 1e-14 to 0.1.
    - `most`: how many tries one step may take.

    `iterations` in the statistics of a run are tries, rejected ones included, `residual` is the
    largest accepted error. Not differentiable in reverse.

    References: [HairerNorsettWanner1993] II.4; [Gustafsson1991] (2).
    """

    base: AbstractIntegrator
    tolerance: Scalar
    most: int = eqx.field(static=True)
    order: int = eqx.field(static=True)
    preserves: frozenset[str] = eqx.field(static=True)
    counted: ClassVar[str] = "tries"

    def __init__(self, base: AbstractIntegrator | str, tolerance: float, most: int = 100_000):
        base = as_integrator(base, "base")
        if isinstance(base, Adaptive):
            raise BadInput(f"base = {base!r} must be an integrator of fixed steps, such as RKMK().")
        if not 1e-14 <= as_float(tolerance) <= 0.1:
            raise BadInput(f"tolerance = {quote(tolerance)} must be a number from 1e-14 to 0.1.")
        self.base, self.most = base, require_whole("most", most, 1, _MOST_TRIES)
        self.tolerance = float64("tolerance", tolerance)
        self.order = base.order
        self.preserves = base.preserves & {"group", "positions"}

    def __repr__(self) -> str:
        told = self.tolerance if is_traced(self.tolerance) else f"{float(self.tolerance):g}"
        return f"Adaptive({self.base!r}, tolerance={told})"

    @property
    def needs_momentum(self) -> bool:
        return self.base.needs_momentum

    def check(self, system: AbstractGroupSystem) -> None:
        self.base.check(system)

    def step(self, system: AbstractGroupSystem, state: State, h: Scalar) -> tuple[State, StepInfo]:
        at = self._tries(system, state, h)
        end = State(at.state.g, at.state.momentum, state.t + h)
        yes = jnp.asarray(True)
        return end, StepInfo(yes, at.worst, at.attempts, at.longest, (at.x >= 1) & at.lasts)

    def attempts(self, system: AbstractGroupSystem, state: State, h: float) -> Attempts:
        """List the tries of the step from `state`: where, how long, the error, whether accepted."""
        state, size = jax.tree.map(jnp.asarray, state), jnp.asarray(h)
        one = jax.jit(lambda at: self._attempt(system, state, size, at))
        at, rows = self._start(system, state, size), []
        while bool(self._is_unfinished(state, size, at)):
            before = float(state.t + at.x * size)
            at, (tried, error, good) = one(at)
            rows.append((before, float(tried), float(error), bool(good)))
        return Attempts(*map(np.asarray, zip(*rows, strict=True)))

    def refusal(self, system: AbstractGroupSystem, state: State, h: float, moved: float) -> Refusal:
        state, size = jax.tree.map(jnp.asarray, state), jnp.asarray(h)
        at = jax.jit(lambda: self._tries(system, state, size))()
        reached = float(state.t + at.x * size)
        if int(at.attempts) >= self.most:
            return Refusal(
                f"took {self.most} tries and came only to t = {reached:.6g} s",
                f"The tolerance {float(self.tolerance):g} asks for steps of about "
                f"{float(at.size) * abs(h):.1e} s; allow more with most=... or a larger tolerance.",
                h * max(float(at.x), _SHORTEST) / 2,
            )
        return Refusal(
            f"came to t = {reached:.6g} s, where the step is too short to change the time",
            f"No step there has an error below the tolerance {float(self.tolerance):g}: the "
            "motion may be singular, or the tolerance below the rounding errors.",
            h * max(float(at.x), _SHORTEST) / 2,
        )

    def _tries(self, system: AbstractGroupSystem, state: State, h: Scalar) -> _At:
        """Try until the step is over, or cannot go on."""
        return lax.while_loop(
            lambda at: self._is_unfinished(state, h, at),
            lambda at: self._attempt(system, state, h, at)[0],
            self._start(system, state, h),
        )

    def _start(self, system: AbstractGroupSystem, state: State, h: Scalar) -> _At:
        move = jnp.max(jnp.abs(h * system.velocity_at(state)))
        size = jnp.minimum(1.0, _FIRST_MOVE / jnp.maximum(move, _FIRST_MOVE))
        zero = jnp.zeros(())
        yes = jnp.asarray(True)
        return _At(state, zero, size, zero, jnp.asarray(0), zero, zero, yes)

    def _is_unfinished(self, start: State, h: Scalar, at: _At) -> Bool[Array, ""]:
        shortest = _SHORTEST * jnp.maximum(jnp.abs(start.t), jnp.abs(h))
        going = (at.x < 1) & (at.attempts < self.most) & (at.size * jnp.abs(h) > shortest)
        return going & at.lasts

    def _attempt(
        self, system: AbstractGroupSystem, start: State, h: Scalar, at: _At
    ) -> tuple[_At, tuple[Scalar, Scalar, Bool[Array, ""]]]:
        left = 1 - at.x
        # The last steps are of one size: no sliver is left over.
        x = jnp.where(at.size >= left, left, jnp.where(2 * at.size > left, left / 2, at.size))
        new, info, error = self._try(system, at.state, x, h)
        ratio = jnp.maximum(error / self.tolerance, _TINY_RATIO)
        taken = info.converged & info.in_chart & jnp.isfinite(ratio)
        good = taken & (ratio <= 1)  # (1)
        size = jnp.log(jnp.where(taken, ratio, 1.0))
        steady, back = 0.4 * at.previous - 0.7 * size, -size
        power = _SAFETY * jnp.exp(jnp.where(good, steady, back) / float(self.order))  # (2)
        shorter = jnp.clip(jnp.where(taken, power, _FAILED), _SHRINK, _SAFETY)
        factor = jnp.where(good, jnp.clip(power, 0.2, _GROW), shorter)
        reached = jnp.where(x == left, 1.0, at.x + x)
        keep = partial(jax.tree.map, partial(jnp.where, good))
        timed = State(new.g, new.momentum, start.t + reached * h)
        # A step that was cut to fit says nothing about how long the next may be, if it grew.
        grown = jnp.maximum(x * factor, jnp.where(factor > 1, at.size, 0.0))
        after = _At(
            state=keep(timed, at.state),
            x=jnp.where(good, reached, at.x),
            size=jnp.where(good, grown, x * factor),
            previous=jnp.where(good, size, at.previous),
            attempts=at.attempts + 1,
            worst=jnp.where(good, jnp.maximum(at.worst, error), at.worst),
            longest=jnp.where(good, jnp.maximum(at.longest, info.increment), at.longest),
            lasts=at.lasts & (~good | watch(system, timed, info).in_chart),
        )
        return after, (x * h, error, good)

    def _try(
        self, system: AbstractGroupSystem, state: State, x: Scalar, h: Scalar
    ) -> tuple[State, StepInfo, Scalar]:
        """Try a step of size `x h`; return its end, how it went, and its error."""
        base, size = self.base, x * h
        if isinstance(base, Taylor) or (isinstance(base, RKMK) and base.tableau.embedded):
            return base.step_with_error(system, state, size)  # (3)
        whole, end, info = _whole_and_halves(base, system, state, size)
        g = jax.tree.map(lambda a, b: jnp.max(jnp.abs(a - b)), whole.g, end.g)
        entries = jnp.max(jnp.stack(jax.tree.leaves(g)))
        apart = jnp.maximum(entries, momentum_error(end.momentum, whole.momentum))
        return end, info, apart / (2.0**base.order - 1) / x  # (4)


def _whole_and_halves(
    base: AbstractIntegrator, system: AbstractGroupSystem, state: State, size: Scalar
) -> tuple[State, State, StepInfo]:
    """Return the ends of one step and of two half ones: three rounds of one compiled step."""
    parts, afresh, first = [1.0, 0.5, 0.5], [True, True, False], [True, False, False]

    def choose(which: Bool[Array, ""], a: State, b: State) -> State:
        return jax.tree.map(partial(jnp.where, which), a, b)

    def one(carried: _Ends, now: tuple[Array, Array, Array]) -> tuple[_Ends, None]:
        at, whole, info = carried
        part, restart, keep = now
        new, seen = base.step(system, choose(restart, state, at), part * size)
        return (new, choose(keep, new, whole), worse(info, seen)), None

    rounds = jnp.asarray(parts), jnp.asarray(afresh), jnp.asarray(first)
    (end, whole, info), _ = lax.scan(one, (state, state, explicit_step(jnp.zeros(1))), rounds)
    return whole, end, info
