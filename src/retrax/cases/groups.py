"""Groups, retractions and nodes by their names."""

from typing import Any

from retrax.cases.parts import Choices, make
from retrax.errors import BadInput
from retrax.groups.base import AbstractLieGroup
from retrax.groups.matrix_group import MatrixGroup
from retrax.groups.power import Power
from retrax.groups.product import Product
from retrax.groups.retractions import Cayley, Exp
from retrax.groups.se2 import SE2
from retrax.groups.se3 import SE3
from retrax.groups.second_kind import SecondKind
from retrax.groups.so2 import SO2
from retrax.groups.so3 import SO3
from retrax.groups.so_n import SO
from retrax.groups.translation import Translation
from retrax.numerics import nodes

RETRACTIONS: Choices = {"Cayley": Cayley, "Exp": Exp, "SecondKind": SecondKind}
NODES: Choices = {
    family.__name__: family
    for family in (
        nodes.gauss,
        nodes.radau,
        nodes.radau_left,
        nodes.lobatto,
        nodes.chebyshev,
        nodes.chebyshev_lobatto,
    )
}


def _product(groups: Any) -> Product:
    if not isinstance(groups, list | tuple):
        raise BadInput(f"groups = {groups!r} must be a list of groups.")
    return Product(*(make_group(group) for group in groups))


GROUPS: Choices = {
    "SO2": SO2,
    "SO3": SO3,
    "SE2": SE2,
    "SE3": SE3,
    "SO": SO,
    "Translation": Translation,
    "MatrixGroup": MatrixGroup,
    "Power": Power,
    "Product": _product,
}


def make_group(described: Any) -> AbstractLieGroup:
    """A group from a name, `"SO3"`, or a table, `{"name": "Translation", "n": 2}`."""
    return make("group", described, GROUPS, {"group": GROUPS})
