"""One step of collocation on a space: the one code path of all its forms."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from retrax.groups.retractions import Exp
from retrax.integrators.base import StepInfo, step_info
from retrax.integrators.forms import Flow
from retrax.mechanics.system import Coordinates
from retrax.numerics.newton import SMALLEST
from retrax.numerics.nodes import Nodes
from retrax.numerics.stages import Stages, settle, square_slope, stage_direction
from retrax.spaces.base import AbstractSpace, Point


class Moved(NamedTuple):
    """The end of a step: the point, the move that led there, and how the step went."""

    y: Point
    u: Coordinates
    info: StepInfo


def lie_step(
    flow: Flow, t: Float[Array, ""], h: Float[Array, ""], nodes: Nodes, centred: bool = False
) -> Moved:
    r"""Collocation of $\dot u = \mathrm{dexp}^{-1}_{-\sigma u}\,\xi(t, \exp(u)\cdot y_0)$.

    $$
    \begin{aligned}
    U_i &= h\textstyle\sum_ja_{ij}K_j - \theta, \qquad
        \theta = \begin{cases}0\\ \tfrac h2\sum_jb_jK_j & \text{if centred}\end{cases}
                                                                                 &&\text{(1)}\\
    K_i &= \mathrm{dexp}^{-1}_{-\sigma U_i}\,
        \xi\bigl(t + c_ih,\ \exp(U_i)\cdot y_c\bigr), \qquad y_c = \exp(\theta)\cdot y_0
                                                                                 &&\text{(2)}\\
    y_1 &= \exp(u)\cdot y_0, \qquad u = h\textstyle\sum_jb_jK_j                  &&\text{(3)}
    \end{aligned}
    $$

    All stages of a sweep are computed at once, along the first axis, and solved for by
    `numerics.stages.settle`. Newton's direction takes the Jacobian at the mean of the stages.
    """
    space, y0 = flow.space, flow.start
    A, b = np.array(nodes.A), np.array(nodes.b)
    times = t + np.array(nodes.c) * h
    table = A - b / 2 if centred else A

    def centre(K: Stages) -> Point:
        return space.move(y0, h / 2 * (b @ K)) if centred else y0

    def rates(U: Stages, y: Point) -> Stages:
        return jax.vmap(lambda t, u: chart_rate(flow, t, y, u))(times, U)  # (2)

    def joint(K: Stages) -> Stages:
        return rates(h * (table @ K), centre(K))  # (1)

    middle = t + h / 2

    def direction(K: Stages, r: Stages) -> Stages:
        y, u = centre(K), jnp.mean(h * (table @ K), axis=0)
        slope = square_slope(lambda u: chart_rate(flow, middle, y, u), u)
        return stage_direction(nodes, (jnp.zeros_like(slope), slope), h, r)

    first = flow.generator(t, y0)
    guess = jnp.broadcast_to(first, (nodes.stages, space.group.dim))
    sizes = measures(flow, first, h, nodes.stages)
    K, status = settle(joint, direction, guess, flow.split, *sizes)
    u = h * (b @ K)
    chart = in_chart(space, jnp.concatenate([h * (table @ K), u[None]]))
    return Moved(space.move(y0, u), u, step_info(status, u, chart))  # (3)


def measures(
    flow: Flow, rate: Coordinates, h: Float[Array, ""], stages: int
) -> tuple[Float[Array, " n"], Float[Array, ""]]:
    """Weights that give rates of momenta the size of velocities, and the size of the point."""

    def size(x) -> Float[Array, ""]:
        return sum((jnp.sum(jnp.abs(leaf)) for leaf in jax.tree.leaves(x)), jnp.zeros(()))

    n, m, step = flow.split, rate.shape[0], jnp.abs(h)
    if n is None:
        return jnp.ones(m), stages * size(flow.start) / step
    g, mu = flow.start
    place, push = size(g) + step * size(rate[:n]), size(mu) + step * size(rate[n:])
    ratio = jnp.where(push > 0, place / jnp.maximum(push, SMALLEST), 1.0)
    weights = jnp.concatenate([jnp.ones(n), jnp.broadcast_to(ratio, (m - n,))])
    return weights, stages * (size(g) + ratio * size(mu)) / step


def in_chart(space: AbstractSpace, U: Stages) -> Bool[Array, ""]:
    """Whether all stages lie where the tangent map of the exponential map can be inverted."""
    return jnp.all(jax.vmap(lambda u: Exp().covers(space.group, u))(U))


def chart_rate(flow: Flow, t: Float[Array, ""], y: Point, u: Coordinates) -> Coordinates:
    """The rate of the chart variable at `u`, around the point `y`."""
    return flow.space.dexp_inv(u, flow.generator(t, flow.space.move(y, u)))
