"""What the nonholonomic paper says, what was measured, and why they differ."""

from retrax_papers.nonholonomic.runs import Measured
from retrax_papers.report import Finding


def _momentum(one: Measured) -> str:
    return f"Pi = ({one.momentum[0]:.6f}, {one.momentum[1]:.6f}) at the end"


def figure_1(measured: dict[str, Measured]) -> list[Finding]:
    """The adapted integrators."""
    exp, cay = measured["(18), exponential"], measured["(19), Cayley"]
    zero = measured["(17), s = 0, exponential"]
    dla = measured["Lagrange-d'Alembert, s = 0, exponential"]
    inverse = measured["(11) inverted, s = 1/2, exponential"]
    half, hamel = measured["(17), s = 1/2, exponential"], measured["Hamel midpoint, exponential"]
    return [
        Finding(
            "Fig. 1, energy of (18) and (19)",
            "exhibit stabilized energy error",
            f"at most {exp.energy_error:.2e} J (exponential), {cay.energy_error:.2e} J (Cayley)",
            "confirmed; the error of first order of (17) is a force that does no work, so that the "
            "energy does not show it",
        ),
        Finding(
            "Fig. 1, constraint",
            "satisfy the constraint",
            f"{exp.constraint:.0e} (exponential), {cay.constraint:.0e} (Cayley)",
            "confirmed: the third component of the increment of R, divided by h, is round-off",
        ),
        Finding(
            "Fig. 1, group",
            "remain on the Lie group",
            f"{exp.group_defect:.0e}, {cay.group_defect:.0e}",
            "confirmed: Frobenius norm of R^T R - 1; this update of R does not let rounding errors "
            "add up",
        ),
        Finding(
            "the momentum in the runs of Fig. 1",
            "-",
            f"(18): {_momentum(exp)}; (19): {_momentum(cay)}; (17) with s = 0, exponential: "
            f"{_momentum(zero)}",
            "the exact solution is Pi = (1, 1) for ever; (17) projects the inverse of the free map "
            "where (11) asks for the inverse of the projected map, and drifts at first order",
        ),
        Finding(
            "(11) with (12), inverted: `AdaptedLift`",
            "-",
            f"s = 1/2: {_momentum(inverse)}; energy {inverse.energy_error:.0e}; attitude "
            f"{inverse.attitude_error:.1e}",
            "of second order here for every s; the attitude error is the Frobenius norm of R - "
            "R_exact",
        ),
        Finding(
            "the same for s = 0: `LagrangeDAlembert(s=0)`",
            "-",
            f"{_momentum(dla)}; energy {dla.energy_error:.0e}; attitude {dla.attitude_error:.1e}",
            "the discrete Lagrange-d'Alembert step equals (11) inverted for s = 0 and s = 1",
        ),
        Finding(
            "(17) with s = 1/2: `ProjectedLift(s=0.5)`",
            "-",
            f"{_momentum(half)}; energy {half.energy_error:.0e}; attitude "
            f"{half.attitude_error:.1e}",
            "the first-order term carries the factor 1/2 - s",
        ),
        Finding(
            "`HamelMidpoint`",
            "-",
            f"{_momentum(hamel)}; energy {hamel.energy_error:.0e}; attitude "
            f"{hamel.attitude_error:.1e}",
            "exact on a steady turn, up to rounding",
        ),
    ]


def figure_2(measured: dict[str, Measured]) -> list[Finding]:
    """The unadapted integrator."""
    exp, cay = measured["(10), exponential"], measured["(10), Cayley"]
    held = measured["(10) with the multiplier as a force"]
    return [
        Finding(
            "Fig. 2, the unadapted integrator (10)",
            "clearly fails to preserve the constraint",
            f"max abs Pi_3 = {exp.largest_third:.6f} (exponential), {cay.largest_third:.6f} "
            f"(Cayley); energy {exp.energy_error:.1e}, {cay.energy_error:.1e}",
            "confirmed: no reaction is in its equations, so that this is the free rigid body, "
            "whose Pi_3 reaches sqrt(10/11) = 0.953463",
        ),
        Finding(
            "(10) with the multiplier as a force",
            "-",
            f"Omega_3 = {held.largest_third / 100:.0e}, but {held.constraint:.0e} in the increment "
            f"of R; energy {held.energy_error:.2g}, {_momentum(held)}",
            "Omega_3 is held only because this inertia is diagonal; energy and momentum are lost",
        ),
    ]


def equations(measured: dict[str, Measured]) -> list[Finding]:
    """Equations (18) and (19)."""
    exp, cay = measured["(18), exponential"], measured["(19), Cayley"]
    read = [measured[name] for name in ("(18), as read", "(19), as read")]
    return [
        Finding(
            "(18) and (19)",
            "Omega = (Omega_1, Omega_2, 0) and Pi = (Pi_1, Pi_2, 0)",
            f"(18): energy {exp.energy_error:.2e}, {_momentum(exp)}; (19): energy "
            f"{cay.energy_error:.2e}, {_momentum(cay)}",
            "from (16): (1 - (1-cos abs x)/abs x^2 x^ + ..) Pi_k = I Omega, Pi_k+1 = exp(-x^) "
            "Pi_k, and (1 - x^/2) Pi_k = (1 + abs x^2 / 4) I Omega, Pi_k+1 = (1 + x^/2)^-1 (1 - "
            "x^/2) Pi_k. With the third components zero both are (17) with s = 1, of first order",
        ),
        Finding(
            "(18) and (19), as the copy at hand reads",
            "glyphs damaged in the copy",
            "; ".join(
                f"({number}): energy {one.energy_error:.2e}, {_momentum(one)}"
                for number, one in zip((18, 19), read, strict=True)
            ),
            "run for completeness, and not counted: the copy may have lost a transpose, an inverse "
            "or a factor",
        ),
    ]


def orders(errors: dict[str, list[tuple[float, float]]]) -> list[Finding]:
    """Errors against a closed form."""
    ends = {name: rows[-1] for name, rows in errors.items()}
    said = "; ".join(f"{name}: {error:.1e} at h = {h:g}" for name, (h, error) in ends.items())
    return [
        Finding(
            "Order, on Suslov's problem with a full inertia",
            "-",
            said,
            "errors of Omega(2) against the closed form; a diagonal inertia does not show signs",
        )
    ]
