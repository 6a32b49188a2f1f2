r"""Contact: what must not overlap, how rough it is, and how it bounces.

$$ \gamma_i(g) \ge 0, \qquad N_i = d\gamma_i, \qquad T_i\,\xi = \text{slip of the material points}. $$
"""

import abc
from typing import TYPE_CHECKING, NamedTuple

import equinox as eqx
from jaxtyping import Array, Float

from retrax.groups.base import Element
from retrax.numerics.frozen import Frozen

if TYPE_CHECKING:
    from retrax.mechanics.system import AbstractGroupSystem

Gaps = Float[Array, " m"]


class Touch(NamedTuple):
    """All contacts at a place.

    **Attributes:** `gap`: how far apart; `frame`: normal and two tangents of each, as rows;
    `rows`: what takes a velocity to the speeds along them.
    """

    gap: Gaps
    frame: Float[Array, "m 3 3"]
    rows: Float[Array, "m 3 dim"]


class AbstractContacts(Frozen):
    """Candidates for contact: each may be open, stick or slip.

    **Attributes:** `friction`, `restitution`: of each candidate; `names`: what sentences call them.
    """

    friction: eqx.AbstractVar[Gaps]
    restitution: eqx.AbstractVar[Gaps]
    names: eqx.AbstractVar[tuple[str, ...]]

    @abc.abstractmethod
    def on(self, system: "AbstractGroupSystem") -> "AbstractContacts":
        """Return the same contacts, which know the system they belong to."""

    @abc.abstractmethod
    def look(self, g: Element, along: Float[Array, "m 3 3"] | None = None) -> Touch:
        """Return gaps, frames and rows at a place; tangents turn as little as they can from `along`."""

    @abc.abstractmethod
    def gaps(self, g: Element) -> Gaps:
        r"""Return $\gamma(g)$."""
