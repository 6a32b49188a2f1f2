"""A word to the native back end about an axis of alike things."""

from typing import Any

import jax
from jax.ad_checkpoint import checkpoint_name

KEPT_AXIS = "retrax: kept axis"


def keep_axis(tree: Any) -> Any:
    """The same arrays, whose first axis the native back end is to keep as a loop, in vector lanes.

    Elsewhere this does nothing. Long axes are kept without being asked; this is for short ones,
    such as the stages of a step, for which all work is alike.
    """
    return jax.tree.map(lambda x: checkpoint_name(x, KEPT_AXIS), tree)
