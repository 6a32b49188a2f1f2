r"""Mechanics on spheres: unit vectors $x$ with $\tfrac12(|x|^2 - 1) = 0$ in their surroundings.

Energies are those of a point of $\mathbb R^n$ with velocity $v = \dot x$; the sphere pushes along
$x$. Beside it there may be further equations, on positions and on velocities.
"""

import jax.numpy as jnp
from jaxtyping import Array, Float

from retrax.errors import BadInput
from retrax.groups.base import AbstractLieGroup, Element, require_group
from retrax.groups.product import Product
from retrax.mechanics.constraints import AbstractConstraint, Rows, Time
from retrax.mechanics.hamel import check_constraint
from retrax.mechanics.holonomic import AbstractHolonomic, Holonomic
from retrax.numerics.checks import quote
from retrax.spaces.base import AbstractSpace
from retrax.spaces.embedded import Embedded, Factor
from retrax.spaces.sphere import Sphere


class OnSpheres(AbstractHolonomic):
    """Unit vectors have length one; `further` equations on positions stand below.

    **Arguments:**

    - `space`: the spheres, and the groups beside them.
    - `further`: what else holds, on positions.
    - `rolling`: what else holds, on velocities.
    """

    space: Embedded
    further: AbstractHolonomic | None = None
    rolling: AbstractConstraint | None = None

    def positions(self, g: Element, t: Time) -> Float[Array, " k"]:
        own = jnp.stack([(x @ x - 1) / 2 for x in self.space.spheres(g)])
        return own if self.further is None else jnp.concatenate([own, self.further.positions(g, t)])

    def position_rows(self, g: Element, t: Time) -> Rows:
        rows = []
        for x, columns in zip(self.space.spheres(g), self.space.columns(), strict=True):
            after = self.space.group.dim - columns.stop
            rows.append(jnp.concatenate([jnp.zeros(columns.start), x, jnp.zeros(after)]))
        own = jnp.stack(rows)
        if self.further is None:
            return own
        return jnp.concatenate([own, self.further.position_rows(g, t)])

    def position_rates(self, g: Element, t: Time) -> Float[Array, " k"]:
        own = jnp.zeros(len(self.space.columns()))
        if self.further is None:
            return own
        return jnp.concatenate([own, self.further.position_rates(g, t)])

    @property
    def moving(self) -> bool:
        parts = (self.further, self.rolling)
        return any(part is not None and part.moving for part in parts)

    def check(self, group: AbstractLieGroup) -> None:
        if group != self.space.group:
            raise BadInput(f"{self.space!r} has another group than {group.name}.")

    def equation(self, i: int) -> str:
        own = len(self.space.columns())
        if i < own:
            return f"the length of unit vector {i + 1}"
        if self.further is not None:
            return self.further.equation(i - own)
        return f"equation {i - own + 1} of the velocity constraint"


def combine_group(
    where: object, constraint: object
) -> tuple[AbstractLieGroup, AbstractConstraint | None]:
    """Return the group that a system moves on, and all of its constraints.

    `where` is a group, a sphere, or a tuple of both.

    **Raises:** `BadInput` for other spaces, with how to write mechanics there.
    """
    parts = where if isinstance(where, tuple) else (where,)
    for part in parts:
        if isinstance(part, AbstractSpace) and not isinstance(part, Sphere):
            raise BadInput(
                f"mechanics is on groups and spheres, not on {part.name}: take the coordinates of "
                "a space around it, such as Translation(n), with constraint=rx.Holonomic(phi) for "
                "the equations of its points."
            )
    if not any(isinstance(part, Sphere) for part in parts):
        groups = [require_group(part) for part in parts]
        group = groups[0] if len(groups) == 1 else Product(*groups)
        return group, check_constraint(group, constraint)
    space = Embedded(*(_factor(part) for part in parts))
    further = check_constraint(space.group, constraint)
    if isinstance(further, Holonomic):
        held = OnSpheres(space=space, further=further.alone(), rolling=further.rolling)
        return space.group, held
    return space.group, OnSpheres(space=space, rolling=further)


def _factor(part: object) -> Factor:
    if isinstance(part, Sphere | AbstractLieGroup):
        return part
    raise BadInput(f"group has {quote(part)} among its factors: no group and no sphere.")
