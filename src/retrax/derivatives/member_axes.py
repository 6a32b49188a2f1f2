"""The rule for `jax.vmap` of a run: a member for each, those of maps in maps along one axis."""

from collections.abc import Callable, Sequence
from typing import Any

import jax.numpy as jnp
from jax.extend.core import Primitive
from jaxtyping import Array

from retrax.derivatives.problem import Flags

Rule = Callable[..., tuple[list[Array], list[int | None]]]


def make_batch_rule(primitive: Primitive, keeps: bool) -> Rule:
    """Return the batching rule of a primitive whose last result a run `keeps`, or not.

    What is kept is for single runs: members have none of it, and look at none.
    """

    def rule(
        arguments: Sequence[Array],
        axes: Sequence[int | None],
        *,
        members: int | None,
        own: Flags,
        given: Flags | None = None,
        **params: Any,
    ) -> tuple[list[Array], list[int | None]]:
        size = next(x.shape[a] for x, a in zip(arguments, axes, strict=True) if a is not None)
        kept = None if given is None else len(given)
        joined, flags = [], []
        for k, (x, axis, mine) in enumerate(zip(arguments, axes, own, strict=True)):
            if k == kept:
                joined.append(x if axis is None else jnp.moveaxis(x, axis, 0)[0])
                flags.append(False)
            else:
                joined.append(_join(x, axis, mine, size, members))
                flags.append(mine or axis is not None)
        rest = params if given is None else {**params, "given": given}
        if keeps:
            rest = {**params, "keeps": False}
        outs = primitive.bind(*joined, **rest, members=size * (members or 1), own=tuple(flags))
        found = [x if members is None else _part(x, size, members) for x in outs]
        axes_out: list[int | None] = [0] * len(found)
        if keeps:
            nothing = params["problem"].kept if params["keeps"] else (0, 0)
            found[-1], axes_out[-1] = jnp.zeros(nothing), None
        return found, axes_out

    return rule


def _part(x: Array, size: int, members: int) -> Array:
    """Give a result the axes of both maps."""
    return x.reshape(size, members, *x.shape[1:])


def _join(x: Array, axis: int | None, mine: bool, size: int, members: int | None) -> Array:
    """Return an argument with one axis for the members of this map and of those inside it."""
    if axis is not None:
        x = jnp.moveaxis(x, axis, 0)
    if members is None or (axis is None and not mine):
        return x
    inner = x.shape[int(axis is not None) + int(mine) :]
    if axis is None:
        x = x[None]
    elif not mine:
        x = x[:, None]
    return jnp.broadcast_to(x, (size, members, *inner)).reshape(size * members, *inner)
