"""Whether what was accepted is what it says: its parts are of their kinds, and it can move."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp

import retrax as rx
from retrax.groups.base import AbstractLieGroup
from retrax.groups.retractions import AbstractRetraction
from retrax.integrators.base import AbstractIntegrator
from retrax.mechanics.system import AbstractGroupSystem

_KINDS = {
    "retraction": AbstractRetraction, "base": AbstractIntegrator, "nodes": rx.Nodes | int | tuple,
    "tableau": rx.Tableau, "group": AbstractLieGroup, "order": int, "preserves": frozenset,
    "aligned": bool, "project": bool, "centred": bool, "form": str, "name": str, "n": int,
    "k": int, "dim": int, "most": int,
}  # fmt: skip


def sound(result: Any) -> bool:
    """The check of every entry."""
    if isinstance(result, tuple) and result and isinstance(result[0], AbstractGroupSystem):
        return sound(result[0])  # a system with its state, as `paper()` returns
    if isinstance(result, AbstractGroupSystem):
        return _moves(result)
    if isinstance(result, eqx.Module):
        return all(_is(name, getattr(result, name)) for name in _KINDS if hasattr(result, name))
    return True


def _is(name: str, value: Any) -> bool:
    exact = _KINDS[name] is not int or not isinstance(value, bool)
    return callable(value) or (exact and isinstance(value, _KINDS[name]))


def _moves(system: AbstractGroupSystem) -> bool:
    """A system has a name, and a vector field of the right shape."""
    momentum = jax.ShapeDtypeStruct((system.group.dim,), jnp.float64)
    time = jax.ShapeDtypeStruct((), jnp.float64)
    layout = system.configuration_space.layout()
    rates = jax.eval_shape(system.vector_field, layout, momentum, time)
    shapes = [rate.shape == momentum.shape and rate.dtype == jnp.float64 for rate in rates]
    return isinstance(system.name, str) and all(shapes)
