"""What the string pendulum paper says, what was measured, and why they differ."""

from typing import TYPE_CHECKING

import numpy as np

from retrax.reproduce.report import Finding

if TYPE_CHECKING:
    from retrax.reproduce.string_runs import Growth, Plateau
    from retrax.trajectory.trajectory import Trajectory


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
            "already integrated by parts; a slip of the index",
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


def comparable(growth: "Growth") -> list[Finding]:
    """How far curves can be compared."""
    at = {t: int(np.argmin(np.abs(growth.t - t))) for t in (1.0, 2.0, 3.0, 5.0)}
    rows = ", ".join(f"{growth.step[k]:.0e} m at {t:g} s" for t, k in at.items())
    nudge = ", ".join(f"{growth.nudge[k]:.0e} at {t:g} s" for t, k in at.items())
    return [
        Finding(
            "Fig. 2 and 3, pointwise",
            "curves to t = 5 s",
            f"error of r: {rows}; of a nudge of 1e-9: {nudge}",
            "from 0.99 s the string is compressed again and again, which is locally ill-posed; "
            "errors grow a millionfold in four seconds. Compare to 2 s (attitude) or 3 s "
            "(position); later only envelopes and the slow swing",
        ),
    ]


def kept(run: "Trajectory", naive: float) -> list[Finding]:
    """What Fig. 3 shows to be kept; `naive`: the momentum read off differences of positions."""
    energy = run.invariants()["energy"] - run.invariants()["energy"][0]
    J3 = run.invariants()["angular momentum e3"]
    length = run.observables()["stretched length"]
    return [
        Finding(
            "Fig. 3, orthogonality",
            "below 2e-13",
            f"{np.max(run.group_defect()):.0e}",
            "R + R(F - 1) with F - 1 free of cancellation, the round-off of R taken out",
        ),
        Finding(
            "Fig. 3, momentum about the vertical",
            "conserved",
            f"{J3[0]:.10f}, within {np.ptp(J3):.0e} over 50,000 steps",
            "from the momenta; read off differences of positions it would seem to oscillate by "
            f"{naive:.0e}",
        ),
        Finding(
            "Fig. 3, total energy",
            "no systematic drift",
            f"within [{np.min(energy):.1e}, {np.max(energy):.1e}] J on [0, 5] s",
            "for five seconds; see the long run",
        ),
        Finding(
            "Fig. 3, stretched length",
            "-",
            f"from {np.min(length):.3f} to {np.max(length):.3f} m",
            "peaks 1.092 m at 0.49 s, 1.097 at 0.82, 1.115 at 1.73, 1.108 at 2.07 reproduce",
        ),
    ]


def long_run(runs: "dict[float, Plateau]") -> list[Finding]:
    """The energy after many seconds."""
    levels = ", ".join(f"{one.level:.1e} J (h = {h:g})" for h, one in runs.items())
    end = next(iter(runs.values())).t[-1]
    return [
        Finding(
            f"total energy over {end:g} s",
            "no systematic drift",
            f"the deviation rests at {levels}",
            "as energy reaches the short waves it departs from the modified energy that is kept, "
            "by a plateau in proportion to h^2",
        )
    ]


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
