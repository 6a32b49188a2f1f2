"""What the joints of a mechanism do at a state that somebody else has computed."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np


class Joint(NamedTuple):
    """Value, rate and acceleration of the coordinate of a joint."""

    value: float
    rate: float
    acceleration: float


def state_at(mechanism, system, frames):
    """Return the state in which the frames of the bodies are at `frames[name] = R, x, omega, v`.

    `R` and `x` place the frame of the link in space; `omega` is its angular velocity in its own
    axes, `v` the velocity of its origin in space.
    """
    R, x, xi = [], [], []
    for name in system.names:
        rotation, origin, omega, v = (np.asarray(part, dtype=float) for part in frames[name])
        centre = -mechanism.frames[name].at if name in mechanism.frames else np.zeros(3)
        R.append(rotation)
        x.append(origin + rotation @ centre)
        xi.append(np.concatenate([omega, v + rotation @ np.cross(omega, centre)]))
    return system.state((np.stack(R), np.stack(x)), velocity=np.concatenate(xi))


def body_rates(system, state):
    """Return the velocities of all bodies and their derivatives in time, a row a body."""
    xi, rate = system.vector_field(state.g, state.momentum, state.t)
    n = len(system.names)
    return xi.reshape(n, -1), system.velocity(state.g, rate).reshape(n, -1)


@jax.jit
def _joints(system, state):
    each, rates = body_rates(system, state)
    moved, found = system.group.tangent(state.g, each.reshape(-1)), {}
    for joint in system.constraint.connections:
        # Freedoms that a joint combines keep their names.
        names = joint.name.split(" and ")
        if len(names) != len(joint.coordinates):
            continue

        def speeds(g, each, joint=joint):
            still = jnp.zeros(each.shape[1])
            one, two = (still if i < 0 else each[i] for i in joint.bodies[:2])
            return [q.first @ one + q.second @ two for q in joint.measure(g)]

        values = [q.value for q in joint.measure(state.g)]
        both = jax.jvp(speeds, (state.g, each), (moved, rates))
        found |= dict(zip(names, zip(values, *both, strict=True), strict=True))
    return found


def joints_at(system, state):
    """Return value, rate and acceleration of every joint with one coordinate."""
    return {name: Joint(*map(float, found)) for name, found in _joints(system, state).items()}
