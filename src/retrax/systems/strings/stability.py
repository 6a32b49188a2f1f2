r"""How long a step may be: waves must not run faster than the steps follow.

The kicks and drifts are Stoermer-Verlet for the waves on the string, stable while
$h < 2/\omega_{\max}$. For a chain with consistent masses

$$ \omega_{\max}^2 \le 12\,\kappa/m = 12\,(c/u)^2, \qquad c = \sqrt{EA/\mu},
   \qquad\text{so}\quad h < u/(\sqrt3\,c) \quad\text{is always stable,} \tag{1} $$

whatever bodies it carries (they add mass), however it is stretched (across itself it is softer than
along) and however it is damped (damping enters at both ends of a step). The bound for a given
chain is a little longer, and the only one where the string has no mass:

$$ \tfrac4{h^2}T - K \quad\text{is positive definite,} \tag{2} $$

with $K$ the stiffness along the string, and in $T$ for each body the least mass that its point of
attachment can show, $1/M_{\rm eff} = 1/M + \max_n\,(\rho\times n)\cdot J_c^{-1}(\rho\times n)$.
"""

import math

import numpy as np

from retrax.mechanics.solids import about_centre
from retrax.systems.strings.chain import masses

_HALVINGS = 40


def safe_step(length: float, density: float, stiffness: float, elements: int) -> float:
    r"""$u/(\sqrt3c)$ of (1); zero for a string without mass."""
    return length / elements * math.sqrt(density / (3 * stiffness))


def longest_stable_step(
    length: float,
    density: float,
    stiffness: float,
    elements: int,
    nodes: tuple[int, ...],
    effective: np.ndarray,
) -> float:
    """The bound (2), by bisection; `effective` are the least masses of the bodies."""
    n, u = elements, length / elements
    diagonal, below, _ = masses(n, np.asarray(density * u), nodes, effective)
    kappa = stiffness / u
    stiff = kappa * np.where(np.arange(1, n + 1) == n, 1.0, 2.0)
    diagonal, below = np.asarray(diagonal), np.asarray(below)[1:]

    def stable(h: float) -> bool:
        a, b = 4 / h**2 * diagonal - stiff, 4 / h**2 * below + kappa
        pivot = a[0]
        for k in range(1, n):
            if pivot <= 0:
                return False
            pivot = a[k] - b[k - 1] ** 2 / pivot
        return bool(pivot > 0)

    low = safe_step(length, density, stiffness, elements)
    high = 2 * math.sqrt(float(np.sum(diagonal)) / kappa) * n + low  # slower than any mode
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if stable(middle) else (low, middle)
    return low


def effective_masses(mass: np.ndarray, arm: np.ndarray, inertia: np.ndarray) -> np.ndarray:
    r"""$M_{\rm eff}$ of (2) for every body."""
    least = []
    for m, rho, J in zip(mass, arm, inertia, strict=True):
        cross = np.cross(rho, np.eye(3))  # the rows rho x e_i
        central = about_centre(J, m, rho)
        yielding = cross @ np.linalg.pinv(central) @ cross.T
        least.append(1 / (1 / m + float(np.linalg.eigvalsh(yielding)[-1])))
    return np.array(least)
