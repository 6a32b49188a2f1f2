"""What a question about a rod is asked of: a rod, and where it lies."""

from typing import Any

from retrax.errors import BadInput
from retrax.mechanics.split import AbstractSplitSystem
from retrax.mechanics.system import AbstractGroupSystem, element
from retrax.numerics.checks import shown


def require_rod(rod: Any) -> None:
    """Refuse anything that is not a rod."""
    if not (isinstance(rod, AbstractSplitSystem) and hasattr(rod, "bending")):
        raise BadInput(f"rod = {shown(rod)} is not a Rod.")


def placed(g: Any, system: AbstractGroupSystem) -> Any:
    """A placement of a rod, or of two, refused where it is none."""
    where = system.configuration_space
    placement = element("g", g, where.layout())
    where.check("g", placement)
    return placement
