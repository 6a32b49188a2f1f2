r"""A primal-dual interior point method for problems side by side.

Every iteration takes Newton's step of the conditions of first order, with products $sz$ equal to a
barrier parameter that falls to zero. Lengths of steps keep slacks and multipliers positive, and a
filter judges what is tried. Where a step is no descent, the Hessian is shifted.

References: [WaechterBiegler2006] (barrier, filter), [RaoWrightRawlings1998] (the recursion).
"""

import numpy as np

from retrax.planning.border import solve_border
from retrax.planning.filter import Filter
from retrax.planning.measure import Errors, Measured, Scales
from retrax.planning.workspace import Workspace

# Barriers, as parts of the cost: the first one, and the last.
FIRST, LAST = 1.0, 1e-10
# A step moves no configuration by more of the way than this, and a duration by this part.
_FARTHEST, _SHORTEN = 0.5, 0.5
# Where residuals, relative to what they are made of, end the search; and where they may end it if
# rounding errors keep them from falling further.
_AIM, _ACCEPT = 1e-11, 1e-7
# Residuals above this are worth one more iteration.
_FINE = 1e-14
_STALLED = 4
_LEAST_PIVOT, _LEAST_EIGENVALUE = 1e-14, -1e-9
# Penalties on missing the end, relative to what its multipliers can do.
_STIFFER = (1e2, 1e4, 1e6)
_HALVINGS = 25
_TRIES = 40


class Search:
    """The search from a guess that lies in iterate 0 of the workspace.

    **Arguments:** `h`: the step of each problem, with its bounds `shortest` and `longest` where the
    duration is free; `first`, `last`: barriers, as parts of the cost; `elastic`: what a miss of the
    end by the whole way costs, where it may be missed.

    **Attributes:** `at`: which iterate is at hand; `h`; `converged`, `iterations`: of each problem;
    `errors`: at the end; `stuck`: problems without a step that helps.
    """

    def __init__(
        self,
        work: Workspace,
        scales: Scales,
        h: np.ndarray,
        shortest: np.ndarray,
        longest: np.ndarray,
        first: float = FIRST,
        last: float = LAST,
        elastic: float = 0.0,
    ):
        P = work.width
        self.work, self.scales, self.at = work, scales, 0
        work.scales[...] = np.concatenate([scales.state, scales.path])
        self.h, self.shortest, self.longest = h.copy(), shortest, longest
        self.times = np.zeros((2, P))  # multipliers of the bounds of the duration
        self.converged, self.stuck = np.zeros(P, bool), np.zeros(P, bool)
        self.iterations = np.zeros(P, int)
        self.penalty = np.zeros((work.sizes.ends, P))
        self.elastic, self.spring = elastic, np.zeros((work.sizes.ends, 1))
        self.shift, self.last_shift = np.zeros(P), np.zeros(P)
        self.pairs = work.stages * (work.sizes.limits + work.sizes.path) + 2 * work.sizes.free
        self.kappa = np.full(P, first if self.pairs else 0.0)
        self.last, self.aim = last, _AIM if last <= LAST else 0.1 * last
        self._best, self._since = np.full(P, np.inf), np.zeros(P, int)
        self._close = np.zeros(P, bool)

    # The search.

    def run(self, most: int, with_inputs: bool = False) -> None:
        """Iterate until every problem has converged, is stuck, or has had `most` iterations.

        The guess is of states, or also of inputs and costates: `with_inputs`.
        """
        work = self.work
        work.evaluate(self.at, self.h)
        self._begin(with_inputs)
        self.filter = Filter(work.width)
        self.errors = self._errors()
        violation, cost = self._merit(self.at, self.now, self.h)
        self.stuck = ~np.isfinite(violation + cost)  # a step of the guess cannot be taken
        self.filter.begin(np.ones(work.width, bool), violation)
        for _ in range(most):
            self._lower_barrier()
            self._judge()
            active = ~self.converged & ~self.stuck
            if not active.any():
                break
            self._find_step(active)
            self._go(active)
            self.iterations += active
            self.errors = self._errors()
        self._judge()

    def _begin(self, with_inputs: bool) -> None:
        """Set slacks to what the path leaves, multipliers to the central path."""
        work, at = self.work, self.at
        if (work.sizes.bounded or work.sizes.path) and not with_inputs:
            work.guess_inputs(at, self.scales.state)
            work.evaluate(at, self.h)
        self.now = work.measure(at)
        self.cost_scale = self._cost_scale()
        if self.elastic:
            self.cost_scale = np.maximum(self.cost_scale, self.elastic)
            self.spring = self.elastic / self.scales.ends[:, None] ** 2 + 0 * self.cost_scale
        barrier = self.barrier
        if work.sizes.path:
            c = work.path(at)
            floor = 1e-2 * self.scales.path[:, None, None]
            work.slacks(at)[...] = np.maximum(c, floor)
            work.path_multipliers(at)[...] = barrier / work.slacks(at)
        if work.sizes.bounded:
            work.bound_multipliers(at)[...] = barrier / work.rooms(at)
        if work.sizes.free:
            self.times = barrier / self._time_rooms(self.h)
        if work.sizes.path:
            work.evaluate(at, self.h)  # its multipliers are in the Hessian
        self.now = work.measure(at)

    @property
    def barrier(self) -> np.ndarray:
        return self.kappa * self.cost_scale / max(self.pairs, 1)

    def _cost_scale(self) -> np.ndarray:
        cost = np.abs(self.now.cost) + np.abs(self.work.end(self.at)[0])
        return np.where(cost > 0, cost, 1.0)

    def _time_rooms(self, h: np.ndarray) -> np.ndarray:
        return np.stack([h - self.shortest, self.longest - h])

    def _lower_barrier(self) -> None:
        if not self.pairs:
            self.cost_scale = self._cost_scale()
            return
        ready = self._central()
        changed = ready
        while ready.any():
            lower = np.maximum(np.minimum(0.2 * self.kappa, self.kappa**1.5), self.last)
            self.kappa = np.where(ready, lower, self.kappa)
            self.errors = self._errors()
            ready = ready & self._central()
        if changed.any():
            violation, _ = self._merit(self.at, self.now, self.h)
            self.filter.begin(changed, violation)
            self._best = np.where(changed, np.inf, self._best)

    def _central(self) -> np.ndarray:
        """Return problems that are near the central path, and have a lower barrier to go to."""
        primal = self.errors.primal
        dual = np.maximum(self.errors.dual, self.errors.complementarity)
        return (primal <= self.kappa) & (dual <= self.kappa) & (self.kappa > self.last)

    def _judge(self) -> None:
        """Find the problems that have converged."""
        size = self.errors.largest
        final = self.kappa <= self.last
        rest = np.maximum(self.errors.primal, self.errors.dual)
        small = (rest <= self.aim) & (self.errors.complementarity <= 10 * max(_AIM, self.last))
        better = size < 0.5 * self._best
        self._best = np.where(better, size, self._best)
        self._since = np.where(better, 0, self._since + 1)
        stalled = (size <= _ACCEPT) & (self._since >= _STALLED)
        seen = self.iterations > 0  # the second-order condition is known after a sweep
        done = seen & final & (small | stalled)
        fine = (rest <= _FINE) | stalled | (self.last > LAST)
        self.converged |= done & np.where(self.stuck, self._close, fine | self._close)
        self._close = done & ~self.stuck

    # Newton's step.

    def _find_step(self, active: np.ndarray) -> None:
        """Sweep back, solve for what is shared, sweep ahead; shift what is no minimum."""
        work, at = self.work, self.at
        s = work.sizes
        self._weigh()
        barrier = self.barrier
        work.settings[0], work.settings[2] = barrier, np.maximum(0.99, 1 - self.kappa)
        self.shift = np.where(self.shift > 0, 0.0, self.shift)
        tried = np.zeros(work.width, int)
        extra = self._duration_terms(barrier)
        for _ in range(_TRIES):
            work.settings[1] = self.shift
            self._fill_end()
            work.backward(at)
            W = _full(work.back[-1 - len(work.upper_sides[0]) : -1], s.sides, work.upper_sides)
            if s.ends and self.elastic:
                places = np.arange(1 + s.free, s.sides)
                W[:, places, places] -= 1 / self.spring.T
            theta, minimum, least = solve_border(W, s.free, extra)
            fine = minimum & (work.back[-1] > _LEAST_PIVOT) & (least > _LEAST_EIGENVALUE)
            bad = active & ~fine
            if not bad.any():
                break
            tried += bad
            self._stiffen(bad, tried)
        else:
            self.stuck |= bad
        if s.ends:
            gramian = np.abs(np.einsum("pii->ip", W[:, 1 + s.free :, 1 + s.free :]))
            self.gramian = np.where(self.penalty > 0, getattr(self, "gramian", gramian), gramian)
        self.last_shift = np.where(self.shift > 0, self.shift, self.last_shift)
        work.theta[...] = theta.T
        work.ahead[...] = 0.0
        work.ahead[s.state : s.state + 2] = 1.0
        work.forward(at)

    def _stiffen(self, bad: np.ndarray, tried: np.ndarray) -> None:
        """Add to the Hessian what helps: a penalty on missing the end first, then a shift."""
        if self.work.sizes.ends and not self.elastic and hasattr(self, "gramian"):
            stiffness = self.penalty * self.gramian
            soft = bad & (tried <= len(_STIFFER)) & (stiffness.max(axis=0) < 0.5 * _STIFFER[-1])
            wanted = np.select([stiffness.max(axis=0) < 0.5 * x for x in _STIFFER], _STIFFER)
            self.penalty = np.where(soft, wanted / np.maximum(self.gramian, 1e-300), self.penalty)
            bad = bad & ~soft
        known = self.last_shift > 0
        begin = np.where(known, np.maximum(1e-12, self.last_shift / 3), 1e-4)
        grow = np.where(known, 8.0, 100.0)
        self.shift = np.where(bad, np.where(self.shift == 0, begin, grow * self.shift), self.shift)

    def _weigh(self) -> None:
        """Set the weights of a shift: what costs as much as a stage where it is one."""
        size = float(np.max(self.cost_scale)) / self.work.stages
        scale = np.concatenate([self.scales.state, self.input_scale])
        self.work.weights[...] = size / scale**2

    @property
    def input_scale(self) -> np.ndarray:
        if self.work.sizes.bounded and np.isfinite(self.scales.inputs).all():
            return self.scales.inputs
        largest = self.now.inputs.max(axis=1)
        top = largest.max(initial=0.0)
        return np.maximum(largest, 1e-3 * top) if top > 0 else np.ones_like(largest)

    def _fill_end(self) -> None:
        """Start the sweep: cost and equations of the end, with the penalty on their miss."""
        work = self.work
        s, (_, miss, slope, jacobian, hessian) = work.sizes, work.end(self.at)
        n, q, first = s.state, s.sides, 1 + s.free
        half = len(hessian)
        back = work.back
        back[...] = 0.0
        back[:half] = hessian
        S = back[half : half + n * q].reshape(n, q, work.width)
        S[:, 0] = slope
        W = back[half + n * q : -1]
        if s.ends:
            weighted = self.penalty[:, None] * jacobian
            stiff = np.einsum("eip,ejp->ijp", jacobian, weighted)
            back[:half] += stiff[work.upper]
            S[:, 0] += (weighted * miss[:, None]).sum(axis=0)
            S[:, first:] = jacobian.transpose(1, 0, 2)
            W[first:q] = miss
        back[-1] = np.inf

    def _duration_terms(self, barrier: np.ndarray) -> np.ndarray:
        """Return slope and curvature in the step of the barrier on the duration."""
        if not self.work.sizes.free:
            return np.zeros((self.work.width, 2))
        rooms = self._time_rooms(self.h)
        slope = -barrier / rooms[0] + barrier / rooms[1]
        return np.stack([slope, (self.times / rooms).sum(axis=0)], axis=1)

    # Along the step.

    def _go(self, active: np.ndarray) -> None:
        work, at = self.work, self.at
        s, barrier = work.sizes, self.barrier
        room, slope = work.ahead[s.state : s.state + 2], work.ahead[s.state + 2].copy()
        slope += np.einsum("ip,ip->p", work.end(at)[2], work.dX[:, -1])
        turn = np.abs(work.dX[: s.dim] / self.scales.state[: s.dim, None, None]).max(axis=(0, 1))
        ahead = np.minimum(room[0], _FARTHEST / np.maximum(turn, _FARTHEST))
        duals = room[1].copy()
        if self.elastic:
            _, miss, _, jacobian, _ = work.end(at)
            pull = (self.spring * miss)[:, None] * jacobian
            slope += np.einsum("eip,ip->p", pull, work.dX[:, -1])
        dh, dtimes = np.zeros(work.width), np.zeros_like(self.times)
        if s.free:
            dh = work.theta[1]
            rooms, share = self._time_rooms(self.h), work.settings[2]
            drooms = np.stack([dh, -dh])
            dtimes = barrier / rooms - self.times - self.times / rooms * drooms
            with np.errstate(divide="ignore", invalid="ignore"):
                ahead = np.minimum(ahead, _share(rooms, drooms, share))
                ahead = np.minimum(ahead, _share(self.h[None], -np.abs(dh)[None], _SHORTEN))
                duals = np.minimum(duals, _share(self.times, dtimes, share))
            slope -= barrier * (drooms / rooms).sum(axis=0)
        violation, cost = self._merit(at, self.now, self.h)
        going = active & ~self.stuck
        ahead, duals = np.where(going, ahead, 0.0), np.where(going, duals, 0.0)
        undecided = going.copy()
        dnu = work.theta[1 + s.free :] - work.nu[at]
        for _ in range(_HALVINGS):
            h = self.h + ahead * dh
            work.move(at, ahead, duals)
            work.nu[1 - at][...] = work.nu[at] + ahead * dnu
            work.evaluate(1 - at, h)
            now = work.measure(1 - at)
            tried_violation, tried_cost = self._merit(1 - at, now, h)
            good, pair = self.filter.accepts(
                violation, cost, tried_violation, tried_cost, ahead, slope
            )
            self.filter.keep(undecided & good & pair, violation, cost)
            undecided &= ~good
            if not undecided.any():
                break
            ahead = np.where(undecided, ahead / 2, ahead)
        if undecided.any():
            self.stuck |= undecided
            ahead, duals = np.where(undecided, 0.0, ahead), np.where(undecided, 0.0, duals)
            work.move(at, ahead, duals)
            work.nu[1 - at][...] = work.nu[at] + ahead * dnu
            work.evaluate(1 - at, self.h + ahead * dh)
            now = work.measure(1 - at)
        self.h = self.h + ahead * dh
        self.times = self.times + duals * dtimes
        self.at = 1 - at
        self.now = now

    # How good an iterate is.

    def _merit(self, which: int, now: Measured, h: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Sum of violations in units of their scales; cost with barrier."""
        end = self.work.end(which)
        violation, cost = now.violation, now.cost + end[0]
        if self.elastic:
            cost = cost + (self.spring * end[1] ** 2).sum(axis=0) / 2
        else:
            violation = violation + (np.abs(end[1]) / self.scales.ends[:, None]).sum(axis=0)
        if self.pairs:
            logs = now.logs
            if self.work.sizes.free:
                logs = logs + _logs(self._time_rooms(h))
            cost = cost - self.barrier * logs
        return violation, cost

    def _errors(self) -> Errors:
        work, scales, at, now = self.work, self.scales, self.at, self.now
        s, end = work.sizes, work.end(at)
        unit = scales.state[:, None]
        size = np.maximum((unit * now.costates).max(axis=0), self.cost_scale / work.stages)
        last = end[2] - work.costates(at)[:, -1]
        if s.ends:
            last = last + (end[3] * work.nu[at][:, None]).sum(axis=0)
        dual = (unit * np.maximum(now.residuals, np.abs(last))).max(axis=0)
        inputs = self.input_scale[:, None] * now.input_residuals
        dual = np.maximum(dual, inputs.max(axis=0))
        if s.free:
            whole = now.step_slope - self.times[0] + self.times[1]
            dual = np.maximum(dual, np.abs(whole) * self.h / work.stages)
        defects = (now.defects / unit).max(axis=0)
        miss = end[1] - work.nu[at] / self.spring if self.elastic else end[1]
        miss = (np.abs(miss) / scales.ends[:, None]).max(axis=0, initial=0.0)
        path = (now.slack_gaps / scales.path[:, None]).max(axis=0, initial=0.0)
        return Errors(defects, miss, path, dual / size, self._complementarity())

    def _complementarity(self) -> np.ndarray:
        """Return the largest difference of a product from the barrier, relative as barriers are."""
        if not self.pairs:
            return np.zeros(self.work.width)
        barrier = self.barrier
        highest, lowest = self.now.highest, self.now.lowest
        if self.work.sizes.free:
            rooms = self._time_rooms(self.h)
            finite = np.isfinite(rooms)
            products = np.where(finite, rooms, 0.0) * self.times
            highest = np.maximum(highest, np.where(finite, products, barrier).max(axis=0))
            lowest = np.minimum(lowest, np.where(finite, products, barrier).min(axis=0))
        lowest = np.where(np.isfinite(lowest), lowest, barrier)
        worst = np.maximum(highest - barrier, barrier - lowest)
        return worst * self.pairs / self.cost_scale


def _full(upper: np.ndarray, size: int, places: tuple[np.ndarray, np.ndarray]) -> np.ndarray:
    """Return [problem, size, size] from the numbers above the diagonal [., problem]."""
    out = np.empty((upper.shape[1], size, size))
    rows, columns = places
    out[:, rows, columns] = out[:, columns, rows] = upper.T
    return out


def _share(values: np.ndarray, changes: np.ndarray, share: np.ndarray | float) -> np.ndarray:
    """Return how far to go until the first of some positive numbers has lost its share."""
    lengths = np.where(changes < 0, -share * values / changes, 1.0)
    return np.where(np.isfinite(lengths), lengths, 1.0).min(axis=0)


def _logs(rooms: np.ndarray) -> np.ndarray:
    """Sum of logarithms for each problem; bounds at infinity do not count."""
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.log(rooms)
    return np.where(np.isposinf(rooms), 0.0, logs).sum(axis=tuple(range(rooms.ndim - 1)))
