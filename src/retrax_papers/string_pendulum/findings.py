"""What the string pendulum paper says, what was measured, and why they differ."""

from typing import Any

import numpy as np

from retrax.trajectory.trajectory import Trajectory
from retrax_papers.report import Finding
from retrax_papers.string_pendulum.runs import Growth, Plateau


def equations() -> list[Finding]:
    """What is printed, and what should be."""
    return [
        Finding(
            "kinetic factor before (17)",
            "(1/h) mu |v|^2",
            "(h/2) mu |v|^2",
            "only this gives the m/6h that (17) has",
        ),
        Finding(
            "(17), elastic energy at the end of the step",
            "the factor kappa and a bracket are missing",
            "(h/4) kappa (|x| - u)^2",
            "with it the step satisfies the discrete Euler-Lagrange equations to round-off, by "
            "automatic differentiation of L_d; (30) to (34) are right as printed",
        ),
        Finding(
            "(9), second line; proof of (27)",
            "eta-dot; F_0",
            "eta; F_k",
            "already integrated by parts; the index of the step",
        ),
        Finding(
            "a fixed 3N x 3N matrix is inverted",
            "section IV",
            "one tridiagonal N x N factorisation",
            "the matrix is T times the unit matrix of space: a step costs O(N)",
        ),
    ]


def left_open(readings: dict[str, float]) -> list[Finding]:
    """What the paper does not say."""
    return [
        Finding(
            "gravity, inertia, initial attitude",
            "not printed",
            "9.81 m/s^2, the homogeneous cylinder about the point of attachment, R = 1",
            "only with the long semi-axis along e1 is the point of attachment on the body",
        ),
        Finding(
            "initial velocities",
            "string at rest, body at (0, 0.2, -0.5) m/s",
            f"at 0.5 s reading B is {readings['B']:.1e} m from A, C {readings['C']:.1e} m",
            "A moves the last node only, B the string linearly, C gives the body its momentum",
        ),
    ]


def comparable(growth: Growth) -> list[Finding]:
    """How far curves can be compared."""
    at = {t: growth.at(t) for t in (1.0, 2.0, 3.0, 5.0)}
    rows = ", ".join(f"{growth.step[k]:.0e} m at {t:g} s" for t, k in at.items())
    nudge = ", ".join(f"{growth.nudge[k]:.0e} at {t:g} s" for t, k in at.items())
    return [
        Finding(
            "Fig. 2 and 3, pointwise",
            "curves to t = 5 s",
            f"error of r: {rows}; of a nudge of 1e-9: {nudge}",
            "the string is compressed again and again, which is locally ill-posed. From 1 s to 5 s "
            f"the error of r grows by a factor of {growth.factor('step'):.0e}, that of R by "
            f"{growth.factor('turn'):.0e}, the effect of the nudge by {growth.factor('nudge'):.0e}."
            " Compare to 2 s (attitude) or 3 s (position)",
        ),
        Finding(
            "the slow swing",
            "-",
            f"the potential energy of the body is highest at {_times(growth.swing)} with "
            f"h = 1e-4 s, and at {_times(growth.fine_swing)} with steps eight times shorter",
            "what can be compared over all five seconds, to the hundredth of a second",
        ),
    ]


def _times(times: list[float]) -> str:
    return ", ".join(f"{t:.2f}" for t in times) + " s"


def kept(run: Trajectory, numbers: dict[str, Any]) -> list[Finding]:
    """What Fig. 3 shows; `run` is saved at every step, and `numbers` are those of all of them."""
    J3 = run.invariants()["angular momentum e3"]
    low, high = numbers["energy deviation"]
    shortest, longest = numbers["stretched length"]
    peaks = ", ".join(
        f"{y:.4f} m at {t:.3f} s" for t, y in numbers["peaks of the stretched length"]
    )
    return [
        Finding(
            "Fig. 3, orthogonality",
            "below 2e-13",
            f"{numbers['largest distance from SO(3)']:.0e}",
            "R + R(F - 1) with F - 1 free of cancellation, the round-off of R taken out",
        ),
        Finding(
            "Fig. 3, momentum about the vertical",
            "the integrator preserves the momentum map",
            f"{J3[0]:.10f}, within {np.ptp(J3):.0e} over {run.completed:,} steps",
            "confirmed, from the momenta; read off differences of positions it would seem to "
            f"oscillate by {numbers['J3 read off differences']:.0e}",
        ),
        Finding(
            "Fig. 3, total energy",
            "oscillates near the initial value, no systematic drift over long time periods",
            f"within [{low:.2e}, {high:.2e}] J at every step of [0, 5] s",
            "confirmed for these five seconds; see the long run",
        ),
        Finding(
            "Fig. 3, stretched length",
            "-",
            f"from {shortest:.4f} to {longest:.4f} m over every step; an element is first "
            f"shorter than at rest by a thousandth at {numbers['first compressed']:.3f} s",
            f"peaks up to 2.2 s: {peaks}; these reproduce with other steps, later ones do not",
        ),
    ]


def long_run(runs: dict[float, Plateau]) -> list[Finding]:
    """The energy after many seconds."""
    levels = ", ".join(
        f"{one.before:.1e}, {one.level:.1e} J (h = {h:g})" for h, one in runs.items()
    )
    end = next(iter(runs.values())).t[-1]
    return [
        Finding(
            f"total energy over {end:g} s",
            "no systematic drift over long time periods",
            f"mean deviation in the fourth and in the last fifth: {levels}",
            "as energy reaches the short waves the mean departs from the start, in the last fifth "
            f"with h to the power {' and '.join(f'{p:.1f}' for p in powers(runs))}",
        )
    ]


def powers(runs: dict[float, Plateau]) -> list[float]:
    """The exponents of h between the mean deviations of successive steps."""
    h, levels = np.array(list(runs)), np.array([one.level for one in runs.values()])
    return [float(p) for p in np.diff(np.log(np.abs(levels))) / np.diff(np.log(h))]


def solver(
    along: list[int],
    newton: float,
    agreement: float,
    fixed_point: dict[float, tuple[float, int]],
) -> list[Finding]:
    """The paper's iteration against the elimination of the string."""
    rate, _ = fixed_point[1.0]
    longest = max(fixed_point)
    return [
        Finding(
            "the fixed-point iteration for F",
            "until F converges",
            f"{min(along)} to {max(along)} iterations with an O(N) solve each; "
            f"Newton with the string eliminated: {newton:.1f} of three unknowns",
            f"it contracts by {rate:.3f} whatever h ({fixed_point[longest][0]:.3f} and "
            f"{fixed_point[longest][1]} iterations for an arm {longest:g} times as "
            f"long); both give the same turn, to {agreement:.0e}",
        ),
    ]
