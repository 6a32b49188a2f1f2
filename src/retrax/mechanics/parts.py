"""What every system from functions is given beside its energy."""

from typing import NamedTuple

from retrax.groups.base import AbstractLieGroup
from retrax.mechanics.constraints import AbstractConstraint
from retrax.mechanics.functions import Function, arguments, as_pytree
from retrax.mechanics.spheres import combine_group
from retrax.mechanics.symmetry import Generators, read_generators
from retrax.numerics.checks import require_double_precision, require_function, require_output
from retrax.spaces.sphere import Sphere

# Where a system may move: a point on a sphere has as many velocities as its surroundings.
Where = AbstractLieGroup | Sphere | tuple[AbstractLieGroup | Sphere, ...]


class Parts(NamedTuple):
    """What every system from functions is given beside its energy, checked."""

    group: AbstractLieGroup
    force: Function | None
    symmetry: Generators | None
    constraint: AbstractConstraint | None


def check_parts(group: object, force: object, symmetry: object, constraint: object) -> Parts:
    """Return the parts of a system that do not depend on its energy if they fit together."""
    require_double_precision()
    where, reaction = combine_group(group, constraint)
    if force is not None:
        require_output("force", force, arguments(where), (where.dim,))
        force = as_pytree(require_function("force", force))
    return Parts(where, force, read_generators(where, symmetry), reaction)
