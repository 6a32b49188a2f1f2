"""Two rods that roll on each other: Stoermer-Verlet, and drift, kick, drift."""

from abc import abstractmethod
from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from retrax.contact.steps.records import ContactRecord
from retrax.errors import BadInput
from retrax.groups.so3 import SO3, Rotation, Vector
from retrax.integrators.base import AbstractIntegrator, Memory, Refusal, StepInfo, worse
from retrax.mechanics.state import State
from retrax.mechanics.system import AbstractGroupSystem, Coordinates
from retrax.numerics.checks import ArrayLike, is_traced
from retrax.numerics.newton import NewtonStatus, Sizes, to_stagnation
from retrax.numerics.small_matrices import solve
from retrax.systems.rods.contact import Pair
from retrax.systems.rods.coulomb_step import coulomb_step, record
from retrax.systems.rods.pair import RodsInContact
from retrax.systems.rods.pair_flight import Placements, Rows, Scalar, along, flight, forces
from retrax.systems.rods.unilateral import meeting

_EPS = float(jnp.finfo(jnp.float64).eps)
_AIM, _ACCEPT, _MOST = _EPS / 4, 64 * _EPS, 30

# The multipliers and points of contact tried, and by how much they miss (3).
_Attempt = tuple[Vector, Float[Array, "2"], Vector]


class AbstractRolling(AbstractIntegrator):
    """A step of two rods in contact that also knows the force between them."""

    @abstractmethod
    def step_and_force(
        self, system: RodsInContact, state: State, h: Scalar
    ) -> tuple[State, StepInfo, Vector]:
        """Take a step; return it with the contact force half-way through it."""

    def step(self, system: RodsInContact, state: State, h: Scalar) -> tuple[State, StepInfo]:
        new, info, _ = self.step_and_force(system, state, h)
        return new, info

    def check(self, system: AbstractGroupSystem) -> None:
        self._rods(system)

    def check_step(self, system: RodsInContact, state: State, h: float) -> None:
        for rod, g in zip(system.rods, state.g[:2], strict=True):
            rod.require_stable(g, h, split=False)

    def _rods(self, system: AbstractGroupSystem) -> RodsInContact:
        """Reject everything but two rods in contact."""
        if isinstance(system, RodsInContact):
            return system
        raise BadInput(
            f"{self!r} needs RodsInContact, got the {system.name}; use "
            f"{'LieVerlet' if system.contact is None else 'NonsmoothRattle'} instead."
        )


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

    Rods that are `unilateral` stick by these equations, and otherwise slip, part and meet under
    Coulomb's law (`contact/coulomb_rods.py`): of order 2 while they slip, and of order 1 across an
    impact.

    References: [CortesMartinez2001]; [GayBalmazPutkaradze2012].
    """

    order: ClassVar[int] = 2
    preserves: ClassVar[frozenset[str]] = frozenset(
        {"group", "momentum", "symmetric", "constraint", "contact"}
    )

    def check(self, system: AbstractGroupSystem) -> None:
        if not self._rods(system).keeps_gap:
            raise BadInput(
                f"RollingVerlet keeps the gap, which the equations of {type(system).__name__} do "
                "not; use RollingDKD or RKMK."
            )

    def step_and_force(
        self, system: RodsInContact, state: State, h: Scalar
    ) -> tuple[State, StepInfo, Vector]:
        r"""Take a step; return it with the mean of $\lambda^+$ and $\lambda^-$, halfway."""
        if system.unilateral:
            taken = coulomb_step(system, state, h)
            return taken.state, taken.info, (taken.first.impulse + taken.second.impulse) / h
        rows = system.reactions(state.g)
        pushed = state.momentum + h / 2 * forces(system, state.g, state.momentum, state.t)
        (before, s, _), met = self._multipliers(system, state, rows, pushed, h)
        kicked = pushed + h / 2 * along(before, rows)
        places, change, u, status = flight(system, state.g, kicked, h)  # (1)
        g1 = (*places, s)
        mu = kicked + change
        mu = mu + h / 2 * forces(system, g1, mu, state.t + h)
        rows1 = system.reactions(g1)
        after = -2 / h * solve(system.yielding(rows1), system.slip(g1, system.mobile(mu)))
        mu = mu + h / 2 * along(after, rows1)  # (4)
        info = StepInfo(
            status.converged & met.converged,
            jnp.maximum(status.residual, met.residual),
            met.iterations,
            jnp.max(jnp.abs(h * u[:-2])),
            jnp.asarray(True),
        )
        return State(g1, mu, state.t + h), info, (before + after) / 2

    def refusal(self, system: RodsInContact, state: State, h: float, moved: float) -> Refusal:
        if not (system.unilateral and h < 0):
            return super().refusal(system, state, h, moved)
        return Refusal(
            "would go back in time",
            "Rods that rub and meet lose energy that no step back can return: h must be positive.",
            -h / 2,
        )

    def fault(self, system: RodsInContact, state: State, h: float) -> str | None:
        if system.contact is None:
            return None
        at = jax.tree.map(jnp.asarray, state)
        left, gap, opening, slid, way = (float(x) for x in _residuals(system, at, jnp.asarray(h)))
        (name,) = system.contact.names
        return (
            f"No impulses were found for {name}: the last ones tried miss the law by {left:.2g} m. "
            f"The gap of {gap:.3g} m opens at {opening:.3g} m/s, the surfaces slip at {slid:.3g} "
            f"m/s, and the points of contact travel {way:.2g} widths of the bump in the step, "
            "which must be well below 1."
        )

    def memory(self, system: RodsInContact, state: State) -> Memory:
        """Return the impulses on rod 1 of both stages, per time, where the rods may slip."""
        return (jnp.zeros(3), jnp.zeros(3)) if system.unilateral else ()

    def next_step(
        self, system: RodsInContact, state: State, h: Scalar, memory: Memory
    ) -> tuple[State, StepInfo, Memory]:
        if not system.unilateral:
            return *self.step(system, state, h), memory
        taken = coulomb_step(system, state, h)
        return taken.state, taken.info, (taken.first.impulse / h, taken.second.impulse / h)

    def record(
        self, system: RodsInContact, state: State, new: State, h: Scalar, memory: Memory
    ) -> ContactRecord:
        """Return what the contact did in a step between two states that handed on `memory`."""
        first, last = memory
        return record(system, state, new, h * first, h * last)

    def contact_record(
        self, system: RodsInContact, state: State, h: ArrayLike, memory: Memory = ()
    ) -> tuple[State, ContactRecord]:
        """Take a step of rods that may slip and part again, and return what their contact does."""
        if not system.unilateral:
            raise BadInput(
                f"the {system.name} rolls for as long as the contact lasts, and has no record of "
                "it; unilateral=True lets it slip and part."
            )
        size = jnp.asarray(h)
        new, _, last = self.next_step(system, state, size, self.memory(system, state))
        return new, self.record(system, state, new, size, last)

    def _multipliers(
        self, system: RodsInContact, state: State, rows: Rows, pushed: Coordinates, h: Scalar
    ) -> tuple[_Attempt, NewtonStatus]:
        """Solve (2) and (3) by iteration."""
        g0 = state.g
        d0 = system.gap_vector(g0)
        S = system.yielding(rows)
        # Places are as large as the rods are long: so are the terms that cancel in (2) and (3).
        terms = system.first.length + system.second.length

        def improve(tried: _Attempt) -> tuple[_Attempt, Sizes]:
            lam, s, miss = tried
            lam = lam - 2 / h * solve(S, miss)
            g1, _, u, _ = flight(system, g0, pushed + h / 2 * along(lam, rows), h)
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
            return (lam, s, miss), (size, jnp.ones(()))

        lam = -2 / h * solve(S, system.slip(g0, system.mobile(pushed)))
        s = g0[2] + h * system.travel(g0, *system.split(system.mobile(state.momentum)))
        start = (lam, s, jnp.zeros(3)), (jnp.asarray(jnp.inf), jnp.ones(()))
        return to_stagnation(improve, *start, aim=_AIM, accept=_ACCEPT, most=_MOST)


class RollingDKD(AbstractRolling):
    r"""Half a free flight, one kick with one multiplier, half a free flight.

    With $\varphi$ the exact free flight of all nodes (symmetric tops), and everything in the kick
    taken at $q_{1/2}$,

    $$
    \begin{aligned}
    (q_{1/2}, p) &= \varphi_{h/2}(q_k, p_k)                                         &&\text{(1)}\\
    p' &= p + h(F + A^T\lambda), \qquad A M^{-1}\tfrac12(p + p') = 0                 &&\text{(2)}\\
    (q_{k+1}, p_{k+1}) &= \varphi_{h/2}(q_{1/2}, p').                                &&\text{(3)}
    \end{aligned}
    $$

    The multiplier of (2) solves a linear system of three equations; it does no work in the step,
    and conserves both momenta where the ends are free. Cheaper than `RollingVerlet`, but the gap
    and the constraint hold up to $O(h^2)$ only.

    References: [GayBalmazPutkaradze2012].
    """

    order: ClassVar[int] = 2
    preserves: ClassVar[frozenset[str]] = frozenset({"group", "momentum", "symmetric"})

    def check(self, system: AbstractGroupSystem) -> None:
        for rod in self._rods(system).rods:
            moments = rod.parts(rod.inertia)[0]
            if not is_traced(moments) and not np.allclose(moments[:, 0], moments[:, 1], rtol=1e-12):
                raise BadInput(
                    f"inertia of the {rod.name} has two different moments across it, but "
                    "RollingDKD knows the free flight of round sections only; use RollingVerlet."
                )

    def step_and_force(
        self, system: RodsInContact, state: State, h: Scalar
    ) -> tuple[State, StepInfo, Vector]:
        """Take a step; return it with the contact force of its kick."""
        places, mu, turn = _spinning_flight(system, state.g, state.momentum, h / 2)  # (1)
        s, status = system.touching(*places, state.g[2])
        g = (*places, s)
        rows = system.reactions(g)
        pushed = mu + h / 2 * forces(system, g, mu, state.t + h / 2)
        lam = -2 / h * solve(system.yielding(rows), system.slip(g, system.mobile(pushed)))
        mu = mu + 2 * (pushed - mu) + h * along(lam, rows)  # (2)
        places, mu, _ = _spinning_flight(system, g, mu, h / 2)  # (3)
        s, closed = system.touching(*places, 2 * s - state.g[2])
        info = StepInfo(*worse(status, closed), turn, jnp.asarray(True))
        return State((*places, s), mu, state.t + h), info, lam


@jax.jit
def _residuals(system: RodsInContact, state: State, h: Scalar) -> tuple[Scalar, ...]:
    """Return what is left of the law in metres; gap, opening, slip; travel of the contact."""
    here, nodes = meeting(system, state.g), system.mobile(state.momentum)
    opening, across = here.parts(system.slip(state.g, nodes))
    way = system.travel(state.g, *system.split(nodes))
    left = coulomb_step(system, state, h).info.residual
    left = left * (system.first.length + system.second.length)
    far = jnp.max(jnp.abs(h * way)) / system.width
    return left, here.gap, opening, jnp.sqrt(across @ across), far


def _spinning_flight(
    system: RodsInContact, g: Pair, mu: Coordinates, h: Scalar
) -> tuple[Placements, Coordinates, Scalar]:
    """Return the exact free flight of two rods of round section, and the longest turn in it."""
    ends, momenta, turns = [], [], []
    for rod, (frames, places), p in zip(system.rods, g[:2], system.split(mu), strict=True):
        spun, pushed = rod.parts(p)
        moments, _ = rod.parts(rod.inertia)
        turned, kept, turn = jax.vmap(lambda R, P, J: _top(R, P, J, h))(frames, spun, moments)
        moved = places + h * (rod.parts(rod.mobility)[1] * pushed)
        ends.append((turned, moved))
        momenta.append(jnp.concatenate([kept, pushed], axis=1).reshape(-1))
        turns.append(jnp.max(turn))
    one, two = ends
    return (one, two), system.join(*momenta), jnp.maximum(*turns)


def _top(R: Rotation, P: Vector, J: Vector, h: Scalar) -> tuple[Rotation, Vector, Scalar]:
    r"""Return a free symmetric top after a time h, $R\exp(hP/J_1)\exp(\theta e_3)$.

    $\theta = h(1/J_3 - 1/J_1)P_3$, and the momentum in the body turns by $-\theta$.
    """
    group = SO3()
    first = h / J[0] * P
    angle = h * (1 / J[2] - 1 / J[0]) * P[2]
    second = jnp.stack([jnp.zeros_like(angle), jnp.zeros_like(angle), angle])
    turned = group.advance(group.advance(R, group.expm1(first)), group.expm1(second))
    return turned, P + group.expm1(-second) @ P, jnp.max(jnp.abs(first))
