"""What a file says about joints and frames of a mechanism beside its mechanics: data."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float


class Limits(NamedTuple):
    """Between which values a joint may move, and how hard and fast; `None` if nothing is said."""

    lower: float | None = None
    upper: float | None = None
    effort: float | None = None
    velocity: float | None = None

    @property
    def bounded(self) -> bool:
        """Whether the joint may not move everywhere."""
        return self.lower is not None or self.upper is not None


class Frame(NamedTuple):
    """A frame on a body: the name of the body, the origin and the rotation, both in body axes."""

    body: str
    at: Float[np.ndarray, "3"]
    turned: Float[np.ndarray, "3 3"]
