r"""What a state predicts for a sensor, and how far a measurement is from it.

Elements of groups are compared by $\log(g_{obs}^{-1}g)$, everything else by differences.
"""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PyTree

from retrax.errors import BadInput
from retrax.estimation.measurements import Measurements
from retrax.groups.base import AbstractLieGroup, Element
from retrax.groups.se2 import SE2
from retrax.groups.se3 import SE3
from retrax.groups.so3 import SO3
from retrax.groups.translation import Translation
from retrax.mechanics.functions import as_pytree
from retrax.mechanics.state import State
from retrax.mechanics.system import AbstractGroupSystem
from retrax.numerics.checks import outputs, reason, require_shape
from retrax.numerics.frozen import Frozen

Residual = Float[Array, " component"]


class Sensor(Frozen):
    """A sensor on a system: its measurements, weighted, and what they are compared with.

    **Attributes:** `values`: one row for each time; `noise`: one for each component of a residual.
    """

    of: Any  # a name, which is a static field of a pytree, or a function as one
    values: PyTree
    noise: Float[np.ndarray, " component"]

    def residual(self, system: AbstractGroupSystem, state: State, value: PyTree) -> Residual:
        """Return how far the state is from a measured value, in the units of the measurement."""
        what = self.of
        if isinstance(what, _Named):
            what = what.name
            if what == "configuration":
                return _between(system.group, value, state.g)
            if what == "attitude":
                return _between(SO3(), value, attitude_of(system.group, state.g))
            return jnp.ravel(predict(system, state, what)) - jnp.ravel(value)
        return jnp.ravel(jnp.asarray(what(state))) - jnp.ravel(value)


class _Named(Frozen):
    """A word that is no leaf of a pytree."""

    name: str = eqx.field(static=True)


def bind(data: Measurements, system: AbstractGroupSystem, state: State) -> Sensor:
    """Put a sensor on a system; the state is one of it.

    **Raises:** `BadInput` where the system has nothing of that name, or values have another shape.
    """
    what = _Named(data.of) if isinstance(data.of, str) else as_pytree(data.of)
    values = data.values
    if data.of == "configuration":
        _require_elements(data, system.group)
    elif data.of == "attitude":
        attitude_of(system.group, state.g)
    else:
        out = outputs(data.name, lambda s: _look_at(data, system, s), (state,))
        require_shape(f"the values of {data.name}", values, (len(data), *_row(out.shape)))
    if data.of == "velocity" and data.unit == "deg":
        angles = system.group.angles()
        if not angles.any():
            raise BadInput(f'unit = "deg": no velocity on {system.group.name} is an angle in time.')
        values = np.where(angles, np.deg2rad(values), values)
    sensor = Sensor(what, values, np.ones(1))
    like = jax.eval_shape(
        lambda s: sensor.residual(system, s, jax.tree.map(lambda x: jnp.asarray(x[0]), values)),
        state,
    )
    return Sensor(what, values, _noise(data, like.shape[0]))


def require_measured(data: Measurements, system: AbstractGroupSystem) -> None:
    """Reject the name of something that is not measured on a system."""
    name = data.of
    if not isinstance(name, str) or name == "configuration":
        return
    g = jax.tree.map(lambda x: jnp.zeros(x.shape), system.configuration_space.layout())
    like = State(g, jnp.zeros(system.group.dim), 0.0)
    if name == "attitude":
        jax.eval_shape(lambda s: attitude_of(system.group, s.g), like)
    else:
        jax.eval_shape(lambda s: predict(system, s, name), like)


def attitude_of(group: AbstractLieGroup, g: PyTree) -> PyTree:
    """Return the rotation of a body at `g`."""
    if isinstance(group, SO3):
        return g
    if isinstance(group, SE3):
        return g[0]
    raise BadInput(
        f'of = "attitude": on {group.name} it is not known which part turns; measure '
        '"configuration", or give a function of the state.'
    )


def position_of(group: AbstractLieGroup, g: PyTree) -> PyTree:
    """Return the place of a body at `g`."""
    if isinstance(group, SE3 | SE2):
        return g[1]
    if isinstance(group, Translation):
        return g
    raise BadInput(f'of = "position": there is no position on {group.name}.')


def predict(system: AbstractGroupSystem, state: State, name: str) -> Array:
    """Return what a state predicts for a sensor called `name`."""
    if name == "position":
        return jnp.asarray(position_of(system.group, state.g))
    if name == "velocity":
        return system.velocity_at(state)
    if name == "momentum":
        return state.momentum
    found = system.observables(state)
    if name not in found:
        known = ["attitude", "configuration", "position", "velocity", "momentum", *found]
        raise BadInput(
            f"of = {name!r} is not measured on the {system.name}: choose one of "
            f"{', '.join(known)}, or give a function of the state."
        )
    return jnp.asarray(found[name])


def _between(group: AbstractLieGroup, observed: Element, g: Element) -> Residual:
    return group.log(group.compose(group.inverse(observed), g))


def _look_at(data: Measurements, system: AbstractGroupSystem, state: State) -> Array:
    function: Callable[[State], Any] | str = data.of
    if isinstance(function, str):
        return predict(system, state, function)
    return jnp.asarray(function(state))


def _row(shape: tuple[int, ...]) -> tuple[int, ...]:
    return shape or (1,)


def _require_elements(data: Measurements, group: AbstractLieGroup) -> None:
    for k in range(len(data)):
        g = jax.tree.map(lambda x, k=k: x[k], data.values)
        try:
            group.check(f"row {k} of {data.name}", g)
        except TypeError as cause:
            raise BadInput(f"row {k} of {data.name} cannot be read: {reason(cause)}.") from cause


def _noise(data: Measurements, components: int) -> np.ndarray:
    noise = np.ones(1) if data.noise is None else data.noise
    if len(noise) not in (1, components):
        raise BadInput(
            f"noise of {data.name} has {len(noise)} numbers, but a residual has {components} "
            "components: give one standard deviation, or one for each."
        )
    return np.broadcast_to(noise, (components,)).copy()
