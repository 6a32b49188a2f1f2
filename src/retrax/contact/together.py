"""Contacts of several kinds in one system."""

from typing import ClassVar

import equinox as eqx
import jax.numpy as jnp

from retrax.groups.base import Element
from retrax.mechanics.contact import AbstractContacts, Frames, Gaps, Seen, Touch
from retrax.mechanics.system import AbstractGroupSystem


class Together(AbstractContacts):
    """The candidates of several contacts, one after the other.

    **Arguments:** `parts`: the contacts.
    """

    in_a_row: ClassVar[bool] = False
    parts: tuple[AbstractContacts, ...]
    friction: Gaps
    restitution: Gaps
    names: tuple[str, ...] = eqx.field(static=True)

    def __init__(self, *parts: AbstractContacts):
        self.parts = parts
        self.friction = jnp.concatenate([part.friction for part in parts])
        self.restitution = jnp.concatenate([part.restitution for part in parts])
        self.names = tuple(name for part in parts for name in part.names)

    @property
    def parties(self) -> tuple[tuple[str, ...], ...]:
        return tuple(both for part in self.parts for both in part.parties)

    @property
    def drawn(self) -> Seen:
        seen = [part.drawn for part in self.parts]
        return Seen(*(tuple(x for one in each for x in one) for each in zip(*seen, strict=True)))

    def on(self, system: AbstractGroupSystem) -> "Together":
        return Together(*(part.on(system) for part in self.parts))

    def gaps(self, g: Element) -> Gaps:
        return jnp.concatenate([part.gaps(g) for part in self.parts])

    @property
    def follows(self) -> bool:
        return any(part.follows for part in self.parts)

    def look(self, g: Element, along: Frames | None = None, held: bool = False) -> Touch:
        found, start = [], 0
        for part in self.parts:
            stop = start + len(part.names)
            found.append(part.look(g, None if along is None else along[start:stop], held))
            start = stop
        return Touch(*(jnp.concatenate(values) for values in zip(*found, strict=True)))

    def overlap(self, candidate: int, depth: float) -> str:
        for part in self.parts:
            if candidate < len(part.names):
                return part.overlap(candidate, depth)
            candidate -= len(part.names)
        raise IndexError(candidate)
