r"""Symmetries of space of a problem, and what is constant along its solutions."""

from typing import TYPE_CHECKING

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from retrax.groups.base import AbstractLieGroup, Element
from retrax.mechanics.state import State
from retrax.numerics.evaluate import evaluate
from retrax.planning.model import Model

if TYPE_CHECKING:
    from retrax.planning.plan import Plan

# Displacements by which symmetries are tried, and how well quantities must agree.
_FAR, _ALIKE = 0.7, 1e-9
# How many stages are looked at.
_LOOKS = 5


def symmetries(plan: "Plan") -> list[int]:
    """Return the axes along which displacements of space change nothing."""
    return [i for i in range(plan.problem.system.group.dim) if _is_symmetry(plan, i)]


def costate_drift(plan: "Plan", symmetric: list[int]) -> float | None:
    """Return how far the costates of symmetries of space drift, relative to their size."""
    group, dim = plan.problem.system.group, plan.problem.system.group.dim
    if not symmetric:
        return None
    later = jax.tree.map(lambda x: x[1:], plan.states.g)
    spatial = np.asarray(evaluate(_spatial, group, later, plan.costates[:, :dim]))
    size = np.abs(spatial).max()
    kept = spatial[:, symmetric]
    return float(np.abs(kept - kept[0]).max() / size) if size > 0 else 0.0


def _spatial(
    group: AbstractLieGroup, g: Element, costates: Float[Array, "N dim"]
) -> Float[Array, "N dim"]:
    return jax.vmap(lambda g, x: group.coAd(group.inverse(g), x))(g, costates)


def _is_symmetry(plan: "Plan", i: int) -> bool:
    """Tell whether a displacement of space along axis i changes nothing at a few stages."""
    model = plan.problem.model
    N = plan.problem.steps
    at = np.unique(np.linspace(0, N - 1, min(N, _LOOKS)).astype(int))
    g = jax.tree.map(lambda x: x[at], plan.states.g)
    mu, u, t = plan.states.momentum[at], plan.controls[at], plan.t[at]
    move = np.zeros(model.sizes.dim)
    for far in (0.0, _FAR):
        move[i] = far
        found = evaluate(_look_at, model, g, mu, u, t, np.asarray(plan.h), move)
        if far == 0.0:
            before = found
    return all(
        np.allclose(a, b, rtol=_ALIKE, atol=_ALIKE * max(1.0, float(np.abs(a).max(initial=0.0))))
        for a, b in zip(before, found, strict=True)
    )


def _look_at(
    model: Model, g: Element, mu: Array, u: Array, t: Array, h: Array, move: Array
) -> tuple[Array, Array, Array, Array]:
    """Return what a displacement of space by exp(move) must not change, at several states."""
    group, system = model.system.group, model.system

    def one(g: Element, mu: Array, u: Array, t: Array) -> tuple[Array, Array, Array, Array]:
        g = group.compose(group.exp(move), g)
        state = State(g, mu, t, u)
        xi = system.velocity_at(state)
        new, _ = model.step.step(system, state, h)
        moved = group.log(group.compose(group.inverse(g), new.g))
        path = jnp.zeros(0) if model.path is None else jnp.ravel(model.path(g, xi, u))
        return moved, new.momentum, jnp.asarray(model.cost(g, xi, u, t)), path

    return jax.vmap(one)(g, mu, u, t)
