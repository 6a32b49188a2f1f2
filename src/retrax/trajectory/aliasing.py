r"""Steps that turn by more than half a turn: from the states alone nobody can tell how far.

Rotations by $\alpha$ and $\alpha + 2\pi$ are one attitude, so saved states say nothing of a step
with $|h\xi| > \pi$, and a method of low order takes such a step wrongly without noticing: all its
invariants may be kept to round-off.
"""

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from retrax.trajectory.trajectory import Trajectory


# Below this increment no method turns a body by pi: solved in Cayley's coordinates u a step turns
# by h xi = (1 + u^2 / 4) u about a fixed axis, which is 2.93 here.
_SHORT = 1.7


def turns(group: Any, increment: np.ndarray, h: float, velocity: Callable[[], Any]) -> np.ndarray:
    """How far a body turns in a step near each saved state: the largest angle of $h\\xi$.

    The `increment` of a method may be a coordinate of its retraction and less than that; so the
    velocities of the saved states are looked at, which `velocity` returns, where an increment is
    long enough. Zero on a group none of whose coordinates is an angle.
    """
    angles = group.angles()
    if not angles.any() or not np.nanmax(increment, initial=0.0) > _SHORT:
        return np.zeros(np.shape(increment))
    turn = np.abs(h) * np.max(np.abs(np.asarray(velocity())[..., angles]), axis=-1)
    return np.fmax(turn, increment) if angles.all() else turn


def aliasing(run: "Trajectory") -> str | None:
    """One sentence about a run with a step of more than half a turn."""
    if run.system is None:
        return None
    turn = turns(
        run.system.group,
        np.asarray(run.info.increment),
        run.h,
        lambda: run.along(run.system.velocity_at),
    )
    if not np.nanmax(turn) > math.pi:
        return None
    worst = int(np.nanargmax(turn))
    return (
        f"a step near t = {float(run.t[worst]):.6g} s turned the {run.system.name} by |h xi| = "
        f"{turn[worst]:.4g} rad: beyond pi the states cannot tell how often it went round, and "
        f"its errors do not show in the invariants; use a step below "
        f"{abs(run.h) * math.pi / turn[worst]:.2g} s."
    )
