"""Galerkin variational integrators: symplectic, of any order, on any group."""

from collections.abc import Sequence
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from retrax.errors import BadInput
from retrax.integrators.base import AbstractIntegrator, Refusal, StepInfo, step_info
from retrax.integrators.collocation import chart_refusal, in_chart, measures
from retrax.integrators.forms import flow_of, is_first_order
from retrax.mechanics.state import State
from retrax.mechanics.system import AbstractGroupSystem, Coordinates, Element
from retrax.numerics.newton import NewtonStatus
from retrax.numerics.nodes import Nodes
from retrax.numerics.nodes import nodes as as_nodes
from retrax.numerics.stages import (
    Stages,
    alternating,
    settle,
    square_slope,
    stage_direction,
)
from retrax.spaces.group_itself import GroupItself

Scalar = Float[Array, ""]
# A row for each stage: its rate K, and the small number delta of (6).
Unknowns = Float[Array, "s twice_n"]


class GalerkinVariational(AbstractIntegrator):
    r"""The variational integrator of $L_d = h\sum_ib_i\,L(g_i, \xi_i)$ along $g_0\exp(u(t))$.

    The polynomial $u$ of degree $s$ has the rates $K_i$ at the nodes, $U_i = h\sum_ja_{ij}K_j$,
    $g_i = g_0\exp U_i$, $\xi_i = \mathrm{dexp}_{U_i}K_i$, $u = h\sum_jb_jK_j$. With the total force
    $\nu_i = dL + f$ at the stages, making the action stationary gives

    $$
    \begin{aligned}
    F_i &= \partial_U\langle p_i, \mathrm{dexp}_{U_i}K_i\rangle
        + \mathrm{dexp}^*_{U_i}\nu_i                                             &&\text{(1)}\\
    \lambda &= \mathrm{dexp}^*_{-u}\bigl(\mu_0 + \textstyle
        h\sum_ib_i\,\mathrm{Ad}^*_{\exp(-U_i)}\nu_i\bigr)                        &&\text{(2)}\\
    p_j &= (\mathrm{dexp}^{-1}_{U_j})^*\bigl(\lambda
        - h\textstyle\sum_i\tfrac{b_ia_{ij}}{b_j}F_i\bigr)                       &&\text{(3)}\\
    K_j &= \mathrm{dexp}^{-1}_{U_j}\,\xi(g_j, p_j)                               &&\text{(4)}\\
    g_1 &= g_0\exp u, \qquad \mu_1 = \mathrm{Ad}^*_{\exp u}\bigl(\mu_0 + \textstyle
        h\sum_ib_i\,\mathrm{Ad}^*_{\exp(-U_i)}\nu_i\bigr)                        &&\text{(5)}
    \end{aligned}
    $$

    Seen from $g_0$ momenta are changed by forces only. (1)-(4) are solved for $K$ and for the
    small numbers $\delta_j$ by which the momenta at the stages miss that,

    $$ \mathrm{Ad}^*_{\exp(-U_j)}\,p_j = \mu_0
        + \textstyle h\sum_ia_{ji}\,\mathrm{Ad}^*_{\exp(-U_i)}\nu_i + \delta_j, \tag{6} $$

    of the size of the error of the quadrature: a sweep then contracts as one of `Collocation`.

    Without external force the step is symplectic and keeps the momentum of every symmetry, for any
    nodes; its order is theirs, $2s$ for Gauss'. Forces enter by the discrete principle of Lagrange
    and d'Alembert. Symmetric for one stage only.

    **Arguments:** `nodes`: `gauss(s)`, or any others whose weights $b_j$ are not zero.

    References: [LeokShingel2012]; [MarsdenWest2001]; [HallLeok2017].
    """

    nodes: Nodes = eqx.field(static=True)
    order: int = eqx.field(static=True)
    preserves: frozenset[str] = eqx.field(static=True)

    def __init__(self, nodes: Nodes | Sequence[float]):
        self.nodes = as_nodes(nodes)
        if min(map(abs, self.nodes.b)) < 1e-12:
            raise BadInput(
                f"nodes = {self.nodes!r} have a weight b that is zero, b = {list(self.nodes.b)}, "
                "but the action must see every stage; use gauss(s)."
            )
        self.order = self.nodes.order
        always = {"group", "momentum", "symplectic"}
        midpoint = self.nodes.stages == 1 and self.nodes.symmetric
        self.preserves = frozenset(always | {"symmetric"} if midpoint else always)

    def __repr__(self) -> str:
        return f"GalerkinVariational({self.nodes!r})"

    def check(self, system: AbstractGroupSystem) -> None:
        self.refuse_constraint(system)
        if is_first_order(system):
            raise BadInput(
                f"GalerkinVariational makes an action stationary, which the {system.name} does not "
                "have; use Collocation."
            )

    def refusal(self, system: AbstractGroupSystem, state: State, h: float, moved: float) -> Refusal:
        return chart_refusal(h, moved)

    def step(self, system: AbstractGroupSystem, state: State, h: Scalar) -> tuple[State, StepInfo]:
        group, mu0 = system.group, state.momentum
        action = _Action(system, self.nodes, state, h)
        X, status = action.stationary()
        u, impulse, *_ = action.momenta(X)
        forward = group.expm1(u)
        mu1 = mu0 + (impulse + group.coAdm1(forward, mu0 + impulse))  # (5)
        end = State(group.advance(state.g, forward), mu1, state.t + h)
        stages = jnp.concatenate([action.U(X), u[None]])
        return end, step_info(status, u, in_chart(GroupItself(group), stages))


class _Action(NamedTuple):
    r"""Equations (1) to (6) of one step from `start`. The unknowns $X$ are $(K_j, \delta_j)$."""

    system: AbstractGroupSystem
    nodes: Nodes
    start: State
    h: Scalar

    def stationary(self) -> tuple[Unknowns, NewtonStatus]:
        """Return the unknowns that satisfy (1) to (4) and (6)."""
        n, s, state = self.system.group.dim, self.nodes.stages, self.start
        flow = flow_of(self.system, state)
        first = flow.generator(state.t, (state.g, state.momentum))
        guess = jnp.broadcast_to(jnp.concatenate([first[:n], jnp.zeros(n)]), (s, 2 * n))
        weights, scale, motion = measures(flow, first, self.h, s)
        weights = jnp.concatenate([weights[:n], weights[n:] / jnp.abs(self.h)])
        sweep = alternating(self.image, None)
        sizes = weights, scale, motion
        return settle(self.image, sweep, self.direction, guess, (), *sizes)

    def momenta(self, X: Unknowns) -> tuple[Coordinates, Coordinates, Stages, Stages]:
        r"""Return $u$ and the impulse of all forces from $g_0$ on; $p_j$, $\delta_j$ by (1)-(3)."""
        group, n, h, mu0 = self.system.group, self.system.group.dim, self.h, self.start.momentum
        A, b = np.array(self.nodes.A), np.array(self.nodes.b)
        K, U, u = X[:, :n], self.U(X), h * (b @ X[:, :n])
        nu, nu0 = jax.vmap(self.nu)(self.times(), U, K)
        impulse, pi = h * (b @ nu0), mu0[None] + h * (A @ nu0)
        F = jax.vmap(self.F)(U, K, pi + X[:, n:], nu)
        lam = group.dexp_dual(-u, mu0 + impulse)  # (2)
        weighted = (b[:, None] * A / b[None, :]).T
        p = jax.vmap(group.dexp_inv_dual)(U, lam[None, :] - h * (weighted @ F))  # (3)
        return u, impulse, p, jax.vmap(self.coAd)(-U, p) - pi  # (6)

    def image(self, X: Unknowns) -> Unknowns:
        """Return the unknowns as (4) and (6) give them from those before."""
        _, _, p, delta = self.momenta(X)
        return jnp.concatenate([jax.vmap(self.K)(self.times(), self.U(X), p), delta], axis=1)

    def direction(self, X: Unknowns, r: Unknowns) -> Unknowns:
        """Return Newton's direction, with the slopes at the middle of the step."""
        n = self.system.group.dim
        middle = jnp.concatenate([jnp.mean(self.U(X), axis=0), self.start.momentum])
        slope = square_slope(self.rate, middle)
        K_U, K_pi, nu_U = slope[:n, :n], slope[:n, n:], slope[n:, :n]
        slopes = (jnp.zeros_like(K_U), K_U, K_pi @ nu_U)
        dK = stage_direction(self.nodes, slopes, self.h, r[:, :n] + r[:, n:] @ K_pi.T)
        return jnp.concatenate([dK, r[:, n:]], axis=1)

    def rate(self, at: Float[Array, " twice_n"]) -> Float[Array, " twice_n"]:
        r"""Return the rates of $U$ and of the momentum seen from $g_0$, in the middle of a step."""
        n = self.system.group.dim
        U, pi, t = at[:n], at[n:], self.start.t + self.h / 2
        K = self.K(t, U, self.coAd(U, pi))
        return jnp.concatenate([K, self.nu(t, U, K)[1]])

    def times(self) -> Float[Array, " s"]:
        """Return when the stages are."""
        return self.start.t + np.array(self.nodes.c) * self.h

    def U(self, X: Unknowns) -> Stages:
        return self.h * (np.array(self.nodes.A) @ X[:, : self.system.group.dim])

    def g(self, U: Coordinates) -> Element:
        group = self.system.group
        return group.advance(self.start.g, group.expm1(U))

    def coAd(self, U: Coordinates, mu: Coordinates) -> Coordinates:
        r"""Return $\mathrm{Ad}^*_{\exp U}\,\mu$."""
        group = self.system.group
        return mu + group.coAdm1(group.expm1(U), mu)

    def nu(self, t: Scalar, U: Coordinates, K: Coordinates) -> tuple[Coordinates, Coordinates]:
        """Return the total force at a stage, and the same seen from $g_0$."""
        g, xi = self.g(U), self.system.group.dexp(U, K)
        now = self.system.at_time(t)
        nu = now.total_force(g, xi, now.momentum(g, xi), t)
        return nu, self.coAd(-U, nu)

    def F(self, U: Coordinates, K: Coordinates, pi: Coordinates, nu: Coordinates) -> Coordinates:
        group = self.system.group
        return group.dexp_gradient(U, K, self.coAd(U, pi)) + group.dexp_dual(U, nu)  # (1)

    def K(self, t: Scalar, U: Coordinates, p: Coordinates) -> Coordinates:
        now = self.system.at_time(t)
        return now.group.dexp_inv(U, now.velocity(self.g(U), p))  # (4)
