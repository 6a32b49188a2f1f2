"""Which shapes may touch, how rough they are, and how they bounce."""

from collections.abc import Sequence

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from retrax.contact.bodies import Moved, Placed, moved, placed
from retrax.contact.meetings import Meeting, count, meeting
from retrax.contact.shapes import AbstractSurface
from retrax.errors import BadInput
from retrax.groups.base import AbstractLieGroup, Element
from retrax.mechanics.contact import AbstractContacts, Gaps, Touch
from retrax.mechanics.system import AbstractGroupSystem
from retrax.numerics.checks import ArrayLike, host_float64
from retrax.numerics.small_matrices import cross

Vector = Float[Array, "3"]


class Contacts(AbstractContacts):
    """Pairs of shapes that may touch, with friction and restitution.

    **Arguments:**

    - `pairs`: of shapes such as `Ball` and `Plane`; at least one of a pair is on a body.
    - `friction`: Coulomb's coefficient, one for all pairs or one for each.
    - `restitution`: which part of the approach comes back at an impact, from 0 to 1, likewise.
    """

    pairs: tuple[tuple[AbstractSurface, AbstractSurface], ...]
    friction: Gaps
    restitution: Gaps
    names: tuple[str, ...] = eqx.field(static=True)
    group: AbstractLieGroup | None
    bodies: tuple[tuple[int, int], ...] = eqx.field(static=True)

    def __init__(
        self,
        pairs: Sequence[tuple[AbstractSurface, AbstractSurface]],
        friction: ArrayLike = 0.0,
        restitution: ArrayLike = 0.0,
    ):
        self.pairs = tuple((a, b) for a, b in pairs)
        counts = [count(a, b) for a, b in self.pairs]
        self.names = tuple(
            f"{a.name} on {b.name}" + (f", point {k + 1}" if n > 1 else "")
            for (a, b), n in zip(self.pairs, counts, strict=True)
            for k in range(n)
        )
        self.friction = _each("friction", friction, counts)
        self.restitution = _each("restitution", restitution, counts)
        self.group, self.bodies = None, ()

    def on(self, system: AbstractGroupSystem) -> "Contacts":
        there = len(placed(system.group, system.group.identity()))
        names = getattr(system, "names", ())

        def index(shape: AbstractSurface) -> int:
            if shape.body is None:
                return -1
            where = names.index(shape.body) if shape.body in names else shape.body
            if not isinstance(where, int) or not 0 <= where < there:
                raise BadInput(
                    f"{shape.name} is on the body {shape.body!r}, but the {system.name} has "
                    f"{there} bodies."
                )
            return where

        bodies = tuple((index(a), index(b)) for a, b in self.pairs)
        return self._changed(group=system.group, bodies=bodies)

    def _changed(self, **fields: object) -> "Contacts":
        other = object.__new__(Contacts)
        for name, value in (vars(self) | fields).items():
            object.__setattr__(other, name, value)
        return other

    def _meetings(self, there: list[Placed]) -> list[Meeting]:
        still = Placed(jnp.eye(3), jnp.zeros(3))
        return [
            meeting(a, b, *(there[k] if k >= 0 else still for k in pair))
            for (a, b), pair in zip(self.pairs, self.bodies, strict=True)
        ]

    def gaps(self, g: Element) -> Gaps:
        assert self.group is not None
        return jnp.concatenate([m.gap for m in self._meetings(placed(self.group, g))])

    def look(self, g: Element, along: Float[Array, "m 3 3"] | None = None) -> Touch:
        assert self.group is not None
        there, moves = placed(self.group, g), moved(self.group, g)
        gaps, frames, rows = [], [], []
        for found, pair in zip(self._meetings(there), self.bodies, strict=True):
            for k in range(len(found.gap)):
                before = None if along is None else along[len(gaps)]
                frame = _frame(found.normal[k], before)
                points = (found.first[k], found.second[k])
                rows.append(_rows(frame, points, pair, there, moves))
                gaps.append(found.gap[k])
                frames.append(frame)
        return Touch(jnp.stack(gaps), jnp.stack(frames), jnp.stack(rows))


def _rows(
    frame: Float[Array, "3 3"],
    points: tuple[Vector, Vector],
    pair: tuple[int, int],
    there: list[Placed],
    moves: list[Moved],
) -> Float[Array, "3 dim"]:
    rows = []
    for d in frame:
        ends = [
            moves[body].row(d, point - there[body].x) if body >= 0 else None
            for body, point in zip(pair, points, strict=True)
        ]
        one, two = ends
        if one is None:
            assert two is not None
            rows.append(-two)
        else:
            rows.append(one if two is None else one - two)
    return jnp.stack(rows)


def _frame(n: Vector, before: Float[Array, "3 3"] | None) -> Float[Array, "3 3"]:
    """Return the normal and two tangents: the nearest to those before, or any."""
    if before is None:
        # Duff et al. (2017): no direction is close to where this is singular.
        sign = jnp.where(n[2] >= 0, 1.0, -1.0)
        a = -1 / (sign + n[2])
        b = n[0] * n[1] * a
        first = jnp.stack([1 + sign * n[0] * n[0] * a, sign * b, -sign * n[0]])
    else:
        first = before[1] - (before[1] @ n) * n
        first = first / jnp.sqrt(first @ first)
    return jnp.stack([n, first, cross(n, first)])


def _each(name: str, given: ArrayLike, counts: list[int]) -> Gaps:
    values = np.broadcast_to(np.asarray(host_float64(name, given)), (len(counts),))
    return jnp.asarray(np.repeat(values, counts))
