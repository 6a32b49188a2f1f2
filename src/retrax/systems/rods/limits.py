r"""Where two rods have no contact that the model knows, in words.

The points of contact are closest to each other while $H = \partial_s^2\tfrac12|d|^2$ is positive
definite; of two straight rods at an angle $\theta$ its eigenvalues are as
$1 \pm \cos\theta$. The bump must lie within both rods.
"""

import math
from typing import Any

import numpy as np

# The smaller eigenvalue of H over the mean of both: straight rods at a quarter of a degree.
FLATTEST = 1e-5


def placed(s: Any, t: float, h: float = 0.0) -> str:
    """When and where, with as many digits as steps of size `h` give: to a tenth of a step."""
    digits = max(0, math.ceil(1 - math.log10(abs(h)))) if h else None
    when = f"{t:.10g}" if digits is None else f"{t:.{digits}f}"
    return f"at t = {when} s, where s = ({float(s[0]):.4g}, {float(s[1]):.4g})"


def degenerate(s: Any, t: float, H: Any, h: float = 0.0) -> str:
    """That the rods have no single point of contact, and the eigenvalues that say so."""
    H = np.asarray(H)
    values = np.linalg.eigvalsh((H + H.T) / 2)
    return (
        f"The rods are too parallel or too strongly curved {placed(s, t, h)}: the Hessian of "
        f"half their squared distance has the eigenvalues {values[0]:.3g} and {values[1]:.3g}, "
        f"of which the smaller must be above {FLATTEST:g} of their mean."
    )


def too_flat(H: Any) -> bool:
    """Whether the closest points are none, or hardly distinct."""
    H = np.asarray(H)
    values = np.linalg.eigvalsh((H + H.T) / 2)
    return not values[0] > FLATTEST * np.mean(values)


def beyond(s: Any, t: float, reach: float, h: float = 0.0) -> str:
    """That the bump does not lie within the rods."""
    return (
        f"The contact comes closer than {reach:g} m to an end of a rod {placed(s, t, h)}: the "
        "nodes that carry it would lie beyond."
    )
