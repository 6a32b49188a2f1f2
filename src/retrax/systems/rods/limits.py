r"""Where two rods have no contact that the model knows, in words.

The points of contact are closest to each other while $H = \partial_s^2\tfrac12|d|^2$ is positive
definite; of two straight rods at an angle $\theta$ its eigenvalues are as
$1 \pm \cos\theta$. The bump must lie within both rods.
"""

from typing import Any

import numpy as np

# The smaller eigenvalue of H over the mean of both: straight rods at a quarter of a degree.
FLATTEST = 1e-5


def placed(s: Any, t: float) -> str:
    return f"at t = {t:.10g} s, where s = ({float(s[0]):.6g}, {float(s[1]):.6g})"


def degenerate(s: Any, t: float, H: Any) -> str:
    """That the rods have no single point of contact, and the eigenvalues that say so."""
    H = np.asarray(H)
    values = np.linalg.eigvalsh((H + H.T) / 2)
    return (
        f"The rods are too parallel or too strongly curved {placed(s, t)}: the Hessian of half "
        f"their squared distance has the eigenvalues {values[0]:.3g} and {values[1]:.3g}, of which "
        f"the smaller must be above {FLATTEST:g} of their mean."
    )


def too_flat(H: Any) -> bool:
    """Whether the closest points are none, or hardly distinct."""
    H = np.asarray(H)
    values = np.linalg.eigvalsh((H + H.T) / 2)
    return not values[0] > FLATTEST * np.mean(values)


def beyond(s: Any, t: float, reach: float) -> str:
    """That the bump does not lie within the rods."""
    return (
        f"The contact comes closer than {reach:g} m to an end of a rod {placed(s, t)}: the nodes "
        "that carry it would lie beyond."
    )
