"""Rods that touch themselves, each other, and what stands in space."""

from typing import ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Bool, Float

from retrax.contact.capsules import Nearest, Numbers, Points
from retrax.contact.spots import (
    FAR,
    KINDS,
    Places,
    Rows,
    Spots,
    frames,
    impulses,
    met,
    nearest,
    nodes_of,
    renewed,
    speeds,
)
from retrax.errors import BadInput
from retrax.integrators.base import AbstractIntegrator, Refusal, StepInfo, shorter_step, worse
from retrax.integrators.contact.gauss_seidel import Response, Seen, Solved, solve
from retrax.integrators.contact.neighbours import (
    Neighbours,
    carried,
    far_gone,
    found,
    nobody,
    spots_of,
)
from retrax.integrators.contact.rod_record import Ended, RodContactRecord, recorded, told
from retrax.integrators.kick_drift_kick import loaded
from retrax.mechanics.state import State
from retrax.mechanics.system import AbstractGroupSystem, Coordinates
from retrax.numerics.newton import NewtonStatus
from retrax.systems.rods.base import mean_rates
from retrax.systems.rods.elastic import AbstractRod
from retrax.systems.rods.nodes import Flight, Placement

Scalar = Float[Array, ""]
_EPS = float(jnp.finfo(jnp.float64).eps)
# What is left of the law, relative to the coordinates of the rod: aimed at, and accepted.
_AIM, _ACCEPT = 4 * _EPS, 256 * _EPS
# How far points may overlap that nobody has looked at, relative to them.
_DEEP = 256 * _EPS
# A gap this small, relative to them, is closed.
_CLOSED = 64 * _EPS
# Where there are no more pairs than a share of the nodes, the step has room for these alone.
_SHARE = 2


class LastTouch(NamedTuple):
    """The force at the end of a step, who is near whom, and impulses of both stages per time."""

    force: Coordinates
    near: Neighbours
    first: Points
    last: Points


class RodContact(AbstractIntegrator):
    r"""The step of `NonsmoothRattle` on rods: kick, impulses, flight, kick, impulses.

    Nodes fly freely within a step, so that only contacts join them:

    $$
    \begin{aligned}
    \mu^+ &= \mu_k + \tfrac h2F_k + \sum_iR_i^Tz_i, \qquad (g_{k+1}, \mu^-) = \mathrm{flight}_h(g_k,
        \mu^+)                                                                     &&\text{(1)}\\
    0 \le \gamma_i(g_{k+1}) &\perp p_i \ge 0, \qquad
      q_i = \mathrm{proj}_{|q| \le fp_i}\bigl(q_i - \tfrac\rho2(T_i(g_k) + T_i(g_{k+1}))\xi\bigr)
                                                                                   &&\text{(2)}\\
    \mu_{k+1} &= \mu^- + \tfrac h2F_{k+1} + \sum_iR_i'^Tz_i'                       &&\text{(3)}
    \end{aligned}
    $$

    with the impulses of (3) as in `NonsmoothRattle`. Gaps are those between points of the rods: of
    the points that would be closest at the end of the step with the velocities of its start. Where
    it turns out that others come closer and overlap, these take their place, or join them. Impulses
    between rods act along one line and at one point, and so keep momentum and angular momentum to
    round-off.

    References: [Moreau1988], [AcaryBrogliato2008].
    """

    order: ClassVar[int] = 2
    preserves: ClassVar[frozenset[str]] = frozenset({"group", "contact"})
    memory_saves_work: ClassVar[bool] = True

    def check(self, system: AbstractGroupSystem) -> None:
        if not isinstance(system, AbstractRod):
            raise BadInput(f"rx.SelfContact is the contact of rods, not of the {system.name}.")
        if system.constraint is not None:
            raise BadInput(
                f"the {system.name} have joints and may touch, which no step can do yet; leave out "
                "joints or contact."
            )

    def check_step(self, system: AbstractRod, state: State, h: float) -> None:
        system.check_step(state, h)

    def refusal(self, system: AbstractRod, state: State, h: float, moved: float) -> Refusal:
        begun = jax.tree.map(jnp.asarray, state)

        @jax.jit
        def again(size: Scalar) -> tuple[StepInfo, RodContactRecord, _Faults]:
            _, info, _, record, faults = _taken(system, begun, size, self.memory(system, begun))
            return info, record, faults

        _, record, faults = again(jnp.asarray(h))
        contact, shorter = system.contact, shorter_step(h, moved)
        room, number = contact.room(system.nodes), int(faults.number)
        if number > room:
            return Refusal(
                "found more pairs of near segments than there is room for",
                f"{number} pairs of segments are nearer than the skin of {float(contact.skin):.3g} "
                f"m, but capacity is {room}: give SelfContact a capacity of {number} or more, or a "
                "thinner skin.",
                shorter,
            )
        if not float(faults.moved) <= float(contact.skin) / 2:
            return Refusal(
                "moved a node too far",
                f"A node moves by {float(faults.moved):.3g} m in the step, but contacts are looked "
                f"for within half the skin, {float(contact.skin) / 2:.3g} m.",
                shorter,
            )
        left = np.asarray(faults.left)
        worst = int(np.argmax(left))
        if bool(faults.unsolved):
            return Refusal(
                "could not be solved for its contacts",
                f"{told(contact, np.asarray(system.arcs), record, worst)} is left with "
                f"{left[worst]:.1e} m of overlap, gap or creep in the step.",
                h / 2,
            )
        why = system.why_not(state, h)
        return Refusal("could not turn so far", why or "", shorter)

    def memory(self, system: AbstractRod, state: State) -> LastTouch:
        contact, places = system.contact, state.g[1]
        none = jnp.zeros((contact.slots(system.nodes), 3))
        force = system.kick(state.g, state.t)
        return LastTouch(force, nobody(contact, places), none, none)

    def step(self, system: AbstractRod, state: State, h: Scalar) -> tuple[State, StepInfo]:
        new, info, _ = self.next_step(system, state, h, self.memory(system, state))
        return new, info

    def next_step(
        self, system: AbstractRod, state: State, h: Scalar, memory: LastTouch
    ) -> tuple[State, StepInfo, LastTouch]:
        begun, few = _renewed(system, state, h, memory), system.nodes // _SHARE

        def stepped(memory: LastTouch) -> tuple[State, StepInfo, LastTouch]:
            return _solved(system, state, h, memory)[:3]

        def briefly(memory: LastTouch) -> tuple[State, StepInfo, LastTouch]:
            new, info, last = stepped(_cut(memory, few))
            return new, info, _filled(last, memory)

        if len(begun.near.first) <= 2 * few:
            return stepped(begun)
        return lax.cond(begun.near.number <= few, briefly, stepped, begun)

    def contact_record(
        self, system: AbstractRod, state: State, h: Scalar, memory: LastTouch | None = None
    ) -> tuple[State, RodContactRecord]:
        """Take a step again, and return what its contacts do."""
        state = jax.tree.map(jnp.asarray, state)
        begun = self.memory(system, state) if memory is None else memory
        new, _, _, record, _ = _taken(system, state, h, begun)
        return new, record

    def record(
        self, system: AbstractRod, state: State, h: Scalar, memory: LastTouch
    ) -> RodContactRecord:
        """Take the step again that handed on `memory`, from its own impulses."""
        begun = memory._replace(force=system.kick(state.g, state.t))
        return self.contact_record(system, state, h, begun)[1]


class _Faults(NamedTuple):
    """What may have gone wrong.

    **Attributes:** `number`: of pairs found; `moved`: the way of the fastest node; `left`: what is
    left of (2), as a length; `unsolved`: whether that is too much.
    """

    number: Scalar
    moved: Scalar
    left: Numbers
    unsolved: Bool[Array, ""]


_Taken = tuple[State, StepInfo, LastTouch, RodContactRecord, _Faults]


def _taken(system: AbstractRod, state: State, h: Scalar, memory: LastTouch) -> _Taken:
    return _solved(system, state, h, _renewed(system, state, h, memory))


def _solved(system: AbstractRod, state: State, h: Scalar, memory: LastTouch) -> _Taken:
    """Take a step with the pairs that the lists have."""
    contact, g0, mu0, t1 = system.contact, state.g, state.momentum, state.t + h
    turned0, places = g0
    now, then = system.at_time(state.t), system.at_time(t1)
    xi0 = now.velocity(g0, mu0)
    w0, v0 = _in_space(system, turned0, xi0)
    spots = spots_of(contact, memory.near)
    nodes = nodes_of(spots)
    extent = jnp.max(jnp.abs(places)) + contact.radius

    def rows_of(near: Nearest) -> Rows:
        _, normals, weights, arms = met(spots, places, near)
        return Rows(nodes, weights, arms, frames(normals), near)

    kick, carried = h / 2 * memory.force, then.carried(g0, h)
    free, _ = _loaded(system, state, h, kick)
    lost = then.lost(g0, mu0 + free, h / 2, carried, dragged_first=True)
    led = [mean_rates(pose, turned0, places, h) for pose in then.poses()]

    def look(z: Points, rows: Rows) -> tuple[Seen, Ended]:
        push, met_load = _loaded(system, state, h, kick + _given(system, turned0, rows, z))
        push = push if lost is None else push + lost
        flown = then.flight(g0, mu0 + push, h)
        for rates in led:  # supports that move
            turning, moving = system.parts(rates)
            flown = flown._replace(w=flown.w + turning, v=flown.v + moving)
        if met_load is not None:
            flown = flown._replace(status=worse(flown.status, met_load))
        turned = jnp.einsum("kij,kj->ki", turned0, flown.w)  # the same at both ends
        after = flown.g[1]
        gap, normals, weights, arms = met(spots, after, rows.near)
        ends = Ended(flown, push, gap, weights, arms, frames(normals, rows.frame))
        last = Rows(nodes, weights, arms, ends.frame, rows.near)
        slip = (speeds(rows, flown.v, turned) + speeds(last, flown.v, turned))[:, 1:] / 2
        u = jnp.concatenate([(gap / h)[:, None], slip], axis=1)
        return Seen(u, normals), ends

    def overlapping(
        ends: Ended, z: Points, rows: Rows, early: Bool[Array, ""]
    ) -> tuple[Bool[Array, ""], Rows]:
        deep, near = renewed(spots, ends.flown.g[1], rows.near, z[:, 0], _DEEP * extent, early)
        return deep, rows_of(near)

    size = extent / jnp.abs(h)
    begun = rows_of(nearest(spots, places + h * v0))
    first = solve(
        look,
        jnp.einsum("mij,mj->mi", begun.frame, memory.first * h),
        begun,
        _response(system, turned0),
        contact.friction,
        _AIM * size,
        _ACCEPT * size,
        overlapping,
    )
    ends: Ended = first.found
    approach = speeds(first.rows, v0, w0)
    g1 = ends.flown.g
    change = ends.push + _flat(ends.flown.change)
    more = then.lost(g1, mu0 + change, h / 2, carried, dragged_first=False)
    change = change if more is None else change + more
    force = system.kick(g1, t1)
    pull = h / 2 * force
    if system.feedback:
        pull = pull + h / 2 * system.load(g1, then.velocity(g1, mu0 + change), t1)
    mu = mu0 + (change + pull)

    last = Rows(nodes, ends.weights, ends.arms, ends.frame, first.rows.near)
    closed = (ends.gap < FAR) & ((first.z[:, 0] > 0) | (ends.gap <= _CLOSED * extent))
    meets = met(spots, places, first.rows.near)[0] > _CLOSED * extent
    bounce = jnp.where(meets, contact.restitution * jnp.minimum(approach[:, 0], 0.0), 0.0)

    def rebound(z: Points, last: Rows) -> tuple[Seen, Points]:
        xi = then.velocity(g1, mu + _given(system, g1[0], last, z))
        turned, moved = _in_space(system, g1[0], xi)
        u = speeds(last, moved, turned)
        along = jnp.where(closed, u[:, 0] + bounce, FAR)
        law = jnp.concatenate([along[:, None], u[:, 1:]], axis=1)
        return Seen(law, last.frame[:, 0]), u

    start = jnp.where(closed[:, None], jnp.einsum("mij,mj->mi", last.frame, memory.last * h), 0.0)
    speed = _fastest(v0) + _fastest(w0) * contact.radius
    speed = speed + _fastest(ends.flown.v)
    second = solve(
        rebound,
        start,
        last,
        _response(system, g1[0]),
        contact.friction,
        _AIM * speed,
        _ACCEPT * speed,
    )
    mu1 = mu + _given(system, g1[0], last, second.z)
    new = State(g1, mu1, t1)
    info, faults = _went(system, spots, memory, g1, h, ends.flown, first, second, extent, speed)
    hand_on = LastTouch(
        force, memory.near, _directed(first.rows, first.z) / h, _directed(last, second.z) / h
    )
    record = recorded(
        spots, g1, ends, first.z, second.z, approach, second.found, closed, contact.friction
    )
    return new, info, hand_on, record, faults


def _renewed(system: AbstractRod, state: State, h: Scalar, memory: LastTouch) -> LastTouch:
    """Return lists for this step, which are made anew where nodes have moved."""
    contact, places = system.contact, state.g[1]
    if not contact.itself:
        return memory
    _, v = system.parts(system.at_time(state.t).velocity(state.g, state.momentum))
    ahead = jnp.abs(h) * _fastest(v)

    def fresh(memory: LastTouch) -> LastTouch:
        near, source = found(contact, places, memory.near)
        first, last = carried(memory.first, source), carried(memory.last, source)
        return LastTouch(memory.force, near, first, last)

    stale = ~(far_gone(memory.near, places) + ahead < contact.skin / 2)
    return lax.cond(stale, fresh, lambda memory: memory, memory)


def _cut(memory: LastTouch, few: int) -> LastTouch:
    """Return lists with room for a few pairs, which are all that there are."""
    near, room = memory.near, len(memory.near.first)

    def cut(x: Points) -> Float[Array, "cut 3"]:
        kinds = [x[k * room : k * room + few] for k in range(KINDS)]
        return jnp.concatenate([*kinds, x[KINDS * room :]])

    short = near._replace(first=near.first[:few], second=near.second[:few])
    return LastTouch(memory.force, short, cut(memory.first), cut(memory.last))


def _filled(last: LastTouch, memory: LastTouch) -> LastTouch:
    """Return what a step with a few pairs found, with the room of `memory`."""
    few, room = len(last.near.first), len(memory.near.first)
    none = jnp.zeros((room - few, 3))

    def filled(x: Points) -> Float[Array, "filled 3"]:
        kinds = [part for k in range(KINDS) for part in (x[k * few : (k + 1) * few], none)]
        return jnp.concatenate([*kinds, x[KINDS * few :]])

    return LastTouch(last.force, memory.near, filled(last.first), filled(last.last))


def _went(
    system: AbstractRod,
    spots: Spots,
    memory: LastTouch,
    g1: Placement,
    h: Scalar,
    flown: Flight,
    first: Solved,
    second: Solved,
    extent: Scalar,
    speed: Scalar,
) -> tuple[StepInfo, _Faults]:
    """Return how a step went; what only contacts can explain counts as out of the chart."""
    status = flown.status
    solved = first.status.converged & second.status.converged
    ok = system.unfolded(g1) & solved
    moved, room = jnp.zeros(()), len(spots.first)
    if spots.contact.itself:
        moved = far_gone(memory.near, g1[1])
        ok = ok & (memory.near.number <= room) & (moved <= spots.contact.skin / 2)
    residual = jnp.maximum(
        first.status.residual * jnp.abs(h) / extent, second.status.residual / (speed + _EPS)
    )
    iterations = first.status.iterations + second.status.iterations
    info = StepInfo(
        status.converged,
        jnp.maximum(status.residual, residual),
        iterations,
        jnp.max(jnp.abs(h * flown.w)),
        ok,
    )
    left = jnp.maximum(first.left * jnp.abs(h), second.left * jnp.abs(h))
    return info, _Faults(memory.near.number, moved, left, ~solved)


def _loaded(
    system: AbstractRod, state: State, h: Scalar, kick: Coordinates
) -> tuple[Coordinates, NewtonStatus | None]:
    """Return a kick with the loads that depend on velocities."""
    return loaded(system, state, h, kick) if system.feedback else (kick, None)


def _in_space(system: AbstractRod, frames: Array, xi: Coordinates) -> tuple[Places, Places]:
    """Return spins and velocities of nodes in space."""
    w, v = system.parts(xi)
    return jnp.einsum("kij,kj->ki", frames, w), v


def _fastest(v: Places) -> Scalar:
    return jnp.sqrt(jnp.max(jnp.sum(v * v, axis=1)))


def _given(system: AbstractRod, frames: Array, rows: Rows, z: Points) -> Coordinates:
    """Return the momenta that impulses give to nodes that are not held."""
    moved, turned = impulses(rows, z, system.nodes)
    spin = jnp.einsum("kji,kj->ki", frames, turned)
    return system.held(jnp.concatenate([spin, moved], axis=1).reshape(-1))


def _flat(spin: Places) -> Coordinates:
    return jnp.concatenate([spin, jnp.zeros_like(spin)], axis=1).reshape(-1)


def _response(system: AbstractRod, frames: Array) -> Response:
    turns, moves = system.parts(system.mobility)
    return Response(moves[:, 0], jnp.einsum("kij,kj,klj->kil", frames, turns, frames))


def _directed(rows: Rows, z: Points) -> Points:
    """Return impulses as vectors in space."""
    return sum((z[:, k, None] * rows.frame[:, k] for k in range(3)), jnp.zeros_like(z))
