"""What a system tells about its picture."""

import json
from typing import Any

import numpy as np

from retrax.numerics.checks import is_traced


def told(kind: str, **values: tuple[Any, int]) -> str | None:
    """The kind of a picture and its numbers in JSON; each value comes with the rank it must have.

    `None` where a value is traced, or has another rank because it is that of many systems.
    """
    for value, rank in values.values():
        if is_traced(value) or np.ndim(value) != rank:
            return None
    return json.dumps({kind: {name: np.asarray(x).tolist() for name, (x, _) in values.items()}})
