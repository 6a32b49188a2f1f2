"""A group by its name: which simple groups it is made of, and where each lies in body coordinates.

A stored run knows its group by name only, such as `SO(3) x R^2` or `(SE(2) x R)^4`. The names are
those that the groups give themselves; a name that cannot be read gives no factors.
"""

import re
from typing import NamedTuple

import numpy as np
from jaxtyping import Int

_DIMENSIONS = {"SO(2)": 1, "SO(3)": 3, "SE(2)": 3, "SE(3)": 6}
_POWER = re.compile(r"(SO\(\d\)|SE\(\d\)|\(.+\))\^(\d{1,7})")
_TRANSLATION = re.compile(r"R(?:\^(\d{1,7}))?")
# A name comes from a file; no group that was ever run has more dimensions.
_MOST = 1_000_000


class Factor(NamedTuple):
    """Equal copies of a simple group.

    **Attributes:** `kind`: `SO(2)`, `SO(3)`, `SE(2)`, `SE(3)` or `R`; `coordinates`: the indices of
    each copy in a body velocity or momentum, one copy a row.
    """

    kind: str
    coordinates: Int[np.ndarray, "copies dim"]


def factors(name: str) -> list[Factor]:
    """The factors of the group called `name`, in order; none where the name is not understood."""
    parts = _split(name)
    found: list[Factor] = []
    for part in parts:
        inner = _power(part)
        if not inner:
            return []
        found += [_shifted(factor, _dimension(found)) for factor in inner]
    return found


def _dimension(found: list[Factor]) -> int:
    return sum(factor.coordinates.size for factor in found)


def _shifted(factor: Factor, by: int) -> Factor:
    return Factor(factor.kind, factor.coordinates + by)


def _power(part: str) -> list[Factor]:
    """The factors of something without a product sign outside parentheses."""
    if part in _DIMENSIONS:
        return [Factor(part, np.arange(_DIMENSIONS[part])[None])]
    if translation := _TRANSLATION.fullmatch(part):
        dim = int(translation[1] or 1)
        return [Factor("R", np.arange(dim)[None])] if dim <= _MOST else []
    if power := _POWER.fullmatch(part):
        base = power[1] if power[1] in _DIMENSIONS else power[1][1:-1]
        inner, count = factors(base), int(power[2])
        dim = _dimension(inner)
        if count * dim > _MOST:
            return []
        return [
            Factor(kind, np.concatenate([rows + copy * dim for copy in range(count)]))
            for kind, rows in inner
        ]
    return []


def _split(name: str) -> list[str]:
    """The name cut at every ` x ` that is not inside parentheses."""
    parts, depth = [""], 0
    for piece in re.split(r"( x |[()])", name):
        depth += (piece == "(") - (piece == ")")
        if piece == " x " and depth == 0:
            parts.append("")
        else:
            parts[-1] += piece
    return parts
