"""Files of retrax 0.1: they tell in words where a system moves and what to draw of it.

Their provenance has the name of the group or space, such as `SO(3) x R^2` or `(SE(2) x R)^4`, and
under `drawing`, `units` and `up` what a picture needs.
"""

import json
import re
from collections.abc import Callable
from typing import Any

import jax
import numpy as np

from retrax.errors import BadInput
from retrax.groups.base import AbstractLieGroup
from retrax.groups.power import Power
from retrax.groups.product import Product
from retrax.groups.se2 import SE2
from retrax.groups.se3 import SE3
from retrax.groups.so2 import SO2
from retrax.groups.so3 import SO3
from retrax.groups.so_n import SO
from retrax.groups.translation import Translation
from retrax.mechanics.remembered import RememberedSystem
from retrax.mechanics.state import State
from retrax.spaces.base import AbstractHomogeneousSpace
from retrax.spaces.coadjoint_orbit import CoadjointOrbit
from retrax.spaces.grassmann import Grassmann
from retrax.spaces.group_itself import GroupItself
from retrax.spaces.isospectral import Isospectral
from retrax.spaces.sphere import Sphere
from retrax.spaces.stiefel import Stiefel
from retrax.spaces.torus import Torus

_GROUPS = {group.name: group for group in (SO2(), SO3(), SE2(), SE3())}
_TRANSLATION = re.compile(r"R(?:\^(\d{1,6}))?")
_ROTATIONS = re.compile(r"SO\((\d{1,2})\)")
_POWER = re.compile(r"(S[OE]\(\d\)|\(.+\))\^(\d{1,6})")
_ORBIT = "coadjoint orbit of "
_SPACES: tuple[tuple[re.Pattern[str], Callable[..., AbstractHomogeneousSpace]], ...] = (
    (re.compile(r"S\^(\d{1,4})"), lambda n: Sphere(n + 1)),
    (re.compile(r"T\^(\d{1,6})"), Torus),
    (re.compile(r"Sym\((\d{1,4})\)"), Isospectral),
    (re.compile(r"V_(\d{1,4})\(R\^(\d{1,4})\)"), lambda k, n: Stiefel(n, k)),
    (re.compile(r"G_(\d{1,4})\(R\^(\d{1,4})\)"), lambda k, n: Grassmann(n, k)),
)
_PICTURE = ("drawing", "units", "up")
# A name comes from a file: one that is longer, or nested deeper, was never written.
_LONGEST, _DEEPEST = 500, 20


def without_picture(words: dict[str, str]) -> dict[str, str]:
    """Leave out of a provenance what retrax 0.1 told there for pictures."""
    return {name: text for name, text in words.items() if name not in _PICTURE}


def system_in_words(words: dict[str, str], states: State) -> RememberedSystem | None:
    """Read what the provenance of a file of retrax 0.1 tells about its system.

    Return `None` where the name of the space is not understood or the states do not lie in it.
    """
    space = space_named(words.get("group", ""))
    if space is None or not _holds(space, states):
        return None
    drawing = _table("drawing", words.get("drawing"))
    turning = (drawing or {}).get("turning")
    inertia = turning.get("inertia") if isinstance(turning, dict) else None
    return RememberedSystem(
        title=words.get("system", "system"),
        space=space,
        numbers={} if inertia is None else {"inertia": np.array(inertia, float)},
        functions=(),
        drawing=drawing,
        measured={
            name: unit
            for name, unit in (_table("units", words.get("units")) or {}).items()
            if isinstance(unit, str)
        },
        e3_points_up=words.get("up") != "-e3",
    )


def space_named(name: str) -> AbstractHomogeneousSpace | None:
    """Return the space, or the group as a space, that has this name."""
    if len(name) > _LONGEST:
        return None
    try:
        for pattern, make in _SPACES:
            if found := pattern.fullmatch(name):
                return make(*map(int, found.groups()))
        if name.startswith(_ORBIT):
            group = _group(name.removeprefix(_ORBIT), 0)
            return None if group is None else CoadjointOrbit(group)
        group = _group(name, 0)
    except BadInput:  # a size that the space does not have
        return None
    return None if group is None else GroupItself(group)


def _group(name: str, depth: int) -> AbstractLieGroup | None:
    parts = _split(name)
    if depth > _DEEPEST:
        return None
    if len(parts) > 1:
        factors = [_group(part, depth + 1) for part in parts]
        known = [factor for factor in factors if factor is not None]
        return Product(*known) if len(known) == len(factors) else None
    if name in _GROUPS:
        return _GROUPS[name]
    if found := _TRANSLATION.fullmatch(name):
        return Translation(int(found[1] or 1))
    if found := _ROTATIONS.fullmatch(name):
        return SO(int(found[1]))
    if found := _POWER.fullmatch(name):
        inner = found[1] if found[1] in _GROUPS else found[1][1:-1]
        base = _group(inner, depth + 1)
        return None if base is None else Power(base, int(found[2]))
    return None


def _split(name: str) -> list[str]:
    """Cut a name at every ` x ` that is not inside parentheses."""
    parts, depth = [""], 0
    for piece in re.split(r"( x |[()])", name):
        depth += (piece == "(") - (piece == ")")
        if piece == " x " and depth == 0:
            parts.append("")
        else:
            parts[-1] += piece
    return parts


def _holds(space: AbstractHomogeneousSpace, states: State) -> bool:
    """Whether configurations and momenta have the shapes of those in the space."""
    shapes = [np.shape(leaf) for leaf in jax.tree.leaves(space.layout())]
    found = [np.shape(leaf)[1:] for leaf in jax.tree.leaves(states.g)]
    return shapes == found and np.shape(states.momentum)[1:] == (space.group.dim,)


def _table(name: str, text: str | None) -> dict[str, Any] | None:
    """Read what a run of retrax 0.1 tells in JSON."""
    if text is None:
        return None
    try:
        said = json.loads(text)
    except (ValueError, RecursionError):
        said = None
    if not isinstance(said, dict):
        raise BadInput(f"the {name} of this run is not a table in JSON.")
    return said
