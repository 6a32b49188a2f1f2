"""Stoermer-Verlet for two rods that roll on each other."""

from typing import Any, ClassVar, NamedTuple

import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float

from retrax.errors import BadInput
from retrax.integrators.base import StepInfo
from retrax.integrators.rolling import AbstractRolling, along, force
from retrax.mechanics.state import State
from retrax.numerics.newton import NewtonStatus
from retrax.numerics.small_matrices import solve
from retrax.systems.rods.pair import RodsInContact

_EPS = float(jnp.finfo(jnp.float64).eps)
_AIM, _ACCEPT, _MOST = _EPS / 4, 64 * _EPS, 30


class _Attempt(NamedTuple):
    """The multipliers and points of contact tried, and by how much they miss (3)."""

    lam: Float[Array, "3"]
    s: Float[Array, "2"]
    miss: Float[Array, "3"]
    size: Float[Array, ""]
    before: Float[Array, ""]
    iterations: Array


class RollingVerlet(AbstractRolling):
    r"""`LieVerlet` with the impulses of a rolling contact, the gap kept to round-off.

    From $(q_k, p_k)$ with $C(q_k)\,M^{-1}p_k = 0$, with $F$ the forces, $A$ the matrix of the
    constraint $C$, $\lambda^\pm$ forces on rod 1 and $\mathrm{fl}$ the free flight of all nodes,

    $$
    \begin{aligned}
    (q_{k+1}, p^-) &= \mathrm{fl}_h\bigl(q_k,\ p_k + \tfrac h2(F_k + A_k^T\lambda^+)\bigr),
        \text{ its velocities } u                                                  &&\text{(1)}\\
    0 &= d_{k+1}\cdot R_i'(s_{i,k+1})                                               &&\text{(2)}\\
    0 &= \Phi(\lambda^+) = P\,\tfrac12\left[A_k u + A_{k+1}u\right]
        - \frac{|d_{k+1}| - 2a}h\,\bar n                                            &&\text{(3)}\\
    p_{k+1} &= p^- + \tfrac h2(F_{k+1} + A_{k+1}^T\lambda^-), \qquad A_{k+1}M^{-1}p_{k+1} = 0,
                                                                                    &&\text{(4)}
    \end{aligned}
    $$

    where $\bar n$ halves the angle between $d_k$ and $d_{k+1}$ and $P$ projects off it: of the
    three rows of (3) one keeps the gap, two let nothing slip on average. (2) and (3) are solved
    together, $\lambda^+ \leftarrow \lambda^+ - \tfrac2h S^{-1}\Phi$ with $S = A_kM^{-1}A_k^T$.
    $q_k$ satisfies the discrete Lagrange-d'Alembert equations; the reactions conserve both momenta
    where the ends are free. Steps are symmetric, so of order 2. No theorem bounds the energy of a
    nonholonomic step: that it stays bounded is measured.

    The contact force at $t_k$ is $\tfrac12(\lambda^-_k + \lambda^+_k)$ up to $O(h^2)$;
    `system.multipliers` gives it from the state.

    References: [CortesMartinez2001]; [GayBalmazPutkaradze2012].
    """

    order: ClassVar[int] = 2
    preserves: ClassVar[frozenset[str]] = frozenset(
        {"group", "momentum", "symmetric", "constraint"}
    )

    def check(self, system: Any) -> None:
        super().check(system)
        if system.variant != "rolling":
            raise BadInput(
                f"RollingVerlet keeps the gap, which the equations of variant = {system.variant!r} "
                "do not; use RollingDKD or RKMK."
            )

    def step_and_force(
        self, system: RodsInContact, state: State, h: Float[Array, ""]
    ) -> tuple[State, StepInfo, Float[Array, "3"]]:
        """A step, and the mean of $\\lambda^+$ and $\\lambda^-$: the force half-way through it."""
        rows = system.reactions(state.g)
        pushed = state.momentum + h / 2 * force(system, state.g, state.momentum, state.t)
        done = self._solved(system, state, rows, pushed, h)
        g1, change, u, status = flown(system, state.g, pushed + h / 2 * along(done.lam, rows), h)
        g1 = (*g1, done.s)
        # (4)
        mu = pushed + h / 2 * along(done.lam, rows) + change
        mu = mu + h / 2 * force(system, g1, mu, state.t + h)
        rows1 = system.reactions(g1)
        after = -2 / h * solve(system.yielding(rows1), system.slip(g1, system.mobile(mu)))
        mu = mu + h / 2 * along(after, rows1)
        lam = (done.lam + after) / 2
        turn = jnp.max(jnp.abs(h * u[:-2]))
        small = done.size <= _ACCEPT
        info = StepInfo(
            status.converged & small,
            jnp.maximum(status.residual, done.size),
            done.iterations,
            turn,
            jnp.asarray(True),
        )
        return State(g1, mu, state.t + h), info, lam

    def _solved(
        self, system: RodsInContact, state: State, rows: Any, pushed: Any, h: Float[Array, ""]
    ) -> _Attempt:
        """(2) and (3), by iteration."""
        g0 = state.g
        d0 = system.gap_vector(g0)
        S = system.yielding(rows)
        # Places are as large as the rods are long: so are the terms that cancel in (2) and (3).
        terms = system.first.length + system.second.length

        def attempt(lam, s, before, count):
            g1, _, u, _ = flown(system, g0, pushed + h / 2 * along(lam, rows), h)
            at = (*g1, s)
            s = s - solve(system.curvature_of_gap(at), system.tangency(at))  # (2)
            at = (*g1, s)
            d1 = system.gap_vector(at)
            gap = jnp.sqrt(d1 @ d1)
            n = d0 / jnp.sqrt(d0 @ d0) + d1 / gap
            n = n / jnp.sqrt(n @ n)
            mean = (system.slip(g0, u) + system.slip(at, u)) / 2
            miss = mean - ((mean @ n) + (gap - 2 * system.radius) / h) * n  # (3)
            skew = jnp.sum(jnp.abs(system.tangency(at))) * system.width / (2 * system.radius)
            size = (jnp.sum(jnp.abs(miss)) * jnp.abs(h) + skew) / terms
            return _Attempt(lam, s, miss, size, before, count)

        def unfinished(it: _Attempt):
            gaining = (it.size < 0.5 * it.before) | (it.size > _ACCEPT)
            return (it.size > _AIM) & gaining & (it.iterations < _MOST)

        def again(it: _Attempt):
            lam = it.lam - 2 / h * solve(S, it.miss)
            return attempt(lam, it.s, it.size, it.iterations + 1)

        start = -2 / h * solve(S, system.slip(g0, system.mobile(pushed)))
        s = g0[2] + h * system.travel(g0, *system.split(system.mobile(state.momentum)))
        none, worst = jnp.zeros(3), jnp.asarray(jnp.inf)
        return lax.while_loop(
            unfinished, again, _Attempt(start, s, none, worst, worst, jnp.asarray(0))
        )


def flown(system: RodsInContact, g: Any, mu: Any, h: Any) -> tuple[Any, Any, Any, NewtonStatus]:
    """The free flight of both rods: places, change of momentum, velocities, how it was solved."""
    flights = [
        rod.flight(at, p, h)
        for rod, at, p in zip(system.rods, g[:2], system.split(mu), strict=True)
    ]

    def flat(rotations, translations):
        return jnp.concatenate([rotations, translations], axis=1).reshape(-1)

    change = system.joined(*(flat(f.change, jnp.zeros_like(f.v)) for f in flights))
    velocity = system.joined(*(flat(f.w, f.v) for f in flights))
    one, two = (f.status for f in flights)
    status = NewtonStatus(
        one.converged & two.converged,
        jnp.maximum(one.residual, two.residual),
        one.iterations + two.iterations,
    )
    return tuple(f.g for f in flights), change, velocity, status
