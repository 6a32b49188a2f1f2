r"""Contact: what must not overlap, how rough it is, and how it bounces.

$$ \gamma_i(g) \ge 0, \qquad N_i = d\gamma_i, \qquad
    T_i\,\xi = \text{slip of the material points}. $$
"""

import abc
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import equinox as eqx
import jax
import numpy as np
from jaxtyping import Array, Float

from retrax.errors import BadInput
from retrax.groups.base import Coordinates, Element
from retrax.mechanics.shape import Shape, Triple
from retrax.numerics.checks import quote
from retrax.numerics.evaluate import evaluate
from retrax.numerics.frozen import Frozen
from retrax.numerics.known import require_each

if TYPE_CHECKING:
    from retrax.mechanics.system import AbstractGroupSystem

Gaps = Float[Array, " m"]
Frames = Float[Array, "m 3 3"]
# A start may overlap by this much, relative to its coordinates: rounding.
_ROUNDING = 1e-11
_ALIKE = 1 - 1e-6


class Seen(NamedTuple):
    """What there is to see of things that touch.

    **Attributes:** `shapes`: each on its body or on the ground; `planes`: their normals, a point
    and the body of each, for they have no end.
    """

    shapes: tuple[Shape, ...] = ()
    planes: tuple[tuple[Triple, Triple, int | str], ...] = ()


class Touch(NamedTuple):
    """All contacts at a place.

    **Attributes:** `gap`: how far apart; `frame`: normal and two tangents of each, as rows;
    `rows`: what takes a velocity, or the entries of it that a contact reaches, to the speeds along
    them.
    """

    gap: Gaps
    frame: Frames
    rows: Float[Array, "m 3 _"]


class AbstractTouching(Frozen):
    """What must not overlap.

    **Attributes:** `in_a_row`: whether it is a row of many alike things, as the nodes of rods are,
    that programs keep as a loop.
    """

    in_a_row: ClassVar[bool] = True

    @abc.abstractmethod
    def gaps(self, g: Element) -> Gaps:
        r"""Return $\gamma(g)$."""

    @abc.abstractmethod
    def overlap(self, candidate: int, depth: float) -> str:
        """Return a sentence about a start at which a candidate overlaps."""


class AbstractContacts(AbstractTouching):
    """Candidates for contact: each may be open, stick or slip.

    **Attributes:** `friction`, `restitution`: of each candidate; `names`: what sentences call them;
    `own_step`: the integrator to use where `NonsmoothRattle` does not step them, or `None`.
    """

    own_step: ClassVar[str | None] = None

    friction: eqx.AbstractVar[Gaps]
    restitution: eqx.AbstractVar[Gaps]
    names: eqx.AbstractVar[tuple[str, ...]]

    @property
    def drawn(self) -> Seen:
        """What to draw of the things that touch."""
        return Seen()

    @property
    def parties(self) -> tuple[tuple[str, ...], ...]:
        """Who touches in each candidate."""
        return tuple((name,) for name in self.names)

    @abc.abstractmethod
    def on(self, system: "AbstractGroupSystem") -> "AbstractContacts":
        """Return the same contacts, which know the system they belong to."""

    @property
    def follows(self) -> bool:
        """Whether the points of candidates depend on where they were when a step began."""
        return False

    @abc.abstractmethod
    def look(self, g: Element, along: Frames | None = None, held: bool = False) -> Touch:
        """Return gaps, frames and rows at a place; tangents turn little from those of `along`.

        With `held` points of candidates are where `along` says.
        """

    @property
    def couples(self) -> Any:
        """Which entries of a velocity each candidate reaches, where there are many of both.

        `Couples` of `retrax.contact.solver.coupled_blocks`, or `None`.
        """
        return None

    def reach(self, g: Element, along: Frames | None = None, held: bool = False) -> Touch:
        """Return the same as `look`, with rows of the entries in `couples` alone."""
        return self.look(g, along, held)

    def speeds(
        self, g: Element, xi: Coordinates, along: Frames | None = None
    ) -> tuple[Gaps, Float[Array, "m 3"]]:
        """Return gaps, and the speeds of a velocity along the frames of `look`."""
        found = self.look(g, along)
        return found.gap, found.rows @ xi

    def overlap(self, candidate: int, depth: float) -> str:
        """Return a sentence about a start at which a candidate overlaps."""
        return (
            f"{self.names[candidate]}: they overlap by {depth:.3g} m in this state. Move them "
            "apart by as much, or leave the pair out of the contacts."
        )


def require_contacts(given: object) -> AbstractContacts:
    """Reject what does not say which bodies may touch."""
    if isinstance(given, AbstractContacts):
        return given
    if isinstance(given, AbstractTouching):
        raise BadInput(
            f"contact = {quote(given)} is the contact of rods; bodies take rx.Contacts([(ball, "
            "table)])."
        )
    raise BadInput(f"contact = {quote(given)} must be contacts: rx.Contacts([(ball, table)]).")


def require_apart(contact: AbstractTouching, g: Element) -> None:
    """Reject a place at which bodies overlap, with the pair, the depth, and what to do."""

    def check(gaps: np.ndarray, *leaves: np.ndarray) -> None:
        size = max(1.0, *(float(np.max(np.abs(leaf))) for leaf in leaves))
        # Of several that overlap alike, the first.
        worst = int(np.argmax(gaps <= _ALIKE * np.min(gaps)))
        if gaps[worst] < -_ROUNDING * size:
            raise BadInput(contact.overlap(worst, -float(gaps[worst])))

    def fine(gaps: np.ndarray, *leaves: np.ndarray) -> np.ndarray:
        return np.min(gaps, axis=1, initial=0.0) >= -_ROUNDING

    require_each(check, evaluate(_gaps, contact, g), *jax.tree.leaves(g), fine=fine)


def _gaps(contact: AbstractTouching, g: Element) -> Gaps:
    return contact.gaps(g)
