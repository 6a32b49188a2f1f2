"""What two rods in contact may start from, and what is said of other placements."""

import numpy as np
from jaxtyping import Float

from retrax.errors import BadInput, ContactDegenerate, ContactLeftRod
from retrax.numerics.bspline import SUPPORT
from retrax.systems.rods.contact import beyond, degenerate, too_flat

# By how much a start may miss the gap and the tangency, relative to the gap.
_ALLOWED = 1e-9


def require_touching(
    apart: bool,
    sizes: tuple[np.ndarray, np.ndarray, tuple[np.ndarray, np.ndarray]],
    t: np.ndarray,
    s: np.ndarray,
    gap: np.ndarray,
    skew: np.ndarray,
    H: np.ndarray,
) -> None:
    """Reject rods that do not touch at the arc lengths `s`, or are not closest there if `apart`.

    `sizes` are the radius, the width of the bump and the lengths of both rods.
    """
    radius, width, lengths = sizes
    _require_contact(s, float(t), H, SUPPORT * float(width), np.array(lengths))
    expected = 2 * float(radius)
    if not (apart or abs(gap - expected) <= _ALLOWED * expected):
        raise BadInput(
            f"g has the centrelines {float(gap):.9g} apart at the contact, but they must be "
            f"two radii, {expected:.9g}, apart."
        )
    if not skew <= _ALLOWED * expected:
        raise BadInput(
            f"s = {[float(x) for x in s]} are not the points of the centrelines that "
            f"are closest to each other: the line between them misses the right angle by "
            f"{float(skew):.3g}; find them by pair.touching(...)."
        )


def _require_contact(
    s: np.ndarray, t: float, H: Float[np.ndarray, "2 2"], reach: float, lengths: np.ndarray
) -> None:
    """Reject parallel rods, and a bump that reaches beyond an end."""
    if np.any(s < reach) or np.any(s > lengths - reach):
        raise ContactLeftRod(beyond(s, t, reach))
    if too_flat(H):
        raise ContactDegenerate(degenerate(s, t, H))


def require_multiple(name: str, width: np.ndarray, spacing: np.ndarray) -> None:
    ratio = float(width / spacing)
    if not (0.5 < ratio < 1e9 and abs(ratio - round(ratio)) < 1e-9 * ratio):
        raise BadInput(
            f"width = {float(width):g} is {ratio:.6g} spacings of the {name}, but must be a whole "
            "multiple of them: otherwise the weights of the contact do not add up to one."
        )


def require_law(keeps_gap: bool, unilateral: bool, restitution: np.ndarray) -> None:
    """Reject what only a contact that may open has, and equations that do not keep the gap."""
    if unilateral and not keeps_gap:
        raise BadInput(
            "unilateral = True needs equations that keep the gap, which those of this subclass "
            "of RodsInContact do not."
        )
    if not unilateral and float(restitution) != 0:
        raise BadInput(
            f"restitution = {float(restitution):g} is of impacts, and rods that roll for "
            "as long as they touch have none; unilateral=True lets them part and meet again."
        )


def require_within(name: str, most: float, value: np.ndarray) -> None:
    """Reject a number below zero or above `most`."""
    if not 0 <= float(value) <= most:
        bound = "at least 0" if most == np.inf else f"between 0 and {most:g}"
        raise BadInput(f"{name} = {float(value):g} must be {bound}.")


def require_rolling(allowed: float, broken: np.ndarray) -> None:
    if not float(broken) <= allowed:
        raise BadInput(
            f"velocity lets the surfaces of the rods slip at {float(broken):.3g} m/s, but they "
            "must roll; project=True takes the nearest velocity that rolls."
        )
