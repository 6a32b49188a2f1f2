"""What the nonholonomic paper says, what was measured, and why they differ."""

from typing import TYPE_CHECKING

from retrax.reproduce.report import Finding

if TYPE_CHECKING:
    from retrax.reproduce.nonholonomic_runs import Measured


def _momentum(one: "Measured") -> str:
    return f"Pi = ({one.momentum[0]:.6f}, {one.momentum[1]:.6f}) at the end"


def figure_1(measured: "dict[str, Measured]") -> list[Finding]:
    """The adapted integrators."""
    exp, cay = measured["(17), s = 0, exponential"], measured["(17), s = 0, Cayley"]
    dla = measured["Lagrange-d'Alembert, s = 0, exponential"]
    half, hamel = measured["(17), s = 1/2, exponential"], measured["Hamel midpoint, exponential"]
    return [
        Finding(
            "Fig. 1, energy of the adapted integrators",
            "stabilised energy error",
            f"{exp.energy_error:.2e} (exponential), {cay.energy_error:.2e} (Cayley)",
            "true, and blind: the first-order error of (17) is a force that does no work",
        ),
        Finding(
            "Fig. 1, the momentum itself (not shown in the paper)",
            "-",
            f"exponential: {_momentum(exp)}; Cayley: {_momentum(cay)}",
            "the exact solution is Pi = (1, 1) for ever; (17) projects the inverse of the free map "
            "where (11) asks for the inverse of the projected map, and drifts at first order",
        ),
        Finding(
            "Fig. 1, constraint",
            "satisfied",
            f"{exp.constraint:.0e} (exponential), {cay.constraint:.0e} (Cayley)",
            "the third component of the increment of R, divided by h: round-off, by construction",
        ),
        Finding(
            "Fig. 1, group",
            "R stays on SO(3)",
            f"{exp.group_defect:.0e}, {cay.group_defect:.0e}",
            "Frobenius norm of R^T R - 1; the update of R does not let rounding errors add up",
        ),
        Finding(
            "(11) inverted: `LagrangeDAlembert`",
            "-",
            f"{_momentum(dla)}; energy {dla.energy_error:.0e}; attitude {dla.attitude_error:.1e}",
            "second order for every s; the attitude error is the Frobenius norm of R - R_exact",
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


def figure_2(measured: "dict[str, Measured]") -> list[Finding]:
    """The unadapted integrator."""
    exp, cay = measured["(10), exponential"], measured["(10), Cayley"]
    held = measured["(10) with the multiplier as a force"]
    return [
        Finding(
            "Fig. 2, the unadapted integrator (10)",
            "fails to preserve the constraint",
            f"max abs Pi_3 = {exp.largest_third:.6f} (exponential), {cay.largest_third:.6f} "
            f"(Cayley); energy {exp.energy_error:.1e}, {cay.energy_error:.1e}",
            "it is the free rigid body, whose Pi_3 reaches sqrt(10/11) = 0.953463: no reaction is "
            "in its equations, so discretisation is not to blame",
        ),
        Finding(
            "(10) with the multiplier as a force",
            "-",
            f"Omega_3 = {held.largest_third / 100:.0e}, but {held.constraint:.0e} in the increment "
            f"of R; energy {held.energy_error:.2g}, {_momentum(held)}",
            "Omega_3 is held only because this inertia is diagonal; energy and momentum are lost",
        ),
    ]


def equations(measured: "dict[str, Measured]") -> list[Finding]:
    """Equations (18) and (19)."""
    exp, cay = measured["(18), corrected, exponential"], measured["(19), corrected, Cayley"]
    literal = measured["(19), literally"]
    return [
        Finding(
            "(18)",
            "(1 + ..) Pi_k = t I Omega, Pi_k+1 = exp(+x) Pi_k",
            f"energy {exp.energy_error:.2e}, {_momentum(exp)}",
            "should read (1 - (1-cos abs x)/abs x^2 x^ + ..) Pi_k = I Omega and Pi_k+1 = exp(-x^) "
            "Pi_k; three equations for two unknowns, and dropping the third makes it (17) with "
            "s = 1: first order",
        ),
        Finding(
            "(19)",
            "Cayley map without the halves",
            f"corrected: energy {cay.energy_error:.2e}, {_momentum(cay)}; literally: energy "
            f"{literal.energy_error:.2e}, {_momentum(literal)}",
            "should read R_k+1 = R_k (1 - x^/2)^-1 (1 + x^/2), (1 - x^/2) Pi_k = (1 + abs x^2 / 4) "
            "I Omega, Pi_k+1 = (1 + x^/2)^-1 (1 - x^/2) Pi_k; as printed everything turns four "
            "times too fast",
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
            "errors of Omega(2) against the closed form; the diagonal inertia of the paper hides "
            "every error of sign",
        )
    ]
