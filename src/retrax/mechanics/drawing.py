"""What a system tells about its picture."""

import json

import numpy as np

from retrax.numerics.checks import ArrayLike, is_traced


def told(kind: str, **values: tuple[ArrayLike, int]) -> str | None:
    """Return the kind of a picture and its numbers in JSON; values come with the rank they need.

    `None` where a value is traced, or has another rank because it is that of many systems.
    """
    for value, rank in values.values():
        if is_traced(value) or np.ndim(value) != rank:
            return None
    return json.dumps({kind: {name: np.asarray(x).tolist() for name, (x, _) in values.items()}})
