"""Contact that sticks, slips, lets go and comes back: RATTLE with unilateral constraints."""

from typing import ClassVar, NamedTuple, TypeGuard

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float, Int

from retrax.contact.node_contact import AbstractNodeContact, Closest
from retrax.contact.rows import Places
from retrax.contact.solver.body_sweeps import Joints
from retrax.contact.solver.complementarity import (
    Choice,
    Contact,
    Found,
    Impulses,
    Law,
    Verdict,
    pushes,
    weights,
)
from retrax.contact.solver.coupled_blocks import carry_rows, impulse_of, speeds_along
from retrax.contact.solver.solution import solve_contact
from retrax.contact.steps.faults import fault_of_contact
from retrax.contact.steps.impacts import (
    Bounced,
    Bracket,
    approach,
    between,
    coadjoint,
    damp_guess,
    go_round,
    goes_on,
    initial_bracket,
    narrow,
    project_to_joints,
    round_,
    separation_speeds,
    turn_of,
)
from retrax.contact.steps.last_touch import LastTouch
from retrax.contact.steps.neighbours import Neighbours
from retrax.contact.steps.node_rattle import NodeContact
from retrax.contact.steps.node_record import NodeRecord
from retrax.contact.steps.records import ContactRecord, Given, record
from retrax.errors import BadInput
from retrax.groups.retractions import AbstractRetraction, Exp
from retrax.integrators.base import AbstractIntegrator, Refusal, StepInfo, step_info, worse
from retrax.mechanics.contact import AbstractContacts, Frames, Gaps
from retrax.mechanics.holonomic import AbstractHolonomic
from retrax.mechanics.reactions import answers
from retrax.mechanics.state import State
from retrax.mechanics.system import AbstractGroupSystem, Coordinates, Element
from retrax.nodal.nodes import AbstractNodes
from retrax.numerics.jax_hints import keep_axis

Scalar = Float[Array, ""]
_EPS = float(jnp.finfo(jnp.float64).eps)
# A gap this small, relative to the coordinates of the place, is closed: rounding errors of contacts
# that say the same twice would otherwise push against each other.
_CLOSED, _TOUCHED = 8 * _EPS, 64 * _EPS
# What would go in a step no further than this does not bounce, and does not slip on.
_SOFT = 1e-12
# How often a step is taken to see where it touches at its end.
_LOOKS = 16
# What impacts may add to the energy, relative to the terms of their work: rounding.
_GAINED = 1e-13
# Impulses that move bodies by no more than this, relative to the coordinates, repair rounding.
_REPAIR = 256 * _EPS


class Last(NamedTuple):
    """What the step before found: the impulses of both stages, per time.

    `guesses` are what the iterations of both begin with: the same, but for rounding errors. `along`
    are the frames of the first stage, where points of contact depend on them.
    """

    first: Impulses
    last: Impulses
    ties: Float[Array, " k"]
    ends: Float[Array, " k"]
    guesses: tuple[Impulses, Impulses]
    along: Float[Array, "_ 3 3"]


class _Look(NamedTuple):
    """Frames to try, whether the step taken is fine, and the best step so far."""

    along: Frames
    found: Bool[Array, ""]
    taken: tuple[State, StepInfo, Last]
    count: Int[Array, ""]


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
        if _of_nodes(system):
            return NodeContact().check(system)
        self.retraction.check(system.group)
        if system.contact is None:
            raise BadInput(
                f"NonsmoothRattle needs contacts, and the {system.name} has none; use LieVerlet()."
            )
        if system.contact.own_step is not None:
            raise BadInput(
                f"the {system.name} has a step of its own for its contact; use "
                f"{system.contact.own_step}."
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
        if _of_nodes(system):
            NodeContact().check_step(system, state, h)

    def check_run(self, t: float, h: float, steps: int) -> str | None:
        if h < 0:
            raise BadInput(f"h = {h:g} is negative, but friction and impacts have no way back.")
        return None

    def refusal(self, system: AbstractGroupSystem, state: State, h: float, moved: float) -> Refusal:
        if _of_nodes(system):
            return NodeContact().refusal(system, state, h, moved)
        return super().refusal(system, state, h, moved)

    def memory(self, system: AbstractGroupSystem, state: State) -> Last | LastTouch:
        if _of_nodes(system):
            return NodeContact().memory(system, state)
        none = jnp.zeros((len(system.contact.names), 3))
        ties = jnp.zeros(len(_ties(system, state.g, state.t)))
        along = _follow(system.contact, system.contact.reach(state.g).frame)
        return Last(none, none, ties, ties, (none, none), along)

    def step(self, system: AbstractGroupSystem, state: State, h: Scalar) -> tuple[State, StepInfo]:
        new, info, _ = self.next_step(system, state, h, self.memory(system, state))
        return new, info

    def next_step(
        self, system: AbstractGroupSystem, state: State, h: Scalar, memory: Last | LastTouch
    ) -> tuple[State, StepInfo, Last | LastTouch]:
        if isinstance(memory, LastTouch):
            assert _of_nodes(system)
            return NodeContact().next_step(system, state, h, memory)
        if not system.contact.follows:
            return self._take(system, state, h, memory, None)
        return self._look(system, state, h, memory)

    def fault(self, system: AbstractGroupSystem, state: State, h: float) -> str | None:
        return None if _of_nodes(system) else fault_of_contact(system, state, h)

    def contact_record(
        self,
        system: AbstractGroupSystem,
        state: State,
        h: Scalar,
        memory: Last | LastTouch | None = None,
    ) -> tuple[State, ContactRecord | NodeRecord]:
        """Take a step again, and return what its contacts do."""
        begun = self.memory(system, state) if memory is None else memory
        if isinstance(begun, LastTouch):
            assert _of_nodes(system)
            return NodeContact().contact_record(system, state, h, begun)
        new, _, last = self.next_step(system, state, h, begun)
        return new, self.record(system, state, new, h, last)

    def record(
        self,
        system: AbstractGroupSystem,
        state: State,
        new: State,
        h: Scalar,
        memory: Last | LastTouch,
    ) -> ContactRecord | NodeRecord:
        """Return what contacts did in a step between two states that handed on `memory`."""
        if isinstance(memory, LastTouch):
            assert _of_nodes(system)
            return NodeContact().record(system, state, new, h, memory)
        first = Given(h * memory.first, h * memory.ties, _ties(system, state.g, state.t))
        last = Given(h * memory.last, h * memory.ends, _ties(system, new.g, new.t))
        follows = system.contact.follows
        here = system.contact.look(state.g, memory.along if follows else None, follows)
        return record(system, state, new, here, first, last, h, _extent(state.g))

    def closest(self, system: AbstractNodes, places: Places, near: Neighbours) -> Closest:
        """Return how far apart near nodes are at these places."""
        return NodeContact().closest(system, places, near)

    def _look(
        self, system: AbstractGroupSystem, state: State, h: Scalar, memory: Last
    ) -> tuple[State, StepInfo, Last]:
        """Take a step in which points of contact are held where it begins.

        A cylinder that nearly stands has its lowest point elsewhere at the end of the step, and has
        to be held there from the start. Where that is, steps tell; one is enough elsewhere.
        """
        group, tau, contact = system.group, self.retraction, system.contact
        xi = system.at_time(state.t).velocity(state.g, state.momentum)
        here = contact.reach(state.g).frame
        ahead = contact.reach(group.advance(state.g, tau.minus_identity(group, h * xi))).frame
        turns = go_round(here, ahead)

        def take(at: _Look) -> _Look:
            taken = self._take(system, state, h, memory, at.along)
            info, then = taken[1], contact.reach(taken[0].g).frame
            found = info.converged & (~jnp.any(turns) | ~jnp.any(go_round(at.along, then)))
            better = info.converged | ~at.taken[1].converged
            taken = jax.tree.map(lambda x, y: jnp.where(better, x, y), taken, at.taken)
            along = jnp.where(at.count < _LOOKS // 2, between(at.along, then), round_(at.along))
            return _Look(lax.stop_gradient(along), found, taken, at.count + 1)

        def again(at: _Look, _: None) -> tuple[_Look, None]:
            return lax.cond(at.found, lambda at: at, take, at), None

        no, none = jnp.asarray(False), jnp.zeros(())
        unknown = StepInfo(no, none, jnp.asarray(0), none, no)
        along = lax.stop_gradient(jnp.where(turns, ahead, here))
        start = _Look(along, no, (state, unknown, memory), jnp.asarray(0))
        return lax.scan(again, start, None, length=_LOOKS)[0].taken

    def _take(
        self,
        system: AbstractGroupSystem,
        state: State,
        h: Scalar,
        memory: Last,
        along: Frames | None,
    ) -> tuple[State, StepInfo, Last]:
        group, tau = system.group, self.retraction
        contact: AbstractContacts = system.contact
        couples = contact.couples
        g0, mu0, t0, t1 = state.g, state.momentum, state.t, state.t + h
        now, then = system.at_time(t0), system.at_time(t1)
        ties, extent, xi0 = _ties(system, g0, t0), _extent(g0), now.velocity(g0, mu0)
        before = contact.reach(g0, along, along is not None)
        touched = before.gap <= _TOUCHED * extent
        u0 = speeds_along(before.rows, xi0, couples)
        rho = weights(before.rows, ties, lambda rows: answers(now, rows, g0, mu0), couples)

        def kick(at: AbstractGroupSystem, g: Element, xi: Coordinates, t: Scalar) -> Coordinates:
            return h / 2 * at.total_force(g, xi, at.momentum(g, xi), t)

        def drift(xi: Coordinates) -> Element:
            return group.advance(g0, tau.minus_identity(group, h * xi))

        def need(xi: Coordinates) -> Coordinates:
            p = (now.momentum(g0, xi) + then.momentum(drift(xi), xi)) / 2
            return tau.dR_inv_dual(group, h * xi, p) - (mu0 + kick(now, g0, xi, t0))  # (1)

        pushed = kick(now, g0, xi0, t0)
        free = now.velocity(g0, mu0 + pushed)  # how it would go on without contact
        slips = touched & (h**2 * jnp.sum(u0[:, 1:] ** 2, axis=1) > (_SOFT * extent) ** 2)

        def slip() -> Bool[Array, " m"]:
            sinks = jnp.maximum(-contact.speeds(drift(free), free, before.frame)[0], 0.0) / h
            along, across = rho[0][:, 0], rho[0][:, 1]
            answer = 1 / jnp.where(across > 0, across, 1.0)
            return slips & goes_on(u0[:, 1:], along * sinks, contact.friction, answer)

        # Numbers, because derivatives do not reach truths.
        slides = lax.cond(jnp.any(slips), slip, lambda: slips).astype(float)

        def look(gap: Array) -> Array:
            # What is closed is zero, and has the derivatives of the gap.
            nothing = gap - lax.stop_gradient(gap)
            return jnp.where(jnp.abs(gap) <= _CLOSED * extent, nothing, gap)

        def speeds(xi: Coordinates, slides: Choice) -> Impulses:
            gap, there = contact.speeds(drift(xi), xi, before.frame)
            slip = (speeds_along(before.rows, xi, couples) + there)[:, 1:] / 2
            slip = jnp.where(slides[:, None] > 0, u0[:, 1:], slip)
            return jnp.concatenate([(look(gap) / h)[:, None], slip], axis=1)  # (2), (3)

        def hold(xi: Coordinates) -> Array:
            return look(_positions(system, drift(xi), t1)) / h

        def slopes(xi: Coordinates, slides: Choice) -> tuple[Array, Array]:
            g = drift(xi)

            def carry(row: Coordinates) -> Coordinates:
                return tau.dL_dual(group, h * xi, row)

            rows = contact.reach(g, before.frame).rows
            opening = carry_rows(rows[:, 0], carry, couples)
            slip = jnp.where(slides[:, None, None] > 0, 0.0, (before.rows + rows)[:, 1:] / 2)
            V = jnp.concatenate([opening[:, None], slip], axis=1)
            G = _ties(system, g, t1)
            return V, jax.vmap(carry)(G) if len(G) else G

        def gives(rows: Array) -> Array:
            return answers(now, rows, g0, mu0)

        def gain(found: Found) -> Scalar:
            pushes = impulse_of(before.rows, found.z, couples)
            return pushes @ found.xi - found.impulse @ (found.xi - free) / 2  # (7)

        def judge(found: Found, slides: Choice, past: tuple) -> Verdict:
            ahead = jnp.sum(speeds_along(before.rows, found.xi, couples)[:, 1:] * u0[:, 1:], axis=1)
            back = jnp.any((slides > 0) & (found.z[:, 0] > 0) & (ahead < 0))
            most = h * jnp.maximum(jnp.max(jnp.abs(found.xi)), jnp.max(jnp.abs(free)))
            most = most**2 + turn_of(contact, before.frame, drift(found.xi))
            more = gain(found) > most * jnp.abs((mu0 + pushed) @ free) / 2
            none = jnp.zeros_like(slides)
            return Verdict(~back & ~more, (back | more) & jnp.any(slides > 0), none, past)

        problem = Contact(
            need=need,
            speeds=speeds,
            slopes=slopes,
            held=hold,
            answers=gives,
            judge=judge,
            choice=(slides, jnp.zeros_like(slides), ()),
            couples=couples,
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
        z = z if couples is None else keep_axis(z)
        loaded = impulse_of(before.rows, z, couples) + lam @ ties
        guess = Found(now.velocity(g0, mu0 + pushed + loaded), z, lam, loaded)
        found, status = solve_contact(problem, guess)
        xi = found.xi
        g1 = drift(xi)
        push = kick(now, g0, xi, t0)
        push = push + found.impulse
        turn = group.coAdm1(tau.minus_identity(group, h * xi), mu0 + push)
        off = mu0 + (push + turn + kick(then, g1, xi, t1))  # (4) without impulses

        after, ends = contact.reach(g1, before.frame), _ties(system, g1, t1)
        closed = (found.z[:, 0] > 0) | (after.gap <= _CLOSED * extent)
        # What meets in this step slides freely until then, and rubs with all of its push after.
        met = jnp.where(touched, 0.0, found.z[:, 0])

        def rebound() -> Gaps:
            apart = then.velocity(g1, off - coadjoint(group, tau, h * xi, found.impulse))
            arrives, goes = then.velocity(g1, off), free
            if system.constraint is not None:
                goes = project_to_joints(now, free, ties, g0, mu0, t0)
                apart, arrives = (
                    project_to_joints(then, v, ends, g1, off, t1) for v in (apart, arrives)
                )

            def ahead(v: Coordinates) -> Gaps:
                return speeds_along(after.rows, v, couples)[:, 0]

            def down(v: Coordinates) -> Gaps:
                return speeds_along(before.rows, v, couples)[:, 0]

            end = approach(before.gap, u0[:, 0], ahead(apart), h)
            v = jnp.where(touched, jnp.minimum(u0[:, 0], 0.0), end)
            give = pushes(after.rows[:, :1], lambda rows: answers(then, rows, g1, off), couples)
            ratio = rho[0][:, 0] * jnp.sum(after.rows[:, 0] * give[:, 0], axis=1)
            spare = ahead(arrives) ** 2 + ratio * (down(goes) ** 2 - down(xi) ** 2)  # (6)
            v = jnp.maximum(v, -jnp.sqrt(jnp.where(spare > 0, spare, 0.0)))
            v = jnp.where(-h * v > _SOFT * extent, contact.restitution * v, 0.0)
            # What meets only because something else does meets after it.
            alone = contact.speeds(drift(goes), goes, before.frame)[0]
            later = closed & ~touched & (alone > 0) & (contact.restitution > 0)

            def in_turn() -> Gaps:
                pulls = answers(then, ends, g1, off) if len(ends) else ends
                joints = Joints(rho[1], jnp.zeros(len(ends)), ends, pulls)
                left = separation_speeds(
                    ahead(apart),
                    after.rows[:, :1],
                    give,
                    joints,
                    closed,
                    contact.restitution,
                    couples,
                )
                return jnp.where(closed, -left, 0.0)

            return lax.cond(jnp.any(later), in_turn, lambda: v)

        # What meets slowly, or gives nothing back, does not bounce.
        meets = ~touched | (-h * u0[:, 0] > _SOFT * extent)
        bounce = lax.cond(
            jnp.any(closed & meets & (contact.restitution > 0)),
            rebound,
            lambda: jnp.zeros_like(u0[:, 0]),
        )

        def residual(xi: Coordinates) -> Coordinates:
            return then.momentum(g1, xi) - off

        def rates(xi: Coordinates, part: Choice) -> Impulses:
            u = speeds_along(after.rows, xi, couples)
            return jnp.concatenate([(u[:, 0] + part * bounce)[:, None], u[:, 1:]], axis=1)  # (5)

        def opening(xi: Coordinates) -> Array:
            if system.constraint is None:
                return ends @ xi
            return system.constraint.violation(g1, xi, t1)

        def keep(last: Found, part: Choice, past: Bracket) -> Verdict:
            J, K = found.impulse, last.impulse
            departs, arrives = now.velocity(g0, mu0 + J), then.velocity(g1, off)
            gain = J @ (xi0 + departs) / 2 + K @ (arrives + last.xi) / 2  # (7)
            gain = gain + found.lam @ _drives(system, ties, g0, xi0, t0)
            gain = gain + last.lam @ _drives(system, ends, g1, arrives, t1)
            sizes = jnp.abs(J) @ (jnp.abs(xi0) + jnp.abs(departs))
            sizes = sizes + jnp.abs(K) @ (jnp.abs(arrives) + jnp.abs(last.xi))
            return narrow(past, Bounced(part[0], gain, last.xi, K), _GAINED * sizes)

        def measure(last: Found, part: Choice, past: Bracket) -> Verdict:
            fine = Verdict(jnp.asarray(True), jnp.asarray(False), part, past)
            return lax.cond(jnp.any(bounce < 0), lambda: keep(last, part, past), lambda: fine)

        second = Contact(
            need=residual,
            speeds=rates,
            slopes=lambda xi, part: (after.rows, ends),
            held=opening,
            answers=lambda rows: answers(then, rows, g1, off),
            judge=measure,
            choice=(jnp.ones(1), jnp.ones(1), initial_bracket(xi)),
            couples=couples,
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
        loaded = impulse_of(after.rows, started, couples) + h * memory.ends @ ends
        begun = Found(then.velocity(g1, off + loaded), started, h * memory.ends, loaded)
        last, settled = solve_contact(second, begun)
        new = State(g1, off + last.impulse, t1)
        both = worse(status, settled)
        info = step_info(both, h * xi, tau.covers(group, h * xi))
        first, final = found.z / h, last.z / h
        kept_along = _follow(contact, before.frame if along is None else along)
        repair = _REPAIR * extent / h**2 * jnp.sum(rho[0][:, 0])
        guesses = (
            damp_guess(memory.guesses[0], first, repair),
            damp_guess(memory.guesses[1], final, repair),
        )
        return new, info, Last(first, final, found.lam / h, last.lam / h, guesses, kept_along)


def _follow(contact: AbstractContacts, along: Frames) -> Float[Array, "_ 3 3"]:
    """Return frames where points of contact depend on them, else none."""
    return along if contact.follows else along[:0]


def _of_nodes(system: AbstractGroupSystem) -> TypeGuard[AbstractNodes]:
    return isinstance(system.contact, AbstractNodeContact)


def _ties(system: AbstractGroupSystem, g: Element, t: Scalar) -> Float[Array, "k n"]:
    if system.constraint is None:
        return jnp.zeros((0, system.group.dim))
    return system.constraint.rows(g, t)


def _positions(system: AbstractGroupSystem, g: Element, t: Scalar) -> Float[Array, " k"]:
    if system.constraint is None:
        return jnp.zeros(0)
    return system.constraint.positions(g, t)


def _drives(
    system: AbstractGroupSystem, ties: Array, g: Element, xi: Coordinates, t: Scalar
) -> Float[Array, " k"]:
    """Return how fast joints that are driven change by themselves."""
    if system.constraint is None:
        return jnp.zeros(0)
    return system.constraint.violation(g, xi, t) - ties @ xi


def _extent(g: Element) -> Scalar:
    """Return how large the coordinates of a place are, and so how far rounding moves it."""
    largest = [jnp.max(jnp.abs(leaf)) for leaf in jax.tree.leaves(g)]
    return jnp.maximum(jnp.max(jnp.stack(largest)), 1.0)
