"""A model as MuJoCo's compiler makes it, and the names in it."""

from typing import Any

# MuJoCo's types are those of a compiled module, which type checkers do not read.
Model = Any


class Names:
    """The names of the parts of a model; those without one are numbered."""

    def __init__(self, model: Model):
        self.model = model

    def body(self, i: int) -> str:
        """Return the name of a body."""
        return self.model.body(i).name or f"body {i}"

    def joint(self, j: int) -> str:
        """Return the name of a joint."""
        return self.model.joint(j).name or f"joint {j + 1}"

    def actuator(self, k: int) -> str:
        """Return the name of an actuator."""
        return self.model.actuator(k).name or f"motor {k + 1}"
