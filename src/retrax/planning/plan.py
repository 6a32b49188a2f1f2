"""What was found: states, inputs, costates and multipliers of a plan, and what they are worth."""

from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jax
import numpy as np
from jaxtyping import Float

from retrax.errors import BadInput
from retrax.files import as_path
from retrax.mechanics.signal import Signal
from retrax.mechanics.state import State
from retrax.numerics.checks import ArrayLike
from retrax.numerics.evaluate import evaluate
from retrax.planning.problem import ControlProblem
from retrax.planning.solve import Found, Iterate

if TYPE_CHECKING:
    from retrax.planning.feedback import TrackingLaw

# Inputs count as being at a bound from there on, as a part of the distance between bounds.
_AT_BOUND = 1e-4
# A path constraint is broken from there on, relative to the size of its numbers.
ON_PATH = 1e-8
# What a plan is called whose last state breaks the path constraint.
BROKEN_AT_END = "path broken at the end"


class Plan:
    r"""The solution of a `ControlProblem`.

    **Attributes:**

    - `problem`; `T`, `h`: the duration and the step; `t`: the N + 1 times.
    - `states`: a `State` whose arrays have an axis of N + 1 times; `controls`: the N inputs.
    - `costates`: $\lambda_k$, what a change of state $k + 1$ is worth: that of $g$, in the body
        frame, then that of $\mu$; `multipliers`: by name, `"end"`, `"lower"`, `"upper"`, `"path"`.
    - `cost`; `status`: `"minimum"`, or `"extremal"` where the second-order condition was not met,
        or `"path broken at the end"` where the last state, which the path constraint does not bind,
        breaks it; `kind`: the same without a look at the last state.
    - `iterations`; `seconds`: that the call took, with compiling where it was the first of its
        kind; `residuals`: by name, relative to what they are made of.
    - `path`: the numbers of the path constraint at the states from which inputs act, the first N.
    - `others`: costs of other extremals that were found on the way, with their durations.
    """

    def __init__(
        self,
        problem: ControlProblem,
        found: Found,
        member: int = 0,
        seconds: float = float("nan"),
        others: tuple[tuple[float, float], ...] = (),
    ):
        s = problem.model.sizes
        self.problem, self.seconds, self.others = problem, seconds, others
        self.numbers = found.nodes[..., member], found.stages[..., member]
        stages = self.numbers[1]
        N, m, n = problem.steps, s.inputs, s.state
        self.h = float(found.h[member])
        self.T = N * self.h
        self.t = float(problem.start.t) + np.arange(N + 1) * self.h
        self.controls: Float[np.ndarray, "N m"] = stages[:m].T.copy()
        frozen = problem.lower == problem.upper
        self.controls[:, frozen] = problem.lower[frozen]
        self.costates: Float[np.ndarray, "N 2dim"] = stages[m : m + n].T.copy()
        limits = stages[m + n : m + n + s.limits].T
        empty = np.zeros((N, m))
        self.multipliers: dict[str, np.ndarray] = {
            "end": found.end_multipliers[:, member].copy(),
            "lower": limits[:, :m].copy() if s.bounded else empty,
            "upper": limits[:, m:].copy() if s.bounded else empty,
            "path": stages[stages.shape[0] - s.path :].T.copy(),
        }
        self.path: Float[np.ndarray, "N c"] = found.path[..., member].T.copy()
        self.cost = float(found.cost[member])
        self.converged = bool(found.converged[member])
        best = "minimum" if found.minimum[member] else "extremal"
        self.kind = best if self.converged else "not converged"
        self.iterations = int(found.iterations[member])
        names = ("defects", "end", "path", "stationarity", "complementarity")
        self.residuals = {
            name: float(x[member]) for name, x in zip(names, found.errors, strict=True)
        }
        self.miss: Float[np.ndarray, " p"] = found.miss[:, member].copy()
        self.largest_defect = float(found.defects[:, member].max())

    @cached_property
    def states(self) -> State:
        """All states, stacked along the time."""
        s, nodes = self.problem.model.sizes, self.numbers[0]
        leaves, tree = jax.tree.flatten(self.problem.system.group.layout())
        ends = np.cumsum([int(np.prod(leaf.shape)) for leaf in leaves])
        parts = np.split(nodes[: s.element], ends[:-1])
        shaped = [x.T.reshape(-1, *leaf.shape) for x, leaf in zip(parts, leaves, strict=True)]
        g = jax.tree.unflatten(tree, shaped)
        momentum: Any = nodes[s.element :].T.copy()
        return State(g, momentum, self.t)

    @property
    def status(self) -> str:
        """Whether this is a plan, and of which kind, in a word or two."""
        return BROKEN_AT_END if self.converged and self.path_broken_at_end else self.kind

    @property
    def iterate(self) -> Iterate:
        """The plan as a guess for another problem."""
        nodes, stages = self.numbers
        return Iterate(nodes[..., None], stages[..., None], np.array([self.h]))

    @cached_property
    def invariant(self) -> float | None:
        r"""The drift of $\mathrm{Ad}^*_{g_{k+1}^{-1}}\lambda_k^G$, relative to its size.

        It is constant along a solution where a symmetry of space leaves plant, cost and path
        alone; `None` without such a symmetry.
        """
        from retrax.planning.symmetry import costate_drift

        return costate_drift(self, self.symmetries)

    @cached_property
    def symmetries(self) -> list[int]:
        """The axes along which displacements of space leave plant, cost and path alone."""
        from retrax.planning.symmetry import symmetries

        return symmetries(self)

    @cached_property
    def path_at_end(self) -> Float[np.ndarray, " c"]:
        """The numbers of the path constraint at the last state, with the last inputs.

        The constraint does not bind them: they may be negative.
        """
        from retrax.planning.evaluation import path_at

        if self.problem.path is None:
            return np.zeros(0)
        last = jax.tree.map(lambda x: np.asarray(x)[-1], self.states)
        return np.asarray(evaluate(path_at, self.problem.model, last, self.controls[-1]))

    @cached_property
    def path_broken_at_end(self) -> list[int]:
        """Which numbers of the path constraint are negative at the last state."""
        allowed = ON_PATH * (1.0 + np.abs(self.path).max(axis=0, initial=0.0))
        return np.flatnonzero(~(self.path_at_end >= -allowed)).tolist()

    def signal(self) -> Signal:
        """Return the inputs as a `Signal`, which drives the plant along the plan.

        After the end of the plan the last inputs go on.
        """
        self._require_plan("drive a plant")
        return Signal(self.t[:-1], self.controls)

    def feedback(self, Q: ArrayLike, R: ArrayLike) -> "TrackingLaw":
        r"""Return a law that keeps the plant on the plan: time-varying LQR on the group.

        With $d_k = (\log(g_k^{-1}g), \mu - \mu_k)$ it minimises
        $\sum_k d_k^T Q d_k + \delta u_k^T R\,\delta u_k$ for small deviations:
        $u = u_k - K_k d$. The sum runs over all states, so that $Q$ is also the weight of the last
        deviation. After the end of the plan the law aims at its last state with the last gain and
        no other inputs: a plant that needs inputs to stay there wants a regulator of its own, as
        `lqr` makes it. Give it to `Sampled(law, period)` or `Feedback(law)`.

        **Arguments:** `Q`, `R`: numbers, one for each coordinate (those of $g$, then of $\mu$) and
        for each input, or matrices.
        """
        from retrax.planning.feedback import tracking_law

        self._require_plan("be kept to by feedback")
        return tracking_law(self, Q, R)

    def _require_plan(self, what: str) -> None:
        if not self.converged:
            raise BadInput(
                "this is the last iterate of a search that found no plan, and its steps may not "
                f"lead to each other: it cannot {what}."
            )

    def active_bounds(self) -> np.ndarray:
        """Return for how many steps each input is at one of its bounds."""
        problem = self.problem
        room = np.minimum(self.controls - problem.lower, problem.upper - self.controls)
        width = problem.upper - problem.lower
        near = room <= _AT_BOUND * np.where(np.isfinite(width), width, 0.0)
        return near.sum(axis=0)

    def measures(self) -> dict[str, Any]:
        """Return the content of `summary`, by name."""
        return {
            "cost": self.cost,
            "duration": self.T,
            "step": self.h,
            "steps": self.problem.steps,
            "status": self.status,
            "iterations": self.iterations,
            "seconds": self.seconds,
            "largest defect": self.largest_defect,
            "end miss": float(np.abs(self.miss).max(initial=0.0)),
            "costate drift": self.invariant,
            "symmetries": len(self.symmetries),
            "path at the end": self.path_at_end.tolist(),
            "steps at a bound": self.active_bounds().tolist(),
            "residuals": dict(self.residuals),
            "other extremals": list(self.others),
        }

    def summary(self) -> str:
        """Return the plan in a few lines for people."""
        problem, miss = self.problem, np.abs(self.miss).max(initial=0.0)
        free = ", free" if problem.is_free else ""
        status, reached, linked = self.status, f"missed by {miss:.1e}", "at the most"
        if not self.converged:
            status = "no plan, the last iterate of a search"
            reached = f"not reached: the last state is {miss:.1e} from it, but steps miss that"
            linked = "at the most: steps do not lead from one state to the next"
        lines = [
            f"Plan for {problem.system.name} by {problem.integrator!r}: {status}",
            f"cost            {self.cost:.10g}",
            f"duration        {self.T:.10g} s{free}; {problem.steps} steps of {self.h:.6g} s",
            f"iterations      {self.iterations}{self._took}",
            f"defects         {self.largest_defect:.1e} {linked}",
            f"end             {reached}",
            f"stationarity    {self.residuals['stationarity']:.1e}, complementarity "
            f"{self.residuals['complementarity']:.1e}",
        ]
        if self.converged:
            lines.append(f"costates        {self.constancy}")
        if problem.model.sizes.bounded:
            counts = ", ".join(str(k) for k in self.active_bounds())
            lines.append(f"at a bound      {counts} of {problem.steps} steps, by input")
        if problem.model.sizes.path:
            shown = [
                np.array2string(x, precision=3) for x in (self.path.min(axis=0), self.path_at_end)
            ]
            broken = ", broken there" if self.path_broken_at_end else ""
            lines.append(f"path            least values {shown[0]}, at the end {shown[1]}{broken}")
        for cost, duration in self.others:
            lines.append(f"other extremal  cost {cost:.10g}, duration {duration:.10g} s")
        return "\n".join(lines)

    @property
    def constancy(self) -> str:
        """How constant the costates of symmetries are, in words."""
        if self.invariant is None:
            return "no symmetry of space"
        count, dim = len(self.symmetries), self.problem.system.group.dim
        along = "symmetry" if count == 1 else "symmetries"
        return f"constant to {self.invariant:.1e} for {count} {along} of space out of {dim}"

    @property
    def _took(self) -> str:
        known = np.isfinite(self.seconds)
        return f"; {self.seconds:.3g} s, compiling included" if known else ""

    def __repr__(self) -> str:
        if not self.converged:
            return f"<no plan: the last iterate of {self.iterations}, {self.T:.6g} s>"
        return f"<Plan: {self.status}, cost {self.cost:.6g}, {self.T:.6g} s>"

    def save(self, path: str | Path) -> Path:
        """Write the plan to a NetCDF file, which `retrax.load_plan` reads."""
        from retrax.planning.plan_file import save_plan

        self._require_plan("be saved")
        return save_plan(self, as_path(path))

    def report(self, path: str | Path) -> Path:
        """Write a page about the plan, to be opened in a browser."""
        from retrax.show.plan_page import report_plan

        self._require_plan("have a page")
        return report_plan(self, as_path(path))
