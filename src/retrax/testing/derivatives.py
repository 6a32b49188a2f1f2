"""Derivatives of a run, forward and reverse, against finite differences."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from retrax.integrators.base import AbstractIntegrator
from retrax.mechanics.state import State
from retrax.mechanics.system import AbstractGroupSystem
from retrax.numerics.jax_hints import compiled_once
from retrax.simulate.simulate import simulate

_STEPS = 20
# Central differences of fourth order: with this step truncation and rounding are both near 1e-12.
_EPSILON = 1e-3
_STENCIL = ((-2, 1 / 12), (-1, -8 / 12), (1, 8 / 12), (2, -1 / 12))


class _Slopes(NamedTuple):
    value: Float[Array, ""]
    forward: Float[Array, ""]
    reverse: Float[Array, ""]


def derivative_error(
    integrator: AbstractIntegrator, system: AbstractGroupSystem, state: State, *, h: float
) -> float:
    r"""The relative error of the derivatives of a run of 20 steps, the worse of both modes.

    Differentiated is a random combination $w\cdot(g, \mu)$ of the end, along a random direction in
    the initial velocity and in every parameter of the system, such as the inertia.
    """
    rng = np.random.default_rng(1)
    inside = {id(leaf) for leaf in jax.tree.leaves(system.group)}

    def direction(leaf):
        if id(leaf) in inside:  # a group is what it is
            return np.zeros_like(leaf)
        return 0.3 * np.max(np.abs(leaf), initial=0.0) * rng.standard_normal(np.shape(leaf))

    velocity = system.velocity(state.g, state.momentum)
    at = (system, velocity)
    along = jax.tree.map(direction, at)
    weights = jax.tree.map(lambda x: rng.standard_normal(np.shape(x)), (state.g, state.momentum))

    def slopes(shift: float) -> _Slopes:
        moved = jax.tree.map(lambda x, dx: x + shift * dx, at, along)
        return _slopes(moved, along, integrator, state, weights, jnp.asarray(h, jnp.float64))

    here = slopes(0.0)
    difference = sum(w * float(slopes(k * _EPSILON).value) for k, w in _STENCIL) / _EPSILON
    errors = (abs(float(here.forward) - difference), abs(float(here.reverse) - difference))
    return max(errors) / max(abs(difference), 1.0)


@compiled_once
def _slopes(at, along, integrator, state: State, weights, h: Float[Array, ""]) -> _Slopes:
    def outcome(at):
        system, velocity = at
        start = State(state.g, system.momentum(state.g, velocity), state.t)
        end = simulate(system, integrator, start, h=h, steps=_STEPS, save_every=_STEPS).final
        parts = jax.tree.map(lambda w, x: jnp.sum(w * x), weights, (end.g, end.momentum))
        return sum(jax.tree.leaves(parts))

    value, forward = jax.jvp(outcome, (at,), (along,))
    gradient = jax.grad(outcome)(at)
    reverse = jax.tree.map(lambda g, dx: jnp.sum(g * dx), gradient, along)
    return _Slopes(value, forward, sum(jax.tree.leaves(reverse), jnp.zeros(())))
