"""Where the model of a mechanism ends: reversed joints, flat wheels, wound-up springs."""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from retrax.errors import BadInput, StepFailed
from retrax.groups.base import Element
from retrax.mechanics.state import Ending, State, bracket
from retrax.mechanisms.elements import FARTHEST, AbstractSpring, Acting
from retrax.mechanisms.rolling import FLAT
from retrax.numerics.evaluate import Evaluated, as_jax, evaluate
from retrax.numerics.known import require_each

if TYPE_CHECKING:
    from retrax.mechanisms.system import MechanismSystem


class _Margins(NamedTuple):
    """How far a configuration is from each limit; all above zero where the model holds."""

    sides: Array | np.ndarray
    wheels: Array | np.ndarray
    springs: Array | np.ndarray


def _margins(system: "MechanismSystem", g: Element) -> _Margins:
    constraint, nothing = system.constraint, jnp.zeros(0)
    sides = nothing if constraint is None else constraint.sides(g)
    rolling = None if constraint is None else constraint.rolling
    wheels = nothing if rolling is None else rolling.upright(g) - FLAT
    margins = []
    for one in wound_springs(system):
        assert isinstance(one.element, AbstractSpring)
        margins.append(FARTHEST - jnp.abs(one.element.winding(*one.poses(g))))
    return _Margins(sides, wheels, jnp.stack(margins) if margins else nothing)


def within(system: "MechanismSystem", g: Element) -> Bool[Array, ""] | None:
    """Tell whether the model holds at a configuration; `None` where it holds everywhere."""
    margins = [m for m in _margins(system, g) if m.size]
    return jnp.all(jnp.concatenate(margins) > 0) if margins else None


def _describe_broken(system: "MechanismSystem", margins: _Margins) -> Iterator[tuple[str, str]]:
    """Say which limits a configuration breaks: what happened, and why it ends the model."""
    if all(np.all(np.asarray(margin) > 0) for margin in margins):
        return
    constraint = system.constraint
    owners: list[tuple[str, str]] = []
    for c in constraint.connections if constraint is not None else ():
        sides = jax.eval_shape(c.side, system.reference)
        owners += [(c.name, c.kind)] * sides.shape[0]
    for (name, kind), margin in zip(owners, margins.sides, strict=True):
        if not margin > 0:
            yield (
                f"put the {kind} joint {name!r} together the wrong way round",
                "its equations hold there too, but no motion leads there from where it was drawn",
            )
    rolling = None if constraint is None else constraint.rolling
    contacts = () if rolling is None else rolling.contacts
    for one, margin in zip(contacts, margins.wheels, strict=True):
        if not margin > 0:
            yield (
                f"laid the {one.kind} {one.name!r} flat",
                "it then touches its plane everywhere and not in one point, so that there is no "
                "rolling",
            )
    for one, margin in zip(wound_springs(system), margins.springs, strict=True):
        if not margin > 0:
            yield (
                f"wound the spring {one.name!r} by {FARTHEST - float(margin):.3g} rad",
                f"beyond {FARTHEST:g} rad (half a turn is 3.14) an angle does not tell which way "
                "the spring is wound",
            )


def require_within(system: "MechanismSystem", g: Element) -> None:
    """Reject a configuration at which the model does not hold."""

    def check(*margins: np.ndarray) -> None:
        if all(np.all(margin > 0) for margin in margins):
            return  # to name the joints takes long
        for what, why in _describe_broken(system, _Margins(*margins)):
            raise BadInput(f"this state has {what}: {why}.")

    require_each(check, *evaluate(_margins, system, g))


def wound_springs(system: "MechanismSystem") -> list[Acting]:
    """Return the springs that an angle winds."""
    return [s for s in system.springs if isinstance(s.element, AbstractSpring) and s.element.winds]


@Evaluated
def find_winding(system: "MechanismSystem", g: Element) -> Float[Array, " springs"]:
    """Return by how much each of these is wound, between -pi and pi."""
    found = [jnp.zeros(())]
    for one in wound_springs(system):
        assert isinstance(one.element, AbstractSpring)
        found.append(one.element.winding(*one.poses(g)))
    return jnp.stack(found)[1:]


def require_wound(system: "MechanismSystem", angles: np.ndarray) -> None:
    """Reject springs that are wound too far, counting turns."""
    for one, angle in zip(wound_springs(system), angles, strict=True):
        if not abs(angle) < FARTHEST:
            raise BadInput(
                f"this state has wound the spring {one.name!r} by {abs(angle):.4g} rad, counted "
                f"from the drawing: beyond {FARTHEST:g} rad (half a turn is 3.14) an angle does "
                "not tell how far the spring is wound."
            )


def ending(system: "MechanismSystem", step: Callable[[float], State], h: float) -> Ending | None:
    """Find the limit that a step of size `h` crosses."""

    def is_broken(size: float) -> list[tuple[str, str]]:
        margins = evaluate(_margins, system, step(size).g)
        return list(_describe_broken(system, _Margins(*(np.asarray(m) for m in margins))))

    found = is_broken(h)
    if not found:
        return None
    first, _ = bracket(lambda size: not is_broken(size), h)
    what, why = found[0]
    return Ending(
        what, f"{why[0].upper()}{why[1:]}.", StepFailed, jax.tree.map(as_jax, step(first))
    )
