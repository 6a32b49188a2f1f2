"""The way back: the name and the parameters that an object is made of."""

import inspect
from collections.abc import Mapping
from typing import Any

import jax
import numpy as np

from retrax.cases.makers import Choices, make
from retrax.cases.names import INTEGRATOR_PARTS, METHODS, SYSTEM_PARTS, SYSTEMS
from retrax.errors import BadInput
from retrax.integrators.base import AbstractIntegrator
from retrax.mechanics.constraints import constant_value
from retrax.numerics.nodes import Nodes
from retrax.numerics.tableaus import Tableau


def describe(thing: object) -> dict[str, Any] | None:
    """Return the table from which `make_system` or `make_integrator` remakes `thing`, bit for bit.

    It holds numbers, text, lists and tables only, so that JSON and TOML can keep it. `None` if no
    table says all of it: a system with a function of the user's, for instance.
    """
    if isinstance(thing, AbstractIntegrator):
        return _description(thing, METHODS, INTEGRATOR_PARTS)
    return _description(thing, SYSTEMS, SYSTEM_PARTS)


def _description(
    thing: object, choices: Choices, parts: Mapping[str, Choices]
) -> dict[str, Any] | None:
    name = type(thing).__name__
    maker = choices.get(name)
    if maker is None:
        return None
    table: dict[str, Any] = {"name": name}
    known = inspect.signature(maker).parameters
    for key, parameter in known.items():
        value = _plain(getattr(thing, key, None), parts.get(key, {}), parts)
        if value is not None and value != parameter.default:
            table[key] = value
    # The object does not remember whether it insisted on an inertia that a body can have.
    lenient = [{**table, "physical": False}] if "physical" in known else []
    for candidate in (table, *lenient):
        try:
            if _same(make("object", candidate, choices, parts), thing):
                return candidate
        except BadInput:
            continue
    return None


def _plain(value: Any, choices: Choices, parts: Mapping[str, Choices]) -> Any:
    """Return a parameter as data; `None` if it is `None` or cannot be written as data."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, Tableau):
        return value.name
    if isinstance(value, Nodes):
        family, _, s = value.name.rstrip(")").partition("(")
        return {"name": family, "s": int(s)} if family in choices else list(value.c)
    if constant_value(value) is not None:
        value = constant_value(value)
    if isinstance(value, np.ndarray | jax.Array):
        return np.asarray(value).tolist()
    if isinstance(value, list | tuple):
        items = [_plain(one, choices, parts) for one in value]
        return None if any(item is None for item in items) else items
    return _description(value, choices, parts)


def _same(one: object, other: object) -> bool:
    """Return whether two objects have the same structure and the same bits."""
    leaves, tree = jax.tree.flatten(one)
    others, shape = jax.tree.flatten(other)
    return tree == shape and all(
        np.array_equal(a, b) and np.asarray(a).dtype == np.asarray(b).dtype
        for a, b in zip(leaves, others, strict=True)
    )
