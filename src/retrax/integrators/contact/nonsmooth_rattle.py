"""Contact that sticks, slips, lets go and comes back: RATTLE with unilateral constraints."""

from typing import ClassVar, NamedTuple, TypeGuard

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float

from retrax.contact.ball_contact import BallContact
from retrax.contact.self_contact import SelfContact
from retrax.errors import BadInput
from retrax.groups.base import AbstractLieGroup
from retrax.groups.retractions import AbstractRetraction, Exp
from retrax.integrators.base import AbstractIntegrator, Refusal, StepInfo, step_info, worse
from retrax.integrators.contact.ball_rattle import BallRattle
from retrax.integrators.contact.ball_touch import BallTouch
from retrax.integrators.contact.faults import fault_of_contact
from retrax.integrators.contact.records import ContactRecord, Given, recorded
from retrax.integrators.contact.rod_contact import LastTouch, RodContact
from retrax.integrators.contact.rod_record import RodContactRecord
from retrax.mechanics.contact import AbstractContacts, Gaps
from retrax.mechanics.holonomic import AbstractHolonomic
from retrax.mechanics.reactions import answers
from retrax.mechanics.state import State
from retrax.mechanics.system import AbstractGroupSystem, Coordinates, Element
from retrax.numerics.complementarity import Contact, Found, Impulses, Law, weights
from retrax.numerics.contact_solution import solve_contact
from retrax.numerics.small_matrices import partly_ordered_solve
from retrax.systems.balls import Balls
from retrax.systems.rods.elastic import AbstractRod
from retrax.systems.rods.pair import RodsInContact

Scalar = Float[Array, ""]
_EPS = float(jnp.finfo(jnp.float64).eps)
# A gap this small, relative to the coordinates of the place, is closed: rounding errors of contacts
# that say the same twice would otherwise push against each other.
_CLOSED, _TOUCHED = 8 * _EPS, 64 * _EPS
# What would go in a step no further than this does not bounce.
_SOFT = 1e-12
# Impulses that move bodies by no more than this, relative to the coordinates, repair rounding.
_REPAIR = 256 * _EPS
# What slips this many times faster than the friction of a stage can stop it goes on slipping.
_FAST = 8.0
# Joints may be redundant: this part of their diagonal is added to it.
_PROXIMAL = 1e-13


class Last(NamedTuple):
    """What the step before found: the impulses of both stages, per time.

    `guesses` are what the iterations of both begin with: the same, but for rounding errors.
    """

    first: Impulses
    last: Impulses
    ties: Float[Array, " k"]
    ends: Float[Array, " k"]
    guesses: tuple[Impulses, Impulses]


class NonsmoothRattle(AbstractIntegrator):
    r"""`LieVerlet` with impulses that keep bodies apart and rub, and joints beside them.

    With gaps $\gamma \ge 0$, their rows $N$, rows $T$ of the slip, friction $f$ and restitution
    $e$,

    $$
    \begin{aligned}
    (d^R\tau^{-1}_{h\xi})^*\,p(\xi) &= \mu_k + \tfrac h2F_k + \Phi_k^T\lambda
        + N_k^Tp + T_k^Tq, \qquad g_{k+1} = g_k\,\tau(h\xi)                       &&\text{(1)}\\
    0 \le \gamma(g_{k+1}) &\perp p \ge 0, \qquad \varphi(g_{k+1}) = 0             &&\text{(2)}\\
    q &= \mathrm{proj}_{|q| \le fp}\bigl(q - \rho\,\tfrac12(T_k + T_{k+1})\xi\bigr) &&\text{(3)}\\
    \mu_{k+1} &= \mathrm{Ad}^*_{\tau(h\xi)}(\ldots) + \tfrac h2F_{k+1} + \Phi_{k+1}^T\lambda'
        + N_{k+1}^Tp' + T_{k+1}^Tq'                                               &&\text{(4)}\\
    0 \le N_{k+1}\xi_{k+1} + e\,\min(v, 0) &\perp p' \ge 0, \qquad
        q' = \mathrm{proj}_{|q'| \le fp'}(q' - \rho\,T_{k+1}\xi_{k+1})            &&\text{(5)}
    \end{aligned}
    $$

    (5) for contacts that are closed. One that was open at $g_k$ meets at the speed $v$, found
    between both ends of the step, and rubs at the end of it alone: $q = 0$, $|q'| \le f(p + p')$;
    of one that was closed $v = N_k\xi_k$. An impact at one point must not add energy: with the
    velocities $\xi_-$ before it, and $w = NM^{-1}N^T$,

    $$ v^2 \le (N_{k+1}\xi'_-)^2 + \frac{w_{k+1}}{w_k}\bigl((N_k\xi_-)^2 - (N_k\xi)^2\bigr).
        \tag{6} $$

    A contact that sticks is a rolling constraint: it does
    not creep. One that slips so fast that a step cannot stop it rubs against its slip
    $T_k\xi_k$ at the start of the step in (3), as it does against that at the end in (5). So the
    step is its own adjoint, and of order 2 while contacts slip, stick, roll or are open; in
    impacts it is of order 1. Without contact this is `LieVerlet`.

    **Arguments:** `retraction`: $\tau$. With `Exp()` the velocity of a step agrees with the
    momenta of a body that spins; `Cayley()` asks friction for what it misses.

    References: [AcaryBrogliato2008], [Moreau1988].
    """

    retraction: AbstractRetraction = Exp()
    order: ClassVar[int] = 2
    preserves: ClassVar[frozenset[str]] = frozenset({"group", "positions", "contact"})
    memory_saves_work: ClassVar[bool] = True

    def check(self, system: AbstractGroupSystem) -> None:
        if _of_balls(system):
            return BallRattle().check(system)
        if _of_rods(system):
            return RodContact().check(system)
        self.retraction.check(system.group)
        if system.contact is None:
            raise BadInput(
                f"NonsmoothRattle needs contacts, and the {system.name} has none; use LieVerlet()."
            )
        if isinstance(system, RodsInContact):
            raise BadInput(
                f"the {system.name} has a step of its own for its contact; use RollingVerlet()."
            )
        held = system.constraint
        if held is not None and not isinstance(held, AbstractHolonomic):
            self.refuse_constraint(system)
        if held is not None and held.rolling is not None:
            raise BadInput(
                f"the {system.name} has wheels or other constraints on velocities beside its "
                "contacts, which no step takes together: give the wheel a shape that touches, such "
                "as rx.Ball or rx.Cylinder on rx.Plane, with friction, instead."
            )

    def check_step(self, system: AbstractGroupSystem, state: State, h: float) -> None:
        if _of_rods(system):
            RodContact().check_step(system, state, h)

    def check_run(self, t: float, h: float, steps: int) -> str | None:
        if h < 0:
            raise BadInput(f"h = {h:g} is negative, but friction and impacts have no way back.")
        return None

    def refusal(self, system: AbstractGroupSystem, state: State, h: float, moved: float) -> Refusal:
        if _of_balls(system):
            return BallRattle().refusal(system, state, h, moved)
        if _of_rods(system):
            return RodContact().refusal(system, state, h, moved)
        return super().refusal(system, state, h, moved)

    def memory(self, system: AbstractGroupSystem, state: State) -> Last | LastTouch | BallTouch:
        if _of_balls(system):
            return BallRattle().memory(system, state)
        if _of_rods(system):
            return RodContact().memory(system, state)
        none = jnp.zeros((len(system.contact.names), 3))
        ties = jnp.zeros(len(_ties(system, state.g, state.t)))
        return Last(none, none, ties, ties, (none, none))

    def step(self, system: AbstractGroupSystem, state: State, h: Scalar) -> tuple[State, StepInfo]:
        new, info, _ = self.next_step(system, state, h, self.memory(system, state))
        return new, info

    def next_step(
        self,
        system: AbstractGroupSystem,
        state: State,
        h: Scalar,
        memory: Last | LastTouch | BallTouch,
    ) -> tuple[State, StepInfo, Last | LastTouch | BallTouch]:
        if isinstance(memory, BallTouch):
            assert _of_balls(system)
            return BallRattle().next_step(system, state, h, memory)
        if isinstance(memory, LastTouch):
            assert _of_rods(system)
            return RodContact().next_step(system, state, h, memory)
        return self._taken(system, state, h, memory)

    def fault(self, system: AbstractGroupSystem, state: State, h: float) -> str | None:
        alone = _of_rods(system) or _of_balls(system)
        return None if alone else fault_of_contact(system, state, h)

    def contact_record(
        self,
        system: AbstractGroupSystem,
        state: State,
        h: Scalar,
        memory: Last | LastTouch | BallTouch | None = None,
    ) -> tuple[State, ContactRecord | RodContactRecord]:
        """Take a step again, and return what its contacts do."""
        begun = self.memory(system, state) if memory is None else memory
        if isinstance(begun, BallTouch):
            assert _of_balls(system)
            return BallRattle().contact_record(system, state, h, begun)
        if isinstance(begun, LastTouch):
            assert _of_rods(system)
            return RodContact().contact_record(system, state, h, begun)
        new, _, last = self._taken(system, state, h, begun)
        return new, self.record(system, state, new, h, last)

    def record(
        self,
        system: AbstractGroupSystem,
        state: State,
        new: State,
        h: Scalar,
        memory: Last | LastTouch | BallTouch,
    ) -> ContactRecord | RodContactRecord:
        """Return what contacts did in a step between two states that handed on `memory`."""
        if isinstance(memory, BallTouch):
            assert _of_balls(system)
            return BallRattle().record(system, state, h, memory)
        if isinstance(memory, LastTouch):
            assert _of_rods(system)
            return RodContact().record(system, state, h, memory)
        first = Given(h * memory.first, h * memory.ties, _ties(system, state.g, state.t))
        last = Given(h * memory.last, h * memory.ends, _ties(system, new.g, new.t))
        return recorded(system, state, new, first, last, h, _extent(state.g))

    def _taken(
        self, system: AbstractGroupSystem, state: State, h: Scalar, memory: Last
    ) -> tuple[State, StepInfo, Last]:
        group, tau = system.group, self.retraction
        contact: AbstractContacts = system.contact
        g0, mu0, t0, t1 = state.g, state.momentum, state.t, state.t + h
        now, then = system.at_time(t0), system.at_time(t1)
        before, ties = contact.look(g0), _ties(system, g0, t0)
        extent = _extent(g0)
        xi0 = now.velocity(g0, mu0)
        touched = before.gap <= _TOUCHED * extent
        u0 = jnp.einsum("iak,k->ia", before.rows, xi0)
        rho = weights(before.rows, ties, lambda rows: answers(now, rows, g0, mu0))

        def kick(at: AbstractGroupSystem, g: Element, xi: Coordinates, t: Scalar) -> Coordinates:
            return h / 2 * at.total_force(g, xi, at.momentum(g, xi), t)

        def drift(xi: Coordinates) -> Element:
            return group.advance(g0, tau.minus_identity(group, h * xi))

        def need(xi: Coordinates) -> Coordinates:
            p = (now.momentum(g0, xi) + then.momentum(drift(xi), xi)) / 2
            return tau.dR_inv_dual(group, h * xi, p) - (mu0 + kick(now, g0, xi, t0))  # (1)

        pushed = kick(now, g0, xi0, t0)
        free = now.velocity(g0, mu0 + pushed)  # how it would go on without contact
        sinks = jnp.maximum(-contact.speeds(drift(free), free, before.frame)[0], 0.0) / h
        slides = touched & _goes_on(u0, rho[0][:, 0] * sinks, contact.friction, rho[0])

        def seen(gap: Array) -> Array:
            # What is closed is zero, and has the derivatives of the gap.
            nothing = gap - lax.stop_gradient(gap)
            return jnp.where(jnp.abs(gap) <= _CLOSED * extent, nothing, gap)

        def speeds(xi: Coordinates) -> Impulses:
            gap, there = contact.speeds(drift(xi), xi, before.frame)
            slip = (jnp.einsum("iak,k->ia", before.rows[:, 1:], xi) + there[:, 1:]) / 2
            slip = jnp.where(slides[:, None], u0[:, 1:], slip)
            return jnp.concatenate([(seen(gap) / h)[:, None], slip], axis=1)  # (2), (3)

        def held(xi: Coordinates) -> Array:
            return seen(_positions(system, drift(xi), t1)) / h

        def slopes(xi: Coordinates) -> tuple[Array, Array]:
            g = drift(xi)

            def carried(row: Coordinates) -> Coordinates:
                return tau.dL_dual(group, h * xi, row)

            rows = contact.look(g, before.frame).rows
            opening = jax.vmap(carried)(rows[:, 0])
            slip = jnp.where(slides[:, None, None], 0.0, (before.rows + rows)[:, 1:] / 2)
            V = jnp.concatenate([opening[:, None], slip], axis=1)
            G = _ties(system, g, t1)
            return V, jax.vmap(carried)(G) if len(G) else G

        def gives(rows: Array) -> Array:
            return answers(now, rows, g0, mu0)

        problem = Contact(
            need=need,
            speeds=speeds,
            slopes=slopes,
            held=held,
            answers=gives,
            law=Law(
                rows=before.rows,
                friction=jnp.where(touched, contact.friction, 0.0),
                pushed=jnp.zeros_like(contact.friction),
                touching=jnp.ones(len(contact.names), bool),
                ties=ties,
                weights=rho,
                terms=jnp.sum(jnp.abs(mu0)) + jnp.sum(jnp.abs(pushed)),
                unseen=extent / jnp.abs(h),
                rounding=extent / jnp.abs(h),
            ),
        )
        z, lam = h * memory.guesses[0], h * memory.ties
        loaded = jnp.einsum("iak,ia->k", before.rows, z) + lam @ ties
        guess = Found(now.velocity(g0, mu0 + pushed + loaded), z, lam)
        found, status = solve_contact(problem, guess)
        xi = found.xi
        g1 = drift(xi)
        push = kick(now, g0, xi, t0)
        impulse = jnp.einsum("iak,ia->k", before.rows, found.z) + found.lam @ ties
        push = push + impulse
        turn = group.coAdm1(tau.minus_identity(group, h * xi), mu0 + push)
        off = mu0 + (push + turn + kick(then, g1, xi, t1))  # (4) without impulses

        after, ends = contact.look(g1, before.frame), _ties(system, g1, t1)
        closed = (found.z[:, 0] > 0) | (after.gap <= _CLOSED * extent)
        # What meets in this step slides freely until then, and rubs with all of its push after.
        met = jnp.where(touched, 0.0, found.z[:, 0])
        apart = then.velocity(g1, off - _turned(group, tau, h * xi, impulse))
        arrives = then.velocity(g1, off)
        if system.constraint is not None:
            free = _joined(now, free, ties, g0, mu0, t0)
            apart, arrives = (_joined(then, v, ends, g1, off, t1) for v in (apart, arrives))
        ahead, down = after.rows[:, 0], before.rows[:, 0]
        approach = jnp.where(
            touched, jnp.minimum(u0[:, 0], 0.0), _approach(before.gap, u0[:, 0], ahead @ apart, h)
        )
        gives_then = jnp.sum(ahead * answers(then, ahead, g1, off), axis=1)
        spare = (ahead @ arrives) ** 2  # (6)
        spare = spare + rho[0][:, 0] * gives_then * ((down @ free) ** 2 - (down @ xi) ** 2)
        approach = jnp.maximum(approach, -jnp.sqrt(jnp.where(spare > 0, spare, 0.0)))
        hits = -h * approach > _SOFT * extent
        bounce = jnp.where(hits, contact.restitution * approach, 0.0)

        def left(xi: Coordinates) -> Coordinates:
            return then.momentum(g1, xi) - off

        def rates(xi: Coordinates) -> Impulses:
            u = jnp.einsum("iak,k->ia", after.rows, xi)
            return u.at[:, 0].add(bounce)  # (5)

        def opening(xi: Coordinates) -> Array:
            if system.constraint is None:
                return ends @ xi
            return system.constraint.violation(g1, xi, t1)

        second = Contact(
            need=left,
            speeds=rates,
            slopes=lambda xi: (after.rows, ends),
            held=opening,
            answers=lambda rows: answers(then, rows, g1, off),
            law=Law(
                rows=after.rows,
                friction=contact.friction,
                pushed=met,
                touching=closed,
                ties=ends,
                weights=rho,
                terms=jnp.sum(jnp.abs(mu0)) + jnp.sum(jnp.abs(push)) + jnp.sum(jnp.abs(off)),
                unseen=jnp.zeros(()),
                rounding=extent / jnp.abs(h),
            ),
        )
        started = jnp.where(closed[:, None], memory.guesses[1] * h, 0.0)
        loaded = jnp.einsum("iak,ia->k", after.rows, started) + h * memory.ends @ ends
        begun = Found(then.velocity(g1, off + loaded), started, h * memory.ends)
        last, settled = solve_contact(second, begun)
        mu1 = off + jnp.einsum("iak,ia->k", after.rows, last.z) + last.lam @ ends
        new = State(g1, mu1, t1)
        both = worse(status, settled)
        info = step_info(both, h * xi, tau.covers(group, h * xi))
        first, final = found.z / h, last.z / h
        repair = _REPAIR * extent / h**2 * jnp.sum(rho[0][:, 0])
        guesses = (
            _calmed(memory.guesses[0], first, repair),
            _calmed(memory.guesses[1], final, repair),
        )
        return new, info, Last(first, final, found.lam / h, last.lam / h, guesses)


def _goes_on(u: Impulses, push: Gaps, friction: Gaps, rho: Impulses) -> Bool[Array, " m"]:
    """Return which contacts slip too fast for friction to stop them in this step.

    **Arguments:** `u`: their speeds at its start; `push`: how hard they push in it, nearly.
    """
    stops = _FAST * friction * push / jnp.where(rho[:, 1] > 0, rho[:, 1], 1.0)
    return (push > 0) & (jnp.sum(u[:, 1:] ** 2, axis=1) > stops**2)


def _calmed(before: Impulses, found: Impulses, repair: Scalar) -> Impulses:
    """Return what to begin the next iteration with.

    Impulses that repair rounding errors of gaps are no guess for the next step, where they would
    make such errors anew. In the mean with the guesses before they die out.
    """
    near = jnp.sum(jnp.abs(found - before)) <= repair
    return jnp.where(near, (3 * before + found) / 4, found)


def _turned(
    group: AbstractLieGroup, tau: AbstractRetraction, move: Coordinates, mu: Coordinates
) -> Coordinates:
    r"""Return $\mathrm{Ad}^*_{\tau(x)}\mu$."""
    return mu + group.coAdm1(tau.minus_identity(group, move), mu)


def _joined(
    system: AbstractGroupSystem,
    xi: Coordinates,
    ties: Float[Array, "k n"],
    g: Element,
    mu: Coordinates,
    t: Scalar,
) -> Coordinates:
    """Return velocities after the impulses of joints that they need to stay together."""
    pulls = answers(system, ties, g, mu)
    S = ties @ pulls.T
    S = S + _PROXIMAL * jnp.diag(jnp.diag(S))
    assert system.constraint is not None
    return xi - partly_ordered_solve(S, system.constraint.violation(g, xi, t), len(S)) @ pulls


def _approach(gap: Gaps, start: Gaps, end: Gaps, h: Scalar) -> Gaps:
    """Return the speeds at which contacts meet: between those at both ends of a step.

    `end` is the speed that there would be at its end without contact. The part of the step until
    they meet is that of their gap in the way on which they close.
    """
    way = -h * (start + end) / 2
    part = jnp.where(way > gap, gap / jnp.where(way > gap, way, 1.0), 1.0)
    return start + part * (end - start)


def _of_rods(system: AbstractGroupSystem) -> TypeGuard[AbstractRod]:
    return isinstance(system.contact, SelfContact)


def _of_balls(system: AbstractGroupSystem) -> TypeGuard[Balls]:
    return isinstance(system.contact, BallContact)


def _ties(system: AbstractGroupSystem, g: Element, t: Scalar) -> Float[Array, "k n"]:
    if system.constraint is None:
        return jnp.zeros((0, system.group.dim))
    return system.constraint.rows(g, t)


def _positions(system: AbstractGroupSystem, g: Element, t: Scalar) -> Float[Array, " k"]:
    if system.constraint is None:
        return jnp.zeros(0)
    return system.constraint.positions(g, t)


def _extent(g: Element) -> Scalar:
    """Return how large the coordinates of a place are, and so how far rounding moves it."""
    largest = [jnp.max(jnp.abs(leaf)) for leaf in jax.tree.leaves(g)]
    return jnp.maximum(jnp.max(jnp.stack(largest)), 1.0)
