r"""Inertia matrices of homogeneous solids, about any point.

About the centre of mass, in axes along those of the solid,

$$
\begin{aligned}
\text{ellipsoid} &: \tfrac M5\,\mathrm{diag}(b^2 + c^2,\ c^2 + a^2,\ a^2 + b^2)    &&\text{(1)}\\
\text{box} &: \tfrac M{12}\,\mathrm{diag}(b^2 + c^2,\ c^2 + a^2,\ a^2 + b^2)       &&\text{(2)}\\
\text{elliptic cylinder} &: M\,\mathrm{diag}\bigl(\tfrac{b^2}4 + \tfrac{H^2}{12},\
   \tfrac{a^2}4 + \tfrac{H^2}{12},\ \tfrac{a^2+b^2}4\bigr)                         &&\text{(3)}
\end{aligned}
$$

with the semi-axes of the ellipsoid, the edges of the box, and the semi-axes and the height of the
cylinder, whose axis is $e_3$. About a point from which the centre of mass is at $\rho$,

$$ J = J_c + M\bigl(|\rho|^2 - \rho\rho^T\bigr). \tag{4} $$
"""

import numpy as np
from jaxtyping import Float

from retrax.errors import BadInput
from retrax.mechanics.inertia import require_positive
from retrax.numerics.checks import (
    ArrayLike,
    host_finite64,
    host_float64,
    quote,
    require_finite,
    require_number,
)

_ROUNDING = 1e-12
Matrix = Float[np.ndarray, "3 3"]


def about(inertia: ArrayLike, mass: float, arm: ArrayLike) -> Matrix:
    """Return (4): the inertia about a point, from that about the centre of mass at `arm`."""
    shift = _parallel(_positive("mass", mass), host_finite64("arm", arm, (3,)))
    return _fits(host_finite64("inertia", inertia, (3, 3)) + shift)


def about_centre(inertia: ArrayLike, mass: float, arm: ArrayLike) -> Matrix:
    """Return (4) backwards: the inertia about the centre of mass, from that about a point."""
    shift = _parallel(_positive("mass", mass), host_finite64("arm", arm, (3,)))
    return _fits(host_finite64("inertia", inertia, (3, 3)) - shift)


def ellipsoid(mass: float, semi_axes: ArrayLike, arm: ArrayLike = (0.0, 0.0, 0.0)) -> Matrix:
    """Return (1) for a solid ellipsoid with the three `semi_axes` (m) along the body axes."""
    a, b, c = _sizes("semi_axes", semi_axes, 3) ** 2
    return about(_positive("mass", mass) / 5 * np.diag([b + c, c + a, a + b]), mass, arm)


def sphere(mass: float, radius: float, arm: ArrayLike = (0.0, 0.0, 0.0)) -> Matrix:
    """Return the inertia of a solid ball."""
    return ellipsoid(mass, [_positive("radius", radius)] * 3, arm)


def box(mass: float, edges: ArrayLike, arm: ArrayLike = (0.0, 0.0, 0.0)) -> Matrix:
    """Return (2) for a solid block with the three `edges` (m) along the body axes."""
    a, b, c = _sizes("edges", edges, 3) ** 2
    return about(_positive("mass", mass) / 12 * np.diag([b + c, c + a, a + b]), mass, arm)


def elliptic_cylinder(
    mass: float, semi_axes: ArrayLike, height: float, arm: ArrayLike = (0.0, 0.0, 0.0)
) -> Matrix:
    """Return (3) for a solid cylinder along $e_3$ with `semi_axes` along $e_1$ and $e_2$ (m)."""
    a, b = _sizes("semi_axes", semi_axes, 2) ** 2
    c = np.float64(_positive("height", height)) ** 2
    moments = [b / 4 + c / 12, a / 4 + c / 12, (a + b) / 4]
    return about(_positive("mass", mass) * np.diag(moments), mass, arm)


def cylinder(mass: float, radius: float, height: float, arm: ArrayLike = (0.0, 0.0, 0.0)) -> Matrix:
    """Return the inertia of a solid circular cylinder along $e_3$."""
    return elliptic_cylinder(mass, [_positive("radius", radius)] * 2, height, arm)


def rod(
    mass: float, length: float, arm: ArrayLike = (0.0, 0.0, 0.0), thickness: float = 0.0
) -> Matrix:
    """Return the inertia of a rod along $e_3$; `thickness` is its radius.

    A thickness of 0 leaves it no moment about its axis.
    """
    moment = _positive("mass", mass) * np.float64(_positive("length", length)) ** 2 / 12
    across = float(mass) * np.float64(require_number("thickness", thickness, ">= 0", "m")) ** 2 / 4
    return about(np.diag([moment + across, moment + across, 2 * across]), mass, arm)


def require_rigid_body(inertia: np.ndarray, mass: float, arm: np.ndarray, whose: str = "") -> None:
    """Reject an inertia about a point that no body with that mass and centre of mass has."""
    require_positive(inertia)
    central = about_centre(inertia, mass, arm)
    a, b, c = (float(x) for x in np.linalg.eigvalsh(central))
    rounding = _ROUNDING * float(np.max(np.abs(inertia)))
    if a <= -rounding:
        raise BadInput(
            f"inertia{whose} is not that of a body about the point it hangs from: about the centre "
            f"of mass, at arm = {arm.tolist()}, its smallest moment would be {a:.6g}, but it must "
            "be >= 0 (is it the inertia about the centre of mass? then pass "
            "rx.solids.about(inertia, mass, arm))."
        )
    if a + b < c - rounding:
        raise BadInput(
            f"inertia{whose} with principal moments ({a:.6g}, {b:.6g}, {c:.6g}) about the centre "
            f"of mass is not that of a rigid body: the largest may not exceed the sum of the "
            f"others, but {a:.6g} + {b:.6g} < {c:.6g}."
        )


def _parallel(mass: float, arm: np.ndarray) -> Matrix:
    with np.errstate(over="ignore", invalid="ignore"):
        return mass * (arm @ arm * np.eye(3) - np.outer(arm, arm))


def _positive(name: str, value: object) -> float:
    return require_number(name, value, "> 0")


def _sizes(name: str, values: object, count: int) -> np.ndarray:
    array = host_float64(name, values)
    if array.shape != (count,) or not np.all(np.isfinite(array)) or not np.all(array > 0):
        raise BadInput(f"{name} = {quote(values)} must be {count} positive lengths.")
    return array


def _fits(inertia: Matrix) -> Matrix:
    """Return an inertia if it is finite: sizes may be so large that their squares overflow."""
    require_finite("the inertia of a body of this size and mass", inertia)
    return inertia
