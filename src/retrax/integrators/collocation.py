"""Collocation of any order, with any nodes: on a group or a space, and blind to it."""

from collections.abc import Sequence
from typing import ClassVar, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from retrax.errors import BadInput
from retrax.groups.retractions import Exp
from retrax.integrators.base import AbstractIntegrator, Refusal, StepInfo, shorter_step, step_info
from retrax.integrators.forms import FORMS, Embedded, Flow, check_form, flow_of
from retrax.mechanics.state import State
from retrax.mechanics.system import AbstractGroupSystem, Coordinates
from retrax.numerics.checks import require_choice, require_flag
from retrax.numerics.jax_hints import keep_axis
from retrax.numerics.nodes import Nodes, extrapolation
from retrax.numerics.nodes import nodes as as_nodes
from retrax.numerics.roundoff import SMALLEST, UNSEEN
from retrax.numerics.stages import (
    Stages,
    alternating,
    settle,
    square_slope,
    stage_direction,
)
from retrax.spaces.base import AbstractSpace, Point


class Collocation(AbstractIntegrator):
    r"""Collocation in the algebra: $y(t) = \exp(u(t))\cdot y_0$, $u$ a polynomial of degree $s$.

    The polynomial satisfies $\dot u = \mathrm{dexp}^{-1}\xi$, with the exact inverse tangent map,
    at the nodes (`lie_step`), so the order is that of the nodes and the points
    stay on the group or space. Configurations and momenta are collocated together.

    Not symplectic, for any nodes: the chart moves with the point. The energy of a mechanical system
    drifts linearly, as $h^{2s+1}$ for Gauss' nodes. With `centred` the chart is at the middle of
    the step, and symmetric nodes make a symmetric step, whose energy does not drift where the
    motion is regular. For long times use `GalerkinVariational`.

    **Arguments:**

    - `nodes`: `gauss(s)`, `radau(s)`, `lobatto(s)`, ... or a list of numbers from 0 to 1.
    - `centred`: whether the chart is at the middle of the step rather than at its start.
    - `form`: the variables of a mechanical system. `"body"`: $(g, \mu)$. `"spatial"`: $g$ and the
        spatial momentum; the momenta of all symmetries of space are kept to round-off. `"se3"`: a
        body on $SO(3)$ with a vertical symmetry, moved by $SE(3)$; the vertical momentum is kept.

    References: [MuntheKaas1999]; [IserlesMuntheKaasNorsettZanna2000];
    [HairerLubichWanner2006] II.1 and IV.8.
    """

    nodes: Nodes = eqx.field(static=True)
    centred: bool = eqx.field(static=True)
    form: str = eqx.field(static=True)
    order: int = eqx.field(static=True)
    preserves: frozenset[str] = eqx.field(static=True)
    needs_momentum: ClassVar[bool] = False
    memory_saves_work: ClassVar[bool] = True

    def __init__(
        self,
        nodes: Nodes | Sequence[float],
        centred: bool = False,
        form: str = "body",
    ):
        self.nodes = as_nodes(nodes)
        self.centred = require_flag("centred", centred)
        self.form, self.order = require_choice("form", form, FORMS), self.nodes.order
        if self.order < 1:
            raise BadInput(
                f"nodes = {self.nodes!r} make a method of order 0; use others, such as gauss(1)."
            )
        midpoint = self.nodes.stages == 1 and self.nodes.symmetric
        symmetric = midpoint or (self.centred and self.nodes.symmetric)
        exact = set() if form == "body" else {"spatial momentum"}
        self.preserves = frozenset({"group"} | ({"symmetric"} if symmetric else set()) | exact)

    def __repr__(self) -> str:
        form = "" if self.form == "body" else f", form={self.form!r}"
        return f"Collocation({self.nodes!r}{', centred=True' if self.centred else ''}{form})"

    def check(self, system: AbstractGroupSystem) -> None:
        check_form(repr(self), self.form, system)

    def refusal(self, system: AbstractGroupSystem, state: State, h: float, moved: float) -> Refusal:
        return chart_refusal(h, moved)

    def memory(self, system: AbstractGroupSystem, state: State) -> "LastRates":
        return no_rates(flow_of(system, state, self.form), self.nodes)

    def step(
        self, system: AbstractGroupSystem, state: State, h: Float[Array, ""]
    ) -> tuple[State, StepInfo]:
        new, info, _ = self.next_step(system, state, h, self.memory(system, state))
        return new, info

    def next_step(
        self, system: AbstractGroupSystem, state: State, h: Float[Array, ""], memory: "LastRates"
    ) -> tuple[State, StepInfo, "LastRates"]:
        flow = flow_of(system, state, self.form)
        end = lie_step(flow, state.t, h, self.nodes, self.centred, memory)
        return State(*flow.end(end.y), state.t + h), end.info, LastRates(end.K, h)


class LastRates(NamedTuple):
    """The memory of a step: the rates at its nodes, and its size, zero where there was none."""

    K: Stages
    h: Float[Array, ""]


def no_rates(flow: Flow, nodes: Nodes) -> LastRates:
    """Return the memory before the first step."""
    return LastRates(jnp.zeros((nodes.stages, flow.space.group.dim)), jnp.zeros(()))


def chart_refusal(h: float, moved: float) -> Refusal:
    """Explain a step with a stage outside the chart."""
    return Refusal(
        "left the chart of the exponential map",
        f"A stage turns by 2 pi or more, where the tangent map cannot be inverted (the step moves "
        f"by |u| = {moved:.3g}).",
        shorter_step(h, moved),
    )


class Moved(NamedTuple):
    """The end of a step: the point, the move that led there, the rates, and how it went."""

    y: Point
    u: Coordinates
    K: Stages
    info: StepInfo


def lie_step(
    flow: Flow,
    t: Float[Array, ""],
    h: Float[Array, ""],
    nodes: Nodes,
    centred: bool = False,
    last: LastRates | None = None,
) -> Moved:
    r"""Take one step on a space, for all forms: collocation of $\dot u =
    \mathrm{dexp}^{-1}_{-\sigma u}\,\xi(t, \exp(u)\cdot y_0)$.

    $\dot u = \mathrm{dexp}^{-1}_{-\sigma u}\,\xi(t, \exp(u)\cdot y_0)$.

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
    The guess is the polynomial of the `last` step, if it was as long, continued beyond its end.
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

    def sweep(K: Stages, U: Stages) -> tuple[Stages, Stages]:
        """Sweep over configurations, then momenta, each with the last places (1) of the other."""
        n = flow.split
        moves = rates(U, centre(K))[:, :n]
        K = jnp.concatenate([moves, K[:, n:]], axis=1)
        U = jnp.concatenate([h * (table @ moves), U[:, n:]], axis=1)
        pushes = rates(U, centre(K))[:, n:]
        K = jnp.concatenate([moves, pushes], axis=1)
        return K, jnp.concatenate([U[:, :n], h * (table @ pushes)], axis=1)

    middle = t + h / 2

    def direction(K: Stages, r: Stages) -> Stages:
        y, u = centre(K), jnp.mean(h * (table @ K), axis=0)
        slope = square_slope(lambda u: chart_rate(flow, middle, y, u), u)
        return stage_direction(nodes, (jnp.zeros_like(slope), slope), h, r)

    first = flow.generator(t, y0)
    guess = jnp.broadcast_to(first, (nodes.stages, space.group.dim))
    if last is not None:
        guess = jnp.where(last.h == h, extrapolation(nodes) @ keep_axis(last.K), guess)
    sizes = measures(flow, first, h, nodes.stages)
    if flow.split is None:
        K, status = settle(joint, alternating(joint, None), direction, guess, (), *sizes)
    else:
        K, status = settle(joint, sweep, direction, guess, h * (table @ guess), *sizes)
    u = h * (b @ K)
    chart = in_chart(space, jnp.concatenate([h * (table @ K), u[None]]))
    return Moved(space.move(y0, u), u, K, step_info(status, u, chart))  # (3)


def measures(
    flow: Flow, rate: Coordinates, h: Float[Array, ""], stages: int
) -> tuple[Float[Array, " n"], Float[Array, ""], Float[Array, " n"]]:
    """Return weights that give rates of momenta the size of velocities, and the size of the point.

    Last what velocities are multiplied with, so that less than 1 in all moves it nowhere.
    """

    def size(x: Point) -> Float[Array, ""]:
        return sum((jnp.sum(jnp.abs(leaf)) for leaf in jax.tree.leaves(x)), jnp.zeros(()))

    n, m, step = flow.split, rate.shape[0], jnp.abs(h)
    if n is None:
        scale = stages * size(flow.start) / step
        return jnp.ones(m), scale, jnp.broadcast_to(1 / (UNSEEN * scale + SMALLEST), (m,))
    g, mu = flow.start
    place, push = size(g) + step * size(rate[:n]), size(mu) + step * size(rate[n:])
    ratio = jnp.where(push > 0, place / jnp.maximum(push, SMALLEST), 1.0)
    weights = jnp.concatenate([jnp.ones(n), jnp.broadcast_to(ratio, (m - n,))])
    motion = jnp.where(jnp.arange(m) < n, step / (UNSEEN * stages * size(g) + SMALLEST), 0.0)
    return weights, stages * (size(g) + ratio * size(mu)) / step, motion


def in_chart(space: AbstractSpace, U: Stages) -> Bool[Array, ""]:
    """Return whether all stages lie where the tangent map of exp can be inverted."""
    return jnp.all(jax.vmap(lambda u: Exp().covers(space.group, u))(U))


def chart_rate(flow: Flow, t: Float[Array, ""], y: Point, u: Coordinates) -> Coordinates:
    """Return the rate of the chart variable at `u`, around the point `y`."""
    return flow.space.dexp_inv(u, flow.generator(t, flow.space.near(y, u)))


class PlainCollocation(AbstractIntegrator):
    r"""Collocation of the entries of $(g, \mu)$, with $\dot g = g\,\hat\xi$.

    The same step as `Collocation`, on the space of all matrices and momenta, where the exponential
    map is addition. With Gauss' nodes it conserves all quadratic first integrals: $gg^T$, so that
    rotations stay rotations, and, where the energy is a quadratic function of the entries of $g$
    and $\mu$, as that of a pendulum is, energy and momenta too. Other nodes leave the group.

    **Arguments:** `nodes`: `gauss(s)`, `radau(s)`, `lobatto(s)`, ... or a list of numbers from 0
    to 1.

    References: [HairerLubichWanner2006] II.1 and IV.2.
    """

    nodes: Nodes = eqx.field(static=True)
    order: int = eqx.field(static=True)
    preserves: frozenset[str] = eqx.field(static=True)
    needs_momentum: ClassVar[bool] = False
    memory_saves_work: ClassVar[bool] = True

    def __init__(self, nodes: Nodes | Sequence[float]):
        self.nodes = as_nodes(nodes)
        self.order = self.nodes.order
        exact = {"group"} if self.nodes.is_gauss else set()
        self.preserves = frozenset(exact | ({"symmetric"} if self.nodes.symmetric else set()))

    def __repr__(self) -> str:
        return f"PlainCollocation({self.nodes!r})"

    def memory(self, system: AbstractGroupSystem, state: State) -> LastRates:
        return no_rates(_embed(system, state), self.nodes)

    def step(
        self, system: AbstractGroupSystem, state: State, h: Float[Array, ""]
    ) -> tuple[State, StepInfo]:
        new, info, _ = self.next_step(system, state, h, self.memory(system, state))
        return new, info

    def next_step(
        self, system: AbstractGroupSystem, state: State, h: Float[Array, ""], memory: LastRates
    ) -> tuple[State, StepInfo, LastRates]:
        end = lie_step(_embed(system, state), state.t, h, self.nodes, last=memory)
        g, mu = end.y
        move = h * system.velocity_at(state)
        info = end.info._replace(increment=jnp.max(jnp.abs(move)))
        return State(g, mu, state.t + h), info, LastRates(end.K, h)


def _embed(system: AbstractGroupSystem, state: State) -> Flow:
    """Return the system as a flow on the vector space of entries of configuration and momentum."""
    start = (state.g, state.momentum)

    def generator(t: Float[Array, ""], y: Point) -> Float[Array, " n"]:
        g, mu = y
        now = system.vector_field(g, mu, t)
        rates = (system.configuration_space.tangent(g, now.velocity), now.momentum_rate)
        return jnp.concatenate([leaf.reshape(-1) for leaf in jax.tree.leaves(rates)])

    n = sum(leaf.size for leaf in jax.tree.leaves(state.g))
    return Flow(Embedded(n + state.momentum.size), generator, start, lambda y: y, n)
