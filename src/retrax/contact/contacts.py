"""Which shapes may touch, how rough they are, and how they bounce."""

from collections.abc import Hashable, Sequence
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from retrax.contact.bodies import Placed, all_parts, moving_parts, place_bodies
from retrax.contact.in_groups import Pairs
from retrax.contact.meeting import Meeting
from retrax.contact.meetings import follows, meeting, names_of
from retrax.contact.nearest import Points, across, length_and_way
from retrax.contact.pictures import picture
from retrax.contact.shapes import AbstractSurface, content_of, number_names
from retrax.contact.solver.coupled_blocks import Couples, in_parts
from retrax.errors import BadInput
from retrax.groups.base import AbstractLieGroup, Coordinates, Element
from retrax.mechanics.contact import AbstractContacts, Frames, Gaps, Seen, Touch
from retrax.mechanics.system import AbstractGroupSystem
from retrax.numerics.checks import ArrayLike, float64, is_traced, quote, require_finite
from retrax.numerics.evaluate import evaluate_in_jax
from retrax.numerics.known import require_each
from retrax.numerics.small_matrices import cross

_GROUND = "ground"


class Contacts(AbstractContacts):
    r"""Pairs of shapes that may touch, with friction and restitution.

    A pair has as many candidates as points in which it can touch at once, such as the eight corners
    of a box on a plane. Each obeys

    $$ 0 \le \gamma \perp p \ge 0, \qquad |q| \le fp \ \text{ against the slip}. $$

    **Arguments:**

    - `pairs`: of shapes such as `Ball` and `Plane`, on different bodies; one of a pair may stand
        still.
    - `friction`: Coulomb's coefficient $f \ge 0$, one for all pairs or one for each.
    - `restitution`: which part $e$ of the approach comes back at an impact, from 0 to 1, likewise.

    **Attributes:** `friction`, `restitution`, `names`: of each candidate; `counts`: how many
    candidates each pair has.

    **Raises:** `BadInput` for pairs that cannot touch, that are given twice, or that stand still;
    for friction and restitution out of their ranges.
    """

    in_a_row: ClassVar[bool] = False
    pairs: tuple[tuple[AbstractSurface, AbstractSurface], ...]
    friction: Gaps
    restitution: Gaps
    names: tuple[str, ...] = eqx.field(static=True)
    counts: tuple[int, ...] = eqx.field(static=True)
    group: AbstractLieGroup | None
    bodies: tuple[tuple[int, int], ...] = eqx.field(static=True)
    parts: tuple[tuple[int, int], ...] = eqx.field(static=True)

    def __init__(
        self,
        pairs: Sequence[tuple[AbstractSurface, AbstractSurface]],
        friction: ArrayLike = 0.0,
        restitution: ArrayLike = 0.0,
    ):
        self.pairs = _check_pairs(pairs)
        called = _shape_names(self.pairs)
        names = [names_of(a, b, called[id(a)], called[id(b)]) for a, b in self.pairs]
        self.names = number_names(name for of_pair in names for name in of_pair)
        self.counts = tuple(len(of_pair) for of_pair in names)
        owners = np.repeat(np.arange(len(names)), self.counts)
        self.friction = _each("friction", friction, owners)
        self.restitution = _each("restitution", restitution, owners)
        self.group, self.bodies, self.parts = None, (), ()

    @staticmethod
    def _arguments(fields: dict[str, Any]) -> dict[str, Any]:
        """Return what made it, from its parts in a file: one friction for each pair again."""
        first = np.cumsum((0, *fields["counts"]))[:-1]
        each = {name: np.asarray(fields[name])[first] for name in ("friction", "restitution")}
        return {"pairs": fields["pairs"], **each}

    def on(self, system: AbstractGroupSystem) -> "Contacts":
        found = moving_parts(system.group)
        names = tuple(getattr(system, "names", ()))

        def index(shape: AbstractSurface) -> int:
            if _stands(shape):
                return -1
            where = names.index(shape.body) if shape.body in names else shape.body
            if not isinstance(where, int) or where >= len(found):
                raise BadInput(
                    f"{shape.name!r} is on the body {shape.body!r}, but the {system.name} has "
                    f"{_bodies(names, len(found))}."
                )
            return where

        bodies = tuple((index(a), index(b)) for a, b in self.pairs)
        for (a, b), (i, j) in zip(self.pairs, bodies, strict=True):
            if i == j:
                raise BadInput(
                    f"{a.name!r} and {b.name!r} are on the same body, {a.body!r}, so that the gap "
                    "between them never changes: leave the pair out."
                )
        return self._with_fields(group=system.group, bodies=bodies, parts=found)

    def _with_fields(self, **fields: object) -> "Contacts":
        other = object.__new__(Contacts)
        for name, value in (vars(self) | fields).items():
            object.__setattr__(other, name, value)
        return other

    @property
    def parties(self) -> tuple[tuple[str, ...], ...]:
        called = _shape_names(self.pairs)
        return tuple(
            (called[id(a)], called[id(b)])
            for a, b in self.pairs
            for _ in names_of(a, b, called[id(a)], called[id(b)])
        )

    @property
    def drawn(self) -> Seen:
        many = is_traced(self) or any(
            np.ndim(shape.at) != 1 for pair in self.pairs for shape in pair
        )
        return Seen() if many else picture(self.pairs)

    def _there(self, g: Element) -> list[Placed]:
        """Return where the bodies are; last comes what stands still."""
        assert self.group is not None, "these contacts belong to no system yet"
        return [*place_bodies(self.group, g), Placed(jnp.eye(3), jnp.zeros(3))]

    @property
    def follows(self) -> bool:
        return any(follows(a, b) for a, b in self.pairs)

    def _meetings(
        self, there: list[Placed], along: Frames | None = None, held: bool = False
    ) -> list[Meeting]:
        found: list[Meeting] = []
        start = 0
        for (a, b), (i, j), count in zip(self.pairs, self.bodies, self.counts, strict=True):
            before = None if along is None else along[start : start + count, 1]
            found.append(meeting(a, b, there[i], there[j], before, held))
            start += count
        return found

    def gaps(self, g: Element) -> Gaps:
        return jnp.concatenate([found.gap for found in self._meetings(self._there(g))])

    def look(self, g: Element, along: Frames | None = None, held: bool = False) -> Touch:
        there = self._there(g)
        assert self.group is not None
        meetings, dim = self._meetings(there, along, held), self.group.dim
        frames, rows = self._ways(meetings, along), []
        for found, ways, (i, j) in zip(meetings, frames, self.bodies, strict=True):
            rows.append(_rows(ways, found, there[i], there[j], dim))
        gaps = jnp.concatenate([found.gap for found in meetings])
        return Touch(gaps, jnp.concatenate(frames), jnp.concatenate(rows))

    @property
    def couples(self) -> Couples | None:
        assert self.group is not None
        parts, at = all_parts(self.parts, self.group.dim)

        def both(i: int, j: int) -> tuple[int, int]:
            one, *others = [at[k] for k in (i, j) if k >= 0]
            return one, others[0] if others else (one + 1) % len(parts)

        of = zip(self.bodies, self.counts, strict=True)
        found = Couples(parts, tuple(both(*pair) for pair, count in of for _ in range(count)))
        return found if found.are_many else None

    def reach(self, g: Element, along: Frames | None = None, held: bool = False) -> Touch:
        couples = self.couples
        if couples is None:
            return self.look(g, along, held)
        size = couples.size

        def one(
            a: AbstractSurface,
            b: AbstractSurface,
            at: Placed,
            on: Placed,
            before: Points | None,
            *_: Coordinates,
        ) -> tuple[Array, ...]:
            found = meeting(a, b, at, on, before, held)
            ways = _frames(found, before)
            rows = [at.rows(ways, found.first, size)] if at.moves else []
            rows += [-on.rows(ways, found.second, size)] if on.moves else []
            rows += [jnp.zeros((*ways.shape[:2], size))] * (couples.width - len(rows))
            return found.gap, ways, jnp.concatenate(rows, axis=2)

        none = [jnp.zeros(0)] * (len(self.parts) + 1)
        return Touch(*self._group(g).each(one, along, none))

    def _group(self, g: Element) -> Pairs:
        return Pairs(self.pairs, self.bodies, self.counts, self._there(g))

    def speeds(
        self, g: Element, xi: Coordinates, along: Frames | None = None
    ) -> tuple[Gaps, Float[Array, "m 3"]]:
        couples = self.couples
        if couples is not None:
            return self._speeds_in_groups(g, xi, along, couples)
        there = self._there(g)
        meetings = self._meetings(there, along)
        moves = [
            there[i].velocities(found.first, xi) - there[j].velocities(found.second, xi)
            for found, (i, j) in zip(meetings, self.bodies, strict=True)
        ]
        frames = jnp.concatenate(self._ways(meetings, along))
        gaps = jnp.concatenate([found.gap for found in meetings])
        return gaps, jnp.einsum("iad,id->ia", frames, jnp.concatenate(moves))

    def _speeds_in_groups(
        self, g: Element, xi: Coordinates, along: Frames | None, couples: Couples
    ) -> tuple[Gaps, Float[Array, "m 3"]]:
        parts, at = in_parts(xi, couples), all_parts(self.parts, len(xi))[1]
        own = [*(parts[k] for k in at), jnp.zeros(couples.size)]

        def one(
            a: AbstractSurface,
            b: AbstractSurface,
            at: Placed,
            on: Placed,
            before: Points | None,
            u: Coordinates,
            v: Coordinates,
        ) -> tuple[Array, ...]:
            found = meeting(a, b, at, on, before)
            moves = at.velocities(found.first, u) - on.velocities(found.second, v)
            return found.gap, jnp.sum(_frames(found, before) * moves[:, None, :], axis=2)

        gap, speeds = self._group(g).each(one, along, own)
        return gap, speeds

    def _ways(self, meetings: list[Meeting], along: Frames | None) -> list[Frames]:
        """Return the frames of all candidates, pair by pair."""
        frames, start = [], 0
        for found, count in zip(meetings, self.counts, strict=True):
            before = None if along is None else along[start : start + count, 1]
            frames.append(_frames(found, before))
            start += count
        return frames


def _rows(ways: Frames, found: Meeting, a: Placed, b: Placed, dim: int) -> Float[Array, "k 3 dim"]:
    """Return what takes a velocity to that of the first points against the second."""
    if not b.moves:
        return a.rows(ways, found.first, dim)
    if not a.moves:
        return -b.rows(ways, found.second, dim)
    return a.rows(ways, found.first, dim) - b.rows(ways, found.second, dim)


def _frames(found: Meeting, before: Points | None) -> Frames:
    """Return the normals and two tangents each: the nearest to those before, or any."""
    n = found.normal
    if found.way is not None:
        first = found.way
    else:
        first = jax.vmap(across)(n)[:, 0]
        if before is not None:
            flat = before - jnp.sum(before * n, axis=1, keepdims=True) * n
            _, first = length_and_way(flat, first)
    return jnp.stack([n, first, jax.vmap(cross)(n, first)], axis=1)


def _stands(shape: AbstractSurface) -> bool:
    return shape.body is None or shape.body == _GROUND


def _check_pairs(
    pairs: Sequence[tuple[AbstractSurface, AbstractSurface]],
) -> tuple[tuple[AbstractSurface, AbstractSurface], ...]:
    """Return pairs of shapes that can touch, each once."""
    if not isinstance(pairs, list | tuple) or not pairs:
        raise BadInput(
            f"pairs = {quote(pairs)} must be a list of pairs of shapes, as [(ball, table)]."
        )
    seen: set[frozenset[Hashable]] = set()
    for pair in pairs:
        if not isinstance(pair, list | tuple) or len(pair) != 2:
            raise BadInput(f"{quote(pair)} is not a pair of shapes, as (ball, table).")
        for shape in pair:
            if not isinstance(shape, AbstractSurface):
                raise BadInput(
                    f"{quote(shape)} is not a shape that can touch: rx.Plane, rx.Ball, rx.Capsule, "
                    "rx.Cylinder and rx.Box are."
                )
        a, b = pair
        if a is b:
            raise BadInput(f"{a.name!r} is in a pair with itself: name two shapes.")
        if _stands(a) and _stands(b):
            raise BadInput(
                f"{a.name!r} and {b.name!r} both stand still: say with body= what carries one of "
                "them."
            )
        both = frozenset((content_of(a), content_of(b)))
        if both in seen:
            raise BadInput(f"the pair of {a.name!r} and {b.name!r} is given twice: once is enough.")
        seen.add(both)
    return tuple((a, b) for a, b in pairs)


def _shape_names(pairs: tuple[tuple[AbstractSurface, AbstractSurface], ...]) -> dict[int, str]:
    """Return what sentences call each shape: with its body, where several have the same name."""
    shapes = {id(shape): shape for pair in pairs for shape in pair}
    names = [shape.name for shape in shapes.values()]
    return {
        key: shape.name
        if names.count(shape.name) == 1 or shape.body is None
        else f"{shape.name} of {'body ' if isinstance(shape.body, int) else ''}{shape.body}"
        for key, shape in shapes.items()
    }


def _bodies(names: tuple[str, ...], count: int) -> str:
    if names:
        return "the bodies " + ", ".join(map(repr, names))
    if count == 0:
        return "no bodies that have a place in space"
    return "one body, which has the number 0" if count == 1 else f"the bodies 0 to {count - 1}"


def _each(name: str, given: ArrayLike, owners: np.ndarray) -> Gaps:
    """Return a number for each candidate from one for all pairs or one for each."""
    values, count = float64(name, given), int(owners[-1]) + 1
    if values.shape not in ((), (count,)):
        raise BadInput(
            f"{name} has shape {values.shape}; it is one number, or one for each of the {count} "
            "pairs."
        )
    require_finite(name, values)

    def check(numbers: np.ndarray) -> None:
        if np.any(numbers < 0) or (name == "restitution" and np.any(numbers > 1)):
            rule = "from 0 to 1" if name == "restitution" else "0 or more"
            raise BadInput(f"{name} = {quote(numbers.tolist())} must be {rule}.")

    require_each(check, values)
    return evaluate_in_jax(lambda x: jnp.broadcast_to(x, (count,))[owners], values)
