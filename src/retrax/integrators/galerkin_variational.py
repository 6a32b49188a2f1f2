"""Galerkin variational integrators: symplectic, of any order, on any group."""

from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from retrax.errors import BadInput
from retrax.integrators.base import AbstractIntegrator, Refusal, StepInfo, step_info
from retrax.integrators.collocation import chart_refusal
from retrax.integrators.collocation_step import in_chart, measures
from retrax.integrators.forms import flow_of, is_first_order
from retrax.mechanics.state import State
from retrax.mechanics.system import AbstractGroupSystem
from retrax.numerics import nodes as node_families
from retrax.numerics.stages import Stages, settle, square_slope, stage_direction
from retrax.spaces.group_itself import GroupItself


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

    nodes: node_families.Nodes = eqx.field(static=True)
    order: int = eqx.field(static=True)
    preserves: frozenset[str] = eqx.field(static=True)

    def __init__(self, nodes: node_families.Nodes | Sequence[float] | Any):
        self.nodes = node_families.nodes(nodes)
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
                f"GalerkinVariational makes an action stationary, but the {system.name} has none; "
                "use Collocation."
            )

    def refusal(self, system: Any, state: State, h: float, moved: float) -> Refusal:
        return chart_refusal(h, moved)

    def step(
        self, system: AbstractGroupSystem, state: State, h: Float[Array, ""]
    ) -> tuple[State, StepInfo]:
        group, n, g0, mu0 = system.group, system.group.dim, state.g, state.momentum
        A, b, s = np.array(self.nodes.A), np.array(self.nodes.b), self.nodes.stages
        back = (b[:, None] * A / b[None, :]).T
        times = state.t + np.array(self.nodes.c) * h

        def turned(u, mu):
            return mu + group.coAdm1(group.expm1(u), mu)

        def push(t, u, rate):
            g, xi = group.advance(g0, group.expm1(u)), group.dexp(u, rate)
            force = system.total_force(g, xi, system.momentum(g, xi), t)
            return force, turned(-u, force)

        def bend(u, rate, pi, force):
            bent = group.dexp_gradient(u, rate, turned(u, pi))
            return bent + group.dexp_dual(u, force)  # (1)

        def momenta(X: Stages) -> tuple[Array, Array, Array, Array]:
            K, U, u = X[:, :n], h * (A @ X[:, :n]), h * (b @ X[:, :n])
            force, seen = jax.vmap(push)(times, U, K)
            impulse, pushed = h * (b @ seen), mu0[None] + h * (A @ seen)  # (6)
            F = jax.vmap(bend)(U, K, pushed + X[:, n:], force)
            lam = group.dexp_dual(-u, mu0 + impulse)  # (2)
            p = jax.vmap(group.dexp_inv_dual)(U, lam[None, :] - h * (back @ F))  # (3)
            return u, impulse, p, jax.vmap(turned)(-U, p) - pushed

        def velocity(u, p):
            g = group.advance(g0, group.expm1(u))
            return group.dexp_inv(u, system.velocity(g, p))  # (4)

        def image(X: Stages) -> Stages:
            _, _, p, defect = momenta(X)
            rates = jax.vmap(velocity)(h * (A @ X[:, :n]), p)
            return jnp.concatenate([rates, defect], axis=1)

        def rate(x):
            u, pi = x[:n], x[n:]
            now = velocity(u, turned(u, pi))
            return jnp.concatenate([now, push(state.t + h / 2, u, now)[1]])

        def direction(X: Stages, r: Stages) -> Stages:
            middle = jnp.concatenate([jnp.mean(h * (A @ X[:, :n]), axis=0), mu0])
            slope = square_slope(rate, middle)
            uu, up, pu = slope[:n, :n], slope[:n, n:], slope[n:, :n]
            slopes = (jnp.zeros_like(uu), uu, up @ pu)
            dK = stage_direction(self.nodes, slopes, h, r[:, :n] + r[:, n:] @ up.T)
            return jnp.concatenate([dK, r[:, n:]], axis=1)

        flow = flow_of(system, state)
        first = flow.generator(state.t, (g0, mu0))
        start = jnp.concatenate([first[:n], jnp.zeros(n)])
        weights, scale = measures(flow, first, h, s)
        weights = jnp.concatenate([weights[:n], weights[n:] / jnp.abs(h)])
        guess = jnp.broadcast_to(start, (s, 2 * n))
        X, status = settle(image, direction, guess, None, weights, scale)
        u, impulse, *_ = momenta(X)
        forward = group.expm1(u)
        mu1 = mu0 + (impulse + group.coAdm1(forward, mu0 + impulse))  # (5)
        stages = jnp.concatenate([h * (A @ X[:, :n]), u[None]])
        end = State(group.advance(g0, forward), mu1, state.t + h)
        return end, step_info(status, u, in_chart(GroupItself(group), stages))
