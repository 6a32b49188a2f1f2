"""Modules of `equinox` as functions of the user's: their arrays apart, all else looked at.

A module is a pytree, and a part of a system as such would be called behind the back of a look, and
copied wherever the system is. So it goes into a system in two parts. `Held` are its arrays, a node
of the pytree: they can be differentiated and may differ between the members of an ensemble. `Filled`
is the module as a function of them. Both ask the module itself, so that whatever becomes of it is
seen in the next run.
"""

from typing import Any

import equinox as eqx
import jax
from jax.tree_util import GetAttrKey, keystr, tree_flatten_with_path

from retrax.errors import BadInput
from retrax.numerics.bits import Same
from retrax.numerics.walk import ByContent


def _is_held(x: object) -> bool:
    return eqx.is_array_like(x) and not isinstance(x, bool)


@jax.tree_util.register_pytree_with_keys_class
class Held:
    """The arrays of a module: as they are whenever they are asked for, or those given in place."""

    def __init__(self, module: eqx.Module | None, arrays: tuple[Any, ...] = ()):
        self.module, self.arrays = module, arrays

    def tree_flatten(self) -> tuple[tuple[Any, ...], None]:
        if self.module is None:
            return self.arrays, None
        return tuple(filter(_is_held, jax.tree.leaves(self.module))), None

    def tree_flatten_with_keys(self) -> tuple[list[tuple[Any, Any]], None]:
        leaves = tree_flatten_with_path(self.module or self.arrays)[0]
        held = [(GetAttrKey(keystr(path)), x) for path, x in leaves if self.module is None or _is_held(x)]
        return held, None

    @classmethod
    def tree_unflatten(cls, _: None, arrays: Any) -> "Held":
        return cls(None, tuple(arrays))


class Filled(ByContent):
    """A module as a function of its arrays and its arguments.

    Two are equal if their modules differ in nothing but arrays.
    """

    def __init__(self, module: eqx.Module):
        self.module = module

    def __call__(self, held: Held, *args: Any, **keywords: Any) -> Any:
        leaves, tree = jax.tree.flatten(self.module)
        arrays, places = held.tree_flatten()[0], [k for k, x in enumerate(leaves) if _is_held(x)]
        if len(arrays) != len(places):
            raise BadInput(f"{self!r} has other arrays than when this was made of it.")
        for k, x in zip(places, arrays, strict=True):
            leaves[k] = x
        return jax.tree.unflatten(tree, leaves)(*args, **keywords)

    def __repr__(self) -> str:
        return repr(self.module)

    @property
    def content(self) -> Any:
        """The module without its arrays."""
        return eqx.filter(self.module, _is_held, inverse=True)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Filled):
            return False
        return self.module is other.module or self._form() == other._form()

    def __hash__(self) -> int:
        return hash(type(self.module))

    def _form(self) -> tuple[Any, list[Any]]:
        leaves, tree = jax.tree.flatten(self.module)
        return tree, [None if _is_held(x) else Same(x) for x in leaves]
