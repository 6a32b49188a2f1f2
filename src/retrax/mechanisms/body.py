"""A body of a mechanism, as its joints know it."""

from dataclasses import dataclass

# The index of what does not move.
GROUND = -1


@dataclass(frozen=True, eq=False)
class Body:
    """A body of a mechanism, or its ground. `Mechanism.body` makes them.

    **Attributes:** `name`; `index`: its place among the bodies, `GROUND` for the ground.
    """

    name: str
    index: int

    def __repr__(self) -> str:
        return f"<body {self.name!r}>" if self.index != GROUND else "<the ground>"
