"""What the pseudospectral paper says, what was measured, and why they differ."""

import numpy as np

from retrax_papers.pseudospectral.runs import Commuting, Long, Short
from retrax_papers.report import Finding, listed

Errors = dict[str, list[float]]


def algorithm(printed: Errors, at_one: tuple[float, float]) -> list[Finding]:
    """Algorithm 1 (Fig. 5), as printed and corrected."""
    R, omega = at_one
    rows = {name: listed(errors) for name, errors in printed.items()}
    slope, right = (
        np.log2(printed[name][-2] / printed[name][-1])
        for name in ("velocity corrected", "both corrected")
    )
    return [
        Finding(
            "Algorithm 1, last step",
            "omega_{n+1} = R_{n+1} omega_n",
            f"errors at t = 1 with h = 0.0125: {R:.2f} in R, {omega:.2f} in omega; at t = 10 with "
            f"h = 0.2, 0.1, 0.05: {rows['as printed']}",
            "no convergence, even with exact stage velocities; it must be "
            "omega_n + h sum b_i omega'_i",
        ),
        Finding(
            "Algorithm 1 with (25)",
            "R_n exp(u) with the bracket subtracted, order 4",
            f"errors {rows['velocity corrected']} (order {slope:.1f})",
            "minus belongs to exp(u) R_n; with R_n exp(u) the sign is plus: "
            f"{rows['both corrected']} (order {right:.1f})",
        ),
        Finding(
            "Algorithm 1, steps 2.1 and 2.2",
            "xi_1 and xi_2 from two collocation problems of their own",
            "-",
            "not the method with two Gauss nodes, and not symmetric; R at the stages is never "
            "defined. All stages are solved together",
        ),
        Finding(
            "(22)",
            "xi_1, xi_2 by the general method applied to (22); left side a hat",
            "-",
            "the torque depends on R: attitude and velocity are collocated together; the left side "
            "is omega'",
        ),
    ]


def equations(energies: tuple[float, float]) -> list[Finding]:
    """Corrections elsewhere; `energies`: (28) at t = 0 and t = 1."""
    first, later = energies
    return [
        Finding(
            "(28), energy",
            "(J omega)^T J (J omega)/2 as kinetic energy",
            f"{first:.3f} at t = 0 and {later:.3f} at t = 1; with omega^T J omega/2 it is -9.175",
            "the printed function is not conserved by the motion itself",
        ),
        Finding(
            "(19), Magnus series",
            "a bracket with the sign of the other side",
            "-",
            "+1/2 with [xi(t1), int xi]; as printed it contradicts (18) and (25)",
        ),
        Finding(
            "(2), (3), (5), (6), (16), Radau",
            "0 < alpha_j < 1; L_i; y(tau); B_k = 0 for odd k; at most one end point",
            "-",
            "alpha_N = 1; i = 0..N; Y(tau); odd k from 3 on; exactly one. Numbers (15), (18), (19) "
            "are used twice",
        ),
        Finding(
            "Table I",
            "J = diag(1, 2.8, 2) with m = 1 and arm e3",
            "J - m (1 - e3 e3^T) = diag(0, 1.8, 2)",
            "no body has it about its pivot; as a test it is fine, and R(0) = 1 hangs straight "
            "down",
        ),
    ]


def conservation(short: dict[str, Short]) -> list[Finding]:
    """What Fig. 6 shows."""
    plain, geometric = short["plain Gauss"], short["geometric Gauss"]
    loose, radau = short["plain Gauss, stopped at 1e-10"], short["plain Radau"]
    lobatto, grown = short["plain Lobatto"], short["plain Gauss, stopped at 3.2e-11"]
    return [
        Finding(
            "plain Gauss",
            "can not conserve energy and momentum; SO(3) errors about 1e-13 that increase",
            f"iterated to convergence: energy {plain.energy:.0e}, momentum {plain.momentum:.0e}, "
            f"SO(3) {plain.group:.0e}",
            "all three are quadratic first integrals and conserved, if the iteration converges. A "
            f"distance from SO(3) that grows to {grown.group:.0e} is what an iteration gives that "
            f"stops at 3.2e-11, and {loose.group:.0e} one that stops at 1e-10; the paper does not "
            "state its tolerance",
        ),
        Finding(
            "geometric Gauss",
            "SO(3) errors up to machine precision 1e-16; a good long-time behavior",
            f"energy {geometric.energy:.1e}, momentum {geometric.momentum:.1e}, SO(3) "
            f"{geometric.group:.0e}",
            "energy and momentum are kept up to the order of the method; SO(3) to round-off, which "
            "adds up in products of rotations unless it is taken out, as here",
        ),
        Finding(
            "plain Radau, plain Lobatto",
            "-",
            f"SO(3) {radau.group:.1e} and {lobatto.group:.1e}, energy {radau.energy:.1e} and "
            f"{lobatto.energy:.1e}",
            "over the 30 s; neither has both as exact invariants",
        ),
        Finding(
            "error of (R, omega) at 30 s",
            "-",
            f"geometric {geometric.error:.1e}, plain {plain.error:.1e}, SE(3) form "
            f"{short['SE(3) Gauss'].error:.1e}, variational "
            f"{short['variational Gauss'].error:.1e}",
            "against a Taylor solution of 66 digits; two Gauss nodes, h = 0.05",
        ),
    ]


def long_runs(
    long: dict[str, Long], wild: dict[str, Long], defects: dict[str, float]
) -> list[Finding]:
    """Symplectic or not, and what that means for the energy."""
    drift = long["geometric Gauss"].slope
    return [
        Finding(
            "III.C, Gauss nodes",
            "selected because Gauss collocation methods are symplectic",
            "defect of the form at h = 0.2: "
            + ", ".join(f"{defect:.1e} ({name})" for name, defect in defects.items()),
            "true in canonical coordinates of one chart; on a group the chart moves with the body",
        ),
        Finding(
            "energy of long runs, h = 0.1",
            "-",
            f"geometric: slope {drift:.1e} J/s; centred {long['centred Gauss'].largest:.1e}, "
            f"variational {long['variational Gauss'].largest:.1e}, plain "
            f"{long['plain Gauss'].largest:.0e} at most",
            "the slope is that of the least-squares line over every step; the centred method is "
            "symmetric, the variational one symplectic",
        ),
        Finding(
            "the same in a chaotic regime, h = 0.05",
            "-",
            f"geometric {wild['geometric Gauss'].largest:.1e}, centred "
            f"{wild['centred Gauss'].largest:.1e}, variational "
            f"{wild['variational Gauss'].largest:.1e}, plain {wild['plain Gauss'].largest:.0e}",
            "largest errors over every step; the orbit of the paper is regular, this one is not",
        ),
    ]


def diagrams(found: Commuting) -> list[Finding]:
    """Figs. 1 to 3: diagrams that commute, or do not."""
    return [
        Finding(
            "Figs. 1 and 2, (12) and (13)",
            "the diagrams commute",
            f"largest defects on the sphere, {found.samples} random triples: {found.action:.0e} "
            f"for (12), {found.translation:.0e} for (13)",
            "true, by construction",
        ),
        Finding(
            "Fig. 3, Theorem 2",
            "right-trivialised tangent map",
            f"(15) holds to {found.right:.0e} with dexp^-1 at u as the theorem has it, and misses "
            f"by {found.left:.2f} with dexp^-1 at -u",
            "true for an action from the left, exp(u) y; the algorithm multiplies R from the "
            "right, R exp(u), which needs dexp^-1 at -u",
        ),
    ]


def spectral(errors: list[tuple[int, float]]) -> list[Finding]:
    """Accuracy against the number of nodes."""
    said = ", ".join(f"{error:.0e} (s = {s})" for s, error in errors)
    return [
        Finding(
            "accuracy against the number of nodes",
            "high accuracy and spectral convergence, of spectral methods",
            f"h = 1, t = 10: {said}",
            "confirmed for the corrected method solved to round-off",
        )
    ]
