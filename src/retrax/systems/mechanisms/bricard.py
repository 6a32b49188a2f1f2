"""Bricard's linkage: a loop that moves although its joints are one too many."""

from itertools import pairwise

import numpy as np

from retrax.mechanisms.joints import Revolute
from retrax.mechanisms.mechanism import Mechanism
from retrax.mechanisms.system import MechanismSystem
from retrax.numerics.checks import require_number
from retrax.systems.mechanisms.bars import bar, lying

# Corners of a cube of 1 m; the bars follow its edges, and the last edge is the ground.
_CORNERS = np.array(
    [[0, 0, 0], [1, 0, 0], [1, -1, 0], [1, -1, 1], [0, -1, 1], [0, 0, 1]], dtype=float
)


def bricard(*, width: float = 0.1, gravity: float = 9.81) -> MechanismSystem:
    r"""Return Bricard's linkage in space, five bars and six hinges: a benchmark of IFToMM.

    The bars, 1 m and 1 kg each, start along edges of a cube; each hinge is at right angles to the
    two bars that it joins. 30 equations bind 30 velocities, but one of them is redundant: the
    linkage has one freedom. Gravity points along $-e_2$. Hinges are called `A` to `F`, and `A` and
    `F` hold it to the ground.

    **Arguments:** `width`: of the square section of the bars, m; `gravity`: m/s^2.

    References: [GonzalezDopicoLugrisCuadrado2006].
    """
    width = require_number("width", width, "> 0")
    linkage = Mechanism(gravity=[0.0, -require_number("gravity", gravity), 0.0])
    ends = list(pairwise(_CORNERS))
    bars = [
        linkage.body(f"bar {k + 1}", 1.0, bar(1.0, 1.0, width), (a + b) / 2, lying(a, b))
        for k, (a, b) in enumerate(ends)
    ]
    loop = [linkage.ground, *bars, linkage.ground]
    for k, corner in enumerate(_CORNERS):
        before, after = corner - _CORNERS[k - 1], _CORNERS[(k + 1) % 6] - corner
        axis = np.cross(before, after)
        linkage.join(Revolute(loop[k], loop[k + 1], at=corner, axis=axis, name="ABCDEF"[k]))
    return linkage.system()
