"""Modules of `equinox` as functions of the user's: their arrays apart, all else looked at.

A module is a pytree. As a part of a system it would be called behind the back of a look, and be
copied wherever the system is. So it goes into a system in two parts: `Held` are its arrays, which
can be differentiated and may differ between the members of an ensemble, and `Filled` is a function
of them. Both ask the module itself, so that whatever becomes of it is seen in the next run.
"""

from typing import Any

import equinox as eqx
import jax
from jax.tree_util import GetAttrKey, SequenceKey, keystr, tree_flatten_with_path

from retrax.errors import BadInput
from retrax.numerics.bits import Same
from retrax.numerics.walk import ByContent


@jax.tree_util.register_pytree_with_keys_class
class Held:
    """The arrays of a function that is a pytree, as they are now; in a copy, as they were.

    **Attributes:** `function`: where they are; `None` in a copy, which has `arrays`.
    """

    def __init__(self, function: Any, arrays: tuple[Any, ...] = ()):
        self.function, self.arrays = function, arrays

    def tree_flatten(self) -> tuple[tuple[Any, ...], None]:
        if self.function is None:
            return self.arrays, None
        return tuple(filter(_is_held, jax.tree.leaves(self.function))), None

    def tree_flatten_with_keys(self) -> tuple[list[tuple[Any, Any]], None]:
        if self.function is None:
            return [(SequenceKey(k), x) for k, x in enumerate(self.arrays)], None
        leaves, _ = tree_flatten_with_path(self.function)
        return [(GetAttrKey(keystr(path)), x) for path, x in leaves if _is_held(x)], None

    @classmethod
    def tree_unflatten(cls, _: None, arrays: Any) -> "Held":
        return cls(None, tuple(arrays))

    def __repr__(self) -> str:
        return f"<{len(self.tree_flatten()[0])} arrays>"


class Filled(ByContent):
    """A function that is a pytree, as one of its arrays and its arguments.

    Two are equal if they differ in nothing but arrays.
    """

    def __init__(self, function: Any):
        self.function = function

    def __call__(self, held: Held, *args: Any, **keywords: Any) -> Any:
        leaves, tree = jax.tree.flatten(self.function)
        places = [k for k, x in enumerate(leaves) if _is_held(x)]
        arrays, _ = held.tree_flatten()
        if len(arrays) != len(places):
            raise BadInput(f"{self!r} has other arrays than when this was made of it.")
        for k, x in zip(places, arrays, strict=True):
            leaves[k] = x
        return jax.tree.unflatten(tree, leaves)(*args, **keywords)

    def __repr__(self) -> str:
        return repr(self.function)

    @property
    def content(self) -> Any:
        leaves, tree = jax.tree.flatten(self.function)
        return jax.tree.unflatten(tree, [None if _is_held(x) else x for x in leaves])

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Filled):
            return False
        return self.function is other.function or self._form() == other._form()

    def __hash__(self) -> int:
        return hash(type(self.function))

    def _form(self) -> tuple[Any, list[Any]]:
        leaves, tree = jax.tree.flatten(self.function)
        return tree, [None if _is_held(x) else Same(x) for x in leaves]


def _is_held(x: object) -> bool:
    """Tell whether a leaf is a parameter: flags are not."""
    return eqx.is_array_like(x) and not isinstance(x, bool)
