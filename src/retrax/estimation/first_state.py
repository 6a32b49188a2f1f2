"""A first guess of the state at the start, from the measurements themselves."""

from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PyTree

from retrax.errors import BadInput
from retrax.estimation.measurements import Measurements
from retrax.groups.base import AbstractLieGroup, HostElement
from retrax.groups.se2 import SE2
from retrax.groups.se3 import SE3
from retrax.groups.so3 import SO3
from retrax.groups.translation import Translation
from retrax.mechanics.state import State
from retrax.mechanics.system import AbstractGroupSystem
from retrax.numerics.evaluate import evaluate

# A parabola is put through so many configurations at the most, and through moves of this length.
_ROWS, _LONGEST = 25, 1.0


def first_state(system: AbstractGroupSystem, data: Sequence[Measurements]) -> State:
    """Return a state at the first measured time, from configurations and velocities near it.

    **Raises:** `BadInput` where the measurements do not show the whole configuration.
    """
    group, t = system.group, min(float(one.t[0]) for one in data)
    times, elements = _configurations(group, data)
    g0, velocity = _parabola(times - t, _logs(group, elements))
    first = jax.tree.map(lambda x: x[0], elements)
    g = evaluate(lambda group, g, eta: group.compose(g, group.exp(eta)), group, first, g0)
    if not system.has_momentum:
        return State(g, jnp.zeros(group.dim), t)
    for one in data:
        if one.of == "velocity":
            velocity = np.asarray(one.values[0], float)
            if one.unit == "deg":
                velocity = np.where(group.angles(), np.deg2rad(velocity), velocity)
    return system.state(jax.tree.map(jnp.asarray, g), velocity=velocity, t=t, project=True)


def _configurations(
    group: AbstractLieGroup, data: Sequence[Measurements]
) -> tuple[np.ndarray, HostElement]:
    """Return the first configurations that were measured, and their times."""
    found = {one.of: one for one in data if isinstance(one.of, str)}
    if "configuration" in found:
        one = found["configuration"]
        return one.t[:_ROWS], jax.tree.map(lambda x: np.asarray(x)[:_ROWS], one.values)
    if isinstance(group, SO3) and "attitude" in found:
        return found["attitude"].t[:_ROWS], found["attitude"].values[:_ROWS]
    if isinstance(group, Translation) and "position" in found:
        return found["position"].t[:_ROWS], found["position"].values[:_ROWS]
    if isinstance(group, SE3) and {"attitude", "position"} <= set(found):
        turned, placed = found["attitude"], found["position"]
        if np.array_equal(turned.t[:_ROWS], placed.t[:_ROWS]):
            return turned.t[:_ROWS], (turned.values[:_ROWS], placed.values[:_ROWS])
    needed = {SO3: "attitudes", Translation: "positions", SE3: "attitudes and positions"}
    what = needed.get(type(group), "configurations")
    also = " at the same times" if isinstance(group, SE3 | SE2) else ""
    raise BadInput(
        f"no first guess of the state can be read off these measurements: on {group.name} that "
        f"takes {what}{also}; give state=..., as system.state(...) makes it."
    )


def _logs(group: AbstractLieGroup, elements: HostElement) -> Float[np.ndarray, "time dim"]:
    def all_of(group: AbstractLieGroup, elements: PyTree) -> Array:
        back = group.inverse(jax.tree.map(lambda x: x[0], elements))
        return jax.vmap(lambda g: group.log(group.compose(back, g)))(elements)

    return np.asarray(evaluate(all_of, group, elements))


def _parabola(t: np.ndarray, eta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return value and slope at zero of the parabola through moves that are not too long."""
    near = np.linalg.norm(eta, axis=1) <= _LONGEST
    count = max(2, len(near) if near.all() else int(np.argmin(near)))
    degree = min(2, count - 1) if count < 5 else 2
    t, eta = t[:count], eta[:count]
    columns = np.stack([t**k for k in range(degree + 1)], axis=1)
    fitted = np.linalg.lstsq(columns, eta, rcond=None)[0]
    return fitted[0], fitted[1]
