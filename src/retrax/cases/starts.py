"""Where a system starts, from plain data."""

import inspect
from collections.abc import Callable, Collection, Mapping
from typing import Any

import jax.numpy as jnp

from retrax.cases.makers import Choices, did_you_mean, make, require_type
from retrax.errors import BadInput
from retrax.mechanics.state import State
from retrax.mechanics.system import AbstractGroupSystem
from retrax.numerics.checks import float64, require_shape

_KEYS = ("g", "exp", "velocity", "momentum", "t", "project")


def make_state(system: AbstractGroupSystem, given: Mapping[str, Any]) -> State:
    """Make the state of `system` that the keys of `given` describe.

    Systems with momenta: `g` as the group stores it, or `exp`, its exponential coordinates, or
    neither for the identity; `velocity` or `momentum`, or neither for rest; `t`; `project` for the
    nearest velocity that the constraint admits. Instead of numbers `g` may be `"identity"`, of a
    rod `"straight"`, of two rods `"crossed"`, of a string `"hanging"`, or a table with that name
    and its parameters. Flows and fields: what `system.at` takes. Mechanisms: what
    `system.assemble` takes, `joints` and `joint_rates` by name among it.
    """
    for way in ("at", "assemble"):
        if hasattr(system, way):
            return _call_start(system, getattr(system, way), given)
    _require_known(system, given, _KEYS)
    if "g" in given and "exp" in given:
        raise BadInput("g and exp both say where the system starts: give one of them.")
    g = _placement(system, given)
    moving = {key: given[key] for key in ("velocity", "momentum") if key in given}
    return system.state(
        g,
        **(moving or {"velocity": jnp.zeros(system.group.dim)}),
        t=require_type("t", given.get("t", 0.0), float),
        project=require_type("project", given.get("project", False), bool),
    )


def _call_start(
    system: AbstractGroupSystem, start: Callable[..., State], given: Mapping[str, Any]
) -> State:
    """Return the state that a method of the system makes of the keys."""
    parameters = inspect.signature(start).parameters
    _require_known(system, given, parameters)
    for key, parameter in parameters.items():
        if parameter.default is parameter.empty and key not in given:
            raise BadInput(f"the {system.name} needs {key!r} to start from.")
    return start(
        **{key: require_type(key, x, parameters[key].annotation) for key, x in given.items()}
    )


def _placement(system: AbstractGroupSystem, given: Mapping[str, Any]) -> Any:
    if "exp" in given:
        coordinates = float64("exp", given["exp"])
        require_shape("exp", coordinates, (system.group.dim,))
        return system.group.exp(coordinates)
    g = given.get("g", "identity")
    return make("g", g, _placements(system), {}) if isinstance(g, str | Mapping) else g


def _placements(system: Any) -> Choices:
    """Return the configurations of a system that have names."""
    found = {"identity": system.group.identity}
    if hasattr(system, "straight"):
        found["straight"] = system.straight
    if hasattr(system, "crossed"):
        found["crossed"] = system.crossed
    if hasattr(system, "hanging"):
        found["hanging"] = lambda: system.hanging().g
    return found


def _require_known(
    system: AbstractGroupSystem, given: Mapping[str, Any], known: Collection[str]
) -> None:
    for key in given:
        if key not in known:
            raise BadInput(
                f"the start of the {system.name} has no key {key!r}: the keys are "
                f"{', '.join(known)}.{did_you_mean(key, known)}"
            )
