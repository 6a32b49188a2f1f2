"""Frozen values: pytrees whose methods cost no more than Python's."""

from typing import TYPE_CHECKING

import equinox as eqx


class Frozen(eqx.Module):
    """An `equinox.Module` with plain bound methods.

    `equinox` makes a pytree of every bound method, each time one is looked up: fifty microseconds,
    where a whole run of one step takes a hundred. To pass a method through `jax.jit` with the
    arrays of its object as arguments, write `jax.tree_util.Partial(type(x).method, x)`.
    """

    if not TYPE_CHECKING:
        __getattribute__ = object.__getattribute__
