"""What pictures of rods need: the spacing and the radius of each, and what stands around them."""

from typing import Any

import numpy as np
from jaxtyping import Array, Float

from retrax.contact.pictures import draw_surfaces
from retrax.contact.self_contact import SelfContact


def picture_size(spacing: Float[Array, ""], inertia: Float[Array, " dim"]) -> dict[str, float]:
    """Return spacing and radius of one rod of a picture."""
    turn, _, _, mass, _, _ = np.asarray(inertia)[:6]
    return {"spacing": float(spacing), "radius": 2 * float(np.sqrt(turn / mass))}


def around(contact: SelfContact | None) -> dict[str, Any]:
    """Return the shapes and planes in space that rods may touch."""
    if contact is None or not contact.against:
        return {}
    if any(np.ndim(shape.at) != 1 for shape in contact.against):
        return {}
    found = draw_surfaces(contact.against)
    return {"still": found.shapes, "planes": found.planes}
