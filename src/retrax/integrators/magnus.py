"""Magnus methods: the generator interpolated, its series of brackets in closed form."""

import numbers
from collections.abc import Callable
from functools import lru_cache
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from retrax.errors import BadInput
from retrax.integrators.base import AbstractIntegrator, Refusal, StepInfo, step_info
from retrax.integrators.collocation import Moved, chart_refusal, in_chart, measures
from retrax.integrators.forms import Flow, flow_of
from retrax.mechanics.state import State
from retrax.mechanics.system import AbstractGroupSystem, Coordinates
from retrax.numerics.checks import quote
from retrax.numerics.nodes import Nodes, gauss
from retrax.numerics.stages import (
    Stages,
    alternating,
    settle,
    square_slope,
    stage_direction,
)

_Bracket = Callable[[Coordinates, Coordinates], Coordinates]


class Magnus(AbstractIntegrator):
    r"""Magnus' series on Gauss' nodes: $\xi$ is interpolated instead of $u$.

    With $\xi(t_0 + th) = \sum_kp_k(t - \tau/2)^{k-1}$ the polynomial through the stages,
    $\alpha_k = h\tau^kp_k$ and $[\cdot,\cdot] = \sigma\,\mathrm{ad}$,

    $$
    \begin{aligned}
    \xi_i &= \xi\bigl(t_0 + c_ih,\ \exp(u(c_i))\cdot y_0\bigr), \qquad
        y_1 = \exp(u(1))\cdot y_0                                                &&\text{(1)}\\
    u(\tau) &= \alpha_1 \text{ (order 2)}, \qquad
        \alpha_1 - \tfrac1{12}[\alpha_1, \alpha_2] \text{ (order 4)}             &&\text{(2)}\\
    u(\tau) &= \alpha_1 + \tfrac1{12}\alpha_3
        + \tfrac1{240}[-20\alpha_1 - \alpha_3 + C_1,\ \alpha_2 + C_2] \text{ (order 6)},
                                                                                 &&\text{(3)}\\
    C_1 &= [\alpha_1, \alpha_2], \qquad C_2 = -\tfrac1{60}[\alpha_1,\ 2\alpha_3 + C_1]
    \end{aligned}
    $$

    and a longer formula for order 8. The stages need the brackets as well: without them the order
    is 3, whatever the number of stages. No inverse tangent map is needed, which is what these
    methods are for; where there is one, `Collocation` has much smaller errors at the same cost.

    **Arguments:** `order`: 2, 4, 6 or 8.

    References: [IserlesMuntheKaasNorsettZanna2000]; [BlanesCasasOteoRos2009];
    [HairerLubichWanner2006] IV.7.
    """

    order: int = eqx.field(static=True)
    preserves: frozenset[str] = eqx.field(static=True)
    needs_momentum: ClassVar[bool] = False

    def __init__(self, order: int):
        if not isinstance(order, numbers.Integral) or order not in _SERIES:
            raise BadInput(
                f"order = {quote(order)} is not available: Magnus has orders 2, 4, 6, 8."
            )
        self.order = int(order)
        self.preserves = frozenset({"group", "symmetric"} if order == 2 else {"group"})

    def __repr__(self) -> str:
        return f"Magnus({self.order})"

    def refusal(self, system: AbstractGroupSystem, state: State, h: float, moved: float) -> Refusal:
        return chart_refusal(h, moved)

    def step(
        self, system: AbstractGroupSystem, state: State, h: Float[Array, ""]
    ) -> tuple[State, StepInfo]:
        flow = flow_of(system, state)
        end = magnus_step(flow, state.t, h, self.order)
        return State(*flow.end(end.y), state.t + h), end.info


def magnus_step(flow: Flow, t: Float[Array, ""], h: Float[Array, ""], order: int) -> Moved:
    """Take one step of (1)-(3) of `Magnus` on any space, from either side."""
    nodes, space, y0, s = gauss(order // 2), flow.space, flow.start, order // 2
    times, tables, series = t + np.array(nodes.c) * h, _recentre(nodes), _SERIES[order]

    def bracket(a: Coordinates, b: Coordinates) -> Coordinates:
        return space.side * space.group.ad(a, b)

    def moves(xi: Stages, rows: np.ndarray) -> Float[Array, "ends n"]:
        alpha = h * jnp.einsum("ikj,jn->ikn", rows, xi)
        return jax.vmap(lambda a: series(bracket, *a))(alpha)  # (2), (3)

    def generator(t: Float[Array, ""], u: Coordinates) -> Coordinates:
        return flow.generator(t, space.move(y0, u))  # (1)

    def joint(xi: Stages) -> Stages:
        return jax.vmap(generator)(times, moves(xi, tables[:-1]))

    def direction(xi: Stages, r: Stages) -> Stages:
        u = jnp.mean(moves(xi, tables[:-1]), axis=0)
        slope = square_slope(lambda u: generator(t + h / 2, u), u)
        return stage_direction(nodes, (jnp.zeros_like(slope), slope), h, r)

    first = flow.generator(t, y0)
    guess = jnp.broadcast_to(first, (s, first.shape[0]))
    sweep, sizes = alternating(joint, flow.split), measures(flow, first, h, s)
    xi, status = settle(joint, sweep, direction, guess, (), *sizes)
    U = moves(xi, tables)
    info = step_info(status, U[-1], in_chart(space, U))
    return Moved(space.move(y0, U[-1]), U[-1], xi, info)


@lru_cache(maxsize=8)
def _recentre(nodes: Nodes) -> np.ndarray:
    r"""Return the numbers $\tau^kp_k$ of Lagrange polynomials, $\tau = c_1, \dots, c_s, 1$."""
    c = np.array(nodes.c)
    ends = [*nodes.c, 1.0]
    out = np.empty((len(ends), len(c), len(c)))
    for j in range(len(c)):
        others = np.delete(c, j)
        lagrange = np.poly1d(others, r=True) / np.prod(c[j] - others)
        for i, tau in enumerate(ends):
            moved = lagrange(np.poly1d([1.0, tau / 2]))
            powers = np.poly1d(moved).coeffs[::-1]
            out[i, :, j] = [*powers, *np.zeros(len(c) - len(powers))] * tau ** np.arange(
                1, len(c) + 1
            )
    return out


def _second(bracket: _Bracket, a1: Coordinates) -> Coordinates:
    return a1


def _fourth(bracket: _Bracket, a1: Coordinates, a2: Coordinates) -> Coordinates:
    return a1 - bracket(a1, a2) / 12


def _sixth(bracket: _Bracket, a1: Coordinates, a2: Coordinates, a3: Coordinates) -> Coordinates:
    c1 = bracket(a1, a2)
    c2 = -bracket(a1, 2 * a3 + c1) / 60
    return a1 + a3 / 12 + bracket(-20 * a1 - a3 + c1, a2 + c2) / 240


def _eighth(
    bracket: _Bracket, a1: Coordinates, a2: Coordinates, a3: Coordinates, a4: Coordinates
) -> Coordinates:
    odd, even = a1 + a3 / 28, a2 + 3 / 28 * a4
    s1 = -bracket(odd, even) / 28
    r1 = bracket(a1, -a3 / 14 + s1) / 3
    s2 = bracket(odd + s1, even + r1)
    r2 = bracket(a1 + 5 / 4 * s1, 2 * a3 + s2 + bracket(a2, s1) / 2)
    s3 = bracket(a1 + a3 / 12 - 7 / 3 * s1 - s2 / 6, -9 * a2 - 9 / 4 * a4 + 63 * r1 + r2)
    return a1 + a3 / 12 - 7 / 120 * s2 + s3 / 360


_SERIES: dict[int, Callable[..., Coordinates]] = {2: _second, 4: _fourth, 6: _sixth, 8: _eighth}
