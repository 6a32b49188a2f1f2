"""What the paper on Kahan's integrator says, what was measured, and why they differ."""

import numpy as np

from retrax_papers.kahan.runs import Boundary, LongRun, Structure
from retrax_papers.report import Finding, listed

Errors = dict[str, list[tuple[float, float]]]


def theorem(measured: dict[str, Structure]) -> list[Finding]:
    """The two sides of the theorem."""
    generic = measured["3, 2, 1"]
    symmetric = [measured[name] for name in ("3, 3, 1", "3, 1, 1")]
    worst = max(max(*s.bracket, *s.energy, *s.casimir) for s in symmetric)
    slope = np.log2(generic.bracket[-2] / generic.bracket[-1])
    return [
        Finding(
            "Theorem 3.1, bracket, I = (3, 2, 1)",
            "Poisson if and only if the energy is preserved, for I1 > I2 > I3",
            f"defect {listed(generic.bracket)} at h = 0.4, 0.2, 0.1, 0.05 (order {slope:.2f})",
            "the equivalence holds; with three different moments, which the paper supposes, "
            "neither side does",
        ),
        Finding(
            "Theorem 3.1, energy and momentum, I = (3, 2, 1)",
            "-",
            f"one step changes H by {listed(generic.energy)} and C by {listed(generic.casimir)}",
            "H and C are multiplied by the same factor, 1 only where a1 a2 a3 = 0",
        ),
        Finding(
            "Theorem 3.1, I = (3, 3, 1) and (3, 1, 1)",
            "-",
            f"all defects at most {worst:.0e}",
            "Poisson, energy kept, momentum kept and two equal moments are equivalent: the map "
            "is then a rotation about the axis of symmetry",
        ),
    ]


def long_runs(measured: dict[float, LongRun]) -> list[Finding]:
    """What a long run keeps."""
    fine, coarse = measured[0.1], measured[1.0]
    return [
        Finding(
            "energy of long runs",
            "-",
            f"h = 0.1: [{fine.energy_first[0]:.9f}, {fine.energy_first[1]:.9f}] in the first "
            f"tenth, [{fine.energy_last[0]:.9f}, {fine.energy_last[1]:.9f}] in the last",
            "H and C move with m2 alone, by an exact formula (missed by "
            f"{fine.formula:.0e}): no drift",
        ),
        Finding(
            "integrals of the map",
            "-",
            f"H/C within {fine.ratio:.0e} (h = 0.1) and {coarse.ratio:.0e} (h = 1), C/B2 within "
            f"{fine.casimir_over_b:.0e} and {coarse.casimir_over_b:.0e}",
            "the map is integrable; scaling back to the first length restores C and, with it, H",
        ),
    ]


def accuracy(errors: Errors) -> list[Finding]:
    """How far from the exact solution."""
    kahan, projected = dict(errors["Kahan"]), dict(errors["Kahan, order 6, projected"])
    return [
        Finding(
            "accuracy at t = 100, h = 0.1",
            "-",
            f"{kahan[0.1]:.4e}; explicit, order 6, exact H and C: {projected[0.1]:.1e}",
            "a phase error, linear in time; compositions keep H/C, projection does the rest",
        )
    ]


def blow_up(edge: Boundary, step: int, determinant: float) -> list[Finding]:
    """Where the map has poles."""
    below = edge.second < 0.999 * edge.bound
    failed_below = int(np.sum(edge.failed_step[:, below] > 0))
    above = edge.failed_step[:, edge.second > 1.001 * edge.bound] > 0
    return [
        Finding(
            "blow-up",
            "-",
            f"{failed_below} of {edge.failed_step[:, below].size} starts below the bound met a "
            f"pole, {np.mean(above):.0%} of those above it; h = 7 from (1, 1, 1) at step "
            f"{step} (determinant {determinant:.3g})",
            "steps with h m2(0) sqrt(a1 a3) below 2 in size never meet a pole; the bound is sharp",
        )
    ]


def symplectic(prey: dict[str, np.ndarray]) -> list[Finding]:
    """The system of the theorem that the paper cites."""
    radii = {name: np.linalg.norm(y - 1.0, axis=1) for name, y in prey.items()}
    return [
        Finding(
            "Lotka-Volterra",
            "computed points do not spiral, for the integrator is symplectic (Sanz-Serna)",
            f"predator and prey, distance from (1, 1) at its largest: Kahan "
            f"{radii['Kahan'].max():.3f}, explicit Euler {radii['explicit Euler'].max():.3f}",
            "confirmed, for the form dx dy/(xy); of the rigid body the paper does not say it, and "
            "there the bracket that is kept is a modified one",
        )
    ]
